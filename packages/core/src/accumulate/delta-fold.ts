import type { DeltaOptions, Merge, Owned } from './merge-delta.ts';
import { copyValue, mergeValue, startMerge } from './merge-delta.ts';
import { setOwn } from './overlay.ts';

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
