/** Exchanges: the live list with its filter on the left, one exchange on the right. */

import '../exchanges/exchanges.css';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { COLUMNS, chooseColumns } from '../exchanges/columns.tsx';
import { Detail } from '../exchanges/detail.tsx';
import { type ExportFormat, exportExchanges, MAX_EXPORTED } from '../exchanges/export.ts';
import { FilterBar } from '../exchanges/filter-bar.tsx';
import { List } from '../exchanges/list.tsx';
import { ExchangeList } from '../exchanges/store.ts';
import { call, useLoaded } from '../lib/data.ts';
import { formatCount, formatDateTime } from '../lib/format.ts';
import { useKeys } from '../lib/keys.ts';
import type { LiveState } from '../lib/live.ts';
import { recall, remember } from '../lib/preferences.ts';
import { route, setParameters } from '../lib/router.ts';
import { describeError } from '../lib/session.ts';
import { Await, announcement, Failure, Snippet } from '../ui/parts.tsx';

/** The page of exchanges. Its address has the filter, the chosen exchange and its tab. */
export default function Exchanges(): JSX.Element {
  const { filter = '', id = '', tab = '' } = route.value.parameters;
  const [generation, setGeneration] = useState(0);
  const list = useMemo(() => new ExchangeList(filter), [filter, generation]);
  useEffect(() => {
    list.reload = () => setGeneration((before) => before + 1);
    list.open();
    return () => list.close();
  }, [list]);
  const [stored, setStored] = useState(recall('columns'));
  const pane = useRef<HTMLDivElement>(null);
  const columns = chooseColumns(stored, useWidth(pane));
  const choose = (chosen: string): void => setParameters({ id: chosen });
  useKeys(
    {
      Enter: { about: 'open the exchange', run: () => document.getElementById('tab-panel')?.focus() },
      Escape: { about: 'close the exchange', run: () => setParameters({ id: '', tab: '', with: '' }) },
      p: { about: 'pause and continue', run: () => list.togglePause() },
    },
    [list],
  );
  return (
    <div class="exchanges">
      <h1 class="visually-hidden">Exchanges</h1>
      <div class="filters">
        <FilterBar filter={filter} onFilter={(text) => setParameters({ filter: text })} />
        <LiveBadge list={list} filter={filter} />
        <ColumnMenu
          shown={columns.map((column) => column.id)}
          onChange={(ids) => {
            remember('columns', ids.join(','));
            setStored(ids.join(','));
          }}
        />
        <ExportMenu filter={filter} />
      </div>
      <div class={id === '' ? 'split' : 'split with-detail'}>
        <div class="list" ref={pane}>
          {list.failure.value !== undefined && <Failure message={list.failure.value} />}
          <ListOrHint list={list} filter={filter}>
            <List list={list} columns={columns} chosen={id} onChoose={choose} />
          </ListOrHint>
        </div>
        {id !== '' && <Detail key={id} id={id} tab={tab} list={list} />}
      </div>
    </div>
  );
}

function ListOrHint({ list, filter, children }: { list: ExchangeList; filter: string; children: JSX.Element }): JSX.Element {
  void list.version.value;
  const { rows } = list;
  if (rows.length > 0 || !rows.isComplete) return children;
  if (filter !== '')
    return (
      <div class="empty">
        <p>No exchange passes the filter.</p>
        <button type="button" onClick={() => setParameters({ filter: '' })}>
          Remove the filter
        </button>
      </div>
    );
  return <EmptyState />;
}

/** What to do when nothing has happened yet. */
function EmptyState(): JSX.Element {
  const state = useLoaded((signal) => call('GET clients', { signal }), []);
  return (
    <div class="empty">
      <p>No exchanges yet. Send a request, and it appears here at once:</p>
      <Await state={state}>
        {({ clients }) => <Snippet label="A request by curl" text={clients.find(({ id }) => id === 'curl')?.setup ?? ''} />}
      </Await>
    </div>
  );
}

const LIVE_TEXT = { live: '● live', connecting: '○ connecting…', ended: '○ not live' } as const satisfies Record<
  LiveState,
  string
>;

function LiveBadge({ list, filter }: { list: ExchangeList; filter: string }): JSX.Element {
  void list.version.value;
  const isPaused = list.isPaused.value;
  // New exchanges are not searched.
  if (list.isSearch) return <SearchedText list={list} />;
  return (
    <>
      <span class={list.live.value === 'live' ? 'status s-ok' : 'status s-aborted'}>{LIVE_TEXT[list.live.value]}</span>
      <button
        type="button"
        class="small"
        aria-pressed={isPaused}
        onClick={() => list.togglePause()}
        title="Pause and continue (p)"
      >
        {isPaused ? `continue (${list.waiting.value} new)` : 'pause'}
      </button>
      <Counts list={list} filter={filter} />
    </>
  );
}

/** How many exchanges pass the filter, and how many there are. */
function Counts({ list, filter }: { list: ExchangeList; filter: string }): JSX.Element {
  void list.version.value;
  const state = useLoaded((signal) => call('GET exchanges/count', { query: { filter }, signal }), [filter], {
    everyMs: COUNT_MS,
  });
  const { length, isComplete } = list.rows;
  // What is loaded is counted at once, the rest from time to time.
  const counted = state.is === 'ready' ? state.value : undefined;
  const matching = Math.max(length, isComplete ? 0 : (counted?.matching ?? 0));
  const isExact = isComplete || (counted?.is_exact ?? false);
  const total = Math.max(matching, counted?.total ?? 0);
  const shown = `${matching.toLocaleString('en')}${isExact ? '' : '+'}`;
  return (
    <span class="muted number">
      {filter === '' ? shown : `${shown} of ${total.toLocaleString('en')}`} {total === 1 ? 'exchange' : 'exchanges'}
    </span>
  );
}

const COUNT_MS = 10_000;

/** Where text was searched: not everything is captured. */
function SearchedText({ list }: { list: ExchangeList }): JSX.Element {
  const searched = list.searched.value;
  if (!searched) return <span class="muted">searching…</span>;
  const { captures, bytes, is_complete, oldest_at } = searched;
  const since = oldest_at === null ? '' : ` since ${formatDateTime(oldest_at)}`;
  return (
    <span class="muted number">
      {list.rows.length.toLocaleString('en')} of {captures.toLocaleString('en')} captured exchanges{since} ({formatCount(bytes)}{' '}
      bytes{is_complete ? '' : '; scroll for older ones'})
    </span>
  );
}

function ColumnMenu({ shown, onChange }: { shown: readonly string[]; onChange: (ids: readonly string[]) => void }): JSX.Element {
  const toggle = (id: string, isOn: boolean): void =>
    onChange(COLUMNS.map((column) => column.id).filter((one) => (one === id ? isOn : shown.includes(one))));
  return (
    <details class="menu">
      <summary>columns ▾</summary>
      <div>
        {COLUMNS.map(({ id, title }) => (
          <label key={id}>
            <input type="checkbox" checked={shown.includes(id)} onChange={(event) => toggle(id, event.currentTarget.checked)} />
            {title}
          </label>
        ))}
      </div>
    </details>
  );
}

function ExportMenu({ filter }: { filter: string }): JSX.Element {
  const [state, setState] = useState('');
  const run = async (format: ExportFormat): Promise<void> => {
    try {
      const count = await exportExchanges(filter, format, (rows) => setState(`${rows.toLocaleString('en')} rows…`));
      const cut = count >= MAX_EXPORTED ? ' (the limit; use `sluice log` for more)' : '';
      setState(`${count.toLocaleString('en')} rows saved${cut}`);
      announcement.value = `${count} rows saved.`;
    } catch (error) {
      setState(describeError(error));
    }
  };
  return (
    <details class="menu">
      <summary>export ▾</summary>
      <div>
        <button type="button" onClick={() => void run('jsonl')}>
          JSON lines
        </button>
        <button type="button" onClick={() => void run('csv')}>
          CSV
        </button>
        {state !== '' && <span class="muted">{state}</span>}
      </div>
    </details>
  );
}

/** The width of an element, which is measured whenever it changes. */
function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return width;
}
