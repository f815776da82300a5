/** Shrinks a stream to the smallest one that still shows a violation: events, lines, fields, then texts. */

/**
 * Finds the smallest stream that still shows the violation: removes events, then lines, then fields, then texts, as
 * long as something gets smaller.
 */
export async function shrink(text: string, options: ShrinkOptions): Promise<Shrunk> {
  const { showsLoosely, mostMs } = options;
  if (!showsLoosely) return shrinkBy(text, options);
  const first = await shrinkBy(text, { ...options, mostMs: mostMs * STRICT_SHARE });
  if (first.text.length <= SMALL) return first;
  const second = await shrinkBy(first.text, { ...options, shows: showsLoosely, mostMs: mostMs * (1 - STRICT_SHARE) });
  return { ...second, tries: first.tries + second.tries };
}

/** Options of `shrink`. */
export interface ShrinkOptions {
  /** Whether a stream still shows the violation. */
  shows(text: string): boolean | Promise<boolean>;
  /** A weaker test, for when the strict one leaves too much. */
  showsLoosely?(text: string): boolean | Promise<boolean>;
  /** Milliseconds, for the time limit. */
  now(): number;
  /** The time limit; the best result so far is returned. */
  mostMs: number;
  onBetter?(text: string, tries: number): void;
}

/** A shrunk stream. */
export interface Shrunk {
  text: string;
  tries: number;
  /** False when the time was over before everything had been tried. */
  isDone: boolean;
}

/** A stream of this length fits into a report. */
const SMALL = 1000;

/** The share of the time for the strict test, when there is a weaker one. */
const STRICT_SHARE = 0.4;

async function shrinkBy(text: string, options: ShrinkOptions): Promise<Shrunk> {
  const shrinker = new Shrinker(text, options);
  try {
    for (let round = 0, before = ''; round < MAX_ROUNDS && before !== shrinker.text; round++) {
      before = shrinker.text;
      await shrinker.round();
    }
    return { text: shrinker.text, tries: shrinker.tries, isDone: true };
  } catch (error) {
    if (!(error instanceof OutOfTime)) throw error;
    return { text: shrinker.text, tries: shrinker.tries, isDone: false };
  }
}

/** Later rounds find what earlier ones made possible; a third seldom finds anything. */
const MAX_ROUNDS = 4;

/** Thrown when the time is over, to stop all tries. */
class OutOfTime extends Error {}

class Shrinker {
  readonly #options: ShrinkOptions;
  readonly #deadline: number;
  /** The smallest stream so far. */
  text: string;
  tries = 0;

  constructor(text: string, options: ShrinkOptions) {
    this.text = text;
    this.#options = options;
    this.#deadline = options.now() + options.mostMs;
  }

  async round(): Promise<void> {
    await this.#changeAll(withoutTexts);
    await this.#leaveOut(splitEvents(this.text));
    await this.#leaveOut(splitLines(this.text));
    await this.#changeAll(withoutFields);
    await this.#changeAll(withPlainTexts);
    await this.#leaveOut(splitEvents(this.text));
    await this.#leaveOut(splitLines(this.text));
    await this.#takeApart();
  }

  async #leaveOut(pieces: readonly string[]): Promise<void> {
    await shortest(pieces, (shorter) => this.#try(shorter.join('')));
  }

  async #changeAll(change: typeof withoutFields): Promise<void> {
    await change(await this.#parts(), (parts) => this.#try(render(parts)));
  }

  /** Shrinks document by document; other lines letter by letter. */
  async #takeApart(): Promise<void> {
    const parts = [...(await this.#parts())];
    for (const [at, part] of parts.entries()) {
      if (typeof part === 'string') {
        const isWorthIt = part.length > WORTH_CUTTING;
        if (isWorthIt) parts[at] = await plainest(part, (tried) => this.#try(render(parts.with(at, tried))));
      } else {
        const value = await smallest(part.value, (tried) => this.#try(render(parts.with(at, { ...part, value: tried }))));
        parts[at] = { ...part, value };
      }
    }
  }

  /** The parts of the smallest stream so far. JSON that must keep its spacing or number format stays as text. */
  async #parts(): Promise<readonly Part[]> {
    const parts = splitParts(this.text);
    if (render(parts) === this.text || (await this.#try(render(parts), 'rewritten'))) return parts;
    const lines = splitLines(this.text);
    if (lines.length !== parts.length || lines.length > MAX_LINES) return [this.text];
    const careful: Part[] = [];
    for (const [at, part] of parts.entries()) {
      const rewritten = render([...careful, part, ...lines.slice(at + 1)]);
      careful.push(rewritten === this.text || (await this.#try(rewritten, 'rewritten')) ? part : (lines[at] ?? ''));
    }
    return careful;
  }

  /** `rewritten`: not smaller, but easier to shrink. */
  async #try(text: string, kind: 'smaller' | 'rewritten' = 'smaller'): Promise<boolean> {
    const { shows, now, onBetter } = this.#options;
    if (now() > this.#deadline) throw new OutOfTime();
    if (kind === 'smaller' && text === this.text) return false;
    this.tries++;
    if (!(await shows(text))) return false;
    this.text = text;
    onBetter?.(text, this.tries);
    return true;
  }
}

/** Shorter lines are left as they are. */
const WORTH_CUTTING = 24;

/** With more lines than this, they are not rewritten one by one. */
const MAX_LINES = 64;

/**
 * The list without every run that can be left out, runs of half the list first (delta debugging): finds few relevant
 * elements of many in few tries. From the end to the beginning, because later elements depend on earlier ones.
 */
export async function shortest<T>(list: readonly T[], shows: (shorter: readonly T[]) => Promise<boolean>): Promise<readonly T[]> {
  if (list.length > 0 && (await shows([]))) return [];
  let best = list;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let end = best.length; end > 0; end -= size) {
      const shorter = [...best.slice(0, Math.max(end - size, 0)), ...best.slice(end)];
      if (shorter.length > 0 && (await shows(shorter))) best = shorter;
    }
  }
  return best;
}

// ---- parts of a body

/** A piece of a body: literal text, or a document that can be taken apart. */
type Part = string | Payload;

/** A JSON document, and what surrounds it in its line. */
interface Payload {
  readonly before: string;
  readonly value: unknown;
  readonly after: string;
}

/** The events of a body, each with its blank line; of a body without events, the lines. */
export function splitEvents(text: string): string[] {
  const events: string[] = [];
  let open = '';
  for (const line of splitLines(text)) {
    open += line;
    const isBare = open === line && DATA.exec(line)?.[1] === '' && parse(line) !== undefined;
    if (!isBare && !/^[\r\n]+$/.test(line)) continue;
    events.push(open);
    open = '';
  }
  return open === '' ? events : [...events, open];
}

/** A body in parts. A whole JSON body is one part. */
export function splitParts(text: string): Part[] {
  const whole = parse(text);
  if (whole) return [{ before: '', value: whole.value, after: '' }];
  return splitLines(text).map((line) => {
    const [, before = '', data = '', after = ''] = DATA.exec(line) ?? [];
    // Something may follow the document.
    const end = Math.max(data.lastIndexOf('}'), data.lastIndexOf(']')) + 1;
    const found = parse(data.slice(0, end));
    return found ? { before, value: found.value, after: data.slice(end) + after } : line;
  });
}

/** The text of a body in parts. */
export const render = (parts: readonly Part[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : part.before + JSON.stringify(part.value) + part.after)).join('');

const splitLines = (text: string): string[] => text.match(LINES) ?? [];

const LINES = /[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g;

/** The field name with its space, the data, the line end. */
const DATA = /^(\uFEFF?(?:data: ?)?)([[{].*?)(\s*)$/s;

function parse(text: string): { value: object } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { value } : undefined;
  } catch {
    return undefined;
  }
}

// ---- changes to all copies of a field

type Shows = (parts: readonly Part[]) => Promise<boolean>;

/**
 * The keys that lead to a value, each after a mark. Elements of a list share one place: streams repeat their fields,
 * and a change is tried on all copies at once.
 */
type Place = string;

const MARK = '\0';

const ELEMENT = '[]';

const innerPlace = (place: Place, key: string): Place => place + MARK + key;

/** Empties all texts of the model at once: some protocols repeat a text, and no copy can change alone. */
async function withoutTexts(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  const silent = parts.map((part) => (typeof part === 'string' ? part : { ...part, value: withoutText(part.value, '', 0) }));
  return (await shows(silent)) ? silent : parts;
}

/** Fields in which the four protocols have the model's output. */
const TEXTS: ReadonlySet<string> = new Set(
  'arguments content delta input output_text partial_json reasoning reasoning_content refusal summary text thinking'.split(' '),
);

function withoutText(value: unknown, key: string, depth: number): unknown {
  if (typeof value === 'string') return TEXTS.has(key) ? '' : value;
  if (typeof value !== 'object' || value === null || depth > MAX_SHRINK_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => withoutText(item, key, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withoutText(item, name, depth + 1)]));
}

/** Leaves out unneeded fields everywhere, outer ones first. */
async function withoutFields(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  let best = parts;
  for (const place of listPlaces(parts, () => true)) {
    const fewer = changeAt(best, place, () => undefined);
    if (fewer !== best && (await shows(fewer))) best = fewer;
  }
  return best;
}

/** Simplifies texts everywhere. */
async function withPlainTexts(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  let best = parts;
  for (const place of listPlaces(parts, (value) => typeof value === 'string')) {
    for (const at of [0, 1, 2, 3]) {
      const plainer = changeAt(best, place, (value) => (typeof value === 'string' ? (plainFor(value)[at] ?? value) : value));
      if (plainer === best || !(await shows(plainer))) continue;
      best = plainer;
      break;
    }
  }
  return best;
}

/** Outer places before inner ones. */
function listPlaces(parts: readonly Part[], isWanted: (value: unknown) => boolean): Place[] {
  const found = new Map<Place, number>();
  const visit = (value: unknown, place: Place, depth: number): void => {
    if (depth > 0 && isWanted(value) && !found.has(place)) found.set(place, depth);
    if (typeof value !== 'object' || value === null || depth > MAX_SHRINK_DEPTH) return;
    if (Array.isArray(value)) for (const item of value) visit(item, innerPlace(place, ELEMENT), depth + 1);
    else for (const [key, item] of Object.entries(value)) visit(item, innerPlace(place, key), depth + 1);
  };
  for (const part of parts) if (typeof part !== 'string') visit(part.value, '', 0);
  return [...found].toSorted(([, a], [, b]) => a - b).map(([place]) => place);
}

/** The parts with a value changed or left out at every occurrence of the place; the same list when there is none. */
function changeAt(parts: readonly Part[], wanted: Place, change: (value: unknown) => unknown): readonly Part[] {
  let isChanged = false;
  const visit = (value: unknown, place: Place): unknown => {
    if (place === wanted) {
      const next = change(value);
      isChanged ||= next !== value;
      return next;
    }
    // Only values above the wanted place are rebuilt; all others stay the same objects.
    if (typeof value !== 'object' || value === null || !wanted.startsWith(place + MARK)) return value;
    if (Array.isArray(value))
      return value.map((item) => visit(item, innerPlace(place, ELEMENT))).filter((item) => item !== undefined);
    const fields = Object.entries(value).map(([key, item]): [string, unknown] => [key, visit(item, innerPlace(place, key))]);
    return Object.fromEntries(fields.filter(([, item]) => item !== undefined));
  };
  const next = parts.map((part) => (typeof part === 'string' ? part : { ...part, value: visit(part.value, '') }));
  return isChanged ? next : parts;
}

// ---- one JSON value

type JsonTest = (value: unknown) => Promise<boolean>;

type Entry = readonly [key: string, value: unknown];

/** Shrinks a JSON value: leaves out fields and elements, and simplifies texts and numbers. */
async function smallest(value: unknown, shows: JsonTest, depth = 0): Promise<unknown> {
  if (depth > MAX_SHRINK_DEPTH) return value;
  if (Array.isArray(value)) {
    const items = value.map((item): Entry => ['', item]);
    return smallestEntries(items, (entries) => entries.map(([, item]) => item), shows, depth);
  }
  if (isFields(value)) return smallestEntries(Object.entries(value), Object.fromEntries, shows, depth);
  if (typeof value === 'string') return plainest(value, shows);
  return typeof value === 'number' && value !== 0 && (await shows(0)) ? 0 : value;
}

async function smallestEntries(
  all: readonly Entry[],
  join: (entries: readonly Entry[]) => unknown,
  shows: JsonTest,
  depth: number,
): Promise<unknown> {
  const kept = [...(await shortest(all, (shorter) => shows(join(shorter))))];
  for (const [at, [key, value]] of kept.entries()) {
    const smaller = await smallest(value, (tried) => shows(join(kept.with(at, [key, tried]))), depth + 1);
    kept[at] = [key, smaller];
  }
  return join(kept);
}

/** Levels of a value that are shrunk. No protocol has more; deeper values stay as they are. */
const MAX_SHRINK_DEPTH = 64;

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Shortens a text and replaces its characters as far as possible. */
async function plainest(text: string, shows: (text: string) => Promise<boolean>): Promise<string> {
  for (const plain of plainFor(text))
    if (text !== '' && (await shows(plain))) return plain.length > 8 ? cutDown(plain, shows) : plain;
  return isWord(text) ? text : cutDown(text, shows);
}

/** Simpler texts that may replace another, the simplest first. */
const plainFor = (text: string): string[] =>
  ['', 'x', '{}', filler(text)].filter((plain) => plain !== text && plain.length <= text.length);

/** Placeholder text of the same form, which reveals nothing. */
export const filler = (text: string): string =>
  text
    .replace(/\p{L}/gu, 'x')
    .replace(/\p{N}/gu, '0')
    .replace(/[^\p{ASCII}]/gu, 'x');

/** A required word, such as the type of an event, cannot be shortened; trying every letter would take many tries. */
const isWord = (text: string): boolean => /^[\w.-]{0,40}$/.test(text);

async function cutDown(text: string, shows: (text: string) => Promise<boolean>): Promise<string> {
  const characters = [...text];
  const size = Math.ceil(characters.length / MAX_PIECES);
  const pieces = Array.from({ length: Math.ceil(characters.length / Math.max(size, 1)) }, (_, at) =>
    characters.slice(at * size, (at + 1) * size).join(''),
  );
  const kept = (await shortest(pieces, (shorter) => shows(shorter.join('')))).join('');
  return size > 1 && kept.length < text.length ? cutDown(kept, shows) : kept;
}

/** Longer texts are cut in larger pieces, since every try costs time. */
const MAX_PIECES = 512;
