/** The columns of the list, and the fields that they and the filters need. */

import type { Exchange } from '@gateway/admin/types';
import type { ComponentChildren } from 'preact';
import { formatCost, formatCount, formatDuration, formatTime } from '../lib/format.ts';
import { ProtocolBadge, Status } from '../ui/parts.tsx';

/** Fields of a row: those of the columns, and those that filters need. */
export const ROW_FIELDS = [
  ...(['id', 'request_id', 'created_at', 'outcome', 'state', 'http_status', 'ending', 'error_code'] as const),
  ...(['client_protocol', 'upstream_protocol', 'client_name', 'endpoint', 'is_stream', 'attempts'] as const),
  ...(['model_requested', 'model', 'model_answered', 'provider', 'key_id', 'key_name', 'tags', 'session_id'] as const),
  ...(['input_tokens', 'output_tokens', 'cache_read_tokens', 'cost_micros', 'first_token_ms', 'total_ms'] as const),
  ...(['notes_count', 'notes', 'rules'] as const),
] satisfies readonly (keyof Exchange)[];

/** A row of the list. */
export type Row = Pick<Exchange, (typeof ROW_FIELDS)[number]>;

/** A column. */
export interface Column {
  readonly id: string;
  readonly title: string;
  /** A track of a CSS grid. */
  readonly width: string;
  readonly isRight?: true;
  /** The width of the list from which on it is shown, before the user has chosen. */
  readonly from: number;
  readonly show: (row: Row, now: number) => ComponentChildren;
}

/** For columns that are shown only when they are chosen. */
const NEVER = Number.POSITIVE_INFINITY;

/** All columns, in their order. */
export const COLUMNS: readonly Column[] = [
  { id: 'time', title: 'time', width: '62px', from: 0, show: ({ created_at }) => formatTime(created_at) },
  {
    id: 'status',
    title: 'status',
    width: '48px',
    from: 0,
    show: ({ outcome, http_status }) => <Status outcome={outcome} status={http_status} />,
  },
  {
    id: 'protocols',
    title: 'protocols',
    width: '62px',
    from: 420,
    show: ({ client_protocol, upstream_protocol }) => (
      <>
        <ProtocolBadge id={client_protocol} />→<ProtocolBadge id={upstream_protocol} />
      </>
    ),
  },
  { id: 'model', title: 'model', width: 'minmax(90px, 3fr)', from: 0, show: showModel },
  { id: 'provider', title: 'provider', width: 'minmax(60px, 1fr)', from: 760, show: ({ provider }) => provider ?? '–' },
  {
    id: 'tokens',
    title: 'tokens',
    width: '86px',
    isRight: true,
    from: 520,
    show: ({ input_tokens, output_tokens }) => `${formatCount(input_tokens)} / ${formatCount(output_tokens)}`,
  },
  {
    id: 'cached',
    title: 'cached',
    width: '54px',
    isRight: true,
    from: NEVER,
    show: ({ cache_read_tokens }) => formatCount(cache_read_tokens),
  },
  {
    id: 'ttft',
    title: 'first token',
    width: '72px',
    isRight: true,
    from: NEVER,
    show: ({ first_token_ms }) => formatDuration(first_token_ms),
  },
  { id: 'duration', title: 'duration', width: '70px', isRight: true, from: 0, show: showDuration },
  {
    id: 'cost',
    title: 'cost',
    width: '66px',
    isRight: true,
    from: 600,
    show: ({ cost_micros }) => formatCost(cost_micros),
  },
  { id: 'notes', title: 'notes', width: '40px', isRight: true, from: 680, show: showNotes },
  { id: 'attempts', title: 'attempts', width: '58px', isRight: true, from: NEVER, show: ({ attempts }) => attempts },
  { id: 'key', title: 'key', width: 'minmax(50px, 1fr)', from: NEVER, show: (row) => row.key_name ?? row.key_id ?? '–' },
  { id: 'client', title: 'client', width: 'minmax(50px, 1fr)', from: NEVER, show: ({ client_name }) => client_name ?? '–' },
  { id: 'session', title: 'session', width: 'minmax(50px, 1fr)', from: NEVER, show: ({ session_id }) => session_id ?? '–' },
  { id: 'tags', title: 'tags', width: 'minmax(50px, 1fr)', from: NEVER, show: ({ tags }) => tags.join(', ') || '–' },
  {
    id: 'ending',
    title: 'ending',
    width: 'minmax(60px, 1fr)',
    from: NEVER,
    show: (row) => row.error_code ?? row.ending ?? '–',
  },
];

/** The requested name, and the model that it led to where that is another. */
function showModel({ model_requested, model, provider }: Row): string {
  const target = model !== null && model !== model_requested && `${provider}/${model}` !== model_requested ? ` → ${model}` : '';
  return `${model_requested ?? model ?? '–'}${target}`;
}

function showDuration({ outcome, total_ms, created_at }: Row, now: number): string {
  return outcome === 'live' ? `${formatDuration(Math.max(0, now - Date.parse(created_at)))}…` : formatDuration(total_ms);
}

function showNotes({ notes_count, rules }: Row): string {
  const count = notes_count + rules.length;
  return count === 0 ? '' : String(count);
}

/** The columns to show: those that the user chose, else those for the width of the list in pixels. */
export function chooseColumns(stored: string | undefined, width: number): readonly Column[] {
  const chosen = stored?.split(',');
  const shown = COLUMNS.filter(({ id, from }) => (chosen ? chosen.includes(id) : from <= width));
  return shown.length > 0 ? shown : COLUMNS.filter(({ from }) => from === 0);
}
