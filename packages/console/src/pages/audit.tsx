/** The audit log: who changed what, newest first. */

import type { AdminResponses } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call } from '../lib/data.ts';
import { formatDateTime } from '../lib/format.ts';
import { useKeys } from '../lib/keys.ts';
import { route, setParameters } from '../lib/router.ts';
import { describeError } from '../lib/session.ts';
import { Failure, ScrollRegion } from '../ui/parts.tsx';
import '../manage/manage.css';

type Page = AdminResponses['GET audit'];

type Entry = Page['entries'][number];

const PAGE_ROWS = 100;

/** Pages that are kept; a filter finds older entries. */
const MAX_ENTRIES = 5000;

/** The page of the audit log. */
export default function Audit(): JSX.Element {
  const { text = '' } = route.value.parameters;
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [state, setState] = useState<'loading' | 'ready' | { message: string }>('loading');
  const input = useRef<HTMLInputElement>(null);
  useKeys({ '/': { about: 'filter', run: () => input.current?.focus() } }, []);
  const load = async (before: readonly Entry[], cursor: string | undefined, signal?: AbortSignal): Promise<void> => {
    setState('loading');
    try {
      const page = await call('GET audit', { query: { limit: PAGE_ROWS, cursor, text }, ...(signal && { signal }) });
      setEntries([...before, ...page.entries]);
      setNext(page.next);
      setState('ready');
    } catch (error) {
      if (!signal?.aborted) setState({ message: describeError(error) });
    }
  };
  useEffect(() => {
    const controller = new AbortController();
    void load([], undefined, controller.signal);
    return () => controller.abort();
  }, [text]);
  return (
    <div class="page">
      <header class="section">
        <h1>Audit log</h1>
        <label>
          Filter{' '}
          <input
            ref={input}
            type="search"
            value={text}
            placeholder="/ key.revoke, alice, session"
            spellcheck={false}
            onChange={(event) => setParameters({ text: event.currentTarget.value.trim() })}
          />
        </label>
      </header>
      {typeof state === 'object' && <Failure message={state.message} />}
      {entries.length > 0 && <Entries entries={entries} />}
      {state === 'ready' && entries.length === 0 && (
        <p>
          {text === ''
            ? 'Nothing was changed yet: keys, logins, backups and reloads are listed here.'
            : 'No entry has this text.'}
        </p>
      )}
      {state === 'loading' && <p class="muted">Loading…</p>}
      {next !== null && state === 'ready' && entries.length < MAX_ENTRIES && (
        <button type="button" onClick={() => void load(entries, next)}>
          Older entries
        </button>
      )}
      {next !== null && entries.length >= MAX_ENTRIES && <p class="muted">Older entries are in “sluice audit”.</p>}
    </div>
  );
}

function Entries({ entries }: { entries: readonly Entry[] }): JSX.Element {
  return (
    <ScrollRegion label="Audit log">
      <table class="figures">
        <thead>
          <tr>
            {['time', 'by', 'action', 'object', 'details'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {entries.map(({ id, at, actor, action, object, details }) => (
            <tr key={id}>
              <td>{formatDateTime(at)}</td>
              <td>{ACTORS[actor] ?? actor}</td>
              <td>{action}</td>
              <td class="wrap">{object || '–'}</td>
              <td class="wrap">{formatDetails(details)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  );
}

const ACTORS: Readonly<Record<string, string>> = {
  key: 'admin key',
  session: 'console',
  local: 'local program',
  cli: 'command line',
  config: 'configuration',
};

/** `name=alice models=gpt-*`; empty values are left out. */
const formatDetails = (details: Entry['details']): string =>
  Object.entries(details)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(
      ([name, value]) => `${name}=${typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : String(value)}`,
    )
    .join(' ')
    .slice(0, 1000);
