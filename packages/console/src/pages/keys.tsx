/** Client keys: the list with what is left of their budgets, and what can be done with each. */

import type { Budget, Key } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, useLoaded } from '../lib/data.ts';
import { formatCost, formatDateTime } from '../lib/format.ts';
import { useKeys } from '../lib/keys.ts';
import { formatRoute, route, setParameters } from '../lib/router.ts';
import { CreateKey, EditKey, type Issued, RevokeKey, RotateKey, SecretOnce } from '../manage/key-forms.tsx';
import { Await, Failure, ScrollRegion, Section } from '../ui/parts.tsx';
import '../manage/manage.css';

/** Keys of one request; further ones are loaded on demand. */
const PAGE_ROWS = 200;

/** What is open beside the list. */
type Action = 'create' | 'edit' | 'rotate' | 'revoke';

/** The page of client keys. */
export default function Keys(): JSX.Element {
  const { id = '', action = '', state = 'active' } = route.value.parameters;
  const [revision, setRevision] = useState(0);
  const [limit, setLimit] = useState(PAGE_ROWS);
  /** Lives here alone: leaving the page, or closing the box, forgets it. */
  const [issued, setIssued] = useState<Issued>();
  const load = async (signal: AbortSignal) => {
    const query = { state: state === 'all' ? undefined : state, limit: Math.min(limit, 1000) };
    const [{ keys, next }, { budgets }, { is_persistent: isPersistent }] = await Promise.all([
      call('GET keys', { signal, query }),
      call('GET budgets', { signal }),
      call('GET store', { signal }),
    ]);
    return { keys, next, budgets, isPersistent };
  };
  const loaded = useLoaded(load, [state, limit], { revision });
  const open = (next: Action | '', key = ''): void => {
    setIssued(undefined);
    setParameters({ action: next, id: key });
  };
  const finish = (result?: Issued): void => {
    setParameters({ action: '', id: '' });
    setIssued(result);
    setRevision((before) => before + 1);
  };
  useKeys(
    { n: { about: 'create a key', run: () => open('create') }, Escape: { about: 'close the form', run: () => open('') } },
    [],
  );
  const chosen = loaded.is === 'ready' ? loaded.value.keys.find((key) => key.id === id) : undefined;
  return (
    <div class="page">
      <header class="section">
        <h1>Client keys</h1>
        <span class="row">
          <label>
            Show{' '}
            <select value={state} onChange={(event) => setParameters({ state: event.currentTarget.value, action: '', id: '' })}>
              <option value="active">active</option>
              <option value="expired">expired</option>
              <option value="revoked">revoked</option>
              <option value="all">all</option>
            </select>
          </label>
          <button type="button" onClick={() => open('create')}>
            Create a key
          </button>
        </span>
      </header>
      {loaded.is === 'ready' && !loaded.value.isPersistent && <Failure message={LOSS} />}
      {issued && <SecretOnce issued={issued} onClose={() => setIssued(undefined)} />}
      {action === 'create' && <CreateKey onDone={finish} onCancel={() => open('')} />}
      {chosen && action === 'edit' && (
        <EditKey key={chosen.id} record={chosen} onDone={() => finish()} onCancel={() => open('')} />
      )}
      {chosen && action === 'rotate' && <RotateKey key={chosen.id} record={chosen} onDone={finish} onCancel={() => open('')} />}
      {chosen && action === 'revoke' && (
        <RevokeKey key={chosen.id} record={chosen} onDone={() => finish()} onCancel={() => open('')} />
      )}
      <Await state={loaded}>
        {({ keys, next, budgets }) => (
          <>
            {keys.length === 0 ? <NoKeys state={state} /> : <KeyTable keys={keys} budgets={budgets} onAction={open} />}
            {next !== null && limit < 1000 && (
              <button type="button" onClick={() => setLimit(1000)}>
                Show more keys
              </button>
            )}
            {next !== null && limit >= 1000 && <p class="muted">There are more keys; “sluice keys list” shows all.</p>}
            <TagBudgets budgets={budgets} />
          </>
        )}
      </Await>
    </div>
  );
}

const LOSS =
  'Keys created here are lost when the gateway stops, because it keeps its data in memory. Restart it with a data folder (--data, SLUICE_DATA, or “data” in its configuration) before you create keys.';

const NoKeys = ({ state }: { state: string }): JSX.Element =>
  state === 'active' || state === 'all' ? (
    <p>
      No keys have been created yet. Once there is a key, every request needs one. Keys in the configuration file are not listed
      here.
    </p>
  ) : (
    <p>No key is {state}.</p>
  );

interface TableProps {
  keys: readonly Key[];
  budgets: readonly Budget[];
  onAction: (action: Action, id: string) => void;
}

function KeyTable({ keys, budgets, onAction }: TableProps): JSX.Element {
  return (
    <ScrollRegion label="Client keys">
      <table class="figures">
        <thead>
          <tr>
            {['name', 'state', 'models', 'limits', 'budget', 'tags', 'last used', 'expires', 'actions'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <KeyRow
              key={key.id}
              record={key}
              budgets={budgets.filter((one) => one.by === 'key' && one.id === key.id)}
              onAction={onAction}
            />
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  );
}

interface RowProps {
  record: Key;
  budgets: readonly Budget[];
  onAction: TableProps['onAction'];
}

function KeyRow({ record, budgets, onAction }: RowProps): JSX.Element {
  const { id, name, state, models, tags, last_used_at, expires } = record;
  const exchanges = formatRoute({ page: 'exchanges', parameters: { filter: `key:${id}` } });
  return (
    <tr>
      <th scope="row" class="cut" title={id}>
        <a href={exchanges}>{name}</a>
      </th>
      <td>
        <span class={`status s-${STATE_COLOURS[state]}`}>{state}</span>
        {record.previous_valid_until !== null && state === 'active' && (
          <div class="muted">old secret until {formatDateTime(record.previous_valid_until)}</div>
        )}
      </td>
      <td class="wrap">{models.join(', ') || 'all'}</td>
      <td>{describeLimits(record)}</td>
      <td>
        <KeyBudgets record={record} budgets={budgets} />
      </td>
      <td class="wrap">{tags.join(', ') || '–'}</td>
      <td>{last_used_at === null ? 'never' : formatDateTime(last_used_at)}</td>
      <td>{expires === null ? 'never' : formatDateTime(expires)}</td>
      <td>
        {state !== 'revoked' && (
          <span class="row nowrap">
            {(['edit', 'rotate', 'revoke'] as const).map((action) => (
              <button
                key={action}
                type="button"
                class="small"
                aria-label={`${action} ${name}`}
                onClick={() => onAction(action, id)}
              >
                {action}
              </button>
            ))}
          </span>
        )}
      </td>
    </tr>
  );
}

const STATE_COLOURS = { active: 'ok', expired: 'aborted', revoked: 'error' } as const satisfies Record<Key['state'], string>;

function describeLimits({ rpm, tpm, concurrency, ip }: Key): string {
  const parts = [
    ...(rpm === null ? [] : [`${rpm} requests/min`]),
    ...(tpm === null ? [] : [`${tpm} tokens/min`]),
    ...(concurrency === null ? [] : [`${concurrency} at once`]),
    ...(ip.length === 0 ? [] : [`from ${ip.join(', ')}`]),
  ];
  return parts.join('; ') || 'none';
}

/** What is left, once the key was used; until then, the limit. */
function KeyBudgets({ record, budgets }: { record: Key; budgets: readonly Budget[] }): JSX.Element {
  if (record.budget.length === 0) return <>none</>;
  if (budgets.length === 0) return <>{record.budget.join(', ')}</>;
  return (
    <>
      {budgets.map((budget) => (
        <BudgetBar key={budget.period} budget={budget} />
      ))}
    </>
  );
}

const BudgetBar = ({ budget: { period, limit_micros, left_micros, resets_at, name } }: { budget: Budget }): JSX.Element => (
  <div class="budget" title={resets_at === null ? undefined : `resets at ${formatDateTime(resets_at)}`}>
    <meter
      aria-label={`Budget of ${name} that is left, ${period}`}
      min={0}
      max={Math.max(1, limit_micros)}
      low={limit_micros / 10}
      value={left_micros}
    />{' '}
    {formatCost(left_micros)} of {formatCost(limit_micros)} left, {period}
  </div>
);

function TagBudgets({ budgets }: { budgets: readonly Budget[] }): JSX.Element | null {
  const tags = budgets.filter(({ by }) => by === 'tag');
  if (tags.length === 0) return null;
  return (
    <Section title="Budgets of tags">
      <ul class="plain-list">
        {tags.map((budget) => (
          <li key={`${budget.id} ${budget.period}`}>
            <strong>{budget.name}</strong>
            <BudgetBar budget={budget} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
