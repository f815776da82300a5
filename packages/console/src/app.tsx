/** The frame around every page: navigation, theme, help, and the login. */

import type { ComponentType, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { keyMaps, useKeys } from './lib/keys.ts';
import { switchTheme, theme } from './lib/preferences.ts';
import { formatRoute, route } from './lib/router.ts';
import { logout, session } from './lib/session.ts';
import { Login } from './login.tsx';
import { PAGES, type Page } from './pages.ts';
import { announcement, Failure } from './ui/parts.tsx';

/** The whole console. */
export function App(): JSX.Element {
  const [isHelpOpen, setHelpOpen] = useState(false);
  useKeys(
    {
      '?': { about: 'list all keys', run: () => setHelpOpen(true) },
      t: { about: 'switch the theme', run: switchTheme },
    },
    [],
  );
  const page = PAGES.find(({ id }) => id === route.value.page);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <Header page={page} onHelp={() => setHelpOpen(true)} />
      <main id="main" tabIndex={-1}>
        <Body page={page} />
      </main>
      <p class="visually-hidden" role="status">
        {announcement.value}
      </p>
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </>
  );
}

function Header({ page, onHelp }: { page: Page | undefined; onHelp: () => void }): JSX.Element {
  return (
    <header class="bar">
      <strong class="brand">Sluice</strong>
      <nav aria-label="Pages">
        {PAGES.map(({ id, title }) => (
          <a key={id} href={formatRoute({ page: id, parameters: {} })} aria-current={id === page?.id ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <button type="button" class="small" onClick={switchTheme} title="Switch the theme (t)">
        theme: {theme.value}
      </button>
      <button type="button" class="small" onClick={onHelp} title="List all keys (?)">
        keys
      </button>
      {session.value.is === 'open' && (
        <button type="button" class="small" onClick={() => void logout()}>
          log out
        </button>
      )}
    </header>
  );
}

function Body({ page }: { page: Page | undefined }): JSX.Element {
  const state = session.value;
  switch (state.is) {
    case 'unknown':
      return <p class="muted pad">Connecting…</p>;
    case 'unreachable':
      return (
        <div class="pad">
          <Failure message={`The gateway cannot be reached: ${state.message}`} />
          <button type="button" onClick={() => location.reload()}>
            Try again
          </button>
        </div>
      );
    case 'closed':
      return <Login login={state.login} message={state.message} />;
    case 'open':
      return page ? <Lazy page={page} /> : <NotFound />;
    default:
      return state satisfies never;
  }
}

const NotFound = (): JSX.Element => (
  <div class="pad">
    <h1>There is no such page</h1>
    <p>
      <a href="#/">Home</a>
    </p>
  </div>
);

type LazyState = { readonly page: Page; readonly component?: ComponentType; readonly message?: string };

/** Loads the code of a page. */
function Lazy({ page }: { page: Page }): JSX.Element {
  const [state, setState] = useState<LazyState>({ page });
  useEffect(() => {
    document.title = `${page.title} – Sluice`;
    page.load().then(
      ({ default: component }) => {
        setState({ page, component });
        // Keys belong to the new page, not to the link that led to it.
        if (document.activeElement?.closest('nav')) document.getElementById('main')?.focus();
      },
      (error: unknown) => setState({ page, message: String(error) }),
    );
  }, [page]);
  if (state.message !== undefined)
    return <Failure message={`The page cannot be loaded; the gateway may have been updated, so reload it. ${state.message}`} />;
  const { component: Component } = state;
  return state.page === page && Component ? <Component /> : <p class="muted pad">Loading…</p>;
}

/** A list of the keys in force. */
function Help({ onClose }: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const keys = new Map(keyMaps.value.flatMap((map) => Object.entries(map)));
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {[...keys].map(([key, { about }]) => (
          <div key={key}>
            <dt>
              <kbd>{key === ' ' ? 'space' : key}</kbd>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
