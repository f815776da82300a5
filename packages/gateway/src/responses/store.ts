/** Keeps responses, conversations and the owners of provider objects, in memory and within limits. */

import type { Clock } from '../http/clock.ts';
import { measureField, type SharedField, type Turn } from './turns.ts';

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
  /** The entry was used now, and has not changed. */
  used(entry: Stored): void;
  removed(entry: Stored): void;
}

/**
 * Entries by id and key, all of which are removed some time after their last use. When a limit is exceeded, the least
 * recently used conversations go first, each from its end: what later turns contain would free next to nothing.
 */
export class ResponseStore {
  readonly #limits: StoreLimits;
  readonly #clock: Pick<Clock, 'now'>;
  /** How many entries and items have an id, of all keys. */
  readonly #known = new Map<string, number>();
  /** Least recently used first. */
  readonly #recent = new Set<Stored>();
  readonly #keys = new Map<string, KeyShare>();
  /** Entries that no later turn contains, least recently used first. Removing another one frees nothing but the entry. */
  readonly #tips = new Set<Stored>();
  /** Entries that running requests refer to, and how many do. */
  readonly #held = new Map<Stored, number>();
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
    // Using an item is a use of its response.
    const owner = place?.turn.owners.at(-1);
    if (owner) this.#touch(owner);
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
    this.#addTo(this.#share(entry.caller).byId, entry.id, entry);
    this.#count(entry.caller, entry.bytes);
    const turn = readTurn(entry);
    if (turn) this.#retain(turn, entry);
    this.#updateTip(entry);
    this.#makeRoom(entry.caller);
  }

  /** Replaces the turn of an entry. */
  setTurn(entry: StoredResponse | StoredConversation, turn: Turn | undefined): Promise<void> | undefined {
    if (!this.#recent.has(entry)) return undefined;
    const before = readTurn(entry);
    if (entry.kind === 'response') entry.turn = turn;
    else entry.head = turn;
    if (turn) this.#retain(turn, entry);
    if (before) this.#release(before, entry);
    this.#updateTip(entry);
    this.#touch(entry);
    this.#makeRoom(entry.caller);
    return this.save(entry);
  }

  /** Bytes that the entries of one key may take. */
  get maxBytesPerKey(): number {
    return this.#limits.maxBytesPerKey;
  }

  /** Counts more bytes of an entry, or fewer. False when they exceed the share of its key. */
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

  /** Keeps the entries of a running request from being removed for want of room or by their age, until the returned function is called. */
  hold(entries: readonly Stored[]): () => void {
    const held = new Set(entries);
    for (const entry of held) this.#held.set(entry, (this.#held.get(entry) ?? 0) + 1);
    return () => {
      for (const entry of held) {
        const count = (this.#held.get(entry) ?? 0) - 1;
        if (count > 0) this.#held.set(entry, count);
        else this.#held.delete(entry);
      }
      held.clear();
    };
  }

  #touch(entry: Stored): void {
    entry.usedAt = this.#clock.now();
    for (const order of [this.#recent, this.#tips, this.#share(entry.caller).tips]) if (order.delete(entry)) order.add(entry);
    if (this.isKept(entry)) this.journal?.used(entry);
  }

  /** Removes what is too old. Entries are in the order of their last use: the first that is young enough ends the search. */
  expire(): void {
    const oldest = this.#clock.now() - this.#limits.ttlMs;
    for (const entry of this.#recent) {
      if (entry.usedAt > oldest) return;
      if (this.#isRemovable(entry)) this.remove(entry);
    }
  }

  #makeRoom(caller: string): void {
    const { maxBytes, maxBytesPerKey } = this.#limits;
    const share = this.#share(caller);
    this.#evict(share.tips, () => share.bytes > maxBytesPerKey);
    this.#evict(this.#tips, () => this.#bytes > maxBytes);
  }

  /** Removes conversations from their ends until there is room. */
  #evict(tips: Iterable<Stored>, isFull: () => boolean): void {
    if (!isFull()) return;
    for (const tip of tips) {
      for (let next: Stored | undefined = tip; next && this.#isRemovable(next); ) {
        const parent: Turn | undefined = readTurn(next)?.parent;
        this.remove(next);
        if (!isFull()) return;
        next = parent?.children === 0 ? parent.owners[0] : undefined;
      }
    }
  }

  #isRemovable(entry: Stored): boolean {
    return !entry.isPinned && !this.#held.has(entry);
  }

  #remove(entry: Stored): void {
    this.#recent.delete(entry);
    const own = this.#share(entry.caller);
    this.#removeFrom(own.byId, entry.id, (other) => other === entry);
    this.#count(entry.caller, -entry.bytes);
    const turn = readTurn(entry);
    if (turn) this.#release(turn, entry);
    this.#updateTip(entry);
    if (own.byId.size === 0 && own.bytes === 0) this.#keys.delete(entry.caller);
  }

  /** Notes whether a later turn contains the entry. */
  #updateTip(entry: Stored): void {
    const isTip = this.#recent.has(entry) && !readTurn(entry)?.children;
    for (const tips of [this.#tips, this.#share(entry.caller).tips])
      if (isTip) tips.add(entry);
      else tips.delete(entry);
  }

  #retain(turn: Turn, owner: Stored): void {
    turn.owners.push(owner);
    let added: Turn | undefined = turn.owners.length + turn.children === 1 ? turn : undefined;
    while (added) {
      this.#keep(added, owner);
      const parent: Turn | undefined = added.parent;
      if (!parent) return;
      parent.children++;
      if (parent.children === 1) for (const entry of parent.owners) this.#updateTip(entry);
      // What is kept already has retained the turns before it.
      added = parent.owners.length + parent.children === 1 ? parent : undefined;
    }
  }

  /** Counts a turn, and makes its items known. */
  #keep(turn: Turn, owner: Stored): void {
    const { caller } = owner;
    const share = this.#share(caller);
    this.#count(caller, turn.bytes);
    turn.fields = turn.fields.map((field) => this.#keepField(field, caller));
    // Items of a response that is not stored cannot be referred to.
    if (readConnection(owner) !== undefined) return;
    for (const [index, id] of turn.ids.entries()) if (id !== '') this.#addTo(share.items, id, { turn, index });
  }

  #release(turn: Turn, owner: Stored): void {
    const { caller } = owner;
    turn.owners.splice(turn.owners.indexOf(owner), 1);
    let removed: Turn | undefined = turn.owners.length + turn.children === 0 ? turn : undefined;
    while (removed) {
      const last: Turn = removed;
      this.#count(caller, -last.bytes);
      for (const field of last.fields) this.#dropField(field, caller);
      for (const id of last.ids) this.#removeFrom(this.#share(caller).items, id, (place) => place.turn === last);
      const { parent } = last;
      if (!parent) return;
      parent.children--;
      if (parent.children === 0) for (const entry of parent.owners) this.#updateTip(entry);
      removed = parent.owners.length + parent.children === 0 ? parent : undefined;
    }
  }

  /** The field as it is kept: the same for all turns of a key that have an equal one. */
  #keepField(field: SharedField, caller: string): SharedField {
    const { fields } = this.#share(caller);
    const known = fields.get(field.digest);
    if (!known) this.#count(caller, measureField(field));
    const kept = known ?? { field, turns: 0 };
    kept.turns++;
    fields.set(field.digest, kept);
    return kept.field;
  }

  #dropField(field: SharedField, caller: string): void {
    const { fields } = this.#share(caller);
    const known = fields.get(field.digest);
    if (!known || --known.turns > 0) return;
    fields.delete(field.digest);
    this.#count(caller, -measureField(field));
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
    const share: KeyShare = { bytes: 0, tips: new Set(), byId: new Map(), items: new Map(), fields: new Map() };
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
  /** Entries that no later turn contains, least recently used first. */
  readonly tips: Set<Stored>;
  readonly byId: Map<string, Stored[]>;
  readonly items: Map<string, ItemPlace[]>;
  /** Fields that turns share, by their digest, and how many turns have each. */
  readonly fields: Map<string, { readonly field: SharedField; turns: number }>;
}

const readConnection = (entry: Stored): object | undefined => (entry.kind === 'response' ? entry.connection : undefined);

const isOpenTo = (entry: Stored, connection: object | undefined): boolean => {
  const only = readConnection(entry);
  return only === undefined || only === connection;
};

/** The latest turn of an entry. */
export const readTurn = (entry: Stored): Turn | undefined =>
  entry.kind === 'response' ? entry.turn : entry.kind === 'conversation' ? entry.head : undefined;

/** Memory of an entry beside what it refers to, roughly. */
export const ENTRY_BYTES = 400;

/** Memory of a conversation beside its turns. */
export const measureConversation = (metadata: unknown): number => ENTRY_BYTES + Buffer.byteLength(JSON.stringify(metadata ?? {}));
