/** The client keys of a gateway: found by their text in memory, changed in the store first. */

import { type Clock, REAL_CLOCK, type Timer } from '../http/clock.ts';
import type { Caller } from './caller.ts';
import { createKeyText, parseKeyId } from './key-text.ts';
import { createPepper, Pepper, readPepper } from './pepper.ts';
import {
  type ActorKind,
  type AuditEntry,
  type KeyChange,
  type KeyRecord,
  type KeyStore,
  MAX_KEYS,
  MAX_REVOKED_KEYS,
} from './records.ts';
import { type KeySettings, readKeyName, readTerms, writeTerms } from './settings.ts';

/** Whether a client may send requests. */
export type Admission =
  | { readonly admitted: true; readonly caller: Caller }
  | {
      readonly admitted: false;
      readonly reason: string;
      /** The key may be valid: whether it is cannot be found out now. */
      readonly isTemporary?: true;
    };

/** Why a change of a key was refused. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
  readonly code: 'unknown' | 'exists' | 'revoked' | 'full' | 'pepper';

  constructor(code: KeyError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** How to open the keys of a store. */
export interface KeyBookOptions {
  readonly store: KeyStore;
  /** The file of the pepper; null keeps one in memory, for a store in memory. */
  readonly pepperFile: string | null;
  /** Throws when clients could not use their keys: the pepper is missing or is another one. */
  readonly requiresPepper: boolean;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly clock?: Clock;
  /** Names of other keys, which a new key must not have. */
  readonly isTaken?: (name: string) => boolean;
  /** When keys were used could not be recorded. */
  readonly onFailure?: (reason: string) => void;
}

/** A new secret. The text is shown once and is not kept. */
export interface IssuedKey {
  readonly record: KeyRecord;
  readonly text: string;
}

interface Entry {
  readonly record: KeyRecord;
  /** Digests as they are looked up. */
  readonly digest: string;
  readonly previous: string | null;
  /** Made once, so that a request allocates nothing. */
  readonly admission: Admission & { admitted: true };
  lastUsed: number;
  isTouched: boolean;
}

const TOUCH_MS = 60_000;

/** How long keys are valid that could have been revoked by another node meanwhile. */
const MAX_AGE_MS = 60_000;

/** After this time without news, an unknown key may be one that another node has created. */
const UNKNOWN_AGE_MS = 3000;

const UNAVAILABLE: Admission = {
  admitted: false,
  reason: 'client keys cannot be checked now; retry later',
  isTemporary: true,
};

/** All keys of one gateway. */
export class KeyBook {
  readonly #options: KeyBookOptions;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  /**
   * By the digests of current and previous secrets. Not by id: a lookup that finds an id took 250 ns longer than one that does not
   * (Welch's t 51), which shows which ids exist. Without the pepper, no digest can be aimed at.
   */
  readonly #digests = new Map<string, Entry>();
  /** Ids of keys that are not revoked, by their names. */
  readonly #names = new Map<string, string>();
  /** In the order of revocation. */
  readonly #revoked = new Set<string>();
  readonly #timer: Timer;
  /** Before the first key there is none in the file; this one takes as long to find nothing. */
  #pepper = new Pepper();
  /** Why keys cannot be created; undefined when they can. */
  #problem: string | undefined;
  #isPepperStored = false;
  /** There was a pepper at the start, which the first key creates, and no key. */
  #hasLostKeys = false;
  /** Changes happen one after the other. */
  #last: Promise<unknown> = Promise.resolve();
  #listeners: ((change: KeyChange) => void)[] = [];

  private constructor(options: KeyBookOptions, records: readonly KeyRecord[]) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    for (const record of records) this.#put(record);
    this.#timer = (options.clock ?? REAL_CLOCK).setRepeating(() => void this.#touch(), TOUCH_MS).unref();
  }

  /** Loads all keys. */
  static async open(options: KeyBookOptions): Promise<KeyBook> {
    const book = new KeyBook(options, await options.store.listKeys());
    options.store.shared?.watch((change) => book.#apply(change));
    try {
      book.#loadPepper();
      await book.#agreeOnPepper();
    } catch (error) {
      book.#timer.close();
      throw error;
    }
    return book;
  }

  /** Whether there is or was a key: a gateway whose last key was revoked, or whose database was lost, must not admit everybody. */
  get isUsed(): boolean {
    return this.#entries.size > 0 || this.#hasLostKeys;
  }

  /** There are no keys, but there were some: the database was emptied, replaced or lost. */
  get isLost(): boolean {
    return this.#hasLostKeys && this.#entries.size === 0;
  }

  /** Keys that are not revoked. */
  get count(): number {
    return this.#names.size;
  }

  /** Calls the listener after each change. */
  listen(listener: (change: KeyChange) => void): void {
    this.#listeners.push(listener);
  }

  /** A secret for another purpose than keys; undefined while there is no pepper file. */
  deriveSecret(purpose: string): Buffer | undefined {
    return this.#isPepperStored ? this.#pepper.derive(purpose) : undefined;
  }

  /** Whether a text is a key. Undefined when no key has its id or secret. Does no I/O. */
  check(text: string): Admission | undefined {
    if (parseKeyId(text) === undefined) return undefined;
    const given = this.#pepper.digest(text).toString('latin1');
    const entry = this.#digests.get(given);
    const ageMs = this.#options.store.shared?.ageMs ?? 0;
    if (ageMs > (entry ? MAX_AGE_MS : UNKNOWN_AGE_MS)) return UNAVAILABLE;
    return entry && this.#judge(entry, entry.digest === given);
  }

  /** Whether a key may be used now, by its id or name: for an operator, who has no secret. Undefined when it is unknown. */
  checkReference(reference: string): Admission | undefined {
    const entry = this.#entries.get(reference) ?? this.#entries.get(this.#names.get(reference) ?? '');
    return entry && this.#judge(entry, true);
  }

  /** Only the holder of the secret learns why a key is refused. */
  #judge(entry: Entry, isCurrent: boolean): Admission {
    const { name, revoked_ts, previous_until, policy } = entry.record;
    const now = this.#now();
    if (revoked_ts !== null) return { admitted: false, reason: `client key "${name}" was revoked; request a new one` };
    if (!isCurrent && now >= (previous_until ?? 0))
      return { admitted: false, reason: `client key "${name}" was rotated; use its new secret` };
    if (isExpired(policy.expiresAt, now)) return { admitted: false, reason: describeExpiry(entry.admission.caller) };
    entry.lastUsed = now;
    entry.isTouched = true;
    return entry.admission;
  }

  // ---- reading

  /** Keys in the order of their creation, with when they were last used. */
  *list(): Generator<KeyRecord, void, undefined> {
    for (const entry of this.#entries.values()) yield readRecord(entry);
  }

  /** Who may send requests with the keys that are not revoked. */
  *listCallers(): Generator<Caller, void, undefined> {
    for (const { record, admission } of this.#entries.values()) if (record.revoked_ts === null) yield admission.caller;
  }

  /** A key by its id, or by its name if it is not revoked. */
  find(reference: string): KeyRecord | undefined {
    const entry = this.#entries.get(reference) ?? this.#entries.get(this.#names.get(reference) ?? '');
    return entry && readRecord(entry);
  }

  // ---- changes: in the store first, then in memory

  /** Creates a key. */
  create(name: string, settings: KeySettings, actor: ActorKind): Promise<IssuedKey> {
    return this.#queue(async () => {
      const { ts } = this.#options.store.createId();
      const terms = readTerms(settings, this.#now());
      this.#checkName(readKeyName(name));
      if (this.#names.size >= MAX_KEYS) throw new KeyError('full', `there are ${MAX_KEYS} keys; revoke some of them first`);
      const pepper = this.#requirePepper();
      const { id, text } = createKeyText();
      const record: KeyRecord = {
        ...{ id, name, digest: pepper.digest(text).toString('hex'), pepper: pepper.fingerprint, ...terms },
        ...{
          previous_digest: null,
          previous_until: null,
          created_ts: ts,
          rotated_ts: null,
          revoked_ts: null,
          last_used_ts: null,
        },
      };
      await this.#save(record, { actor, action: 'key.create', details: { name, ...writeTerms(terms) } });
      return { record, text };
    });
  }

  /** Changes the name or the settings of a key; absent settings stay. */
  edit(reference: string, { name, ...settings }: KeySettings & { readonly name?: string }, actor: ActorKind): Promise<KeyRecord> {
    return this.#queue(async () => {
      const before = this.#require(reference);
      if (name !== undefined && name !== before.name) this.#checkName(readKeyName(name));
      const record = { ...before, ...readTerms(settings, this.#now(), before), name: name ?? before.name };
      const details = { name: record.name, before: writeTerms(before), after: writeTerms(record) };
      await this.#save(record, { actor, action: 'key.edit', details });
      return record;
    });
  }

  /** Gives a key another secret. The previous one stays valid for `overlapMs`. */
  rotate(reference: string, overlapMs: number, actor: ActorKind): Promise<IssuedKey> {
    return this.#queue(async () => {
      const before = this.#require(reference);
      const pepper = this.#requirePepper();
      const { text } = createKeyText(before.id);
      const now = this.#now();
      const record: KeyRecord = {
        ...before,
        ...{ digest: pepper.digest(text).toString('hex'), pepper: pepper.fingerprint, rotated_ts: now },
        ...{ previous_digest: before.digest, previous_until: now + overlapMs },
      };
      const details = { name: record.name, previous_until: new Date(now + overlapMs).toISOString() };
      await this.#save(record, { actor, action: 'key.rotate', details });
      return { record, text };
    });
  }

  /** Ends a key. `isImmediate`: also ends its running requests. Revoking it again changes nothing else. */
  revoke(reference: string, isImmediate: boolean, actor: ActorKind): Promise<KeyRecord> {
    return this.#queue(async () => {
      const before = this.find(reference);
      if (!before) throw createUnknownError(reference);
      const record = { ...before, revoked_ts: before.revoked_ts ?? this.#now() };
      await this.#save(record, { actor, action: 'key.revoke', details: { name: record.name, now: isImmediate } }, isImmediate);
      return record;
    });
  }

  /** Records when keys were used. */
  async close(): Promise<void> {
    this.#timer.close();
    await this.#last.catch(() => undefined);
    await this.#touch();
  }

  #queue<Value>(work: () => Promise<Value>): Promise<Value> {
    // Other nodes may have changed the key.
    const workWithNews = async (): Promise<Value> => {
      await this.#options.store.shared?.sync();
      return work();
    };
    const next = this.#last.then(workWithNews, workWithNews);
    this.#last = next;
    return next;
  }

  async #save(record: KeyRecord, change: Omit<AuditEntry, 'id' | 'ts' | 'object'>, endsRequests = false): Promise<void> {
    const { store } = this.#options;
    await store.saveKey(record, { ...store.createId(), object: record.id, ...change }, endsRequests);
    this.#apply({ record, endsRequests });
  }

  #apply(change: KeyChange): void {
    this.#put(change.record);
    for (const listener of this.#listeners) listener(change);
  }

  #put(record: KeyRecord): void {
    const { id, name, tags, policy, digest, previous_digest, revoked_ts, last_used_ts } = record;
    const known = this.#entries.get(id);
    if (known && this.#names.get(known.record.name) === id) this.#names.delete(known.record.name);
    if (known) this.#dropDigests(known);
    const entry: Entry = {
      record,
      digest: toLookup(digest),
      previous: previous_digest === null ? null : toLookup(previous_digest),
      admission: { admitted: true, caller: Object.freeze({ id, name, tags, policy }) },
      lastUsed: Math.max(known?.lastUsed ?? 0, last_used_ts ?? 0),
      isTouched: known?.isTouched ?? false,
    };
    this.#entries.set(id, entry);
    if (entry.previous !== null) this.#digests.set(entry.previous, entry);
    this.#digests.set(entry.digest, entry);
    if (revoked_ts === null) this.#names.set(name, id);
    else this.#retire(id);
  }

  #dropDigests({ digest, previous }: Entry): void {
    this.#digests.delete(digest);
    if (previous !== null) this.#digests.delete(previous);
  }

  /** Remembers a revoked key, and forgets the one that was revoked first if there are too many. */
  #retire(id: string): void {
    this.#revoked.add(id);
    const [oldest] = this.#revoked;
    if (this.#revoked.size <= MAX_REVOKED_KEYS || oldest === undefined) return;
    const entry = this.#entries.get(oldest);
    if (entry) this.#dropDigests(entry);
    this.#revoked.delete(oldest);
    this.#entries.delete(oldest);
  }

  #require(reference: string): KeyRecord {
    const record = this.find(reference);
    if (!record) throw createUnknownError(reference);
    if (record.revoked_ts !== null) throw new KeyError('revoked', `key "${record.name}" is revoked; create another one`);
    return record;
  }

  #checkName(name: string): void {
    if (this.#names.has(name))
      throw new KeyError('exists', `there is a key with the name "${name}"; choose another, or edit that key`);
    if (this.#options.isTaken?.(name))
      throw new KeyError('exists', `the configuration has a key with the name "${name}"; choose another`);
  }

  async #touch(): Promise<void> {
    const touched = [...this.#entries.values()].filter(({ isTouched }) => isTouched);
    if (touched.length === 0) return;
    for (const entry of touched) entry.isTouched = false;
    try {
      await this.#options.store.touchKeys(touched.map(({ record, lastUsed }) => [record.id, lastUsed]));
    } catch (error) {
      this.#options.onFailure?.(error instanceof Error ? error.message : String(error));
    }
  }

  // ---- the pepper

  #loadPepper(): void {
    const { pepperFile, requiresPepper } = this.#options;
    const needed = [...this.#names.values()].flatMap((id) => this.#entries.get(id)?.record ?? []);
    try {
      const stored = pepperFile === null ? this.#pepper : readPepper(pepperFile);
      this.#isPepperStored = stored !== undefined;
      if (stored) this.#pepper = stored;
      const lost = needed.filter(({ pepper }) => pepper !== stored?.fingerprint);
      // Nodes that share a database create the pepper before the first key.
      this.#hasLostKeys = pepperFile !== null && stored !== undefined && this.#entries.size === 0 && !this.#options.store.shared;
      if (lost.length > 0) throw new Error(describeLoss(pepperFile, stored !== undefined, lost.length));
    } catch (error) {
      if (requiresPepper) throw new KeyError('pepper', error instanceof Error ? error.message : String(error));
      this.#problem = error instanceof Error ? error.message : String(error);
    }
  }

  /** All nodes of a store need the same pepper, so the first one creates it at its start. */
  async #agreeOnPepper(): Promise<void> {
    const { store, pepperFile } = this.#options;
    if (!store.shared || this.#problem !== undefined) return;
    if (!this.#isPepperStored && (await store.shared.readPepper()) !== undefined)
      this.#refusePepper(`the pepper file "${pepperFile}" is missing, and other nodes use this database with theirs`);
    else if ((await store.shared.claimPepper(this.#requirePepper().fingerprint)) !== this.#pepper.fingerprint)
      this.#refusePepper(`the pepper file "${pepperFile}" is not the one of the other nodes of this database`);
  }

  #refusePepper(fact: string): void {
    this.#problem = `${fact}; copy the file from a node that works, or set auth.pepper_file to its place`;
    if (this.#options.requiresPepper) throw new KeyError('pepper', this.#problem);
  }

  /** The pepper for a new secret; creates it for the first one. */
  #requirePepper(): Pepper {
    if (this.#problem !== undefined && (this.#names.size > 0 || this.#options.store.shared))
      throw new KeyError('pepper', this.#problem);
    const { pepperFile } = this.#options;
    if (!this.#isPepperStored && pepperFile !== null) {
      try {
        this.#pepper = createPepper(pepperFile);
      } catch (error) {
        throw new KeyError('pepper', error instanceof Error ? error.message : String(error));
      }
      this.#isPepperStored = true;
    }
    return this.#pepper;
  }
}

const toLookup = (hex: string): string => Buffer.from(hex, 'hex').toString('latin1');

const readRecord = ({ record, lastUsed }: Entry): KeyRecord =>
  lastUsed === 0 ? record : { ...record, last_used_ts: Math.floor(lastUsed / TOUCH_MS) * TOUCH_MS };

const createUnknownError = (reference: string): KeyError =>
  new KeyError('unknown', `no key has the name or id ${JSON.stringify(reference.slice(0, 100))}`);

function describeLoss(file: string | null, isFound: boolean, count: number): string {
  const keys = count === 1 ? '1 client key depends' : `${count} client keys depend`;
  const fact = isFound ? `the pepper file "${file}" is not the one that was used before` : `the pepper file "${file}" is missing`;
  return `${fact}, and ${keys} on it: their clients would all be refused. Restore the file from a copy, or set auth.pepper_file to its place. If it is lost, revoke these keys with "sluice keys revoke" and create new ones`;
}

/** Whether a key that expires at this time has expired. */
export const isExpired = (expiresAt: number | null, now: number): boolean => expiresAt !== null && now >= expiresAt;

/** Why an expired key is refused. */
export const describeExpiry = ({ name, policy }: Caller): string =>
  `client key "${name}" expired at ${new Date(policy.expiresAt ?? 0).toISOString()}; request a new one`;
