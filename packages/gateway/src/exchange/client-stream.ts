import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Codec } from '@sluice/core';
import type { Timer } from '../http/clock.ts';
import type { ClientConnection } from './client-connection.ts';
import type { ExchangeObserver } from './observer.ts';
import type { Claim } from './race.ts';

/**
 * The stream that a client receives. It opens with the first content: until then an error can have its own status, and
 * another upstream can be tried. Only the holder of a claim writes to it and ends it.
 */
export class ClientStream {
  readonly #connection: ClientConnection;
  readonly #response: ServerResponse;
  readonly #options: ClientStreamOptions;
  #heartbeat: Timer | undefined;
  #isChunked = false;
  #isWaiting = false;
  #isStalled = false;

  constructor(connection: ClientConnection, options: ClientStreamOptions) {
    this.#connection = connection;
    this.#response = connection.response;
    this.#options = options;
    this.#response.on('timeout', (socket: Socket) => {
      this.#isStalled = true;
      socket.destroy();
    });
  }

  /** The headers are sent, so errors can only be reported in the stream. */
  get isOpen(): boolean {
    return this.#response.headersSent;
  }

  /** The client's buffer is full; further writes would only fill the gateway's memory. */
  get isFull(): boolean {
    return this.#response.writableNeedDrain;
  }

  /** The client was disconnected because it read nothing for too long. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Sends the headers. */
  open(): void {
    if (this.isOpen) return;
    const headers = this.#options.headers();
    this.#response.writeHead(200, headers);
    this.#options.observer?.opened(200, headers, true);
    this.#isChunked = this.#response.chunkedEncoding;
    // Chunks are framed by `writeChunk` from here on: node would make four writes of each.
    this.#response.chunkedEncoding = false;
    this.#connection.fill = () => this.#fill(EMPTY_LINE);
    this.#startHeartbeat();
  }

  /**
   * Opens the stream before any content, so that heartbeats keep the client waiting. Gemini clients accept no heartbeat
   * and get none.
   */
  openSilently(): void {
    if (this.#options.heartbeat === undefined || this.isOpen) return;
    this.open();
    this.#response.flushHeaders();
  }

  write(bytes: Uint8Array, claim: Claim): void {
    check(claim);
    if (bytes.length === 0) return;
    this.open();
    this.#heartbeat?.refresh();
    this.#send(bytes);
  }

  /** Calls back once, when the client has read what was written. */
  onDrain(resume: () => void): void {
    this.#response.once('drain', this.#connection.guard(resume));
  }

  end(claim: Claim): void {
    check(claim);
    this.#end();
  }

  #end(): void {
    this.close();
    if (this.#isChunked) this.#response.end(LAST_CHUNK, 'latin1');
    else this.#response.end();
    if (this.#response.writableLength > 0) this.#watch();
  }

  /** Ends a stream after an error. `repeat`: the error again, for clients that only find it in a read of its own. */
  endInError(repeat: Uint8Array | undefined, claim: Claim): void {
    if (repeat === undefined) {
      this.end(claim);
      return;
    }
    check(claim);
    this.close();
    const finish = this.#connection.guard(() => {
      if (this.#response.destroyed) return;
      this.#send(repeat);
      this.#end();
    });
    const timer = this.#connection.clock.setTimer(finish, REPEAT_AFTER_MS);
    this.#response.once('close', () => timer.close());
  }

  /** Stops the heartbeat. */
  close(): void {
    this.#heartbeat?.close();
  }

  #startHeartbeat(): void {
    const { heartbeat, heartbeatMs } = this.#options;
    if (heartbeat === undefined) return;
    const beat = this.#connection.guard(() => {
      if (!this.isFull) this.#fill(heartbeat);
    });
    this.#heartbeat = this.#connection.clock.setRepeating(beat, heartbeatMs);
  }

  #send(bytes: Uint8Array): void {
    this.#options.observer?.sent(bytes);
    this.#options.onSent?.(bytes);
    this.#put(bytes);
  }

  #fill(bytes: Uint8Array): void {
    this.#options.observer?.filled(bytes);
    this.#put(bytes);
  }

  #put(bytes: Uint8Array): void {
    const isRead = this.#isChunked ? writeChunk(this.#response, bytes) : this.#response.write(bytes);
    if (!isRead) this.#watch();
  }

  /** A socket timeout counts only time without any read, so a slow client is not stalled. */
  #watch(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#options.onStall(true);
    this.#response.setTimeout(this.#options.stallMs);
    this.#response.once('drain', () => {
      this.#isWaiting = false;
      this.#options.onStall(false);
      this.#response.setTimeout(0);
    });
  }
}

/** A write without the claim is a bug, which ends the exchange before the client reads two responses as one. */
function check({ isHeld }: Claim): void {
  if (!isHeld) throw new Error('the response to this client belongs to another upstream');
}

/** How a stream is opened, kept alive and watched. */
export interface ClientStreamOptions {
  /** Called when the stream opens, because the headers may change until then. */
  headers: () => Record<string, string>;
  /** Bytes that keep a silent stream alive; undefined where the client's protocol has none. */
  heartbeat: Uint8Array | undefined;
  heartbeatMs: number;
  /** How long a client may read nothing while data is waiting. */
  stallMs: number;
  /** The client has stopped reading, or reads again. */
  onStall: (isStalled: boolean) => void;
  observer?: ExchangeObserver | undefined;
  /** Sees everything that is sent, without heartbeats. */
  onSent?: ((bytes: Uint8Array) => void) | undefined;
}

/** Ignored by every client, even those that accept no heartbeat. */
const EMPTY_LINE = Buffer.from('\r\n');

/**
 * Enough for a client to read the last write, so that the next one is a separate read; under load that takes tens of
 * milliseconds.
 */
const REPEAT_AFTER_MS = 100;

/**
 * Writes one chunk with its length and line end. One latin1 string keeps the bytes and is one write; node would queue
 * four. Returns false when the client reads too slowly.
 */
export function writeChunk(response: ServerResponse, bytes: Uint8Array): boolean {
  const length = bytes.length.toString(16);
  const view = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length <= MAX_COPIED) return response.write(`${length}\r\n${view.toString('latin1')}\r\n`, 'latin1');
  response.write(`${length}\r\n`, 'latin1');
  response.write(view);
  return response.write('\r\n', 'latin1');
}

/** Above this size a copy costs more than it saves. */
const MAX_COPIED = 16 * 1024;

/** The end of a chunked body. */
export const LAST_CHUNK = '0\r\n\r\n';

/** What keeps a silent stream of the protocol open; undefined where its clients accept nothing of the kind. */
export function encodeHeartbeat({ heartbeat }: Codec): Uint8Array | undefined {
  if (heartbeat === undefined) return undefined;
  const known = encodedHeartbeats.get(heartbeat) ?? Buffer.from(heartbeat);
  encodedHeartbeats.set(heartbeat, known);
  return known;
}

const encodedHeartbeats = new Map<string, Uint8Array>();
