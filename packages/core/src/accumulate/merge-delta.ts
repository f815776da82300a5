import { setOwn } from '../json/json.ts';
import { MAX_MERGE_DEPTH } from '../json/limits.ts';

/** Settings of `mergeDelta` and `DeltaFold`. */
export interface DeltaOptions {
  /** How many objects and lists may stand inside each other; 512 when absent. */
  maxDepth?: number;
}

/** A delta that can't be merged. `path` is a JSON pointer into the delta ('' is the whole delta). */
export class DeltaError extends Error {
  override readonly name = 'DeltaError';
  readonly path: string;

  constructor(path: string, problem: string) {
    super(`${problem}, at ${path === '' ? 'the root' : path} of the delta`);
    this.path = path;
  }
}

/**
 * Merges one streamed delta into what came before. Strings concatenate, numbers add, objects merge, lists of plain values
 * extend, lists of objects merge by `index`; anything else takes the delta's value. Neither argument is changed or kept hold
 * of by the other: the result copies the touched path of `accumulated` and shares the rest, and is `accumulated` itself when
 * the delta says nothing new.
 */
export function mergeDelta<T>(accumulated: T | null | undefined, delta: unknown, options: DeltaOptions = {}): T {
  // The caller names the shape that its deltas add up to; nothing here could check it.
  return mergeValue(startMerge(options), accumulated, delta) as T;
}

type Fields = Record<string, unknown>;

type List = unknown[];

/** What a merge carries along: where it is, how deep it may go and, when it may write in place, the means to do so. */
export interface Merge {
  /** The keys from the root of the delta to here: as many as there are containers around this place. */
  readonly path: (string | number)[];
  readonly maxDepth: number;
  /** There when the accumulated value is ours to change; otherwise every change is made on a copy. */
  readonly owned: Owned | undefined;
}

export interface Owned {
  /** What is known of each list that has been merged into, so that no later delta has to scan it. */
  readonly lists: WeakMap<List, ListState>;
  /** The writes of this delta, last first: a delta that fails half way is taken back as a whole. */
  undo: Undo | undefined;
}

type Undo =
  | { readonly what: 'append'; readonly list: List; readonly length: number; readonly next: Undo | undefined }
  | {
      readonly what: 'set';
      readonly fields: Fields;
      readonly key: string;
      readonly before: unknown;
      readonly next: Undo | undefined;
    };

interface ListState {
  readonly kind: ListKind;
  readonly list: List;
  /** `index` of an entry -> its place in the list. A stranger chose the index, so it is a key and never a place. */
  readonly places: Map<number, number>;
}

type ListKind = 'objects' | 'values' | 'mixed';

// These say which thing a delta belongs to. Some servers send them once, some with every chunk: "shell" must not grow to
// "shellshell", nor index 1 to 2, nor a time to the sum of all times.
const IDENTITY: ReadonlySet<string> = new Set([
  'index',
  'type',
  'id',
  'name',
  'call_id',
  'object',
  'created',
  'created_at',
  'model',
  'role',
]);

const startMerge = (options: DeltaOptions, owned?: Owned): Merge => ({
  path: [],
  maxDepth: options.maxDepth ?? MAX_MERGE_DEPTH,
  owned,
});

function mergeValue(merge: Merge, current: unknown, delta: unknown): unknown {
  if (delta === undefined) return current;
  if (delta === null) return current === undefined ? null : current;
  if (typeof current === 'string' && typeof delta === 'string') return current + delta;
  if (typeof current === 'number' && typeof delta === 'number') return current + delta;
  if (isFields(current) && isFields(delta)) return mergeFields(merge, current, delta);
  if (isList(current) && isList(delta)) return mergeList(merge, current, delta);
  return copyValue(merge, delta);
}

/** A copy that shares nothing with the delta, whose owner may change or reuse it afterwards. */
function copyValue(merge: Merge, value: unknown): unknown {
  if (isList(value)) return copyList(merge, value);
  return isFields(value) ? copyFields(merge, value) : value;
}

function mergeFields(merge: Merge, current: Fields, delta: Fields): Fields {
  checkDepth(merge);
  let result = current;
  for (const key of Object.keys(delta)) {
    const before = Object.hasOwn(current, key) ? current[key] : undefined;
    merge.path.push(key);
    const after = IDENTITY.has(key) ? mergeIdentity(merge, before, delta[key]) : mergeValue(merge, before, delta[key]);
    merge.path.pop();
    // Growing strings differ in length, so this comparison never reads (and flattens) them.
    if (Object.is(before, after)) continue;
    if (merge.owned) merge.owned.undo = { what: 'set', fields: current, key, before, next: merge.owned.undo };
    else if (result === current) result = { ...current };
    setOwn(result, key, after);
  }
  return result;
}

/** Servers that repeat the identity on every chunk often repeat it blank, which takes nothing back. */
function mergeIdentity(merge: Merge, current: unknown, delta: unknown): unknown {
  if (delta === undefined) return current;
  const isBlank = delta === null || delta === '';
  return isBlank && current !== undefined && current !== null ? current : copyValue(merge, delta);
}

function mergeList(merge: Merge, current: List, delta: List): List {
  if (delta.length === 0) return current;
  // The first content of a list is data like any other value: only a second delta shows that the list is streamed.
  if (current.length === 0) return copyList(merge, delta);
  checkDepth(merge);
  const state = merge.owned?.lists.get(current) ?? openList(merge, current);
  if (state.kind === 'mixed' || state.kind !== kindOf(delta)) throw fail(merge, 'a list to merge mixes objects and other values');
  for (let at = 0; at < delta.length; at++) {
    const entry = delta[at];
    merge.path.push(at);
    if (isFields(entry)) mergeEntry(merge, state, entry);
    else append(merge, state.list, copyValue(merge, entry));
    merge.path.pop();
  }
  return merge.owned || !sameEntries(state.list, current) ? state.list : current;
}

function mergeEntry(merge: Merge, state: ListState, entry: Fields): void {
  const index = readIndex(merge, entry);
  if (mergeKnown(merge, state, index, entry)) return;
  const copy = copyFields(merge, entry);
  state.places.set(index, state.list.length);
  append(merge, state.list, copy);
}

function mergeKnown(merge: Merge, state: ListState, index: number, entry: Fields): boolean {
  const place = state.places.get(index);
  if (place === undefined) return false;
  const known = state.list[place];
  if (isFields(known)) state.list[place] = mergeFields(merge, known, entry);
  return true;
}

/** Reads the list once; afterwards its state is kept, when the list is ours. */
function openList(merge: Merge, current: List): ListState {
  const kind = kindOf(current);
  const list = kind === 'objects' ? [] : merge.owned ? current : [...current];
  const state: ListState = { kind, list, places: new Map() };
  if (kind === 'objects') for (const entry of current) if (isFields(entry)) adopt(merge, state, entry);
  merge.owned?.lists.set(list, state);
  return state;
}

/** Servers that batch send two pieces of one entry in the first delta; they become one as soon as the list streams. */
function adopt(merge: Merge, state: ListState, entry: Fields): void {
  const index = Object.hasOwn(entry, 'index') ? toInteger(entry['index']) : undefined;
  if (index !== undefined) {
    if (mergeKnown(merge, state, index, entry)) return;
    state.places.set(index, state.list.length);
  }
  state.list.push(entry);
}

function append(merge: Merge, list: List, value: unknown): void {
  if (merge.owned) merge.owned.undo = { what: 'append', list, length: list.length, next: merge.owned.undo };
  list.push(value);
}

function readIndex(merge: Merge, entry: Fields): number {
  const value = Object.hasOwn(entry, 'index') ? entry['index'] : undefined;
  if (value === undefined || value === null) throw fail(merge, 'an object in a list to merge has no index');
  const index = toInteger(value);
  if (index !== undefined) return index;
  merge.path.push('index');
  throw fail(merge, `the index of a list entry must be an integer, not ${describe(value)}`);
}

/** Beyond 2^53 two indexes of the wire may be one number here, and would merge two strangers: no integer for us. */
function toInteger(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
}

function copyFields(merge: Merge, value: Fields): Fields {
  checkDepth(merge);
  const copy: Fields = {};
  for (const key of Object.keys(value)) {
    const field = value[key];
    if (field === undefined) continue;
    merge.path.push(key);
    setOwn(copy, key, copyValue(merge, field));
    merge.path.pop();
  }
  return copy;
}

function copyList(merge: Merge, value: List): List {
  checkDepth(merge);
  const copy: List = [];
  for (let at = 0; at < value.length; at++) {
    merge.path.push(at);
    copy.push(copyValue(merge, value[at]));
    merge.path.pop();
  }
  return copy;
}

function kindOf(list: List): ListKind {
  const objects = isFields(list[0]);
  for (let at = 1; at < list.length; at++) if (isFields(list[at]) !== objects) return 'mixed';
  return objects ? 'objects' : 'values';
}

const sameEntries = (one: List, other: List): boolean =>
  one.length === other.length && one.every((entry, at) => Object.is(entry, other[at]));

const isList = (value: unknown): value is List => Array.isArray(value);

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Ends a delta that contains itself, too. */
function checkDepth(merge: Merge): void {
  if (merge.path.length >= merge.maxDepth) throw fail(merge, `nested deeper than ${merge.maxDepth}`);
}

const fail = (merge: Merge, problem: string): DeltaError => new DeltaError(pointer(merge.path), problem);

const pointer = (path: readonly (string | number)[]): string =>
  path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** A stranger's value in our message: named when it is no scalar, cut when it is long. */
function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  return typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : isList(value)
      ? 'a list'
      : `an ${typeof value}`;
}

/**
 * `mergeDelta` over a whole stream, at the cost of the delta and not of what has come before: it owns the state and writes in
 * place. It keeps nothing of the deltas it is given. A delta that can't be merged throws a `DeltaError` and changes nothing.
 */
export class DeltaFold<T> {
  readonly #owned: Owned = { lists: new WeakMap(), undo: undefined };
  readonly #merge: Merge;
  #value: unknown;

  constructor(options: DeltaOptions = {}) {
    this.#merge = startMerge(options, this.#owned);
  }

  /** Takes up a stream where `toJSON` left it. */
  static fromJSON<T>(json: unknown, options: DeltaOptions = {}): DeltaFold<T> {
    const fold = new DeltaFold<T>(options);
    if (json !== null) fold.push(json);
    return fold;
  }

  push(delta: unknown): void {
    try {
      this.#value = mergeValue(this.#merge, this.#value, delta);
    } catch (error) {
      this.#merge.path.length = 0;
      takeBack(this.#owned);
      throw error;
    } finally {
      this.#owned.undo = undefined;
    }
  }

  /** The live state, undefined before the first delta: to read, not to change. Later deltas show in it; `toJSON` stands still. */
  get value(): T | undefined {
    // As in `mergeDelta`: the caller names the shape that its deltas add up to.
    return this.#value as T | undefined;
  }

  /** A copy of the state. The list indexes are not in it: they are found again in the entries. */
  toJSON(): unknown {
    return copyValue(this.#merge, this.#value) ?? null;
  }
}

function takeBack(owned: Owned): void {
  for (let undo = owned.undo; undo; undo = undo.next) {
    if (undo.what === 'append') {
      undo.list.length = undo.length;
      // What is known of the list counts the entries that are gone; it is read anew when needed.
      owned.lists.delete(undo.list);
    } else if (undo.before === undefined) {
      delete undo.fields[undo.key];
    } else {
      setOwn(undo.fields, undo.key, undo.before);
    }
  }
}
