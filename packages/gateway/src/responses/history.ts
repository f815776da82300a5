/** What a request refers to: how large it is, and its items. */

import type { Note } from '@sluice/core';
import { createCallNotFound, createItemNotFound } from './errors.ts';
import { isEncryptedReasoning } from './issued.ts';
import { isJson, type Json, listTurns, readItems, readReference } from './items.ts';
import type { ResponseStore } from './store.ts';
import type { Turn } from './turns.ts';

/** Where references are looked up. */
interface HistoryParts {
  store: ResponseStore;
  caller: string;
}

/** What a request refers to. */
interface HistoryRange {
  /** The last turn before the request. */
  last: Turn | undefined;
  /** Ids of items that the client has deleted from the conversation. */
  deleted: ReadonlySet<string> | undefined;
  /** Ids of items that the input refers to. */
  references: readonly string[];
}

/**
 * Bytes of all items that a request refers to, in it and in the turns before it. Known before any is read: an item that
 * is named 300 times is sent 300 times, so a request of 12 kB can become one of 2 GB.
 */
export function measureHistory({ last, deleted, references }: HistoryRange, { store, caller }: HistoryParts): number {
  const measureReference = (id: string): number => {
    const place = store.findItem(id, caller);
    return place?.turn.sizes[place.index] ?? 0;
  };
  let bytes = 0;
  for (let turn = last; turn; turn = turn.parent)
    for (const [place, size] of turn.sizes.entries()) {
      if (deleted?.has(turn.ids[place] ?? '')) continue;
      const reference = turn.references.get(place);
      bytes += reference === undefined ? size : measureReference(reference);
    }
  for (const id of references) bytes += measureReference(id);
  return bytes;
}

/** Who gets the items. */
export interface HistoryTarget {
  /** The provider of the same protocol; undefined for one of another protocol. */
  holder: string | undefined;
  /** It must get no id that is not known to belong to the key. */
  isBound: boolean;
}

/** Reads kept items, each turn once. */
export class History {
  readonly #parts: HistoryParts;
  readonly #isStored: boolean;
  readonly #holder: string | undefined;
  readonly #isBound: boolean;
  readonly #notes: Note[];
  readonly #read = new Map<Turn, unknown[]>();

  constructor(parts: HistoryParts, isStored: boolean, { holder, isBound }: HistoryTarget, notes: Note[]) {
    this.#notes = notes;
    this.#parts = parts;
    this.#isStored = isStored;
    this.#holder = holder;
    this.#isBound = isBound;
  }

  /** The items of a conversation up to a turn. */
  read(last: Turn, deleted: ReadonlySet<string> | undefined): unknown[] {
    const items: unknown[] = [];
    for (const turn of listTurns(last))
      for (const [i, item] of this.#readTurn(turn).entries()) {
        if (deleted?.has(turn.ids[i] ?? '')) continue;
        if (this.#isForeignState(item, turn)) this.#notes.push(FOREIGN_STATE);
        else items.push(this.#resolveOne(this.#withoutId(item, turn)));
      }
    return items;
  }

  /** Items with their references replaced. */
  resolve(items: readonly unknown[]): unknown[] {
    return items.map((item) => this.#resolveOne(item));
  }

  /** Whether an item is the encrypted reasoning of another account, which would reject the whole request. */
  #isForeignState(item: unknown, { maker }: Turn): boolean {
    if (this.#holder === undefined || maker === '' || maker === this.#holder) return false;
    return isEncryptedReasoning(item);
  }

  #readTurn(turn: Turn): unknown[] {
    const known = this.#read.get(turn) ?? readItems(turn);
    this.#read.set(turn, known);
    return known;
  }

  #resolveOne(item: unknown): unknown {
    const id = readReference(item);
    if (id === undefined) return item;
    const { store, caller } = this.#parts;
    const place = store.findItem(id, caller);
    if (place) return this.#withoutId(this.#readTurn(place.turn)[place.index], place.turn);
    // Made elsewhere: a server of this protocol may know it.
    if (this.#holder !== undefined && !this.#isBound && !store.isForeign(id, caller)) return item;
    throw createItemNotFound(id, this.#isStored);
  }

  /** A server of this protocol looks up the ids of items: it must get no id that it did not issue. */
  #withoutId(item: unknown, turn: Turn): unknown {
    if (this.#holder === undefined || this.#holder === turn.holder || !isJson(item) || item['id'] === undefined) return item;
    if (readReference(item) !== undefined) return item;
    const { id: _, ...rest } = item;
    return rest;
  }
}

/** Results of calls that clients run, as OpenAI's messages name them. */
const RESULTS: Readonly<Record<string, string>> = {
  function_call_output: 'function call output',
  custom_tool_call_output: 'custom tool call output',
};

const isType = (item: unknown, pattern: RegExp): item is Json =>
  isJson(item) && typeof item['type'] === 'string' && pattern.test(item['type']);

/** Throws for a result without its call: all of the conversation is known. A compaction may contain the call. */
export function checkResults(before: readonly unknown[], added: readonly unknown[]): void {
  const all = [...before, ...added];
  if (all.some((item) => isType(item, /compaction/) || readReference(item) !== undefined)) return;
  const calls = new Set(all.flatMap((item) => (isType(item, /_call$/) ? [item['call_id']] : [])));
  for (const item of added) {
    if (!isType(item, /_output$/) || typeof item['call_id'] !== 'string' || calls.has(item['call_id'])) continue;
    const kind = RESULTS[String(item['type'])];
    if (kind !== undefined) throw createCallNotFound(kind, item['call_id']);
  }
}

/** Said for encrypted reasoning that is left out. */
export const FOREIGN_STATE: Note = {
  code: 'DROPPED',
  path: '/input',
  feature: 'reasoning.encrypted_content',
  message: 'encrypted reasoning of another account was not sent: only the account that made it can use it',
};
