import type { CanonicalError, ErrorCode } from '@sluice/core';
import type { Pause } from '../upstream/breaker.ts';
import { MalformedResponse, NotUnpacked, TooLarge, TooLate, WrongAddress } from '../upstream/failures.ts';

/** Retrying cannot help: SDKs that would do it by themselves are told so. */
const HOPELESS = { should_retry: 'false' } as const;

/** The upstream had the request, and may have processed it. */
const PROCESSED = { may_be_billed: true } as const;

export const STOPPED: CanonicalError = {
  code: 'OVERLOADED',
  message: 'the gateway stops; ask again',
  http_status: 503,
  retry_after_ms: 1000,
  details: { ending: 'stopped' },
};

export const INTERNAL: CanonicalError = { code: 'INTERNAL', message: 'the gateway failed; its log says how', http_status: 500 };

export const EMPTY: CanonicalError = { code: 'UPSTREAM_ERROR', message: 'the upstream sent no answer', http_status: 502 };

export const tooLate = (message: string): CanonicalError => ({ code: 'TIMEOUT', message, http_status: 504 });

/** Every target of the request rests. */
export function paused({ ms, reason }: Pause): CanonicalError {
  const wait = Math.max(1000, ms);
  const message = `the upstream is paused for ${Math.ceil(wait / 1000)} s after failures; last error: ${reason}`;
  return { code: 'OVERLOADED', message, http_status: 503, retry_after_ms: wait };
}

/** By the class of the error where it is ours, by its code where it is undici's. */
const CODES: readonly (readonly [is: (error: unknown) => boolean, code: ErrorCode, message: string])[] = [
  [(error) => error instanceof TooLate, 'TIMEOUT', 'the upstream did not answer in time'],
  [(error) => error instanceof TooLarge, 'UPSTREAM_ERROR', 'the answer of the upstream is too large'],
  [(error) => codeOf(error) === 'UND_ERR_CONNECT_TIMEOUT', 'TIMEOUT', 'the upstream could not be reached in time'],
];

/** A failed connection in the canonical form: without host, address or key, which are the operator's business. */
export function connectionError(error: unknown): CanonicalError {
  if (error instanceof WrongAddress) return wrongAnswer(error.message);
  if (error instanceof NotUnpacked || error instanceof MalformedResponse) return wrongAnswer(error.message, PROCESSED);
  const [, code = 'UPSTREAM_ERROR', message = `the connection to the upstream failed${reasonOf(error)}`] =
    CODES.find(([is]) => is(error)) ?? [];
  return {
    code,
    message,
    http_status: code === 'TIMEOUT' ? 504 : 502,
    details: error instanceof TooLarge ? { ...HOPELESS, ...PROCESSED } : { may_be_billed: !isUnsent(error) },
  };
}

/** Failures to connect: nothing of the request was sent. All others come when it was, or may have been. */
const UNSENT =
  /^(ECONNREFUSED|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|EADDRNOTAVAIL|EMFILE|UND_ERR_CONNECT_TIMEOUT|.*(CERT|SSL|TLS).*)$/;

const isUnsent = (error: unknown): boolean => UNSENT.test(codeOf(error) ?? '');

/** Names of the system's errors say no secret. */
function reasonOf(error: unknown): string {
  const code = codeOf(error);
  return code !== undefined && /^(E[A-Z]+|UND_ERR_[A-Z_]+|CERT_[A-Z_]+|[A-Z]+_CERT[A-Z_]*|ERR_(SSL|TLS)_[A-Z_]+)$/.test(code)
    ? ` (${code})`
    : '';
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

const wrongAnswer = (message: string, details: Readonly<Record<string, unknown>> = {}): CanonicalError => ({
  code: 'UPSTREAM_ERROR',
  message,
  http_status: 502,
  details: { ...HOPELESS, ...details },
});

/** More than the operator lets an answer have. */
export const tooMuch = (what: string): CanonicalError => wrongAnswer(`the answer of the upstream has ${what}`, PROCESSED);

/** A redirect would take the key elsewhere. */
export const redirected = (status: number): CanonicalError | undefined =>
  status >= 300 && status < 400 ? wrongAnswer('the upstream answered with a redirect, which is not followed') : undefined;

/** Neither an answer nor an error of the protocol: its type is named, its body is not shown. */
export function notAnAnswer(headers: Record<string, string>): CanonicalError {
  const type = /^[\w.+-]{1,60}\/[\w.+-]{1,60}/.exec(headers['content-type'] ?? '')?.[0] ?? 'something without a type';
  return wrongAnswer(`the upstream answered with ${type} that is no answer of its protocol`);
}

/** What we ourselves find wrong about an answer is the upstream's fault, whatever a codec calls it. */
export function upstreamsFault(error: CanonicalError): CanonicalError {
  if (error.upstream || error.code === 'INCOMPATIBLE_FEATURE' || error.code === 'STREAM_TRUNCATED') return error;
  return { ...error, code: 'UPSTREAM_ERROR', http_status: 502 };
}
