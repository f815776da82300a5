/** The login: by the admin key, or by a token from the terminal. Says why when it is not possible. */

import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { login as openSession, type SessionState } from './lib/session.ts';
import { Failure } from './ui/parts.tsx';

type Closed = Extract<SessionState, { is: 'closed' }>;

/** Asks for what opens a session. */
export function Login({ login, message }: Pick<Closed, 'login' | 'message'>): JSX.Element {
  const acceptsKey = login.accepts.includes('key');
  return (
    <div class="pad narrow">
      <h1>{acceptsKey ? 'Log in' : 'Open the link of the terminal'}</h1>
      {message !== undefined && <Failure message={message} />}
      {login.may_login ? (
        <>
          <p>
            {acceptsKey
              ? 'Use the admin key of the gateway (admin.key of the configuration, or SLUICE_ADMIN_KEY), or the link that it printed when it started.'
              : 'This gateway has no admin key. When it started, it printed a link with a token, which opens the console once. Open that link, or paste it here; restart the gateway for another one.'}
          </p>
          <Form acceptsKey={acceptsKey} />
        </>
      ) : (
        <Failure message={`Login is not possible here: ${login.reason ?? ''}`} />
      )}
    </div>
  );
}

function Form({ acceptsKey }: { acceptsKey: boolean }): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const input = event.currentTarget instanceof HTMLFormElement ? event.currentTarget.elements.namedItem('secret') : null;
    const secret = input instanceof HTMLInputElement ? input.value.trim() : '';
    if (secret === '') return;
    setBusy(true);
    const token = /#token=([\w-]+)$/.exec(secret)?.[1] ?? (acceptsKey ? undefined : secret);
    await openSession(token === undefined ? { key: secret } : { token });
    setBusy(false);
  };
  return (
    <form class="login" onSubmit={(event) => void submit(event)}>
      <label for="secret">{acceptsKey ? 'Admin key, or link' : 'Link or token'}</label>
      <input id="secret" name="secret" type="password" autocomplete="off" spellcheck={false} required />
      <button type="submit" disabled={isBusy}>
        Log in
      </button>
    </form>
  );
}
