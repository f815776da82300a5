/** The responses of requests that have an `Idempotency-Key`: running ones, and finished ones for as long as there is room. */

import type { IdempotencyOptions } from '../config/options.ts';
import type { Clock, Timer } from '../http/clock.ts';
import type { Result } from './model-request.ts';
import type { BodyFacts } from './record.ts';
import { ResponseLog } from './response-log.ts';

/** How a request ended, for those that share its response. */
export type SharedEnd = Pick<Result, 'status' | 'ending' | 'error'>;

/** A request with a key, and its response. */
export interface KeyedResponse {
  /** Caller, route and key as one digest. */
  readonly name: string;
  readonly caller: string;
  /** The digest of the body. */
  readonly fingerprint: string;
  /** The id of the request that was sent upstream. */
  readonly requestId: string;
  readonly log: ResponseLog;
  /** `dropped`: finished, and its response is not stored. */
  state: 'running' | 'stored' | 'dropped';
  /** Resolves when the request has ended. */
  readonly ended: Promise<SharedEnd>;
  /** Resolves `ended`. */
  readonly end: (end: SharedEnd) => void;
  /** Read while the request runs; known from then on. */
  facts: () => BodyFacts;
}

interface Entry extends KeyedResponse {
  readonly share: Share;
  finishedAt: number;
}

/** What one caller takes of the memory. */
interface Share {
  bytes: number;
  /** Entries of all states. */
  count: number;
  /** Finished entries, the oldest first. */
  readonly finished: Set<Entry>;
  /** Entries whose response is stored, the oldest first. */
  readonly stored: Set<Entry>;
}

/** Keeps responses by key. Everything is bounded; a caller that takes the most gives up its oldest first. */
export class IdempotentResponses {
  readonly #options: IdempotencyOptions;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #shares = new Map<string, Share>();
  /** All finished entries, the oldest first. */
  readonly #finished = new Set<Entry>();
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(options: IdempotencyOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Requests with a key that have not ended. */
  get running(): number {
    return this.#entries.size - this.#finished.size;
  }

  /** The request that had this key before. One whose clients have left has no response for another, also while it still runs. */
  find(name: string): KeyedResponse | undefined {
    this.#sweep();
    const entry = this.#entries.get(name);
    if (entry?.state !== 'running' || entry.log.state !== 'broken') return entry;
    this.#remove(entry);
    return undefined;
  }

  /** A request with a new key begins. */
  begin(request: Pick<KeyedResponse, 'name' | 'caller' | 'fingerprint' | 'requestId' | 'facts'>): KeyedResponse {
    const share = this.#findShare(request.caller);
    let end: (end: SharedEnd) => void = () => undefined;
    const ended = new Promise<SharedEnd>((resolve) => {
      end = resolve;
    });
    const log = new ResponseLog({
      hasRoom: (size, more) => this.#hasRoom(size, more),
      add: (bytes) => {
        this.#bytes += bytes;
        share.bytes += bytes;
      },
    });
    const entry: Entry = { ...request, log, share, ended, end, state: 'running', finishedAt: 0 };
    this.#entries.set(entry.name, entry);
    share.count++;
    while (this.#entries.size > MAX_ENTRIES && this.#forgetOne());
    return entry;
  }

  /**
   * The request has ended. Only complete successful responses are stored: after any other end the key is free, so that a
   * retry is sent upstream again.
   */
  finish(ended: KeyedResponse, end: SharedEnd): void {
    ended.end(end);
    const entry = this.#entries.get(ended.name);
    // Another request may have the key by now.
    if (entry !== ended || entry.state !== 'running') return;
    if (end.error || end.status >= 400 || end.ending !== 'answered' || entry.log.state === 'broken') {
      this.#remove(entry);
      return;
    }
    const facts = entry.facts();
    entry.facts = () => facts;
    entry.finishedAt = this.#clock.now();
    this.#finished.add(entry);
    entry.share.finished.add(entry);
    if (entry.log.isComplete) {
      entry.state = 'stored';
      entry.share.stored.add(entry);
    } else this.#drop(entry);
    this.#timer ??= this.#clock.setTimer(this.#onTimer, this.#options.ttlMs).unref();
  }

  #hasRoom(size: number, more: number): boolean {
    const { maxBytes } = this.#options;
    if (size + more > maxBytes * MAX_RESPONSE_SHARE) return false;
    while (this.#bytes + more > maxBytes && this.#dropOne());
    return this.#bytes + more <= maxBytes;
  }

  /** Drops the oldest stored response of the caller that takes the most memory. False when nothing is stored. */
  #dropOne(): boolean {
    let largest: Share | undefined;
    for (const share of this.#shares.values())
      if (share.stored.size > 0 && (!largest || share.bytes > largest.bytes)) largest = share;
    const [oldest] = largest?.stored ?? [];
    if (oldest) this.#drop(oldest);
    return oldest !== undefined;
  }

  /** Forgets the oldest finished request of the caller that has the most. False when none has finished. */
  #forgetOne(): boolean {
    let largest: Share | undefined;
    for (const share of this.#shares.values())
      if (share.finished.size > 0 && (!largest || share.count > largest.count)) largest = share;
    const [oldest] = largest?.finished ?? [];
    if (oldest) this.#remove(oldest);
    return oldest !== undefined;
  }

  /** Keeps the key, without the response. */
  #drop(entry: Entry): void {
    entry.state = 'dropped';
    entry.share.stored.delete(entry);
    entry.log.forget();
  }

  #remove(entry: Entry): void {
    const { name, caller, share } = entry;
    this.#drop(entry);
    this.#finished.delete(entry);
    share.finished.delete(entry);
    share.count--;
    this.#entries.delete(name);
    if (share.count === 0) this.#shares.delete(caller);
  }

  #sweep(): void {
    const until = this.#clock.now() - this.#options.ttlMs;
    for (const entry of this.#finished) {
      if (entry.finishedAt > until) break;
      this.#remove(entry);
    }
  }

  /** Responses are not kept for longer than the operator wants, also when no request comes. */
  readonly #onTimer = (): void => {
    this.#sweep();
    const [oldest] = this.#finished;
    const ms = oldest && oldest.finishedAt + this.#options.ttlMs - this.#clock.now();
    this.#timer = ms === undefined ? undefined : this.#clock.setTimer(this.#onTimer, Math.max(1, ms)).unref();
  };

  #findShare(caller: string): Share {
    const known = this.#shares.get(caller);
    if (known) return known;
    const share: Share = { bytes: 0, count: 0, finished: new Set(), stored: new Set() };
    this.#shares.set(caller, share);
    return share;
  }
}

/** Keys that are remembered. */
export const MAX_ENTRIES = 10_000;

/** How much of the memory one response may take. */
export const MAX_RESPONSE_SHARE = 1 / 8;
