/**
 * What a server that keeps the limits of several gateways does, in its own language: the same operations with the same requests and
 * replies in Redis and in PostgreSQL. Each is atomic.
 */

/** All operations. */
export type Operation = 'take' | 'raise' | 'end' | 'renew' | 'join' | 'beat' | 'begin' | 'commit' | 'read';

/** The connection to such a server. Nothing is queued while there is none, and nothing is sent twice. */
export interface Driver {
  /** The name of the server, for messages. */
  readonly name: string;
  /** Before every key, with the version of keys and operations: gateways with another one do not share limits with this one. */
  readonly prefix: string;
  /** Whether calls can be sent. */
  readonly isReady: boolean;
  /** Connects, and again whenever the connection is lost. */
  connect(): void;
  /** Runs an operation. The request is JSON. The reply: a status, the time of the server, and more. */
  send(operation: Operation, request: string): Promise<unknown>;
  /** The id of this run of the server; empty where the server does not tell. */
  readRun(): Promise<string>;
  /** Ends connections that do not answer, and makes new ones. */
  reconnect(): void;
  close(): void | Promise<void>;
}

/** What a driver reports. */
export interface DriverEvents {
  /** A connection can be used. */
  readonly onReady: () => void;
  /** There is none any more. */
  readonly onLost: () => void;
  /** A connection failed; the next try follows by itself. */
  readonly onError: (reason: string) => void;
}

/** How long until the next try to connect. */
export const delayConnect = (tries: number): number => Math.min(50 * tries, MAX_RECONNECT_MS);

const MAX_RECONNECT_MS = 1000;

/** How long nodes have to join a new epoch. Those that are alive join within a second. */
export const REBUILD_MS = 3000;

/** From the last join to the first admission: what has ended before is in the ledger by then. */
export const QUIET_MS = 500;

/** A node whose last sign of life is older does not count any more. */
export const ALIVE_MS = 10_000;

/** When a node sets aside what nodes hold that have not joined a new epoch, after it has joined itself: before the rebuild is over. */
export const ABSENT_MS = { from: 1500, till: 5000 } as const;

/** How often a window that may be wrong is read from the ledger. What is charged in this time may be in it already: it is read again. */
export const RELOAD_MS = 5000;

/** After a node has died, its exchanges are closed in the ledger by another one within this time. */
export const CRASH_MS = 120_000;

/** Windows that are not used for so long are forgotten, and read from the ledger again when they are used. */
export const IDLE_MS = 86_400_000;

/** For how long a second settlement is recognised. */
export const DONE_MS = 60_000;

/** Expired reservations that one call removes. */
export const PRUNED = 50;
