/** The session of this browser: opened by the token of the link, or by a login; it gives requests their CSRF token. */

import type { AdminResponses } from '@gateway/admin/types';
import { signal } from '@preact/signals';
import { ApiError, request } from './api.ts';

/** How a browser may log in, as the gateway describes it. */
type LoginInfo = Pick<AdminResponses['GET session'], 'may_login' | 'accepts' | 'reason'>;

/** What is known of the session. */
export type SessionState =
  | { readonly is: 'unknown' }
  | { readonly is: 'unreachable'; readonly message: string }
  | { readonly is: 'closed'; readonly login: LoginInfo; readonly message: string | undefined }
  | { readonly is: 'open'; readonly csrf: string };

/** The session of this browser. */
export const session = signal<SessionState>({ is: 'unknown' });

/** Opens the session: by the token in the address, or the one that the browser has. */
export async function startSession(): Promise<void> {
  const token = takeToken();
  if (token === undefined) await refreshSession();
  else await login({ token });
}

/** Why this page ended its session. It counts: the requests and streams that end with a session give reasons, too. */
let leaving: string | undefined;

/** Opens a session. A session that the browser already has stays when this fails. */
export async function login(credential: { token: string } | { key: string }): Promise<void> {
  leaving = undefined;
  try {
    const { csrf_token } = await request('POST session', { body: credential });
    session.value = { is: 'open', csrf: csrf_token };
  } catch (error) {
    await refreshSession(describeError(error));
  }
}

/** Asks the gateway whether this browser has a session. `message` is shown when it has none. */
export async function refreshSession(message?: string): Promise<void> {
  try {
    const { csrf_token, ...info } = await request('GET session');
    session.value =
      csrf_token === null ? { is: 'closed', login: info, message: leaving ?? message } : { is: 'open', csrf: csrf_token };
  } catch (error) {
    session.value = { is: 'unreachable', message: describeError(error) };
  }
}

/** Ends the session. */
export async function logout(): Promise<void> {
  leaving = 'You are logged out.';
  await request('DELETE session', { csrf: readCsrf() }).catch(() => undefined);
  await refreshSession();
}

/** The token that requests which change something must send. */
export const readCsrf = (): string => (session.value.is === 'open' ? session.value.csrf : '');

/** The token of the address, which is removed from it: an address may be shared, and is in the history. */
function takeToken(): string | undefined {
  const token = /^#token=([\w-]{1,512})$/.exec(location.hash)?.[1];
  if (token !== undefined) history.replaceState(null, '', location.pathname);
  return token;
}

/** An error in the words of the gateway. */
export const describeError = (error: unknown): string =>
  error instanceof ApiError || error instanceof Error ? error.message : String(error);
