/** The rows of the ledger: what callers pass in, what queries return, and the limits of every field. */

/** The version of the schema that has these rows: the number of migrations. */
export const SCHEMA_VERSION = 6;

/** Token counts; null where nothing was reported. */
export interface TokenCounts {
  /** All prompt tokens: uncached, cache read and cache written. */
  input_tokens: number | null;
  /** Part of `input_tokens`. */
  cache_read_tokens: number | null;
  /** Part of `input_tokens`. */
  cache_creation_tokens: number | null;
  /** All generated tokens, reasoning included. */
  output_tokens: number | null;
  /** Part of `output_tokens`. */
  reasoning_tokens: number | null;
  /** Part of `input_tokens`. */
  input_audio_tokens: number | null;
  /** Part of `output_tokens`. */
  output_audio_tokens: number | null;
}

/** The token columns, in the order of the statements. */
export const TOKEN_COLUMNS = [
  'input_tokens',
  'cache_read_tokens',
  'cache_creation_tokens',
  'output_tokens',
  'reasoning_tokens',
  'input_audio_tokens',
  'output_audio_tokens',
] as const satisfies readonly (keyof TokenCounts)[];

/** Where token counts come from. `uncertain`: contradictory, out of range, or cut short by a crash. */
export type Provenance = 'reported' | 'derived' | 'estimated' | 'uncertain';

/** `open` until settled; `crashed` when the gateway ended before it could settle the row. */
type RowState = 'open' | 'settled' | 'crashed';

/** A loss or repair of a conversion, as the exchange notes it. */
export interface NoteRow {
  code: string;
  path?: string;
  feature?: string;
  message?: string;
}

/** An exchange at admission. */
export interface ExchangeOpening {
  /** From `Store.createId()`. */
  id: string;
  /** Wall clock at admission; decides the hour of the roll-ups. */
  ts: number;
  /** The id that the client sees in `x-sluice-request-id`. */
  request_id?: string | null | undefined;
  key_id?: string | null | undefined;
  key_name?: string | null | undefined;
  tags?: readonly string[] | undefined;
  session_id?: string | null | undefined;
  client_protocol?: string | null | undefined;
  client_name?: string | null | undefined;
  user_agent?: string | null | undefined;
  /** The kind of endpoint, such as `conversation` or `embeddings`. */
  endpoint?: string | null | undefined;
  model_requested?: string | null | undefined;
  is_stream?: boolean | undefined;
}

/** An attempt before its request is sent. */
export interface AttemptOpening {
  exchange_id: string;
  /** 1 for the first attempt of an exchange. */
  number: number;
  ts: number;
  provider: string;
  upstream_protocol?: string | null;
  /** The provider's name of the model. */
  model?: string | null;
}

/** What is known of a running attempt. Values only rise, so a repeated or late report changes nothing. */
export interface AttemptProgress extends Partial<TokenCounts> {
  exchange_id: string;
  number: number;
  /** What the tokens so far cost; null when the price is unknown. */
  cost_micros?: number | null;
}

/** What both an attempt and its exchange have at their end. Durations are monotonic. */
export interface Settlement extends Partial<TokenCounts> {
  model_answered?: string | null;
  provenance?: Provenance | null;
  /** Null when the price is unknown. */
  cost_micros?: number | null;
  /** The version of the price table that `cost_micros` was computed with. */
  price_version?: string | null;
  connect_ms?: number | null;
  first_byte_ms?: number | null;
  first_token_ms?: number | null;
  total_ms?: number | null;
  http_status?: number | null;
  /** How it ended, such as `answered` or `client_aborted`. */
  ending: string;
  error_code?: string | null;
  /** The upstream may charge for it although no usage was reported. */
  possibly_billed?: boolean;
}

/** The end of an attempt. */
export interface AttemptSettlement extends Settlement {
  exchange_id: string;
  number: number;
  upstream_request_id?: string | null;
}

/** The end of an exchange. Tokens and cost are the totals that its key is charged. */
export interface ExchangeSettlement extends Settlement {
  id: string;
  /** Wall clock at the end. */
  ts: number;
  /** The upstream whose response the client received, or the last one; by default that of the last attempt. */
  provider?: string | null;
  upstream_protocol?: string | null;
  /** The provider's name of the model. */
  model?: string | null;
  /** What attempts that reported no usage may have cost. Budgets count it; reports do not. */
  assumed_micros?: number;
  queue_ms?: number | null;
  notes?: readonly NoteRow[];
  /** Ids of the rules that the upstream's stream broke. */
  rules?: readonly string[];
  /** The rule of the configuration that chose the model. */
  route_rule?: string | null;
  /** Whether the conversation stayed with its target: `hit`, `miss` or `new`. */
  affinity?: string | null;
  /** The first block of the prompt that changed since the turn before, such as `tools[3].description changed`. */
  cache_break?: string | null;
}

interface SettledColumns extends TokenCounts {
  state: RowState;
  boot_id: string;
  provider: string | null;
  upstream_protocol: string | null;
  model: string | null;
  model_answered: string | null;
  provenance: Provenance | null;
  cost_micros: number | null;
  price_version: string | null;
  connect_ms: number | null;
  first_byte_ms: number | null;
  first_token_ms: number | null;
  total_ms: number | null;
  http_status: number | null;
  ending: string | null;
  error_code: string | null;
  possibly_billed: boolean;
}

/** An exchange as queries return it. */
export interface ExchangeRow extends SettledColumns {
  id: string;
  ts: number;
  settled_ts: number | null;
  node_id: string;
  request_id: string | null;
  key_id: string | null;
  key_name: string | null;
  tags: string[];
  session_id: string | null;
  client_protocol: string | null;
  client_name: string | null;
  user_agent: string | null;
  endpoint: string | null;
  model_requested: string | null;
  is_stream: boolean;
  queue_ms: number | null;
  /** All notes are counted; `notes` holds the first ones. */
  notes_count: number;
  notes: NoteRow[];
  /** Codes of all notes, in lower case. */
  note_codes: string[];
  rules: string[];
  route_rule: string | null;
  affinity: string | null;
  cache_break: string | null;
  attempts: number;
  assumed_micros: number;
}

/** An attempt as queries return it. */
export interface AttemptRow extends SettledColumns {
  exchange_id: string;
  number: number;
  ts: number;
  upstream_request_id: string | null;
}

/** What became of an exchange, for filters and for the error count of roll-ups. */
export type Outcome = 'live' | 'ok' | 'aborted' | 'error';

/** Endings caused by the client, which are no errors. */
export const ABORTED_ENDINGS: readonly string[] = ['client_aborted', 'client_stalled'];

/** The ending of a response that was complete. */
export const ANSWERED_ENDING = 'answered';

/** Classifies an exchange. `filter-sql.ts` states the same as SQL. */
export function classify({ state, ending, http_status }: Pick<ExchangeRow, 'state' | 'ending' | 'http_status'>): Outcome {
  if (state === 'open') return 'live';
  if (ABORTED_ENDINGS.includes(ending ?? '')) return 'aborted';
  return ending === ANSWERED_ENDING && (http_status ?? 0) < 400 ? 'ok' : 'error';
}

// ---- what is stored: bounded, and accepted by every database

/** A value of a statement. */
export type SqlValue = string | number | null;

const MAX_NAME_LENGTH = 200;

/** A request has at most half of them from its key, and half from its header. */
export const MAX_TAGS = 32;

const MAX_TAG_LENGTH = 64;

const MAX_RULES = 32;

const MAX_NOTES_LENGTH = 4096;

/** A count above this is an upstream's error. Ten million rows of it still sum exactly. */
const MAX_TOKENS = 500_000_000;

/** A million dollars. */
const MAX_COST_MICROS = 1_000_000_000_000;

/** A year. */
const MAX_MS = 31_536_000_000;

/** PostgreSQL refuses NUL, and a lone surrogate has no UTF-8. */
const UNSTORABLE = /[\0\p{Surrogate}]/gu;

/** Bounded text that every database accepts. Checked first, because `replace` takes four times as long. */
export function cleanText(text: string | null | undefined, maxLength: number = MAX_NAME_LENGTH): string | null {
  if (text === null || text === undefined) return null;
  const bounded = text.length > maxLength ? text.slice(0, maxLength) : text;
  return bounded.isWellFormed() && !bounded.includes('\0') ? bounded : bounded.replace(UNSTORABLE, '\ufffd');
}

/** Characters that separate the elements of a list; `filter-sql.ts` searches the list's JSON text. */
const SEPARATORS = /["\\,[\]\p{Cc}]/gu;

/** One element of a list, as it is stored and searched. */
export const cleanElement = (text: string): string => (cleanText(text, MAX_TAG_LENGTH) ?? '').replace(SEPARATORS, '_');

const cleanList = (texts: readonly string[], max: number): string =>
  texts.length === 0 ? '[]' : JSON.stringify([...new Set(texts.slice(0, max).map(cleanElement))].filter((text) => text !== ''));

/** A count from 0 to `max`; null when there is none. */
const cleanCount = (value: number | null | undefined, max: number): number | null =>
  value === null || value === undefined || Number.isNaN(value) ? null : Math.min(max, Math.max(0, Math.round(value)));

const cleanMs = (value: number | null | undefined): number | null => cleanCount(value, MAX_MS);

const isImpossible = (value: number | null | undefined): boolean =>
  typeof value === 'number' && !(Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS);

/** In the order of `TOKEN_COLUMNS`. */
const listTokens = (counts: Partial<TokenCounts>): SqlValue[] => [
  cleanCount(counts.input_tokens, MAX_TOKENS),
  cleanCount(counts.cache_read_tokens, MAX_TOKENS),
  cleanCount(counts.cache_creation_tokens, MAX_TOKENS),
  cleanCount(counts.output_tokens, MAX_TOKENS),
  cleanCount(counts.reasoning_tokens, MAX_TOKENS),
  cleanCount(counts.input_audio_tokens, MAX_TOKENS),
  cleanCount(counts.output_audio_tokens, MAX_TOKENS),
];

/** Columns that `ExchangeOpening` fills, in the order of `listOpening`. */
export const OPENING_COLUMNS = [
  ...['id', 'ts', 'request_id', 'key_id', 'key_name', 'tags', 'session_id', 'client_protocol'],
  ...['client_name', 'user_agent', 'endpoint', 'model_requested', 'is_stream'],
];

/** The values of a new exchange. */
export function listOpening(row: ExchangeOpening): SqlValue[] {
  return [
    row.id,
    Math.floor(row.ts),
    cleanText(row.request_id),
    cleanText(row.key_id),
    cleanText(row.key_name),
    cleanList(row.tags ?? [], MAX_TAGS),
    cleanText(row.session_id),
    cleanText(row.client_protocol),
    cleanText(row.client_name),
    cleanText(row.user_agent),
    cleanText(row.endpoint),
    cleanText(row.model_requested),
    row.is_stream ? 1 : 0,
  ];
}

/** Columns that `AttemptOpening` fills, in the order of `listAttempt`. */
export const ATTEMPT_COLUMNS = ['exchange_id', 'number', 'ts', 'provider', 'upstream_protocol', 'model'];

/** The values of a new attempt. */
export const listAttempt = (row: AttemptOpening): SqlValue[] => [
  row.exchange_id,
  row.number,
  Math.floor(row.ts),
  cleanText(row.provider),
  cleanText(row.upstream_protocol),
  cleanText(row.model),
];

/** Columns that `AttemptProgress` raises, in the order of `listProgress`, which adds the attempt. */
export const PROGRESS_COLUMNS: readonly string[] = [...TOKEN_COLUMNS, 'cost_micros'];

/** The values of a progress report: tokens and cost, then the attempt. */
export const listProgress = (row: AttemptProgress): SqlValue[] => [
  ...listTokens(row),
  cleanCount(row.cost_micros, MAX_COST_MICROS),
  row.exchange_id,
  row.number,
];

const SETTLEMENT_COLUMNS = [
  ...TOKEN_COLUMNS,
  ...['provenance', 'cost_micros', 'model_answered', 'price_version', 'connect_ms', 'first_byte_ms', 'first_token_ms'],
  ...['total_ms', 'http_status', 'ending', 'error_code', 'possibly_billed'],
];

function listSettlement(row: Settlement): SqlValue[] {
  // An impossible count is stored as the nearest possible one, and marked.
  const isUncertain = TOKEN_COLUMNS.some((column) => isImpossible(row[column]));
  const values = listTokens(row);
  values.push(
    isUncertain ? 'uncertain' : (row.provenance ?? null),
    cleanCount(row.cost_micros, MAX_COST_MICROS),
    cleanText(row.model_answered),
    cleanText(row.price_version),
    cleanMs(row.connect_ms),
    cleanMs(row.first_byte_ms),
    cleanMs(row.first_token_ms),
    cleanMs(row.total_ms),
    cleanCount(row.http_status, 999),
    cleanText(row.ending),
    cleanText(row.error_code),
    row.possibly_billed ? 1 : 0,
  );
  return values;
}

/** Columns that `AttemptSettlement` fills, in the order of `listAttemptSettlement`, which adds the attempt. */
export const ATTEMPT_SETTLEMENT_COLUMNS: readonly string[] = [...SETTLEMENT_COLUMNS, 'upstream_request_id'];

/** The values of a settled attempt. */
export function listAttemptSettlement(row: AttemptSettlement): SqlValue[] {
  const values = listSettlement(row);
  values.push(cleanText(row.upstream_request_id), row.exchange_id, row.number);
  return values;
}

/** What names the upstream of an exchange. A settlement without them leaves those of its last attempt. */
export const UPSTREAM_COLUMNS: readonly string[] = ['provider', 'upstream_protocol', 'model'];

/** Columns that `ExchangeSettlement` fills, in the order of `listExchangeSettlement`, which adds the id. */
export const EXCHANGE_SETTLEMENT_COLUMNS: readonly string[] = [
  ...SETTLEMENT_COLUMNS,
  ...UPSTREAM_COLUMNS,
  'assumed_micros',
  ...['settled_ts', 'queue_ms', 'notes_count', 'notes', 'note_codes', 'rules', 'route_rule', 'affinity', 'cache_break'],
];

/** The values of a settled exchange. */
export function listExchangeSettlement(row: ExchangeSettlement): SqlValue[] {
  const { notes = [] } = row;
  const values = listSettlement(row);
  values.push(
    cleanText(row.provider),
    cleanText(row.upstream_protocol),
    cleanText(row.model),
    cleanCount(row.assumed_micros, MAX_COST_MICROS) ?? 0,
    Math.floor(row.ts),
    cleanMs(row.queue_ms),
    notes.length,
    joinNotes(notes),
    notes.length === 0 ? '[]' : cleanList([...new Set(notes.map(({ code }) => code.toLowerCase()))], MAX_RULES),
    cleanList(row.rules ?? [], MAX_RULES),
    cleanText(row.route_rule),
    cleanText(row.affinity),
    cleanText(row.cache_break),
    row.id,
  );
  return values;
}

/** As many notes as fit, as JSON. */
function joinNotes(notes: readonly NoteRow[]): string {
  if (notes.length === 0) return '[]';
  const texts: string[] = [];
  let length = 2;
  for (const { code, path, feature, message } of notes) {
    const [cleanPath, cleanFeature, cleanMessage] = [path, feature, message].map((part) => cleanText(part) ?? undefined);
    const text = JSON.stringify({ code: cleanText(code), path: cleanPath, feature: cleanFeature, message: cleanMessage });
    length += text.length + 1;
    if (length > MAX_NOTES_LENGTH) break;
    texts.push(text);
  }
  return `[${texts.join(',')}]`;
}
