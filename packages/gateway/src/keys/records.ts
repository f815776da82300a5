/** What is stored about keys, and what the store must do with it. */

import type { KeyPolicy } from './caller.ts';

/** A stored key. The key itself is not part of it: only its digest is. */
export interface KeyRecord {
  /** The public id. */
  readonly id: string;
  readonly name: string;
  /** HMAC of the key text, in hex. */
  readonly digest: string;
  /** The fingerprint of the pepper that the digests were made with. */
  readonly pepper: string;
  /** The digest before the last rotation, and until when it is valid. */
  readonly previous_digest: string | null;
  readonly previous_until: number | null;
  readonly policy: KeyPolicy;
  readonly tags: readonly string[];
  /** Times are milliseconds since 1970. */
  readonly created_ts: number;
  readonly rotated_ts: number | null;
  readonly revoked_ts: number | null;
  /** Exact to a minute or so. */
  readonly last_used_ts: number | null;
}

/** Who did something: the admin key, a session of the console, a local program, the command line, or the configuration file. */
export type ActorKind = 'key' | 'session' | 'local' | 'cli' | 'config' | 'none';

/** One line of the audit log. */
export interface AuditEntry {
  /** Rises with time. */
  readonly id: string;
  readonly ts: number;
  readonly actor: ActorKind;
  /** Such as `key.create`. */
  readonly action: string;
  /** What was changed, such as the id of a key; empty for the gateway itself. */
  readonly object: string;
  /** Never holds secrets. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** A page of the audit log, newest first. */
export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** The cursor of the next page; null on the last one. */
  readonly next: string | null;
}

/** Which part of the audit log. */
export interface AuditQuery {
  readonly cursor?: string | null;
  readonly limit?: number;
  /** Only entries with this text, in any case of its letters; empty for all. */
  readonly text?: string;
}

/** Reads keys and the audit log. */
export interface KeyReader {
  /** All keys that are not revoked, and the last revoked ones; oldest first. */
  listKeys(): Promise<KeyRecord[]>;
  listAudit(query?: AuditQuery): Promise<AuditPage>;
}

/** A key that was changed. */
export interface KeyChange {
  readonly record: KeyRecord;
  /** Its running requests are to end. */
  readonly endsRequests: boolean;
}

/** Writes keys and the audit log. Each write resolves when it is durable. */
export interface KeyStore extends KeyReader {
  /** A rising id, with the time of the wall clock. */
  createId(): { readonly id: string; readonly ts: number };
  /** Creates or replaces a key, and adds to the audit log, in one transaction. `endsRequests`: also on other nodes. */
  saveKey(record: KeyRecord, entry: AuditEntry, endsRequests: boolean): Promise<void>;
  /** Records when keys were used. */
  touchKeys(uses: readonly (readonly [id: string, ts: number])[]): Promise<void>;
  addAudit(entry: AuditEntry): Promise<void>;
  /** What a store has that other nodes use, too; undefined for a store of this gateway alone. */
  readonly shared: SharedKeys | undefined;
}

/** Keys that other nodes change, too. */
export interface SharedKeys {
  /** Calls the listener after changes of other nodes; also after some that it knows. */
  watch(listener: (change: KeyChange) => void): void;
  /** Resolves when every change that was made before this call is known. */
  sync(): Promise<void>;
  /** How long ago all changes were known. */
  readonly ageMs: number;
  /** The fingerprint of the pepper that all nodes must have; undefined when there is none yet. */
  readPepper(): Promise<string | undefined>;
  /** Registers the fingerprint of a pepper. Returns the one that is in force. */
  claimPepper(fingerprint: string): Promise<string>;
}

/** Keys that are not revoked. A gateway holds all of them in memory. */
export const MAX_KEYS = 100_000;

/** Revoked keys that a gateway still knows by name. */
export const MAX_REVOKED_KEYS = 10_000;
