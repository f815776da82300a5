/** Limits the load of the gateway: connections, memory and running exchanges. */

import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { CanonicalError } from '@sluice/core';
import type { Limits } from '../config/options.ts';
import { type Clock, REAL_CLOCK, type Timer } from '../http/clock.ts';
import type { ClientConnection } from './client-connection.ts';

/** The exchanges that are running: counted, and stopped together on shutdown. */
export class Streams {
  readonly #max: number;
  /**
   * An array, because a growing Set keeps references to removed entries in its old tables until a full garbage
   * collection.
   */
  readonly #open: ClientConnection[] = [];
  /** Exchanges whose clients do not read, the longest stalled first. */
  readonly #stalled = new Set<ClientConnection>();
  /** Connections that end with their keys. */
  readonly #bound = new Set<KeyBound>();
  /** Why all exchanges are stopped; undefined while they are not. */
  #stopError: CanonicalError | undefined;
  #onEmpty: () => void = () => undefined;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#open.length;
  }

  get isFull(): boolean {
    return this.#open.length >= this.#max;
  }

  /** All running exchanges, in no order. */
  get underWay(): readonly ClientConnection[] {
    return this.#open;
  }

  /** Adds an exchange. */
  enter(connection: ClientConnection): void {
    connection.place = this.#open.push(connection) - 1;
    if (this.#stopError) connection.stop(this.#stopError);
  }

  /** Removes a finished exchange. One that was never added is left alone. */
  leave(connection: ClientConnection): void {
    if (connection.place < 0) return;
    const last = this.#open.pop();
    if (last && last !== connection) {
      this.#open[connection.place] = last;
      last.place = connection.place;
    }
    connection.place = -1;
    if (this.#stalled.size > 0) this.#stalled.delete(connection);
    if (this.#open.length === 0) this.#onEmpty();
  }

  /** The client has stopped reading, or reads again. */
  stall(connection: ClientConnection, isStalled: boolean): void {
    this.#stalled.delete(connection);
    if (isStalled) this.#stalled.add(connection);
  }

  /** Resolves when no exchange is running and all are recorded. */
  empty(): Promise<void> {
    if (this.#open.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  /** Frees the memory that the longest stalled client holds. */
  cancelLongestStalled(): void {
    const [connection] = this.#stalled;
    connection?.response.destroy();
  }

  /** Stops all exchanges, also those that begin later. Their clients receive the error. */
  stop(error: CanonicalError): void {
    this.#stopError = error;
    for (const connection of [...this.#open]) connection.stop(error);
  }

  /** Ends this connection with its key, until it is unbound. */
  bind(connection: KeyBound): void {
    this.#bound.add(connection);
  }

  unbind(connection: KeyBound): void {
    this.#bound.delete(connection);
  }

  /** Stops the exchanges of one client key, and ends its connections. Returns how many exchanges. */
  stopKey(id: string, error: CanonicalError): number {
    const found = this.#open.filter(({ keyId }) => keyId === id);
    for (const connection of found) connection.stop(error);
    for (const connection of [...this.#bound]) if (connection.keyId === id) connection.stop(error);
    return found.length;
  }
}

/** What a client key opened for more than one request. */
export interface KeyBound {
  /** The public id of the key. */
  readonly keyId: string;
  /** Ends it. The client receives the error. */
  stop(error: CanonicalError): void;
}

/**
 * Checks memory use from time to time. When memory is tight, new requests are rejected so that running ones can finish. Knows, too, for
 * how long requests have been rejected.
 */
export class MemoryGuard {
  readonly #options: MemoryGuardOptions;
  readonly #timer: Timer;
  readonly #clock: Clock;
  #isTight = false;
  #sheddingSince: number | undefined;

  constructor(options: MemoryGuardOptions) {
    this.#options = options;
    this.#clock = options.clock ?? REAL_CLOCK;
    this.#timer = this.#clock.setRepeating(() => this.#check(), CHECK_MS).unref();
  }

  get isTight(): boolean {
    return this.#isTight;
  }

  /** New requests have been rejected for so long that others should be sent elsewhere. */
  get hasShedForLong(): boolean {
    return this.#sheddingSince !== undefined && this.#clock.now() - this.#sheddingSince >= LONG_SHED_MS;
  }

  close(): void {
    this.#timer.close();
  }

  #check(): void {
    const { limits, onScarce, isFull, measure = measureMemoryShare } = this.#options;
    const share = measure();
    this.#isTight = share >= limits.heapShed;
    this.#sheddingSince = this.#isTight || isFull?.() ? (this.#sheddingSince ?? this.#clock.now()) : undefined;
    if (share >= limits.heapCancel) onScarce();
  }
}

/** When memory counts as tight or scarce, and what to do then. */
export interface MemoryGuardOptions {
  limits: Pick<Limits, 'heapShed' | 'heapCancel'>;
  /** Memory is nearly used up and must be freed. */
  onScarce: () => void;
  /** Whether there are as many requests as allowed. */
  isFull?: () => boolean;
  measure?: () => number;
  clock?: Clock;
}

const CHECK_MS = 1000;

/** Longer than a peak of load, and than the checks of load balancers take to notice one. */
const LONG_SHED_MS = 10_000;

/**
 * The share of memory in use, of the container or machine, or of V8's heap limit, whichever is larger. `processes`: how many like this
 * one share the container or machine.
 */
export function measureMemoryShare(processes = 1): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return Math.max((readResidentBytes() * processes) / readMemoryLimit(), used / limit);
}

/** The memory of the container or machine. */
function readMemoryLimit(): number {
  const constrained = process.constrainedMemory() ?? 0;
  const machine = totalmem();
  return constrained > 0 && constrained < machine ? constrained : machine;
}

/** 0 when unknown: node reads it from a file, which fails when no file descriptor is left. */
function readResidentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return 0;
  }
}

/** What a connection takes that has sent no request, with room for what the parser and TLS hold of half a message. */
const CONNECTION_BYTES = {
  plain: { resident: 24 * 1024, heap: 4 * 1024 },
  tls: { resident: 64 * 1024, heap: 8 * 1024 },
} as const;

/**
 * How many connections half of the memory is enough for. Nothing else limits those that send no request: memory that is tight refuses
 * requests only.
 */
export function computeConnectionRoom(kind: keyof typeof CONNECTION_BYTES, memory: Memory): number {
  const { resident, heap } = CONNECTION_BYTES[kind];
  return Math.max(MIN_CONNECTIONS, Math.floor(Math.min(memory.bytes / resident, memory.heap / heap) / 2));
}

interface Memory {
  /** What this process may take. */
  readonly bytes: number;
  /** The limit of its heap. */
  readonly heap: number;
}

/** The room of this process. `processes`: how many like this one share the container or machine. */
export const readConnectionRoom = (kind: keyof typeof CONNECTION_BYTES, processes = 1): number =>
  computeConnectionRoom(kind, { bytes: readMemoryLimit() / processes, heap: getHeapStatistics().heap_size_limit });

let connectionShare: number | undefined;

/** The share of this process. Read once: node's report takes 4 ms, and much longer beside busy threads, which it interrupts. */
export function readConnectionShare(): number {
  connectionShare ??= computeConnectionShare(readOpenFileLimit());
  return connectionShare;
}

/**
 * How many connections there are file descriptors for: a request needs one to its client and one to an upstream, so
 * each side gets half of what is left after the reserve.
 */
export function computeConnectionShare(openFiles: number | undefined): number {
  if (openFiles === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(MIN_CONNECTIONS, Math.floor((openFiles - RESERVED_DESCRIPTORS) / 2));
}

/** File descriptors for everything but connections: listeners, files, logs, name lookups. */
const RESERVED_DESCRIPTORS = 64;

/** Minimum number of connections, for very low limits. */
const MIN_CONNECTIONS = 8;

/** The system's limit of open files for this process; undefined when there is none. */
function readOpenFileLimit(): number | undefined {
  const { report } = process;
  // Otherwise the report looks up the host names of all peers.
  Object.assign(report, { excludeNetwork: true });
  const { userLimits }: { userLimits?: { open_files?: { soft?: unknown } } } = report.getReport();
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : undefined;
}
