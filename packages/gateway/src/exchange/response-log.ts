/**
 * One response for several clients: an exchange writes it to a log, and every client reads the log at its own speed from
 * the first byte.
 */

import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import type { ClientConnection } from './client-connection.ts';

/** Counts the bytes that logs hold in memory. */
export interface ByteAccount {
  /** Whether a complete log of this size may grow by so many bytes. */
  hasRoom(size: number, more: number): boolean;
  /** Bytes are held from now on, or released when negative. */
  add(bytes: number): void;
}

/** Status and headers of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** `broken`: the response was cut off. */
type LogState = 'open' | 'ended' | 'broken';

/** The bytes of a response, from the first one while there is room, otherwise those that a reader still needs. */
export class ResponseLog {
  readonly #account: ByteAccount;
  readonly #readers = new Set<LogReader>();
  #chunks: Buffer[] = [];
  /** The number of the first chunk that is still held. */
  #first = 0;
  #size = 0;
  /** Bytes of the body so far. */
  #written = 0;
  #isComplete = true;
  #state: LogState = 'open';
  #head: ResponseHead | undefined;
  /** Lets the exchange write on. */
  #resume: (() => void) | undefined;
  /** Called when the last reader has left. */
  onAbandoned: (isStalled: boolean) => void = () => undefined;

  constructor(account: ByteAccount) {
    this.#account = account;
  }

  get head(): ResponseHead | undefined {
    return this.#head;
  }

  get state(): LogState {
    return this.#state;
  }

  /** Whether every byte so far is held, so that another client can read the response from its start. */
  get isComplete(): boolean {
    return this.#isComplete && this.#state !== 'broken';
  }

  /** Bytes in memory, with the objects that hold them. */
  get size(): number {
    return this.#size;
  }

  /** The number of the next chunk. */
  get end(): number {
    return this.#first + this.#chunks.length;
  }

  /** The response begins. */
  open(head: ResponseHead): void {
    this.#head = head;
    this.#feed();
  }

  /** Adds a part of the body. `resume` is called when more can be written. */
  append(bytes: Uint8Array, resume: () => void): void {
    // A copy: the writer may use its memory again.
    const chunk = Buffer.from(bytes);
    const cost = chunk.length + CHUNK_BYTES;
    if (this.#isComplete && !this.#account.hasRoom(this.#size, cost)) this.#isComplete = false;
    this.#chunks.push(chunk);
    this.#written += chunk.length;
    this.#count(cost);
    this.#resume = resume;
    this.#feed();
    this.#dropSlowReaders();
    this.advance();
  }

  /** The response is complete. */
  finish(): void {
    this.#state = 'ended';
    this.#feed();
    this.#trim();
  }

  /** The response was cut off: no client may take it for a whole one. */
  break(): void {
    if (this.#state !== 'open') return;
    this.#state = 'broken';
    for (const reader of [...this.#readers]) reader.response.destroy();
    this.#trim();
  }

  /** Bytes are held only for the clients that still read them. */
  forget(): void {
    this.#isComplete = false;
    this.#trim();
  }

  /** The chunk with this number. */
  read(at: number): Buffer | undefined {
    return this.#chunks[at - this.#first];
  }

  attach(reader: LogReader): void {
    this.#readers.add(reader);
  }

  /** A client has everything, or has left. */
  detach(reader: LogReader, isStalled: boolean): void {
    if (!this.#readers.delete(reader)) return;
    this.advance();
    if (this.#readers.size > 0) return;
    if (this.#state === 'open') this.onAbandoned(isStalled);
    else this.#compact();
  }

  /** A reader has made progress: bytes that nobody needs are dropped, and the exchange may go on. */
  advance(): void {
    this.#trim();
    const resume = this.#resume;
    if (!resume || this.#isFull()) return;
    this.#resume = undefined;
    resume();
  }

  /**
   * Whether the exchange has to wait. The fastest client sets the pace, because the log holds the rest for the others.
   * When there is no room for that, the first client sets it, as it does alone.
   */
  #isFull(): boolean {
    if (this.#readers.size === 0) return false;
    const readers = [...this.#readers];
    const first = this.#isComplete ? undefined : readers.find(({ isFirst }) => isFirst);
    return first ? first.isBlocked : readers.every(({ isBlocked }) => isBlocked);
  }

  #feed(): void {
    for (const reader of [...this.#readers]) reader.pump();
  }

  /** Cuts off clients that joined and fell so far behind that they would fill the memory. */
  #dropSlowReaders(): void {
    if (this.#isComplete) return;
    for (const reader of [...this.#readers])
      if (!reader.isFirst && reader.isBlocked && this.#written - reader.taken > MAX_LAG_BYTES) reader.cutOff();
  }

  #trim(): void {
    if (this.isComplete) return;
    let needed = this.end;
    for (const { at } of this.#readers) needed = Math.min(needed, at);
    const dropped = this.#chunks.splice(0, needed - this.#first);
    this.#first = needed;
    let freed = 0;
    for (const chunk of dropped) freed += chunk.length + CHUNK_BYTES;
    if (freed > 0) this.#count(-freed);
  }

  /** A finished response that nobody reads at the moment takes one buffer. */
  #compact(): void {
    if (!this.isComplete || this.#chunks.length < 2) return;
    const before = this.#chunks.length;
    this.#chunks = [Buffer.concat(this.#chunks)];
    this.#count(-(before - 1) * CHUNK_BYTES);
  }

  #count(bytes: number): void {
    this.#size += bytes;
    this.#account.add(bytes);
  }
}

/** What a buffer takes beside its bytes. */
const CHUNK_BYTES = 128;

/** How far a client that joined may fall behind when the response is too large to be kept. */
const MAX_LAG_BYTES = 256 * 1024;

/** Sends a log to one client. */
export class LogReader {
  readonly response: ServerResponse;
  readonly isFirst: boolean;
  readonly #log: ResponseLog;
  readonly #options: ReaderOptions;
  readonly #resolve: (end: ReaderEnd) => void;
  /** How the client has read the response; resolves when it has everything or has left. */
  readonly done: Promise<ReaderEnd>;
  /** The number of the next chunk for this client. */
  at = 0;
  /** Bytes of the body that were sent to this client. */
  taken = 0;
  /** `held` until `start`; `slow`: the client's buffer is full. */
  #state: 'held' | 'ready' | 'slow' | 'ending' | 'done' = 'held';
  #isStalled = false;

  constructor(log: ResponseLog, options: ReaderOptions) {
    const { connection } = options;
    let resolve: (end: ReaderEnd) => void = () => undefined;
    this.done = new Promise((settle) => {
      resolve = settle;
    });
    this.#resolve = resolve;
    this.#log = log;
    this.#options = options;
    this.response = connection.response;
    this.isFirst = options.isFirst;
    this.response.on('timeout', this.#onTimeout);
    connection.listen(this.#onInterruption);
    log.attach(this);
    this.#onInterruption();
  }

  /** Whether the client takes no bytes at the moment. */
  get isBlocked(): boolean {
    return this.#state !== 'ready';
  }

  /** The client may receive the response. */
  start(): void {
    if (this.#state !== 'held') return;
    this.#state = 'ready';
    this.#options.connection.fill = () => this.#fill();
    this.pump();
    this.#log.advance();
  }

  /** Sends what the client takes. */
  pump(): void {
    const { head } = this.#log;
    if (this.#state !== 'ready' || !head) return;
    this.#writeHead(head);
    while (this.#state === 'ready') {
      const chunk = this.#log.read(this.at);
      if (!chunk) break;
      this.at++;
      this.taken += chunk.length;
      if (chunk.length > 0 && !this.response.write(chunk)) this.#wait();
    }
    if (this.at === this.#log.end && this.#log.state === 'ended') this.#finish();
  }

  #writeHead(head: ResponseHead): void {
    if (this.response.headersSent) return;
    this.response.writeHead(head.status, this.#options.buildHeaders(head));
    // A stream that opens before its content shows its headers.
    if (this.at === this.#log.end) this.response.flushHeaders();
  }

  #wait(): void {
    const { connection, stallMs, onStall } = this.#options;
    this.#state = 'slow';
    onStall(true);
    this.response.setTimeout(stallMs);
    this.response.once(
      'drain',
      connection.guard(() => this.#continue()),
    );
  }

  #continue(): void {
    if (this.#state !== 'slow') return;
    this.#options.onStall(false);
    this.response.setTimeout(0);
    this.#state = 'ready';
    this.pump();
    this.#log.advance();
  }

  #finish(): void {
    if (this.#state === 'ending' || this.#state === 'done') return;
    this.#state = 'ending';
    const { beforeEnd, connection } = this.#options;
    const end = connection.guard(() => this.#end());
    if (beforeEnd) void beforeEnd().then(end, end);
    else this.#end();
  }

  #end(): void {
    if (this.#state !== 'ending') return;
    this.response.end();
    if (this.response.writableLength > 0) this.response.setTimeout(this.#options.stallMs);
    this.#settle('complete');
  }

  /** Writes what streams ignore, to learn whether the client is still there. Only between two chunks. */
  #fill(): void {
    const isStream = this.#log.head?.headers['content-type']?.startsWith('text/event-stream') === true;
    if (isStream && this.#state === 'ready' && this.at === this.#log.end) this.response.write('\r\n');
  }

  /** The client has read too little for too long. */
  cutOff(): void {
    this.#isStalled = true;
    this.response.destroy();
  }

  readonly #onTimeout = (): void => this.cutOff();

  readonly #onInterruption = (): void => {
    if (this.#options.connection.isGone)
      this.#settle(this.#isStalled ? 'stalled' : this.#log.state === 'broken' ? 'broken' : 'gone');
  };

  #settle(end: ReaderEnd): void {
    if (this.#state === 'done') return;
    this.#state = 'done';
    this.#options.connection.unlisten(this.#onInterruption);
    this.#log.detach(this, end === 'stalled');
    this.#resolve(end);
  }
}

/** How a client read a response. `broken`: the response itself was cut off. */
export type ReaderEnd = 'complete' | 'gone' | 'stalled' | 'broken';

/** Who reads a log, and how. */
export interface ReaderOptions {
  connection: ClientConnection;
  /** The client whose request is sent upstream. */
  isFirst: boolean;
  stallMs: number;
  /** The headers for this client. */
  buildHeaders: (head: ResponseHead) => Record<string, string>;
  /** The client has stopped reading, or reads again. */
  onStall: (isStalled: boolean) => void;
  /** What the client's last byte waits for. */
  beforeEnd?: () => Promise<void>;
}

/** Writes a log. Exchanges use it as the response of their client; it has what they use of one. */
export class SharedResponse extends Writable {
  readonly #log: ResponseLog;
  statusCode = 200;
  /** The clients' own responses are chunked by node. */
  chunkedEncoding = false;

  constructor(log: ResponseLog, bufferBytes: number) {
    super({ highWaterMark: bufferBytes });
    this.#log = log;
  }

  /** This response where one of node is expected. The exchange layer uses no other member than those here. */
  get asServerResponse(): ServerResponse {
    return this as unknown as ServerResponse;
  }

  get headersSent(): boolean {
    return this.#log.head !== undefined;
  }

  writeHead(status: number, headers: Readonly<Record<string, string>>): this {
    this.statusCode = status;
    this.#log.open({ status, headers });
    return this;
  }

  /** Clients get the headers when they are written. */
  flushHeaders(): void {}

  /** Every client has a timeout of its own. */
  setTimeout(): this {
    return this;
  }

  /** No client reads the response any more. */
  abandon(isStalled: boolean): void {
    if (isStalled) this.emit('timeout', this);
    this.destroy();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#log.append(chunk, done);
  }

  override _final(done: () => void): void {
    this.#log.finish();
    done();
  }

  override _destroy(_error: Error | null, done: () => void): void {
    this.#log.break();
    done();
  }
}
