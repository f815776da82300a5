/** Streams of tool-call deltas with a known truth: the calls are chosen first, then written with one or two quirks of real servers. */

const QUIRKS = [
  'empty id',
  'missing id',
  'late id',
  'changing id',
  'missing index',
  'index 0 for all',
  'string index',
  'gap in indexes',
  'repeated name',
  'name in pieces',
  'late name',
  'object arguments',
  'cumulative arguments',
  '{} first',
  'arguments null',
  'interleaving',
  'several calls per chunk',
  'call after finish',
] as const;
export type Quirk = (typeof QUIRKS)[number];

/** A call as the server meant it. */
interface TrueCall {
  /** undefined: the wire never carries an id, so any unique one is right. */
  id: string | undefined;
  name: string;
  arguments: string;
}

/** One delta, with the number of the call that it belongs to. A field that is undefined is not on the wire. */
export interface Step {
  call: number;
  index?: unknown;
  id?: unknown;
  name?: unknown;
  arguments?: unknown;
}

export interface GeneratedStream {
  quirks: readonly Quirk[];
  truth: TrueCall[];
  chunks: Step[][];
  /** The number of chunks before the one with the finish reason. */
  finishAfter: number;
}

/** Every single quirk, and every pair. */
export const QUIRK_SETS: readonly (readonly Quirk[])[] = QUIRKS.flatMap((first, i) => [
  [first],
  ...QUIRKS.slice(i + 1).map((second) => [first, second]),
]);

type Random = () => number;

/** mulberry32: small, seeded, good enough to pick cuts and orders. */
function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Picks with a seeded source. */
class Dice {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  between(low: number, high: number): number {
    return low + Math.floor(this.#random() * (high - low + 1));
  }

  pick<T>(values: readonly [T, ...T[]]): T {
    return values[this.between(0, values.length - 1)] ?? values[0];
  }

  /** Cuts a text into at most `most` pieces, none of them empty. */
  cut(text: string, most: number): string[] {
    const places = Array.from({ length: this.between(0, most - 1) }, () => this.between(1, Math.max(1, text.length - 1)));
    const borders = [0, ...new Set(places.toSorted((a, b) => a - b)), text.length];
    return borders.slice(1).flatMap((end, i) => (end > (borders[i] ?? 0) ? [text.slice(borders[i], end)] : []));
  }
}

const NAMES = ['get_weather', 'get_time', 'search', 'read_file', 'get', 'f'] as const;
const KEYS = ['q', 'path', 'x', 'y', 'location'] as const;
const VALUES: readonly [unknown, ...unknown[]] = [
  1,
  -2.5,
  true,
  null,
  'Paris',
  'a "quoted" {brace',
  '}{',
  '',
  [1, { a: '{}' }],
  { deep: { er: [] } },
  '日本 😀',
  'haha',
];

function chooseArguments(dice: Dice): string {
  if (dice.chance(0.06)) return '';
  if (dice.chance(0.06)) return '{}';
  const entries = Array.from({ length: dice.between(1, 3) }, () => [dice.pick(KEYS), dice.pick(VALUES)] as const);
  return JSON.stringify(Object.fromEntries(entries), null, dice.chance(0.2) ? 1 : 0);
}

export function generateStream(seed: number, quirks: readonly Quirk[]): GeneratedStream {
  const dice = new Dice(seed);
  const has = (quirk: Quirk): boolean => quirks.includes(quirk);
  const count = has('interleaving') || has('several calls per chunk') ? dice.between(2, 3) : dice.between(1, 3);
  const oneName = dice.chance(0.4) ? dice.pick(NAMES) : undefined;
  const calls = Array.from({ length: count }, (_, i) => ({
    id: `call_${i}${dice.between(1000, 9999)}`,
    name: oneName ?? dice.pick(NAMES),
    arguments: chooseArguments(dice),
  }));
  const style = chooseStyle(dice, has);
  const written = calls.map((call, i) => writeCall(call, i, style, dice, has));
  const chunks = arrange(written, style, dice, has);
  const truth = calls.map(({ name, arguments: text }, i) => ({
    id: firstId(chunks.flat().filter(({ call }) => call === i)),
    name,
    arguments: has('object arguments') && text !== '' ? JSON.stringify(JSON.parse(text)) : text || '{}',
  }));
  return { quirks, truth, chunks, finishAfter: placeFinish(chunks, count, dice, has) };
}

type Has = (quirk: Quirk) => boolean;

/** What a server does in all its calls. */
interface Style {
  /** Ids on every delta, without which calls that overlap on one index cannot be told apart. */
  idsEverywhere: boolean;
  allIdsEmpty: boolean;
  namePiecesWithArguments: boolean;
  growingName: boolean;
  lateNameAt: 'second' | 'last';
  isRound: boolean;
}

const chooseStyle = (dice: Dice, has: Has): Style => ({
  idsEverywhere: has('interleaving') && (has('missing index') || has('index 0 for all')) && dice.chance(0.7),
  allIdsEmpty: dice.chance(0.25),
  namePiecesWithArguments: dice.chance(0.3),
  growingName: dice.chance(0.3),
  lateNameAt: dice.pick(['second', 'last']),
  isRound: dice.chance(0.6),
});

interface Call {
  id: string;
  name: string;
  arguments: string;
}

function writeCall(call: Call, at: number, style: Style, dice: Dice, has: Has): Step[] {
  const steps = writeArguments(call.arguments, dice, has).map((value): Step => ({ call: at, arguments: value }));
  if (dice.chance(0.15)) steps.push({ call: at, arguments: '' });
  if (has('arguments null')) for (const step of steps) if (step.arguments === '') step.arguments = null;
  writeName(call.name, steps, style, dice, has);
  writeIds(call.id, at, steps, style, dice, has);
  for (const [i, step] of steps.entries()) writeIndex(at, step, i === 0, has);
  return steps;
}

/** The `arguments` of each delta of a call. */
function writeArguments(text: string, dice: Dice, has: Has): unknown[] {
  const pieces = writePieces(text, dice, has);
  if (has('{} first')) return [has('object arguments') ? {} : '{}', ...pieces];
  if (has('arguments null')) return [null, ...pieces];
  return dice.chance(0.3) && pieces.length > 0 ? pieces : ['', ...pieces];
}

function writePieces(text: string, dice: Dice, has: Has): unknown[] {
  if (text === '') return [];
  if (has('object arguments')) {
    const value = JSON.parse(text) as Record<string, unknown>;
    const entries = Object.entries(value);
    if (has('cumulative arguments')) return entries.map((_, i) => Object.fromEntries(entries.slice(0, i + 1)));
    return dice.chance(0.3) ? [value, value] : [value];
  }
  const pieces = dice.cut(text, 4);
  if (!has('cumulative arguments')) return pieces;
  return pieces.map((_, i) => pieces.slice(0, i + 1).join(''));
}

function writeName(name: string, steps: Step[], style: Style, dice: Dice, has: Has): void {
  const call = steps[0]?.call ?? 0;
  const pieces = has('name in pieces') && name.length > 1 ? cutName(name, dice) : [name];
  const names = style.growingName ? pieces.map((_, i) => pieces.slice(0, i + 1).join('')) : pieces;
  let first = 0;
  if (has('late name')) {
    first = style.lateNameAt === 'last' ? steps.length : 1;
    if (first === steps.length) steps.push({ call });
  }
  // A name in pieces either stands before the arguments or goes along with them.
  const room = style.namePiecesWithArguments && steps.length >= first + names.length ? 0 : names.length - 1;
  for (let i = 0; i < room; i++) steps.splice(first + 1, 0, { call, arguments: '' });
  if (room > 0 && !has('object arguments')) moveArguments(steps, first, first + room);
  for (const [i, piece] of names.entries()) {
    const step = steps[first + i];
    if (step) step.name = piece;
  }
  if (has('repeated name')) for (const step of steps.slice(first + names.length)) step.name = name;
}

function cutName(name: string, dice: Dice): string[] {
  const pieces = dice.cut(name, 3);
  return pieces.length > 1 ? pieces : [name.slice(0, 1), name.slice(1)];
}

/** The delta with the first piece of the name carries no arguments: they follow with the last one. `{}` stays where it is. */
function moveArguments(steps: Step[], from: number, to: number): void {
  const [first, last] = [steps[from], steps[to]];
  if (!first || !last || first.arguments === '{}' || first.arguments === null) return;
  last.arguments = first.arguments ?? '';
  first.arguments = '';
}

const BLANK_IDS = ['', '', '', null, '  '] as const;

function writeIds(id: string, at: number, steps: Step[], style: Style, dice: Dice, has: Has): void {
  const isMissing = has('missing id') && !(has('late id') && at % 2 === 0);
  let first = 0;
  if (has('late id') || (has('missing id') && has('changing id'))) {
    first = dice.between(1, Math.max(1, steps.length - 1));
    if (first === steps.length) steps.push({ call: at });
  }
  for (const [i, step] of steps.entries()) {
    const isIdStep = i === first || (i > first && style.idsEverywhere);
    if (has('changing id') && i >= first) step.id = i === first ? id : `${id}_${i}`;
    else if (isIdStep && !isMissing && !(has('empty id') && style.allIdsEmpty && !has('late id'))) step.id = id;
    else if (has('empty id')) step.id = dice.pick(BLANK_IDS);
  }
}

function writeIndex(at: number, step: Step, isFirst: boolean, has: Has): void {
  const base = has('gap in indexes') ? at * 3 + 1 : at;
  const shared = has('gap in indexes') ? 7 : 0;
  let index: number | undefined = has('index 0 for all') ? shared : base;
  // With a second quirk of the index, the two take turns: one on the first delta of a call, the other on the rest.
  if (has('missing index')) {
    if (has('index 0 for all')) index = isFirst ? undefined : 0;
    else if (has('string index') || has('gap in indexes')) index = isFirst ? index : undefined;
    else index = undefined;
  }
  if (index !== undefined) step.index = has('string index') ? String(index) : index;
}

function firstId(steps: readonly Step[]): string | undefined {
  const ids = steps.map(({ id }) => id);
  return ids.find((id): id is string => typeof id === 'string' && id.trim() !== '');
}

function arrange(calls: readonly Step[][], style: Style, dice: Dice, has: Has): Step[][] {
  if (has('several calls per chunk') && style.isRound) return rounds(calls);
  const sequence = has('interleaving') ? interleave(calls, dice) : calls.flat();
  if (!has('several calls per chunk')) return sequence.map((step) => [step]);
  const chunks: Step[][] = [];
  for (let i = 0; i < sequence.length; ) {
    const size = dice.between(1, 3);
    chunks.push(sequence.slice(i, i + size));
    i += size;
  }
  return chunks;
}

/** The first delta of every call in one chunk, then the second ones, and so on. */
function rounds(calls: readonly Step[][]): Step[][] {
  const most = Math.max(...calls.map((steps) => steps.length));
  return Array.from({ length: most }, (_, i) => calls.flatMap((steps) => steps[i] ?? []));
}

/** Any order that keeps each call's own, with the calls beginning one after the other. */
function interleave(calls: readonly Step[][], dice: Dice): Step[] {
  const rest = calls.map((steps) => [...steps]);
  const sequence: Step[] = [];
  let begun = 0;
  while (rest.some((steps) => steps.length > 0)) {
    const ready = rest.filter((steps, i) => steps.length > 0 && i <= begun);
    const steps = ready[dice.between(0, ready.length - 1)];
    const step = steps?.shift();
    if (!step) continue;
    begun = Math.max(begun, step.call + 1);
    sequence.push(step);
  }
  return sequence;
}

function placeFinish(chunks: readonly Step[][], count: number, dice: Dice, has: Has): number {
  if (!has('call after finish')) return chunks.length;
  const last = chunks.findIndex((chunk) => chunk.some(({ call }) => call === count - 1));
  return dice.chance(0.7) ? last : dice.between(last, chunks.length - 1);
}

/** The entry of `tool_calls` that a step stands for. */
export function toEntry({ call: _call, index, id, name, arguments: text }: Step): Record<string, unknown> {
  const body = { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) };
  return { ...(index !== undefined && { index }), ...(id !== undefined && { id }), type: 'function', function: body };
}

/** The stream as parsed chat chunks. */
export function toChunks({ chunks, finishAfter }: GeneratedStream): Record<string, unknown>[] {
  const chunk = (delta: Record<string, unknown>, finish: string | null): Record<string, unknown> => ({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const deltas = chunks.map((steps) => chunk({ tool_calls: steps.map(toEntry) }, null));
  return [
    chunk({ role: 'assistant', content: null }, null),
    ...deltas.slice(0, finishAfter),
    chunk({}, 'tool_calls'),
    ...deltas.slice(finishAfter),
  ];
}

/** The same as the body of a response. */
export const toBody = (stream: GeneratedStream): string =>
  [...toChunks(stream).map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');
