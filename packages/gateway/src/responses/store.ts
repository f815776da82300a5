/** Keeps responses, conversations and the owners of provider objects, in memory and within limits. */

import type { Clock } from '../http/clock.ts';

/** What was said in one exchange. It points to what was said before, so that a long conversation is kept once. */
export interface Turn {
  readonly key: string;
  readonly parent: Turn | undefined;
  /** The input items as JSON, as the client sent them. */
  readonly input: string;
  /** The response object as JSON; empty for items that were added without a response. */
  readonly body: string;
  /** Ids of the items: the input, then the output. Empty for an item that only refers to another. */
  readonly ids: readonly string[];
  /** The provider and account that keep the response as well; empty when none does. */
  readonly holder: string;
  /** The provider and account of the same protocol that made the response; empty for others. */
  readonly maker: string;
  /** Bytes of this turn alone. */
  readonly bytes: number;
  /** Bytes and items of the conversation up to here. */
  readonly totalBytes: number;
  readonly totalItems: number;
  /** Entries and turns that point here. */
  refs: number;
}

interface Entry {
  readonly id: string;
  readonly caller: string;
  bytes: number;
  /** When it was last used, by the clock of the store. */
  usedAt: number;
  /** In use by a running exchange: it does not expire. */
  isPinned: boolean;
}

/** A response that a client can continue or read. */
export interface StoredResponse extends Entry {
  readonly kind: 'response';
  /** Undefined while the response is in progress, and for one that only its provider keeps. */
  turn: Turn | undefined;
  /** The response object as JSON while there is no turn. */
  body: string;
  /** The events of a background response. */
  events: EventLog | undefined;
  /** The provider that keeps it. */
  readonly holder: string;
  /** The WebSocket connection that alone may continue it; undefined for a response that any request of the key may. */
  readonly connection: object | undefined;
}

/** A conversation that grows with every response. */
export interface StoredConversation extends Entry {
  readonly kind: 'conversation';
  readonly createdAt: number;
  metadata: unknown;
  head: Turn | undefined;
  /** Ids of items that the client has deleted. */
  readonly deleted: Set<string>;
}

/** An object that a provider keeps: a file or a batch. */
interface StoredObject extends Entry {
  readonly kind: 'object';
  /** The id of the provider. */
  readonly provider: string;
}

/** Anything that has an id and belongs to a key. */
export type Stored = StoredResponse | StoredConversation | StoredObject;

/** The events of a background response, which clients read from any of them on. */
export interface EventLog {
  /** Frames as they are sent, by sequence number. */
  readonly frames: readonly string[];
  readonly isEnded: boolean;
  /** Calls back at every new frame and at the end, until the returned function is called. */
  watch(onChange: () => void): () => void;
  /** Stops the response. False when it has ended. */
  cancel(): boolean;
}

/** Limits of the store. */
export interface StoreLimits {
  readonly ttlMs: number;
  readonly maxBytes: number;
  readonly maxBytesPerKey: number;
}

/** Writes changes where they survive a restart. */
export interface Journal {
  /** Resolves when the change is on disk. */
  saved(entry: Stored): Promise<void> | undefined;
  removed(entry: Stored): void;
}

/** What a new turn is made of. */
export type NewTurn = Pick<Turn, 'key' | 'parent' | 'input' | 'body' | 'ids' | 'holder'> & Partial<Pick<Turn, 'maker'>>;

/**
 * Entries by id and key. The least recently used ones are removed when a limit is exceeded, and all of them some time
 * after their last use.
 */
export class ResponseStore {
  readonly #limits: StoreLimits;
  readonly #clock: Pick<Clock, 'now'>;
  /** How many entries and items have an id, of all keys. */
  readonly #known = new Map<string, number>();
  /** Least recently used first. */
  readonly #recent = new Set<Stored>();
  readonly #keys = new Map<string, KeyShare>();
  /** The entry that has a turn: using an item of the turn is a use of the entry. */
  readonly #owners = new WeakMap<Turn, Stored>();
  #bytes = 0;
  journal: Journal | undefined;

  constructor(limits: StoreLimits, clock: Pick<Clock, 'now'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Bytes of everything that is kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Entries that are kept. */
  get size(): number {
    return this.#recent.size;
  }

  /** Whether other keys than this one have anything. */
  hasOthers(caller: string): boolean {
    return this.#keys.size > (this.#keys.has(caller) ? 1 : 0);
  }

  /** Bytes that a key has in use. */
  bytesOf(caller: string): number {
    return this.#keys.get(caller)?.bytes ?? 0;
  }

  /** All entries, least recently used first. */
  get entries(): Iterable<Stored> {
    return this.#recent;
  }

  /**
   * The entry of this key; undefined for one of another key as for an unknown one. `connection`: finds what only this
   * connection may use, too.
   */
  find<K extends Stored['kind']>(
    kind: K,
    id: string,
    caller: string,
    connection?: object,
  ): Extract<Stored, { kind: K }> | undefined {
    this.expire();
    const found = this.#keys
      .get(caller)
      ?.byId.get(id)
      ?.find((entry) => entry.kind === kind && isOpenTo(entry, connection));
    if (!found) return undefined;
    this.#touch(found);
    return found as Extract<Stored, { kind: K }>; // the kind was compared
  }

  /** Whether this key has anything with the id: an entry or an item. If so, it is used now. */
  use(id: string, caller: string): boolean {
    this.expire();
    const entries =
      this.#keys
        .get(caller)
        ?.byId.get(id)
        ?.filter((entry) => isOpenTo(entry, undefined)) ?? [];
    for (const entry of entries) this.#touch(entry);
    return entries.length > 0 || this.findItem(id, caller) !== undefined;
  }

  /** Whether the id belongs to another key, and not to this one. */
  isForeign(id: string, caller: string): boolean {
    const own = this.#keys.get(caller);
    return this.#known.has(id) && !own?.byId.has(id) && !own?.items.has(id);
  }

  /** The turn that contains an item of this key. */
  findItem(id: string, caller: string): ItemPlace | undefined {
    this.expire();
    const place = this.#keys.get(caller)?.items.get(id)?.at(-1);
    const owner = place && this.#owners.get(place.turn);
    if (owner && this.#recent.has(owner)) this.#touch(owner);
    return place;
  }

  /** Adds an entry, or replaces the one of the same key and id. Undefined when it is larger than the limits allow. */
  put(entry: Stored): Promise<void> | undefined {
    this.expire();
    entry.usedAt = this.#clock.now();
    this.#add(entry);
    return this.save(entry);
  }

  /** Adds an entry of an earlier run, which keeps the time of its last use. Entries come in the order of these. */
  restore(entry: Stored): void {
    this.#add(entry);
  }

  #add(entry: Stored): void {
    const before = this.#keys
      .get(entry.caller)
      ?.byId.get(entry.id)
      ?.find((other) => other.kind === entry.kind && readConnection(other) === readConnection(entry));
    if (before) this.#remove(before);
    this.#recent.add(entry);
    const share = this.#share(entry.caller);
    share.entries.add(entry);
    this.#addTo(share.byId, entry.id, entry);
    this.#count(entry.caller, entry.bytes);
    const turn = readTurn(entry);
    if (turn) this.#retain(turn, entry);
    this.#makeRoom(entry.caller);
  }

  /** Replaces the turn of an entry. */
  setTurn(entry: StoredResponse | StoredConversation, turn: Turn | undefined): Promise<void> | undefined {
    if (!this.#recent.has(entry)) return undefined;
    const before = readTurn(entry);
    if (entry.kind === 'response') entry.turn = turn;
    else entry.head = turn;
    if (turn) this.#retain(turn, entry);
    if (before) this.#release(before, entry.caller);
    this.#touch(entry);
    this.#makeRoom(entry.caller);
    return this.save(entry);
  }

  /** Counts more bytes of an entry. False when they exceed the share of its key. */
  grow(entry: Stored, bytes: number): boolean {
    if (!this.#recent.has(entry)) return false;
    entry.bytes += bytes;
    this.#count(entry.caller, bytes);
    this.#makeRoom(entry.caller);
    return this.bytesOf(entry.caller) <= this.#limits.maxBytesPerKey && this.#bytes <= this.#limits.maxBytes;
  }

  /** Saves an entry whose fields have changed. What only a connection may use is never written. */
  save(entry: Stored): Promise<void> | undefined {
    return this.has(entry) && this.isKept(entry) ? this.journal?.saved(entry) : undefined;
  }

  /** Whether the entry is in the store. */
  has(entry: Stored): boolean {
    return this.#recent.has(entry);
  }

  /** Whether the entry may be written: what only a connection may use never is. */
  isKept(entry: Stored): boolean {
    return readConnection(entry) === undefined;
  }

  /** Removes an entry. What later turns refer to stays as long as they do. */
  remove(entry: Stored): void {
    if (!this.#recent.has(entry)) return;
    this.#remove(entry);
    if (this.isKept(entry)) this.journal?.removed(entry);
  }

  #touch(entry: Stored): void {
    entry.usedAt = this.#clock.now();
    this.#recent.delete(entry);
    this.#recent.add(entry);
    const { entries } = this.#share(entry.caller);
    entries.delete(entry);
    entries.add(entry);
  }

  /** Removes what is too old. Entries are in the order of their last use: the first that is young enough ends the search. */
  expire(): void {
    const oldest = this.#clock.now() - this.#limits.ttlMs;
    for (const entry of this.#recent) {
      if (entry.usedAt > oldest) return;
      if (!entry.isPinned) this.remove(entry);
    }
  }

  #makeRoom(caller: string): void {
    const { maxBytes, maxBytesPerKey } = this.#limits;
    const share = this.#share(caller);
    for (const entry of share.entries) {
      if (share.bytes <= maxBytesPerKey) break;
      if (!entry.isPinned) this.remove(entry);
    }
    for (const entry of this.#recent) {
      if (this.#bytes <= maxBytes) return;
      if (!entry.isPinned) this.remove(entry);
    }
  }

  #remove(entry: Stored): void {
    this.#recent.delete(entry);
    const own = this.#share(entry.caller);
    own.entries.delete(entry);
    this.#removeFrom(own.byId, entry.id, (other) => other === entry);
    this.#count(entry.caller, -entry.bytes);
    const turn = readTurn(entry);
    if (turn) this.#release(turn, entry.caller);
    const share = this.#keys.get(entry.caller);
    if (share?.entries.size === 0 && share.bytes === 0) this.#keys.delete(entry.caller);
  }

  #retain(turn: Turn, owner: Stored): void {
    const { caller } = owner;
    this.#owners.set(turn, owner);
    for (let next: Turn | undefined = turn; next; next = next.parent) {
      next.refs++;
      // The turns before are retained by this one already.
      if (next.refs > 1) return;
      this.#count(caller, next.bytes);
      // Items of a response that is not stored cannot be referred to.
      if (readConnection(owner) !== undefined) continue;
      for (const [index, id] of next.ids.entries())
        if (id !== '') this.#addTo(this.#share(caller).items, id, { turn: next, index });
    }
  }

  #release(turn: Turn, caller: string): void {
    for (let next: Turn | undefined = turn; next; next = next.parent) {
      next.refs--;
      if (next.refs > 0) return;
      this.#count(caller, -next.bytes);
      for (const id of next.ids) this.#removeFrom(this.#share(caller).items, id, ({ turn: other }) => other === next);
    }
  }

  #addTo<T>(index: Map<string, T[]>, id: string, value: T): void {
    const values = index.get(id);
    if (values) values.push(value);
    else index.set(id, [value]);
    this.#known.set(id, (this.#known.get(id) ?? 0) + 1);
  }

  #removeFrom<T>(index: Map<string, T[]>, id: string, isRemoved: (value: T) => boolean): void {
    const before = index.get(id) ?? [];
    const after = before.filter((value) => !isRemoved(value));
    if (after.length > 0) index.set(id, after);
    else index.delete(id);
    const known = (this.#known.get(id) ?? 0) - before.length + after.length;
    if (known > 0) this.#known.set(id, known);
    else this.#known.delete(id);
  }

  #share(caller: string): KeyShare {
    const known = this.#keys.get(caller);
    if (known) return known;
    const share: KeyShare = { bytes: 0, entries: new Set(), byId: new Map(), items: new Map() };
    this.#keys.set(caller, share);
    return share;
  }

  #count(caller: string, bytes: number): void {
    this.#bytes += bytes;
    this.#share(caller).bytes += bytes;
  }
}

/** Where an item is kept. */
export interface ItemPlace {
  readonly turn: Turn;
  readonly index: number;
}

/** What one key keeps. An id of another key is looked up like an unknown one, so that the time does not show that it exists. */
interface KeyShare {
  bytes: number;
  /** Least recently used first. */
  readonly entries: Set<Stored>;
  readonly byId: Map<string, Stored[]>;
  readonly items: Map<string, ItemPlace[]>;
}

const readConnection = (entry: Stored): object | undefined => (entry.kind === 'response' ? entry.connection : undefined);

const isOpenTo = (entry: Stored, connection: object | undefined): boolean => {
  const only = readConnection(entry);
  return only === undefined || only === connection;
};

/** The latest turn of an entry. */
export const readTurn = (entry: Stored): Turn | undefined =>
  entry.kind === 'response' ? entry.turn : entry.kind === 'conversation' ? entry.head : undefined;

/** Builds a turn. */
export function createTurn({ key, parent, input, body, ids, holder, maker = '' }: NewTurn): Turn {
  const bytes = TURN_BYTES + ITEM_BYTES * ids.length + measure(input) + measure(body);
  return {
    key,
    parent,
    input,
    body,
    ids,
    holder,
    maker,
    bytes,
    totalBytes: bytes + (parent?.totalBytes ?? 0),
    totalItems: ids.length + (parent?.totalItems ?? 0),
    refs: 0,
  };
}

/** The memory of a text: most have one byte for each character; others have two. */
const measure = (text: string): number => Buffer.byteLength(text);

/** Memory of a turn and of an item beside their texts, roughly. */
const TURN_BYTES = 400;
const ITEM_BYTES = 240;

/** Memory of an entry beside what it refers to, roughly. */
export const ENTRY_BYTES = 400;
