/** Versions of the configuration that all nodes of a database share. */
import type { AuditEntry } from '../keys/records.ts';

/** A version, without its text. */
export interface ConfigVersion {
  /** 1 is the first one; the highest is in force. */
  readonly version: number;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly ts: number;
  /** SHA-256 of the text, in hex. */
  readonly digest: string;
  /** Who stored it: the user and the host of the command. */
  readonly author: string;
  readonly comment: string;
  /** The version whose text this one repeats; null when it is not a rollback. */
  readonly rollback_of: number | null;
}

/** A version with its text: a document in the form of `sluice.yaml`. */
export interface StoredConfig extends ConfigVersion {
  readonly text: string;
}

/** A version to add. */
export interface NewConfig extends Pick<StoredConfig, 'text' | 'author' | 'comment' | 'rollback_of'> {
  /** The version that it replaces; 0 for the first one. */
  readonly expected: number;
  readonly actor: AuditEntry['actor'];
}

/** The versions of one database. Nothing in it is ever changed or deleted. */
export interface ConfigVersions {
  /** The last versions, newest first. */
  list(limit: number): Promise<ConfigVersion[]>;
  /** One version, or the one in force; undefined when there is none. */
  get(version?: number): Promise<StoredConfig | undefined>;
  /**
   * Adds a version, which is in force from then on, with its line of the audit log, and tells the nodes. Rejects with a `StoreError` of the
   * code `conflict` when another version than the expected one is in force.
   */
  add(config: NewConfig): Promise<ConfigVersion>;
}

/** The versions, with news of other nodes. */
export interface WatchedConfigs extends ConfigVersions {
  /** Calls the listener with the newest version, whenever one appears that is newer than `known`. */
  watch(known: number, listener: (config: StoredConfig) => void): void;
}
