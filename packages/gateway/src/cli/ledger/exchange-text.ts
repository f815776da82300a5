/** Exchanges as lines, one in detail, and both as JSON. */

import { type AttemptRow, classify, type ExchangeDetail, type ExchangeRow, type Outcome } from '../../store/index.ts';
import type { Colors } from '../../terminal/text.ts';
import {
  fit,
  formatCount,
  formatDollars,
  formatMs,
  formatShort,
  formatTime,
  formatTimestamp,
  measure,
  padEnd,
  padStart,
} from './figures.ts';

/** How to show exchanges. */
export interface ExchangeStyle {
  readonly colors: Colors;
  /** Width of the terminal; undefined for a pipe, where nothing is shortened. */
  readonly columns: number | undefined;
}

type Color = 'green' | 'red' | 'yellow' | 'cyan';

const OUTCOME_COLORS = { ok: 'green', error: 'red', aborted: 'yellow', live: 'cyan' } as const satisfies Record<Outcome, Color>;

const PROTOCOL_LETTERS: Readonly<Record<string, string>> = {
  'openai-chat': 'C',
  'anthropic-messages': 'A',
  'openai-responses': 'R',
  gemini: 'G',
};

/** The letter of a protocol; "?" where it is not known, "–" where there is none. */
const abbreviate = (protocol: string | null): string =>
  protocol === null ? '–' : Object.hasOwn(PROTOCOL_LETTERS, protocol) ? (PROTOCOL_LETTERS[protocol] ?? '?') : '?';

// ---- one line

/** Widths of the figures; the names get what is left. */
const WIDTHS = { time: 20, status: 4, protocols: 3, tokens: 13, cost: 10, ms: 9, id: 12 } as const;

const DEFAULT_NAMES = 44;

const DEFAULT_ENDING = 24;

const MIN_NAMES = 12;

const MIN_ENDING = 8;

const GAP = '  ';

const FIXED = Object.values(WIDTHS).reduce((sum, width) => sum + width + GAP.length, 0);

interface LineWidths {
  names: number;
  ending: number;
  /** Whether there is room for the id. */
  hasId: boolean;
}

function planLine(columns: number | undefined): LineWidths {
  if (columns === undefined) return { names: DEFAULT_NAMES, ending: DEFAULT_ENDING, hasId: true };
  const hasId = columns >= FIXED + MIN_NAMES + MIN_ENDING + GAP.length;
  const room = columns - FIXED - GAP.length + (hasId ? 0 : WIDTHS.id + GAP.length);
  const ending = Math.max(MIN_ENDING, Math.min(DEFAULT_ENDING, Math.floor(room / 3)));
  return { names: Math.max(MIN_NAMES, room - ending), ending, hasId };
}

/** The titles of the columns of `formatExchange`. */
export function formatHeader({ colors, columns }: ExchangeStyle): string {
  const { names, ending, hasId } = planLine(columns);
  const cells = [
    ...(hasId ? ['ID'.padEnd(WIDTHS.id)] : []),
    'TIME (UTC)'.padEnd(WIDTHS.time),
    'ST'.padEnd(WIDTHS.status),
    'VIA'.padEnd(WIDTHS.protocols),
    'MODEL'.padEnd(names),
    'TOKENS'.padStart(WIDTHS.tokens),
    'COST'.padStart(WIDTHS.cost),
    'TIME'.padStart(WIDTHS.ms),
    'ENDING'.padEnd(ending),
  ];
  return colors.bold(cells.join(GAP).trimEnd());
}

/** One exchange on one line. */
export function formatExchange(row: ExchangeRow, { colors, columns }: ExchangeStyle): string {
  const { names, ending, hasId } = planLine(columns);
  const shorten = (text: string, cells: number): string => fit(text, columns === undefined ? Number.POSITIVE_INFINITY : cells);
  const outcome = classify(row);
  const paint = colors[OUTCOME_COLORS[outcome]];
  const cells = [
    ...(hasId ? [colors.dim(padEnd(shorten(shortenId(row.id), WIDTHS.id), WIDTHS.id))] : []),
    formatTime(row.ts),
    paint(padEnd(formatStatus(row), WIDTHS.status)),
    `${abbreviate(row.client_protocol)}→${abbreviate(row.upstream_protocol)}`,
    padEnd(shorten(formatModels(row), names), names),
    padStart(`${formatShort(row.input_tokens)}/${formatShort(row.output_tokens)}`, WIDTHS.tokens),
    padStart(formatCost(row), WIDTHS.cost),
    padStart(formatMs(row.total_ms), WIDTHS.ms),
    outcome === 'ok' ? colors.dim(shorten(formatEnding(row), ending)) : paint(shorten(formatEnding(row), ending)),
  ];
  return cells.join(GAP).trimEnd();
}

/** The last group of an id, which no other exchange has in practice. `sluice log` finds an exchange by it. */
export const shortenId = (id: string): string => id.slice(id.lastIndexOf('-') + 1);

const formatStatus = ({ state, http_status }: ExchangeRow): string =>
  state === 'open' ? 'live' : String(http_status ?? (state === 'crashed' ? '–' : '–'));

/** The requested name, and where it went if that is something else. */
function formatModels({ model_requested, provider, model }: Pick<ExchangeRow, 'model_requested' | 'provider' | 'model'>): string {
  const target = [provider, model].filter((part) => part !== null).join('/');
  if (model_requested === null) return target || '–';
  return target === '' || target === model_requested ? model_requested : `${model_requested} → ${target}`;
}

/** "~" marks an estimate, "$?" an unknown price. */
function formatCost({ cost_micros, provenance, attempts }: ExchangeRow): string {
  if (cost_micros === null) return attempts > 0 ? '$?' : '–';
  return `${isInexact(provenance) ? '~' : ''}${formatDollars(cost_micros)}`;
}

const isInexact = (provenance: ExchangeRow['provenance']): boolean => provenance === 'estimated' || provenance === 'uncertain';

function formatEnding({ state, ending, error_code, notes_count, rules }: ExchangeRow): string {
  const words = [state === 'open' ? 'running' : (ending ?? state), ...(error_code === null ? [] : [error_code])].join(' ');
  const extras = [
    ...(rules.length > 0 ? [formatNumber(rules.length, 'rule')] : []),
    ...(notes_count > 0 ? [formatNumber(notes_count, 'note')] : []),
  ];
  return [words, ...extras].join(', ');
}

const formatNumber = (count: number, noun: string): string => `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;

// ---- in detail

const LABEL = 10;

const DEFAULT_COLUMNS = 100;

const MAX_COLUMNS = 140;

/** One exchange with its attempts. */
export function formatDetail({ exchange, attempts }: ExchangeDetail, { colors, columns }: ExchangeStyle): string {
  const width = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(columns, 40);
  const facts = listFacts(exchange, colors).map(
    ([label, text]) => `  ${colors.dim(padEnd(label, LABEL))}${text(width - LABEL - 2)}`,
  );
  return [
    colors.bold(`Exchange ${fit(exchange.id, width)}`),
    ...facts,
    ...formatAttempts(exchange, attempts, { colors, columns }),
    ...formatNotes(exchange, colors, width),
    ...formatRules(exchange, colors, width),
    '',
  ].join('\n');
}

type Fact = [label: string, text: (cells: number) => string];

function listFacts(row: ExchangeRow, colors: Colors): Fact[] {
  const paint = colors[OUTCOME_COLORS[classify(row)]];
  const plain = (label: string, text: string | null): Fact[] => (text ? [[label, (cells) => fit(text, cells)]] : []);
  return [
    ...plain('time', `${formatTime(row.ts)} (UTC), took ${formatMs(row.total_ms)}`),
    ['status', (cells) => paint(fit([formatStatus(row), formatEnding(row)].join(' '), cells))],
    ...plain('protocols', formatProtocols(row)),
    ...plain('model', formatModels(row) + (isRenamed(row) ? `, answered as ${row.model_answered}` : '')),
    ...plain('endpoint', row.endpoint),
    ...plain('client', [row.client_name, row.user_agent].filter(Boolean).join(', ')),
    ...plain('key', row.key_name && row.key_id ? `${row.key_name} (${row.key_id})` : row.key_id),
    ...plain('tags', row.tags.join(', ')),
    ...plain('session', row.session_id),
    ...plain('request id', row.request_id),
    ...plain('tokens', formatTokens(row)),
    ...plain('cost', describeCost(row)),
  ];
}

const isRenamed = ({ model, model_answered }: ExchangeRow): boolean => model_answered !== null && model_answered !== model;

const formatProtocols = ({ client_protocol, upstream_protocol, is_stream }: ExchangeRow): string =>
  `${client_protocol ?? 'none'} → ${upstream_protocol ?? 'none'}${is_stream ? ', stream' : ''}`;

/** Tokens by what they are charged as. */
function formatTokens(row: ExchangeRow): string {
  const { input_tokens, output_tokens, provenance } = row;
  if (input_tokens === null && output_tokens === null) return 'none reported';
  const part = (count: number | null, name: string): string[] => (count ? [`${formatCount(count)} ${name}`] : []);
  const within = (parts: string[]): string => (parts.length === 0 ? '' : ` (${parts.join(', ')})`);
  const input = [
    ...part(row.cache_read_tokens, 'from cache'),
    ...part(row.cache_creation_tokens, 'written to cache'),
    ...part(row.input_audio_tokens, 'audio'),
  ];
  const output = [...part(row.reasoning_tokens, 'reasoning'), ...part(row.output_audio_tokens, 'audio')];
  return `input ${formatCount(input_tokens ?? 0)}${within(input)}, output ${formatCount(output_tokens ?? 0)}${within(output)}; ${provenance ?? 'unknown origin'}`;
}

function describeCost(row: ExchangeRow): string {
  const { cost_micros, price_version, attempts, possibly_billed } = row;
  const billed = possibly_billed ? '; the upstream may charge for more than was reported' : '';
  if (cost_micros === null) return attempts === 0 ? `none, no upstream was called${billed}` : `unknown price${billed}`;
  return `${formatCost(row)}${price_version === null ? '' : ` by ${price_version}`}${billed}`;
}

/** The attempts, each with a bar from its start to its end in the time of the exchange. */
function formatAttempts(exchange: ExchangeRow, attempts: readonly AttemptRow[], { colors, columns }: ExchangeStyle): string[] {
  if (attempts.length === 0) return ['', colors.dim('No upstream was called.')];
  const width = Math.min(columns ?? DEFAULT_COLUMNS, MAX_COLUMNS);
  const end = findEnd(exchange, attempts);
  const cells = Math.max(10, width - 4);
  return [
    '',
    colors.bold(`Attempts (${attempts.length})`),
    ...attempts.flatMap((attempt) => [
      `  ${formatAttempt(attempt, colors, columns === undefined ? Number.POSITIVE_INFINITY : width - 2)}`,
      `    ${drawPhases(attempt, attempt.ts - exchange.ts, end, cells)}`,
      `    ${colors.dim(fit(formatTimings(attempt, exchange), columns === undefined ? Number.POSITIVE_INFINITY : width - 4))}`,
    ]),
    colors.dim(`  ${LEGEND}`),
  ];
}

function formatAttempt(attempt: AttemptRow, colors: Colors, cells: number): string {
  const { number, provider, model, http_status, ending, state, error_code, upstream_request_id } = attempt;
  const target = [provider, model].filter((part) => part !== null).join('/');
  const words = [
    `${number}`,
    target,
    `${http_status ?? '–'}`,
    state === 'open' ? 'running' : (ending ?? state),
    ...(error_code === null ? [] : [error_code]),
    ...(upstream_request_id === null ? [] : [`(${upstream_request_id})`]),
  ];
  return (ending === 'answered' ? colors.green : state === 'open' ? colors.cyan : colors.red)(fit(words.join('  '), cells));
}

/** The end of the last attempt or of the exchange, in milliseconds from the start of the exchange. */
function findEnd(exchange: ExchangeRow, attempts: readonly AttemptRow[]): number {
  const ends = attempts.map((attempt) => attempt.ts - exchange.ts + (attempt.total_ms ?? 0));
  return ends.reduce((last, end) => Math.max(last, end), Math.max(1, exchange.total_ms ?? 0));
}

const PHASES = [
  { mark: '·', end: 'connect_ms' },
  { mark: '░', end: 'first_byte_ms' },
  { mark: '▒', end: 'first_token_ms' },
  { mark: '█', end: 'total_ms' },
] as const satisfies readonly { mark: string; end: keyof AttemptRow }[];

const LEGEND = '· connecting  ░ waiting for the response  ▒ until the first token  █ content';

/** A bar whose characters show the phase. Every phase that was reached has at least one cell, as long as there is room. */
export function drawPhases(attempt: AttemptRow, offset: number, end: number, cells: number): string {
  const place = (ms: number): number => Math.max(0, Math.min(cells, Math.round((ms / end) * cells)));
  let bar = ' '.repeat(Math.min(cells - 1, place(offset)));
  for (const { mark, end: column } of PHASES) {
    const ms = attempt[column];
    if (ms === null) continue;
    bar += mark.repeat(Math.min(cells - bar.length, Math.max(1, place(offset + ms) - bar.length)));
  }
  return bar;
}

function formatTimings(attempt: AttemptRow, { queue_ms, ts }: ExchangeRow): string {
  const timing = (name: string, ms: number | null): string[] => (ms === null ? [] : [`${name} ${formatMs(ms)}`]);
  return [
    ...(attempt.number === 1 && queue_ms ? timing('queued', queue_ms) : []),
    ...timing('started after', Math.max(0, attempt.ts - ts)),
    ...timing('connected', attempt.connect_ms),
    ...timing('first byte', attempt.first_byte_ms),
    ...timing('first token', attempt.first_token_ms),
    ...timing('total', attempt.total_ms),
  ].join(', ');
}

function formatNotes({ notes, notes_count }: ExchangeRow, { bold, dim }: Colors, width: number): string[] {
  if (notes_count === 0) return [];
  const lines = notes.map(({ code, path, feature, message }) =>
    fit(`  ${code}  ${message ?? feature ?? ''}${path === undefined ? '' : `  at ${path}`}`, width),
  );
  const rest = notes_count - notes.length;
  return [
    '',
    bold(`Notes (${formatCount(notes_count)})`),
    ...lines,
    ...(rest > 0 ? [dim(`  … and ${formatCount(rest)} more`)] : []),
  ];
}

function formatRules({ rules }: ExchangeRow, { bold, dim }: Colors, width: number): string[] {
  if (rules.length === 0) return [];
  const names = rules.reduce((widest, rule) => Math.max(widest, measure(fit(rule, width))), 0);
  return [
    '',
    bold(`Rules that the upstream's stream broke (${rules.length})`),
    ...rules.map((rule) => `  ${padEnd(fit(rule, width), names)}  ${dim(`sluice doctor rules ${fit(rule, width)}`)}`),
  ];
}

// ---- for programs

/** The columns of an exchange in the order of its JSON. */
const EXCHANGE_KEYS = [
  ...(['id', 'ts', 'settled_ts', 'state', 'request_id', 'key_id', 'key_name', 'tags', 'session_id', 'client_protocol'] as const),
  ...([
    'client_name',
    'user_agent',
    'endpoint',
    'model_requested',
    'is_stream',
    'provider',
    'upstream_protocol',
    'model',
  ] as const),
  ...(['model_answered', 'http_status', 'ending', 'error_code', 'input_tokens', 'cache_read_tokens'] as const),
  ...(['cache_creation_tokens', 'output_tokens', 'reasoning_tokens', 'input_audio_tokens', 'output_audio_tokens'] as const),
  ...(['provenance', 'cost_micros', 'price_version', 'possibly_billed', 'queue_ms', 'connect_ms', 'first_byte_ms'] as const),
  ...(['first_token_ms', 'total_ms', 'attempts', 'notes_count', 'notes', 'note_codes', 'rules', 'node_id', 'boot_id'] as const),
] as const satisfies readonly (keyof ExchangeRow)[];

/** An exchange as JSON: times by RFC 3339 in UTC, costs in millionths of a dollar. */
export function describeExchange(row: ExchangeRow): object {
  const entries = EXCHANGE_KEYS.map((key) => [key, row[key]]);
  const settled = row.settled_ts === null ? null : formatTimestamp(row.settled_ts);
  return { ...Object.fromEntries(entries), ts: formatTimestamp(row.ts), settled_ts: settled };
}

/** One exchange and its attempts as JSON. */
export const describeDetail = ({ exchange, attempts }: ExchangeDetail): object => ({
  exchange: describeExchange(exchange),
  attempts: attempts.map((attempt) => ({ ...attempt, ts: formatTimestamp(attempt.ts) })),
});
