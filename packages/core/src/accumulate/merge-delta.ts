import { setOwn } from '../json/json.ts';
import { MAX_MERGE_DEPTH } from '../json/limits.ts';

/**
 * Merges one streamed delta into the accumulated value. Strings concatenate, numbers add, objects merge, lists of plain
 * values extend, lists of objects merge by `index`; anything else takes the delta's value. Neither argument is changed,
 * and the delta is not referenced afterwards. The result copies the touched path of `accumulated` and shares the rest;
 * it is `accumulated` itself when the delta adds nothing.
 *
 * ```ts
 * let message: { content?: string } = {};
 * for (const delta of [{ content: 'Hel' }, { content: 'lo' }]) message = mergeDelta(message, delta);
 * message.content; // 'Hello'
 * ```
 */
export function mergeDelta<T>(accumulated: T | null | undefined, delta: unknown, options: DeltaOptions = {}): T {
  // The caller names the shape of the result; nothing here could check it.
  return mergeValue(startMerge(options), accumulated, delta) as T;
}

/**
 * `mergeDelta` over a whole stream. It owns the state and writes in place, so a delta costs its own size and not that
 * of the state. Deltas are not referenced afterwards. A delta that can't be merged throws a `DeltaError` and changes
 * nothing.
 *
 * ```ts
 * const fold = new DeltaFold<{ content: string }>();
 * for (const delta of [{ content: 'Hel' }, { content: 'lo' }]) fold.push(delta);
 * fold.value; // { content: 'Hello' }
 * ```
 */
export class DeltaFold<T> {
  readonly #owned: Owned = { lists: new WeakMap(), undo: undefined };
  readonly #merge: Merge;
  #value: unknown;

  constructor(options: DeltaOptions = {}) {
    this.#merge = startMerge(options, this.#owned);
  }

  /** Resumes a stream from the state that `toJSON` returned. */
  static fromJSON<T>(json: unknown, options: DeltaOptions = {}): DeltaFold<T> {
    const fold = new DeltaFold<T>(options);
    if (json !== null) fold.push(json);
    return fold;
  }

  /** Merges a delta into the state. */
  push(delta: unknown): void {
    try {
      this.#value = mergeValue(this.#merge, this.#value, delta);
    } catch (error) {
      this.#merge.path.length = 0;
      undoWrites(this.#owned);
      throw error;
    } finally {
      this.#owned.undo = undefined;
    }
  }

  /**
   * The live state, undefined before the first delta. Read only; later deltas change it. `toJSON` returns a fixed copy.
   */
  get value(): T | undefined {
    // As in `mergeDelta`: the caller names the shape of the result.
    return this.#value as T | undefined;
  }

  /** A copy of the state. List indexes are not saved: they are found again in the entries. */
  toJSON(): unknown {
    return copyValue(this.#merge, this.#value) ?? null;
  }
}

/** Settings of `mergeDelta` and `DeltaFold`. */
export interface DeltaOptions {
  /** The maximum nesting of objects and lists; 512 when absent. */
  maxDepth?: number;
}

/** A delta that can't be merged. `path` is a JSON pointer into the delta ("" is the whole delta). */
export class DeltaError extends Error {
  override readonly name = 'DeltaError';
  readonly path: string;

  constructor(path: string, problem: string) {
    super(`${problem}, at ${path === '' ? 'the root' : path} of the delta`);
    this.path = path;
  }
}

function undoWrites(owned: Owned): void {
  for (let undo = owned.undo; undo; undo = undo.next) {
    if (undo.what === 'append') {
      undo.list.length = undo.length;
      // The state counts the removed entries, so it is rebuilt on the next merge.
      owned.lists.delete(undo.list);
    } else if (undo.before === undefined) {
      delete undo.fields[undo.key];
    } else {
      setOwn(undo.fields, undo.key, undo.before);
    }
  }
}

/** The state of a merge: its position, its depth limit and, when it may write in place, the means to do so. */
interface Merge {
  /** The keys from the root of the delta to the current position, one per container. */
  readonly path: (string | number)[];
  readonly maxDepth: number;
  /** Present when the accumulated value may be changed; otherwise every change is made on a copy. */
  readonly owned: Owned | undefined;
}

/** What a merge needs to write in place. */
interface Owned {
  /** The state of each list that has been merged into, so that later deltas do not scan it. */
  readonly lists: WeakMap<List, ListState>;
  /** The writes of this delta, last first: a delta that fails half way is undone completely. */
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
  /** Position of each entry by its `index`. The index is untrusted, so it is a key and never a position. */
  readonly places: Map<number, number>;
}

type ListKind = 'objects' | 'values' | 'mixed';

type Fields = Record<string, unknown>;

type List = unknown[];

/**
 * These fields identify what a delta belongs to. Some servers send them once, some with every chunk: "shell" must not
 * become "shellshell", nor index 1 become 2, nor a time the sum of all times.
 */
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

/** Servers that repeat the identity with every chunk often send it blank; a blank clears nothing. */
function mergeIdentity(merge: Merge, current: unknown, delta: unknown): unknown {
  if (delta === undefined) return current;
  const isBlank = delta === null || delta === '';
  return isBlank && current !== undefined && current !== null ? current : copyValue(merge, delta);
}

function mergeList(merge: Merge, current: List, delta: List): List {
  if (delta.length === 0) return current;
  // The first content of a list is an ordinary value: only a second delta shows that the list is streamed.
  if (current.length === 0) return copyList(merge, delta);
  checkDepth(merge);
  const state = merge.owned?.lists.get(current) ?? openList(merge, current);
  if (state.kind === 'mixed' || state.kind !== classifyList(delta))
    throw fail(merge, 'a list to merge mixes objects and other values');
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

/** Scans a list once; the state is stored when the list is owned. */
function openList(merge: Merge, current: List): ListState {
  const kind = classifyList(current);
  const list = kind === 'objects' ? [] : merge.owned ? current : [...current];
  const state: ListState = { kind, list, places: new Map() };
  if (kind === 'objects') for (const entry of current) if (isFields(entry)) addExisting(merge, state, entry);
  merge.owned?.lists.set(list, state);
  return state;
}

/** Servers that batch send two pieces of one entry in the first delta; they are merged as soon as the list streams. */
function addExisting(merge: Merge, state: ListState, entry: Fields): void {
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

/** A copy that shares nothing with the delta, whose owner may change or reuse it. */
function copyValue(merge: Merge, value: unknown): unknown {
  if (isList(value)) return copyList(merge, value);
  return isFields(value) ? copyFields(merge, value) : value;
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

function readIndex(merge: Merge, entry: Fields): number {
  const value = Object.hasOwn(entry, 'index') ? entry['index'] : undefined;
  if (value === undefined || value === null) throw fail(merge, 'an object in a list to merge has no index');
  const index = toInteger(value);
  if (index !== undefined) return index;
  merge.path.push('index');
  throw fail(merge, `the index of a list entry must be an integer, not ${describe(value)}`);
}

/**
 * Beyond 2^53 two indexes of the wire may be one number here and would merge unrelated entries, so they are rejected.
 */
function toInteger(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
}

function classifyList(list: List): ListKind {
  const objects = isFields(list[0]);
  for (let at = 1; at < list.length; at++) if (isFields(list[at]) !== objects) return 'mixed';
  return objects ? 'objects' : 'values';
}

const sameEntries = (one: List, other: List): boolean =>
  one.length === other.length && one.every((entry, at) => Object.is(entry, other[at]));

const isList = (value: unknown): value is List => Array.isArray(value);

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Also stops at a delta that contains itself. */
function checkDepth(merge: Merge): void {
  if (merge.path.length >= merge.maxDepth) throw fail(merge, `nested deeper than ${merge.maxDepth}`);
}

const fail = (merge: Merge, problem: string): DeltaError => new DeltaError(pointer(merge.path), problem);

const pointer = (path: readonly (string | number)[]): string =>
  path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** An untrusted value for a message: only the type unless it is a scalar, and at most 40 characters. */
function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  return typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : isList(value)
      ? 'a list'
      : `an ${typeof value}`;
}
