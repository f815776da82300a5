/**
 * The filter language of the console, `sluice log` and the admin API: `status:error model:gpt* key:alice|bob -tag:test >2s`.
 * Terms are joined by "and", the values of a term by "or"; a leading `-` negates a term. Pure: also runs in browsers.
 */
import { didYouMean } from '@sluice/lab/text';
import { classify, cleanElement, cleanText, type ExchangeRow, type Outcome } from './rows.ts';

/** Text with `*` for any characters; ASCII letters match in either case. The parts between the stars, in lower case. */
export type Pattern = readonly string[];

/** A test of `http_status` or of what became of the exchange. */
export type StatusTest = { readonly from: number; readonly to: number } | { readonly outcome: Outcome };

/** Columns that are compared as text. */
type TextColumn =
  | 'id'
  | 'request_id'
  | 'model'
  | 'model_requested'
  | 'model_answered'
  | 'provider'
  | 'key_id'
  | 'key_name'
  | 'session_id'
  | 'client_protocol'
  | 'client_name'
  | 'upstream_protocol'
  | 'endpoint'
  | 'ending'
  | 'error_code';

/** Columns that hold a list of texts. */
type ListColumn = 'tags' | 'rules' | 'note_codes';

/** Numbers that can be compared; `tokens` is input and output together. */
export type Quantity = 'cost_micros' | 'total_ms' | 'first_token_ms' | 'tokens';

/** One term of a filter. */
export type Condition = { readonly negated: boolean } & (
  | { readonly kind: 'status'; readonly anyOf: readonly StatusTest[] }
  | { readonly kind: 'text'; readonly columns: readonly TextColumn[]; readonly anyOf: readonly Pattern[] }
  | { readonly kind: 'list'; readonly column: ListColumn; readonly anyOf: readonly Pattern[] }
  /** Both ends included; null is no end. */
  | { readonly kind: 'number'; readonly quantity: Quantity; readonly from: number | null; readonly to: number | null }
  /** `from` included, `to` excluded. */
  | { readonly kind: 'time'; readonly from: number | null; readonly to: number | null }
);

/** A parsed filter: all conditions hold. */
export type Filter = readonly Condition[];

/** A term that is not understood. */
interface FilterProblem {
  /** Where the term is in the text. */
  readonly start: number;
  readonly end: number;
  readonly message: string;
}

/** The result of parsing: a filter to use, or problems to show. */
export interface ParsedFilter {
  readonly filter: Filter;
  readonly problems: readonly FilterProblem[];
}

/** A text to search for. */
interface SearchedText {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** A filter, and texts that captured bodies must have. */
export interface ParsedSearch extends ParsedFilter {
  readonly texts: readonly SearchedText[];
}

const MAX_LENGTH = 2000;

const MAX_TERMS = 32;

const MAX_VALUES = 16;

/** More stars make the database compare longer than a row is worth. */
const MAX_STARS = 4;

/** Parses a filter. `now` is the time that `since:2h` counts from. Terms with problems are left out of the filter. */
export function parseFilter(text: string, now: number): ParsedFilter {
  const { filter, texts, problems } = parseSearch(text, now);
  const refused = texts.map(({ text: found, start, end }) => ({
    start,
    end,
    message: `${quote(found)}: text search needs captured bodies; use a field, such as model:${found}`,
  }));
  return { filter, problems: [...problems, ...refused].sort((a, b) => a.start - b.start) };
}

/** Parses a filter that may have terms without a field, which are texts to search for in captured bodies. */
export function parseSearch(text: string, now: number): ParsedSearch {
  if (text.length > MAX_LENGTH) {
    const message = `a filter has at most ${MAX_LENGTH} characters`;
    return { filter: [], texts: [], problems: [{ start: 0, end: text.length, message }] };
  }
  const filter: Condition[] = [];
  const texts: SearchedText[] = [];
  const problems: FilterProblem[] = [];
  for (const { term, start, index } of splitTerms(text)) {
    const place = { start, end: start + term.length };
    const parsed = index < MAX_TERMS ? parseTerm(term, now) : `a filter has at most ${MAX_TERMS} terms`;
    if (typeof parsed === 'string') problems.push({ ...place, message: parsed });
    else if ('text' in parsed) texts.push({ ...place, text: parsed.text });
    else filter.push(parsed);
  }
  return { filter, texts, problems };
}

/** Terms end at white space outside of quotes. */
function* splitTerms(text: string): Iterable<{ term: string; start: number; index: number }> {
  let index = 0;
  for (const match of text.matchAll(/(?:"[^"]*"?|[^\s"])+/g)) yield { term: match[0], start: match.index, index: index++ };
}

/** A condition, a text to search for, or what is wrong with the term. */
function parseTerm(term: string, now: number): Condition | { text: string } | string {
  const negated = term.startsWith('-') && term.length > 1;
  const text = negated ? term.slice(1) : term;
  if (/^[<>]/.test(text)) return parseNumber('ms', text, negated);
  const colon = text.search(/[:"]/);
  const name = colon < 0 || text[colon] === '"' ? undefined : text.slice(0, colon).toLowerCase();
  if (name === undefined) return parseFreeText(text.replaceAll('"', ''), negated);
  if (!isField(name)) return `unknown field ${quote(name)}${didYouMean(name, FIELD_NAMES)}; known: ${FIELD_NAMES.join(', ')}`;
  const value = text.slice(colon + 1).replaceAll('"', '');
  return value === '' ? `${name}: a value is required` : FIELDS[name](value, negated, now);
}

function parseFreeText(text: string, negated: boolean): { text: string } | string {
  if (negated) return `${quote(text)}: a text cannot be excluded; remove the minus sign`;
  return text.trim().length < MIN_TEXT ? `${quote(text)}: a text needs at least ${MIN_TEXT} characters` : { text };
}

/** Shorter texts are in every body. */
const MIN_TEXT = 2;

type ParseValue = (value: string, negated: boolean, now: number) => Condition | string;

const parseText =
  (name: string, ...columns: TextColumn[]): ParseValue =>
  (value, negated) =>
    parseValues(name, value, parsePattern, (anyOf) => ({ kind: 'text', columns, anyOf, negated }));

const parseList =
  (name: string, column: ListColumn): ParseValue =>
  (value, negated) =>
    parseValues(name, value, parseElement, (anyOf) => ({ kind: 'list', column, anyOf, negated }));

const FIELDS = {
  status: (value, negated) => parseValues('status', value, parseStatus, (anyOf) => ({ kind: 'status', anyOf, negated })),
  model: parseText('model', 'model_requested', 'model', 'model_answered'),
  provider: parseText('provider', 'provider'),
  key: parseText('key', 'key_id', 'key_name'),
  tag: parseList('tag', 'tags'),
  client: parseText('client', 'client_protocol', 'client_name'),
  upstream: parseText('upstream', 'upstream_protocol'),
  session: parseText('session', 'session_id'),
  endpoint: parseText('endpoint', 'endpoint'),
  ending: parseText('ending', 'ending'),
  error: parseText('error', 'error_code'),
  id: parseText('id', 'id', 'request_id'),
  rule: parseList('rule', 'rules'),
  note: parseList('note', 'note_codes'),
  cost: (value, negated) => parseNumber('cost', value, negated),
  ms: (value, negated) => parseNumber('ms', value, negated),
  ttft: (value, negated) => parseNumber('ttft', value, negated),
  tokens: (value, negated) => parseNumber('tokens', value, negated),
  since: (value, negated, now) => parseTime('since', value, now, (from) => ({ kind: 'time', from, to: null, negated })),
  until: (value, negated, now) => parseTime('until', value, now, (to) => ({ kind: 'time', from: null, to, negated })),
} as const satisfies Record<string, ParseValue>;

const FIELD_NAMES = Object.keys(FIELDS);

const isField = (name: string): name is keyof typeof FIELDS => Object.hasOwn(FIELDS, name);

const quote = (text: string): string => JSON.stringify(text.slice(0, 60));

/** Parses each value of `a|b`; a text is what is wrong with it. */
function parseValues<Value>(
  name: string,
  text: string,
  parse: (value: string) => Value | string,
  build: (values: Value[]) => Condition,
): Condition | string {
  const texts = text.split('|').filter((part) => part !== '');
  if (texts.length === 0) return `${name}: a value is required`;
  if (texts.length > MAX_VALUES) return `${name}: at most ${MAX_VALUES} values`;
  const values: Value[] = [];
  for (const part of texts) {
    const value = parse(part);
    if (typeof value === 'string') return `${name}: ${value}`;
    values.push(value);
  }
  return build(values);
}

const OUTCOMES: readonly string[] = ['ok', 'error', 'aborted', 'live'] satisfies Outcome[];

const isOutcome = (word: string): word is Outcome => OUTCOMES.includes(word);

function parseStatus(value: string): StatusTest | string {
  const word = value.toLowerCase();
  if (isOutcome(word)) return { outcome: word };
  if (/^[1-5]xx$/.test(word)) return { from: Number(word[0]) * 100, to: Number(word[0]) * 100 + 99 };
  if (/^[1-5]\d\d$/.test(word)) return { from: Number(word), to: Number(word) };
  return `unknown status ${quote(value)}${didYouMean(word, OUTCOMES)}; use 2xx, 404, ${OUTCOMES.join(', ')}`;
}

function parsePattern(value: string): Pattern | string {
  const parts = lower(cleanText(value) ?? '').split(/\*+/);
  return parts.length - 1 > MAX_STARS ? `at most ${MAX_STARS} stars` : parts;
}

/** Lists are searched as text, where a star inside a value would reach into the next element. */
function parseElement(value: string): Pattern | string {
  const parts = lower(value)
    .split(/\*+/)
    .map((part) => cleanElement(part));
  const isInside = parts.length > 3 || (parts.length === 3 && (parts[0] !== '' || parts[2] !== ''));
  if (isInside || (parts.length === 2 && parts[0] !== '' && parts[1] !== ''))
    return `${quote(value)}: a star is possible only at the start and at the end`;
  return parts;
}

const lower = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

const QUANTITIES = {
  cost: { quantity: 'cost_micros', units: { '': 1e6, $: 1e6 }, example: '>0.01' },
  ms: { quantity: 'total_ms', units: { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }, example: '>2000 or >2s' },
  ttft: { quantity: 'first_token_ms', units: { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }, example: '>500' },
  tokens: { quantity: 'tokens', units: { '': 1, k: 1000, m: 1e6 }, example: '>10k' },
} as const satisfies Record<string, { quantity: Quantity; units: Record<string, number>; example: string }>;

function parseNumber(name: keyof typeof QUANTITIES, text: string, negated: boolean): Condition | string {
  const { quantity, units, example } = QUANTITIES[name];
  const parts = /^(>=|<=|>|<|=)?(\d{1,15}(?:\.\d{1,9})?)([a-z$]*)$/i.exec(text);
  const scale = parts && Object.entries(units).find(([unit]) => unit === parts[3]?.toLowerCase())?.[1];
  if (!scale) return `${name}: ${quote(text)} is not a number; use ${name}:${example}`;
  const value = Number(parts[2]) * scale;
  return { kind: 'number', quantity, negated, ...findBounds(parts[1] ?? '=', value) };
}

/** Stored values are integers, so every comparison is a range with both ends included. */
function findBounds(operator: string, value: number): { from: number | null; to: number | null } {
  // 0.01 * 1e6 may be off by the last bit.
  const rounded = Math.abs(value - Math.round(value)) < 1e-6 ? Math.round(value) : value;
  switch (operator) {
    case '>':
      return { from: Math.floor(rounded) + 1, to: null };
    case '>=':
      return { from: Math.ceil(rounded), to: null };
    case '<':
      return { from: null, to: Math.ceil(rounded) - 1 };
    case '<=':
      return { from: null, to: Math.floor(rounded) };
    default:
      return { from: Math.ceil(rounded), to: Math.floor(rounded) };
  }
}

const AGES = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

function parseTime(name: string, text: string, now: number, build: (ms: number) => Condition): Condition | string {
  const age = /^(\d{1,6})([smhdw])$/i.exec(text);
  if (age) return build(now - Number(age[1]) * AGES[age[2]?.toLowerCase() as keyof typeof AGES]);
  const isDate = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/i.test(text);
  // Without an offset a time is UTC, as days of roll-ups are.
  const ms = isDate ? Date.parse(/T.*(Z|[+-]\d\d:\d\d)$/i.test(text) || !/T/i.test(text) ? text : `${text}Z`) : Number.NaN;
  return Number.isNaN(ms) ? `${name}: ${quote(text)} is not a time; use 2h, 7d, 2026-11-17 or 2026-11-17T08:00Z` : build(ms);
}

// ---- matching of a row, for live views; `filter-sql.ts` selects the same rows

/** The columns that filters look at. */
export type FilteredRow = Pick<
  ExchangeRow,
  | TextColumn
  | ListColumn
  | 'ts'
  | 'state'
  | 'http_status'
  | 'cost_micros'
  | 'total_ms'
  | 'first_token_ms'
  | 'input_tokens'
  | 'output_tokens'
>;

/** Whether a row passes all conditions. */
export const matchesFilter = (filter: Filter, row: FilteredRow): boolean =>
  filter.every((condition) => matches(condition, row) !== condition.negated);

function matches(condition: Condition, row: FilteredRow): boolean {
  switch (condition.kind) {
    case 'status':
      return condition.anyOf.some((test) => matchesStatus(test, row));
    case 'text':
      return condition.columns.some((column) => condition.anyOf.some((pattern) => matchesPattern(pattern, row[column] ?? '')));
    case 'list':
      return row[condition.column].some((element) => condition.anyOf.some((pattern) => matchesPattern(pattern, element)));
    case 'number':
      return isWithin(readQuantity(condition.quantity, row), condition.from, condition.to);
    case 'time':
      return (condition.from === null || row.ts >= condition.from) && (condition.to === null || row.ts < condition.to);
  }
}

const matchesStatus = (test: StatusTest, row: FilteredRow): boolean =>
  'outcome' in test ? classify(row) === test.outcome : isWithin(row.http_status, test.from, test.to);

const readQuantity = (quantity: Quantity, row: FilteredRow): number | null =>
  quantity === 'tokens' ? (row.input_tokens ?? 0) + (row.output_tokens ?? 0) : row[quantity];

const isWithin = (value: number | null, from: number | null, to: number | null): boolean =>
  value !== null && (from === null || value >= from) && (to === null || value <= to);

/** Finds the parts one after the other: linear in the text, whatever the pattern. */
function matchesPattern(pattern: Pattern, value: string): boolean {
  const text = lower(value);
  const [first = '', ...rest] = pattern;
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  const last = rest.pop() ?? '';
  let position = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return text.length - last.length >= position && text.endsWith(last);
}
