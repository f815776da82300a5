/** Exchanges as lines, one in detail, and both as JSON. */

import { oneLine } from '@sluice/lab/text';
import { type AttemptRow, classify, type ExchangeDetail, type ExchangeRow, type Outcome } from '../../store/index.ts';
import { type Colors, wrapText } from '../../terminal/text.ts';
import {
  fit,
  formatCount,
  formatDollars,
  formatMs,
  formatShort,
  formatTime,
  formatTimestamp,
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

const GAP = '  ';

/** A column of the list. */
interface Column {
  readonly title: string;
  /** Its width; the models get what is left. */
  readonly cells: number;
  readonly isRight?: true;
  format(row: ExchangeRow): string;
  /** How it is coloured; by default not at all. */
  readonly paint?: 'dim' | 'outcome' | 'outcome unless ok';
}

const COLUMNS = {
  id: { title: 'ID', cells: 12, format: ({ id }) => shortenId(id), paint: 'dim' },
  time: { title: 'TIME (UTC)', cells: 20, format: ({ ts }) => formatTime(ts) },
  clock: { title: 'UTC', cells: 8, format: ({ ts }) => formatTimestamp(ts).slice(11, 19) },
  status: { title: 'ST', cells: 4, format: (row) => formatStatus(row), paint: 'outcome' },
  protocols: { title: 'VIA', cells: 3, format: (row) => formatLetters(row) },
  models: { title: 'MODEL', cells: 44, format: (row) => formatModels(row) },
  tokens: { title: 'TOKENS', cells: 11, isRight: true, format: (row) => formatTokenPair(row) },
  cost: { title: 'COST', cells: 10, isRight: true, format: (row) => formatCost(row) },
  ms: { title: 'TOOK', cells: 8, isRight: true, format: ({ total_ms }) => formatMs(total_ms) },
  ending: { title: 'ENDING', cells: 24, format: (row) => formatEnding(row), paint: 'outcome unless ok' },
} as const satisfies Record<string, Column>;

const WIDE: readonly Column[] = [
  ...[COLUMNS.id, COLUMNS.time, COLUMNS.status, COLUMNS.protocols, COLUMNS.models, COLUMNS.tokens, COLUMNS.cost, COLUMNS.ms],
  COLUMNS.ending,
];

/** For terminals of 80 columns: the day, the protocols and the ending are left to the detail. */
const NARROW: readonly Column[] = [
  ...[COLUMNS.id, COLUMNS.clock, COLUMNS.status, COLUMNS.models, COLUMNS.tokens, COLUMNS.cost, COLUMNS.ms],
];

/** The least width of a terminal for the wide list. */
const MIN_WIDE = 120;

const MIN_MODELS = 12;

/** The columns that fit, with their widths. */
function planColumns(columns: number | undefined): { column: Column; cells: number }[] {
  const chosen = columns === undefined || columns >= MIN_WIDE ? WIDE : NARROW;
  const others = chosen.reduce((sum, column) => sum + (column === COLUMNS.models ? 0 : column.cells + GAP.length), 0);
  const models = columns === undefined ? COLUMNS.models.cells : Math.max(MIN_MODELS, columns - others);
  return chosen.map((column) => ({ column, cells: column === COLUMNS.models ? models : column.cells }));
}

/** The titles of the columns of `formatExchange`. */
export const formatHeader = ({ colors, columns }: ExchangeStyle): string =>
  colors.bold(
    planColumns(columns)
      .map(({ column, cells }) => (column.isRight ? padStart(column.title, cells) : padEnd(column.title, cells)))
      .join(GAP)
      .trimEnd(),
  );

/** One exchange on one line. */
export function formatExchange(row: ExchangeRow, { colors, columns }: ExchangeStyle): string {
  const outcome = classify(row);
  const cells = planColumns(columns).map(({ column, cells: width }) => {
    const text = fit(column.format(row), columns === undefined ? Number.POSITIVE_INFINITY : width);
    const isLast = column === COLUMNS.ending;
    const padded = column.isRight ? padStart(text, width) : isLast ? text : padEnd(text, width);
    if (column.paint === undefined) return padded;
    const isDim = column.paint === 'dim' || (column.paint === 'outcome unless ok' && outcome === 'ok');
    return (isDim ? colors.dim : colors[OUTCOME_COLORS[outcome]])(padded);
  });
  return cells.join(GAP).trimEnd();
}

const formatLetters = ({ client_protocol, upstream_protocol }: ExchangeRow): string =>
  `${abbreviate(client_protocol)}→${abbreviate(upstream_protocol)}`;

const formatTokenPair = ({ input_tokens, output_tokens }: ExchangeRow): string =>
  `${formatShort(input_tokens)}/${formatShort(output_tokens)}`;

/** The last group of an id, which no other exchange has in practice. `sluice log` finds an exchange by it. */
const shortenId = (id: string): string => id.slice(id.lastIndexOf('-') + 1);

const formatStatus = ({ state, http_status }: ExchangeRow): string => (state === 'open' ? 'live' : String(http_status ?? '–'));

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

const LABEL = 12;

const DEFAULT_COLUMNS = 100;

const MAX_COLUMNS = 140;

/** One exchange with its attempts. Long texts are wrapped, because here nothing may be missing. */
export function formatDetail({ exchange, attempts }: ExchangeDetail, style: ExchangeStyle): string {
  const { colors, columns } = style;
  const facts = listFacts(exchange).flatMap(([label, text]) => {
    const lines = wrapText(oneLine(text), columns === undefined ? undefined : columns - LABEL - 2);
    const paint = label === 'status' ? colors[OUTCOME_COLORS[classify(exchange)]] : String;
    return lines.map((line, at) => `  ${colors.dim(padEnd(at === 0 ? label : '', LABEL))}${paint(line)}`);
  });
  return [
    colors.bold(`Exchange ${oneLine(exchange.id)}`),
    ...facts,
    ...formatAttempts(exchange, attempts, style),
    ...formatNotes(exchange, style),
    ...formatRules(exchange, colors),
    '',
  ].join('\n');
}

/** Untrusted text after a prefix; further lines are indented as far as the first. */
function indentText(prefix: string, indent: number, text: string, columns: number | undefined): string[] {
  const lines = wrapText(oneLine(text), columns === undefined ? undefined : columns - indent);
  return lines.map((line, at) => (at === 0 ? prefix : ' '.repeat(indent)) + line);
}

type Fact = readonly [label: string, text: string];

function listFacts(row: ExchangeRow): Fact[] {
  const named = row.key_name && row.key_id ? `${row.key_name} (${row.key_id})` : (row.key_id ?? '');
  const facts: Fact[] = [
    ['time', `${formatTime(row.ts)} (UTC)${row.total_ms === null ? '' : `, took ${formatMs(row.total_ms)}`}`],
    ['status', `${formatStatus(row)} ${formatEnding(row)}`],
    ['protocols', formatProtocols(row)],
    ['model', formatModels(row) + (isRenamed(row) ? `, responded as ${row.model_answered}` : '')],
    ['rule', row.route_rule ?? ''],
    ['endpoint', row.endpoint ?? ''],
    ['client', row.user_agent ?? row.client_name ?? ''],
    ['key', named],
    ['tags', row.tags.join(', ')],
    ['session', row.session_id ?? ''],
    ['affinity', row.affinity ?? ''],
    ['cache break', row.cache_break ?? ''],
    ['request id', row.request_id ?? ''],
    ['tokens', formatTokens(row)],
    ['cost', describeCost(row)],
  ];
  return facts.filter(([, text]) => text !== '');
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
  const end = findEnd(exchange, attempts);
  const cells = Math.max(10, Math.min(columns ?? DEFAULT_COLUMNS, MAX_COLUMNS) - 4);
  return [
    '',
    colors.bold(`Attempts (${attempts.length})`),
    ...attempts.flatMap((attempt) => [
      ...indentText('  ', 2, formatAttempt(attempt), columns).map(chooseAttemptColor(attempt, colors)),
      `    ${drawPhases(attempt, attempt.ts - exchange.ts, end, cells)}`,
      ...indentText('    ', 4, formatTimings(attempt, exchange), columns).map(colors.dim),
    ]),
    ...indentText('  ', 2, LEGEND, columns).map(colors.dim),
  ];
}

const chooseAttemptColor = ({ ending, state }: AttemptRow, colors: Colors): ((text: string) => string) =>
  state === 'open' ? colors.cyan : ending === 'answered' ? colors.green : colors.red;

function formatAttempt(attempt: AttemptRow): string {
  const { number, provider, model, http_status, ending, state, error_code, upstream_request_id } = attempt;
  return [
    `${number}. ${[provider, model].filter((part) => part !== null).join('/')}`,
    String(http_status ?? '–'),
    state === 'open' ? 'running' : (ending ?? state),
    ...(error_code === null ? [] : [error_code]),
    ...(upstream_request_id === null ? [] : [`(${upstream_request_id})`]),
  ].join(' ');
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

/** A bar whose characters show the phase; each phase that was reached has at least one cell. */
export function drawPhases(attempt: AttemptRow, offset: number, end: number, cells: number): string {
  let begun = 0;
  const reached = PHASES.flatMap(({ end: column }, at) => {
    const ms = attempt[column];
    // What follows the last phase that was reached belongs to the next one: a failed attempt has no content.
    const { mark } = PHASES[column === 'total_ms' ? begun : at] ?? PHASES[0];
    if (ms !== null) begun = at + 1;
    return ms === null ? [] : [{ mark, ms }];
  });
  const place = (ms: number, reserved: number): number => Math.min(cells - reserved, Math.round((ms / end) * cells));
  let bar = ' '.repeat(Math.max(0, place(offset, reached.length)));
  for (const [at, { mark, ms }] of reached.entries())
    bar += mark.repeat(Math.max(1, place(offset + ms, reached.length - 1 - at) - bar.length));
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

function formatNotes({ notes, notes_count }: ExchangeRow, { colors, columns }: ExchangeStyle): string[] {
  if (notes_count === 0) return [];
  const lines = notes.flatMap(({ code, path, feature, message }) =>
    indentText('  ', 4, `${code}: ${message ?? feature ?? ''}${path === undefined ? '' : ` (${path})`}`, columns),
  );
  const rest = notes_count - notes.length;
  return [
    '',
    colors.bold(`Notes (${formatCount(notes_count)})`),
    ...lines,
    ...(rest > 0 ? [colors.dim(`  … and ${formatCount(rest)} more`)] : []),
  ];
}

function formatRules({ rules }: ExchangeRow, { bold, dim }: Colors): string[] {
  if (rules.length === 0) return [];
  // A gateway could name a rule so that the command does something else.
  const advise = (rule: string): string => (/^[a-z0-9/-]+$/.test(rule) ? `  ${dim(`sluice doctor rules ${rule}`)}` : '');
  const lines = rules.map((rule) => `  ${oneLine(rule)}${advise(rule)}`);
  return ['', bold(`Rules that the upstream's stream broke (${rules.length})`), ...lines];
}

// ---- for programs

/** The columns of an exchange in the order of its JSON, after its id and times. */
const EXCHANGE_KEYS = [
  ...(['state', 'request_id', 'key_id', 'key_name', 'tags', 'session_id', 'client_protocol'] as const),
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
  ...([
    'provenance',
    'cost_micros',
    'assumed_micros',
    'price_version',
    'possibly_billed',
    'queue_ms',
    'connect_ms',
    'first_byte_ms',
  ] as const),
  ...(['first_token_ms', 'total_ms', 'attempts', 'notes_count', 'notes', 'note_codes', 'rules'] as const),
  ...(['route_rule', 'affinity', 'cache_break', 'node_id', 'boot_id'] as const),
] as const satisfies readonly (keyof ExchangeRow)[];

/** An exchange as JSON, named as in the admin API: times by RFC 3339 in UTC, costs in millionths of a dollar. */
export function describeExchange(row: ExchangeRow): object {
  const entries = EXCHANGE_KEYS.map((key) => [key, row[key]]);
  const settled = row.settled_ts === null ? null : formatTimestamp(row.settled_ts);
  return { id: row.id, created_at: formatTimestamp(row.ts), settled_at: settled, ...Object.fromEntries(entries) };
}

/** One exchange and its attempts as JSON. */
export const describeDetail = ({ exchange, attempts }: ExchangeDetail): object => ({
  exchange: describeExchange(exchange),
  attempts: attempts.map(({ ts, ...attempt }) => ({ ...attempt, created_at: formatTimestamp(ts) })),
});
