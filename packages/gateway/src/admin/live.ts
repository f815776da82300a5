/** The live stream of exchanges: which ones were opened and settled, for any number of listeners up to a limit. */

import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../http/clock.ts';
import { type ExchangeRow, type Filter, type Ledger, matchesFilter, type Write } from '../store/index.ts';
import { Problem } from './problem.ts';

/** What happened to an exchange. */
export type Change = 'opened' | 'settled';

interface Entry {
  readonly number: number;
  readonly change: Change;
  readonly exchange: string;
}

/** How a feed reads and formats what it sends. */
interface FeedOptions {
  /** The id of this run: numbers of another run mean nothing. */
  readonly boot: string;
  /** Reads a row when it is sent; the feed itself remembers only ids. */
  readonly read: (exchange: string) => Promise<ExchangeRow | null>;
  readonly clock: Clock;
  /** Changes that a listener may resume from. */
  readonly capacity?: number;
  readonly maxListeners?: number;
}

/** What a listener wants. */
export interface LiveOptions {
  readonly filter?: Filter | undefined;
  /** The id of the last event that the client has seen. */
  readonly lastEventId?: string | undefined;
  /** The data of an event. */
  readonly format: (row: ExchangeRow) => string;
  /** Checked from time to time: access may end during a stream. */
  readonly isAllowed: () => boolean;
}

/** Distributes changes of the ledger. */
export class ChangeFeed {
  readonly #options: Required<FeedOptions>;
  readonly #ring: Entry[] = [];
  readonly #listeners = new Set<Listener>();
  /** Rows of the newest changes, which all listeners are about to send. */
  readonly #rows = new Map<number, Promise<ExchangeRow | null>>();
  #last = 0;
  #heartbeat: Timer | undefined;
  #isClosed = false;

  constructor(options: FeedOptions) {
    this.#options = { capacity: 10_000, maxListeners: 32, ...options };
  }

  /** The ledger, with every exchange that is opened or settled published as soon as that is durable. */
  watch(ledger: Ledger): Ledger {
    const publish = (write: Write, change: Change, exchange: string): Write => {
      write.onEnd((error) => {
        // A row that was not written has not changed.
        if (!error) this.publish(change, exchange);
      });
      return write;
    };
    return {
      createId: () => ledger.createId(),
      get accepting() {
        return ledger.accepting;
      },
      get isFailing() {
        return ledger.isFailing;
      },
      openExchange: (row) => publish(ledger.openExchange(row), 'opened', row.id),
      openAttempt: (row) => ledger.openAttempt(row),
      reportProgress: (row) => ledger.reportProgress(row),
      settleAttempt: (row) => ledger.settleAttempt(row),
      settleExchange: (row) => publish(ledger.settleExchange(row), 'settled', row.id),
    };
  }

  /** Adds a change. */
  publish(change: Change, exchange: string): void {
    const number = ++this.#last;
    this.#ring[number % this.#options.capacity] = { number, change, exchange };
    for (const listener of this.#listeners) listener.wake();
  }

  /** Sends changes to a client until it leaves. Throws a problem when too many listen. */
  listen(response: ServerResponse, options: LiveOptions): void {
    const { maxListeners, clock, boot } = this.#options;
    if (this.#isClosed) throw new Problem(503, 'the gateway is shutting down', { headers: { 'retry-after': '1' } });
    if (this.#listeners.size >= maxListeners)
      throw new Problem(503, `more than ${maxListeners} clients listen; close one of them`, { headers: { 'retry-after': '5' } });
    const resumed = this.#findNumber(options.lastEventId);
    response.writeHead(200, STREAM_HEADERS);
    const listener = new Listener(response, options, { ...this.#source, next: (resumed ?? this.#last) + 1 });
    this.#listeners.add(listener);
    response.once('close', () => this.#remove(listener));
    response.write(
      `retry: 1000\nid: ${boot}.${resumed ?? this.#last}\nevent: ready\ndata: {"resumed":${resumed !== undefined}}\n\n`,
    );
    this.#heartbeat ??= clock.setRepeating(() => this.#beat(), HEARTBEAT_MS).unref();
    listener.wake();
  }

  /** Ends all streams, because the gateway shuts down. */
  close(): void {
    this.#isClosed = true;
    for (const { response } of this.#listeners) response.end();
  }

  get #source(): Omit<Source, 'next'> {
    const { boot, clock } = this.#options;
    return { boot, clock, find: (number) => this.#find(number), read: (entry) => this.#read(entry) };
  }

  #remove(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#heartbeat?.close();
    this.#heartbeat = undefined;
    this.#rows.clear();
  }

  #beat(): void {
    for (const listener of this.#listeners) listener.beat();
  }

  /** The number of an event that this run has sent and whose successors are all remembered. */
  #findNumber(id: string | undefined): number | undefined {
    const { boot, capacity } = this.#options;
    if (id === undefined || !id.startsWith(`${boot}.`)) return undefined;
    const digits = id.slice(boot.length + 1);
    const number = /^\d{1,15}$/.test(digits) ? Number(digits) : -1;
    return number >= 0 && number >= this.#last - capacity && number <= this.#last ? number : undefined;
  }

  /** `waiting` before it exists, `lost` when it is no longer remembered. */
  #find(number: number): Entry | 'waiting' | 'lost' {
    if (number > this.#last) return 'waiting';
    const entry = this.#ring[number % this.#options.capacity];
    return entry?.number === number ? entry : 'lost';
  }

  #read({ number, exchange }: Entry): Promise<ExchangeRow | null> {
    const known = this.#rows.get(number);
    if (known) return known;
    const row = this.#options.read(exchange);
    this.#rows.set(number, row);
    for (const old of this.#rows.keys()) {
      if (this.#rows.size <= MAX_SHARED_ROWS) break;
      this.#rows.delete(old);
    }
    return row;
  }
}

interface Source {
  readonly boot: string;
  readonly clock: Clock;
  /** The number of the first event to send. */
  readonly next: number;
  readonly find: (number: number) => Entry | 'waiting' | 'lost';
  readonly read: (entry: Entry) => Promise<ExchangeRow | null>;
}

/** One client. It lags behind the feed by what it has not read, and is closed when it reads too slowly. */
class Listener {
  readonly response: ServerResponse;
  readonly #options: LiveOptions;
  readonly #source: Source;
  #next: number;
  #isSending = false;

  constructor(response: ServerResponse, options: LiveOptions, source: Source) {
    this.response = response;
    this.#options = options;
    this.#source = source;
    this.#next = source.next;
  }

  /** There may be changes to send. */
  wake(): void {
    if (this.#isSending || this.response.destroyed) return;
    this.#isSending = true;
    this.#send()
      // The store cannot be read; the client connects again and resumes.
      .catch(() => this.response.destroy())
      .finally(() => {
        this.#isSending = false;
        if (this.#source.find(this.#next) !== 'waiting') this.wake();
      });
  }

  beat(): void {
    if (!this.#options.isAllowed()) this.response.end();
    else if (!this.#isSending) this.response.write(': \n\n');
  }

  async #send(): Promise<void> {
    for (;;) {
      const batch = this.#takeBatch();
      if (batch.length === 0) return;
      const rows = await Promise.all(batch.map((entry) => this.#source.read(entry)));
      if (this.response.destroyed || this.response.writableEnded) return;
      const frames = batch.map((entry, index) => this.#format(entry, rows[index] ?? null)).join('');
      if (frames !== '' && !this.response.write(frames)) await this.#drain();
    }
  }

  #takeBatch(): Entry[] {
    const batch: Entry[] = [];
    while (batch.length < BATCH) {
      const entry = this.#source.find(this.#next);
      if (entry === 'waiting') break;
      if (entry === 'lost') {
        // It read more slowly than exchanges happen. When it connects again, `resumed` is false.
        this.response.destroy();
        return [];
      }
      batch.push(entry);
      this.#next++;
    }
    return batch;
  }

  /** A row that has been deleted meanwhile is not sent. */
  #format({ number, change }: Entry, row: ExchangeRow | null): string {
    const { filter = [], format } = this.#options;
    if (!row || !matchesFilter(filter, row)) return '';
    return `id: ${this.#source.boot}.${number}\nevent: ${change}\ndata: ${format(row)}\n\n`;
  }

  #drain(): Promise<void> {
    const { response } = this;
    return new Promise((resolve) => {
      const timer = this.#source.clock.setTimer(() => response.destroy(), STALL_MS);
      const finish = (): void => {
        timer.close();
        response.off('drain', finish);
        response.off('close', finish);
        resolve();
      };
      response.once('drain', finish);
      response.once('close', finish);
    });
  }
}

/** Without `no-transform`, proxies may hold back events to compress them. */
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

const HEARTBEAT_MS = 15_000;

/** How long a client may read nothing. */
const STALL_MS = 10_000;

/** Rows that are read at the same time. */
const BATCH = 64;

const MAX_SHARED_ROWS = 256;
