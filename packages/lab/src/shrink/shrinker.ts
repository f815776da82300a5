/**
 * The list without every run that can be left out, runs of half the list first: delta debugging. Few of many are found in few tries. From the
 * end to the beginning, because what comes later builds on what came before.
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

type JsonTest = (value: unknown) => Promise<boolean>;

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Levels of a value that are shrunk. No protocol has more; deeper values stay as they are. */
const MAX_SHRINK_DEPTH = 64;

type Entry = readonly [key: string, value: unknown];

/** A value with as little in it as it takes: fields and elements left out, texts and numbers made plain. */
async function smallest(value: unknown, shows: JsonTest, depth = 0): Promise<unknown> {
  if (depth > MAX_SHRINK_DEPTH) return value;
  if (Array.isArray(value)) {
    const items = value.map((item): Entry => ['', item]);
    return smallestOf(items, (entries) => entries.map(([, item]) => item), shows, depth);
  }
  if (isFields(value)) return smallestOf(Object.entries(value), Object.fromEntries, shows, depth);
  if (typeof value === 'string') return plainest(value, shows);
  return typeof value === 'number' && value !== 0 && (await shows(0)) ? 0 : value;
}

async function smallestOf(
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

/** Words that tell nothing about anybody, of the same shape. */
export const filler = (text: string): string =>
  text
    .replace(/\p{L}/gu, 'x')
    .replace(/\p{N}/gu, '0')
    .replace(/[^\p{ASCII}]/gu, 'x');

/** The plain texts that may stand for another, the plainest first. */
const plainFor = (text: string): string[] =>
  ['', 'x', '{}', filler(text)].filter((plain) => plain !== text && plain.length <= text.length);

/** Longer texts are cut in larger pieces: a try is not cheap. */
const MAX_PIECES = 512;

/** A text with as few letters as it takes, and those made plain where they may be. */
async function plainest(text: string, shows: (text: string) => Promise<boolean>): Promise<string> {
  for (const plain of plainFor(text))
    if (text !== '' && (await shows(plain))) return plain.length > 8 ? cutDown(plain, shows) : plain;
  return isWord(text) ? text : cutDown(text, shows);
}

/** A word that must be this one, such as the type of an event, has no letters to spare; to find that out letter by letter takes many tries. */
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

/** A JSON document, and what stands around it in its line. */
interface Payload {
  readonly before: string;
  readonly value: unknown;
  readonly after: string;
}

/** A piece of a body: words as they are, or a document that can be taken apart. */
export type Part = string | Payload;

const LINES = /[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g;

/** The name of the field and its blank, the data, the line end. */
const DATA = /^(\uFEFF?(?:data: ?)?)([[{].*?)(\s*)$/s;

const linesOf = (text: string): string[] => text.match(LINES) ?? [];

/** The events of a body, each with the blank line behind it; of a body without events, the lines. */
export function eventsOf(text: string): string[] {
  const events: string[] = [];
  let open = '';
  for (const line of linesOf(text)) {
    open += line;
    const isBare = open === line && DATA.exec(line)?.[1] === '' && parse(line) !== undefined;
    if (!isBare && !/^[\r\n]+$/.test(line)) continue;
    events.push(open);
    open = '';
  }
  return open === '' ? events : [...events, open];
}

/** A body in parts. Whole JSON bodies are one. */
export function partsOf(text: string): Part[] {
  const whole = parse(text);
  if (whole) return [{ before: '', value: whole.value, after: '' }];
  return linesOf(text).map((line) => {
    const [, before = '', data = '', after = ''] = DATA.exec(line) ?? [];
    // Something may stand behind the document.
    const end = Math.max(data.lastIndexOf('}'), data.lastIndexOf(']')) + 1;
    const found = parse(data.slice(0, end));
    return found ? { before, value: found.value, after: data.slice(end) + after } : line;
  });
}

export const render = (parts: readonly Part[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : part.before + JSON.stringify(part.value) + part.after)).join('');

function parse(text: string): { value: object } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { value } : undefined;
  } catch {
    return undefined;
  }
}

// Streams repeat themselves: what is done to a field is tried on all its copies at once, and costs one try.
type Shows = (parts: readonly Part[]) => Promise<boolean>;

/** The keys that lead to a place, each behind a mark; positions in lists are all the same place. */
type Place = string;

const MARK = '\0';

const ELEMENT = '[]';

const placeOf = (place: Place, key: string): Place => place + MARK + key;

/** Where the four protocols have what a model says. */
const TEXTS: ReadonlySet<string> = new Set(
  'arguments content delta input output_text partial_json reasoning reasoning_content refusal summary text thinking'.split(' '),
);

/** Silences the model: some protocols say a text several times, and no copy of it can change or go alone. */
async function withoutTexts(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  const silent = parts.map((part) => (typeof part === 'string' ? part : { ...part, value: silenced(part.value, '', 0) }));
  return (await shows(silent)) ? silent : parts;
}

function silenced(value: unknown, key: string, depth: number): unknown {
  if (typeof value === 'string') return TEXTS.has(key) ? '' : value;
  if (typeof value !== 'object' || value === null || depth > MAX_SHRINK_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => silenced(item, key, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, silenced(item, name, depth + 1)]));
}

/** Leaves out the fields that it does not take, everywhere; the outer ones first. */
async function withoutFields(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  let best = parts;
  for (const place of placesOf(parts, () => true)) {
    const fewer = changed(best, place, () => undefined);
    if (fewer !== best && (await shows(fewer))) best = fewer;
  }
  return best;
}

/** Makes texts plain, everywhere. */
async function withPlainTexts(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  let best = parts;
  for (const place of placesOf(parts, (value) => typeof value === 'string')) {
    for (const at of [0, 1, 2, 3]) {
      const plainer = changed(best, place, (value) => (typeof value === 'string' ? (plainFor(value)[at] ?? value) : value));
      if (plainer === best || !(await shows(plainer))) continue;
      best = plainer;
      break;
    }
  }
  return best;
}

/** Outer places before inner ones. */
function placesOf(parts: readonly Part[], isWanted: (value: unknown) => boolean): Place[] {
  const found = new Map<Place, number>();
  const visit = (value: unknown, place: Place, depth: number): void => {
    if (depth > 0 && isWanted(value) && !found.has(place)) found.set(place, depth);
    if (typeof value !== 'object' || value === null || depth > MAX_SHRINK_DEPTH) return;
    if (Array.isArray(value)) for (const item of value) visit(item, placeOf(place, ELEMENT), depth + 1);
    else for (const [key, item] of Object.entries(value)) visit(item, placeOf(place, key), depth + 1);
  };
  for (const part of parts) if (typeof part !== 'string') visit(part.value, '', 0);
  return [...found].toSorted(([, a], [, b]) => a - b).map(([place]) => place);
}

/** The parts with a value changed, or left out, wherever the place is met; the same list when it is met nowhere. */
function changed(parts: readonly Part[], wanted: Place, change: (value: unknown) => unknown): readonly Part[] {
  let isChanged = false;
  const visit = (value: unknown, place: Place): unknown => {
    if (place === wanted) {
      const next = change(value);
      isChanged ||= next !== value;
      return next;
    }
    // Only the places above the wanted one lead to it: all others stay as they are, and the same objects.
    if (typeof value !== 'object' || value === null || !wanted.startsWith(place + MARK)) return value;
    if (Array.isArray(value))
      return value.map((item) => visit(item, placeOf(place, ELEMENT))).filter((item) => item !== undefined);
    const fields = Object.entries(value).map(([key, item]): [string, unknown] => [key, visit(item, placeOf(place, key))]);
    return Object.fromEntries(fields.filter(([, item]) => item !== undefined));
  };
  const next = parts.map((part) => (typeof part === 'string' ? part : { ...part, value: visit(part.value, '') }));
  return isChanged ? next : parts;
}

export interface ShrinkOptions {
  /** Whether a stream still shows what is looked for. */
  shows(text: string): boolean | Promise<boolean>;
  /** The same with less asked of it, for when that would leave too much. */
  showsLoosely?(text: string): boolean | Promise<boolean>;
  /** Milliseconds, for the time that it may take. */
  now(): number;
  /** What is reached by then is the result. */
  mostMs: number;
  onBetter?(text: string, tries: number): void;
}

export interface Shrunk {
  text: string;
  tries: number;
  /** False when the time was over before everything had been tried. */
  isDone: boolean;
}

/** Rounds after the first find what others have made possible; there is seldom anything left for a third. */
const MAX_ROUNDS = 4;

/** Shorter lines say nothing about anybody. */
const WORTH_CUTTING = 24;

/** More lines than these are not looked at one by one before it is known that each of them counts. */
const MAX_LINES = 64;

/** Thrown when the time is over: whatever is tried then, there is no answer to wait for. */
class OutOfTime extends Error {}

/** A stream of this length fits a report. */
const SMALL = 1000;

/** Of the time, for a result that is about one thing alone, when there is another way. */
const STRICT_SHARE = 0.4;

/** The smallest stream that still shows it: events, then lines, then fields, then texts, as long as something gets smaller. */
export async function shrink(text: string, options: ShrinkOptions): Promise<Shrunk> {
  const { showsLoosely, mostMs } = options;
  if (!showsLoosely) return shrinkBy(text, options);
  const first = await shrinkBy(text, { ...options, mostMs: mostMs * STRICT_SHARE });
  if (first.text.length <= SMALL) return first;
  const second = await shrinkBy(first.text, { ...options, shows: showsLoosely, mostMs: mostMs * (1 - STRICT_SHARE) });
  return { ...second, tries: first.tries + second.tries };
}

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

class Shrinker {
  readonly #options: ShrinkOptions;
  readonly #deadline: number;
  /** The best so far: whatever is tried and shows it. */
  text: string;
  tries = 0;

  constructor(text: string, options: ShrinkOptions) {
    this.text = text;
    this.#options = options;
    this.#deadline = options.now() + options.mostMs;
  }

  async round(): Promise<void> {
    await this.#changeAll(withoutTexts);
    await this.#leaveOut(eventsOf(this.text));
    await this.#leaveOut(linesOf(this.text));
    await this.#changeAll(withoutFields);
    await this.#changeAll(withPlainTexts);
    await this.#leaveOut(eventsOf(this.text));
    await this.#leaveOut(linesOf(this.text));
    await this.#takeApart();
  }

  async #leaveOut(pieces: readonly string[]): Promise<void> {
    await shortest(pieces, (shorter) => this.#try(shorter.join('')));
  }

  async #changeAll(change: typeof withoutFields): Promise<void> {
    await change(await this.#parts(), (parts) => this.#try(render(parts)));
  }

  /** Document by document; what is none, letter by letter. */
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

  /** The parts of the best so far. JSON that must be written as it was (its blanks, its numbers) stays as it was. */
  async #parts(): Promise<readonly Part[]> {
    const parts = partsOf(this.text);
    if (render(parts) === this.text || (await this.#try(render(parts), 'anew'))) return parts;
    const lines = linesOf(this.text);
    if (lines.length !== parts.length || lines.length > MAX_LINES) return [this.text];
    const careful: Part[] = [];
    for (const [at, part] of parts.entries()) {
      const anew = render([...careful, part, ...lines.slice(at + 1)]);
      careful.push(anew === this.text || (await this.#try(anew, 'anew')) ? part : (lines[at] ?? ''));
    }
    return careful;
  }

  /** `anew`: not smaller, but easier to make so. */
  async #try(text: string, kind: 'smaller' | 'anew' = 'smaller'): Promise<boolean> {
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
