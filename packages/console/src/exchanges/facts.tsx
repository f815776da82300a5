/** Notes and violations, attempts, and the session of an exchange. */

import type { AdminResponses } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { call, useLoaded } from '../lib/data.ts';
import { formatCost, formatCount, formatDuration, formatTime } from '../lib/format.ts';
import { useKeys } from '../lib/keys.ts';
import { setParameters } from '../lib/router.ts';
import { Await, CopyButton, Status } from '../ui/parts.tsx';
import type { TabProps } from './detail.tsx';
import { Doctor, NoteTable, RuleLink } from './notes.tsx';

/** The view of what the conversion lost or repaired, and of the rules that the upstream broke. */
export function NotesTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { notes, notes_count, rules } = exchange;
  return (
    <>
      <h3>Protocol violations of the upstream</h3>
      {rules.length === 0 && <p class="muted">None.</p>}
      <ul>
        {rules.map((rule) => (
          <li key={rule}>
            <RuleLink rule={rule} />
          </li>
        ))}
      </ul>
      <h3>Losses and repairs of the conversion</h3>
      {notes_count === 0 && <p class="muted">None.</p>}
      {notes.length > 0 && <NoteTable notes={notes} />}
      {notes_count > notes.length && <p class="muted">{notes_count - notes.length} more notes are not kept.</p>}
      <Doctor key={exchange.id} id={exchange.id} />
    </>
  );
}

/** The view of the attempts with their reasons. */
export function AttemptsTab({ detail: { attempts, exchange } }: TabProps): JSX.Element {
  return (
    <>
      <table class="data">
        <thead>
          <tr>
            {['#', 'provider', 'model', 'status', 'end', 'first byte', 'duration', 'cost', 'upstream id'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {attempts.map((attempt) => (
            <tr key={attempt.number}>
              <td>{attempt.number}</td>
              <td>{attempt.provider}</td>
              <td>{attempt.model}</td>
              <td>{attempt.http_status ?? '–'}</td>
              <td>
                {attempt.ending ?? attempt.state}
                {attempt.error_code && <span class="failure"> {attempt.error_code}</span>}
              </td>
              <td class="number">{formatDuration(attempt.first_byte_ms)}</td>
              <td class="number">{formatDuration(attempt.total_ms)}</td>
              <td class="number">{formatCost(attempt.cost_micros)}</td>
              <td>{attempt.upstream_request_id ?? '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {attempts.length === 0 && <p class="muted">No upstream got a request.</p>}
      <table class="data">
        <tbody>
          {(['id', 'request_id', 'endpoint', 'client_name', 'user_agent', 'key_name', 'session_id', 'ending'] as const).map(
            (name) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{exchange[name] ?? '–'}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </>
  );
}

/** The view of all turns of the client's session. */
export function SessionTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { session_id: session, id } = exchange;
  const state = useLoaded(
    async (signal) =>
      session === null ? undefined : call('GET sessions/{id}', { id: session, signal, query: { limit: MAX_TURNS } }),
    [session],
  );
  if (session === null) return <p class="muted">The client did not mark this exchange as part of a session.</p>;
  return <Await state={state}>{(found) => (found ? <Turns found={found} chosen={id} /> : null)}</Await>;
}

const MAX_TURNS = 200;

function Turns({ found, chosen }: { found: AdminResponses['GET sessions/{id}']; chosen: string }): JSX.Element {
  const { session, exchanges } = found;
  const at = exchanges.findIndex(({ id }) => id === chosen);
  const go = (step: number): void => {
    const target = exchanges[at + step];
    if (target) setParameters({ id: target.id });
  };
  // Newest first: the previous turn is the next row.
  useKeys(
    {
      '[': { about: 'previous turn of the session', run: () => go(1) },
      ']': { about: 'next turn of the session', run: () => go(-1) },
    },
    [chosen, found],
  );
  const ms = exchanges.reduce((sum, { total_ms }) => sum + (total_ms ?? 0), 0);
  return (
    <>
      <p class="row">
        <span>
          {session.exchanges} turns, {formatCount(session.input_tokens)} / {formatCount(session.output_tokens)} tokens,{' '}
          {formatCost(session.cost_micros)}, {formatDuration(ms)} in total
        </span>
        <CopyButton text={session.id} label="copy session id" />
      </p>
      <table class="data">
        <tbody>
          {exchanges.map((turn) => (
            <tr key={turn.id} class={turn.id === chosen ? 'is-chosen' : undefined}>
              <td>
                <button
                  type="button"
                  class="small"
                  aria-current={turn.id === chosen}
                  onClick={() => setParameters({ id: turn.id })}
                >
                  {formatTime(turn.created_at ?? '')}
                </button>
              </td>
              <td>
                <Status outcome={turn.outcome ?? 'live'} status={turn.http_status ?? null} />
              </td>
              <td>{turn.model_requested}</td>
              <td class="number">{formatDuration(turn.total_ms)}</td>
              <td class="number">{formatCost(turn.cost_micros)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
