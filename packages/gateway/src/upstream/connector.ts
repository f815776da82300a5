import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

/** Bytes that undici gets from a socket at a time, and that a socket reads ahead. */
const READ_BYTES = 16 * 1024;

/**
 * Makes undici read in pieces. It takes all that a socket has buffered, and puts back what it cannot parse because it
 * was paused. Taking all makes the socket read on, so that its buffer would grow by up to 64 KiB with every pause. A
 * paused socket now holds one read of 64 KiB and a small rest. The rest is taken with the last piece, and copied when
 * it is put back: as a view it would keep the read before alive.
 *
 * The end of the connection, by a FIN or a reset, is delayed until undici reads again: during a pause it would fail an
 * assertion that ends the process (7.30.2, `Parser.finish`, for responses after which the connection is not kept).
 */
function readInPieces(socket: Socket): void {
  const read = socket.read.bind(socket);
  const push = socket.push.bind(socket);
  const unshift = socket.unshift.bind(socket);
  const destroy = socket.destroy.bind(socket);
  let end: (() => void) | undefined;
  socket.read = (size) => {
    const piece: unknown = read(size ?? (socket.readableLength > 2 * READ_BYTES ? READ_BYTES : undefined));
    if (piece !== null || size !== undefined || !end) return piece;
    end();
    return read();
  };
  const announce = (): void => void socket.emit('readable');
  socket.push = (piece, encoding) => {
    if (piece !== null) return push(piece, encoding);
    end ??= () => push(null);
    announce();
    return false;
  };
  socket.destroy = (error) => {
    if (!isReset(error)) return destroy(error);
    end = () => destroy(error);
    // Deferred, because undici's parser may be writing to the socket now.
    process.nextTick(announce);
    return socket;
  };
  socket.unshift = (piece: Uint8Array) => unshift(Buffer.from(piece));
}

const isReset = (error: Error | undefined): boolean => error !== undefined && 'code' in error && error.code === 'ECONNRESET';

/**
 * Connects as undici does, reads in pieces, and watches what goes over each connection. The error of a request goes
 * into `staleErrors` when its kept connection was stale: the connection had carried a complete response before, and
 * closed without a byte of this one. Servers close idle connections at any time, so such a request was most likely
 * never read.
 */
export function createConnector(timeout: number, staleErrors: WeakSet<Error>): buildConnector.connector {
  // Undici passes on socket options that its type does not list.
  const options: buildConnector.BuildOptions & { highWaterMark: number } = { timeout, highWaterMark: READ_BYTES };
  const connect = buildConnector(options);
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket) {
        readInPieces(socket);
        watch(socket, staleErrors);
      }
      callback(...result);
    });
}

/**
 * Undici does not report which connection a request used, nor what it carried before, so the socket's methods are
 * wrapped.
 */
function watch(socket: Socket, staleErrors: WeakSet<Error>): void {
  const traffic = new Traffic();
  const { write, push } = socket;
  socket.write = (...args: unknown[]): boolean => {
    traffic.sent();
    return Reflect.apply(write, socket, args);
  };
  socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk instanceof Uint8Array) traffic.received(chunk);
    return Reflect.apply(push, socket, [chunk, encoding]);
  };
  socket.prependListener('error', (error) => {
    if (traffic.isStale) staleErrors.add(error);
  });
}

const [ZERO, ONE, TWO, LF, CR] = [0x30, 0x31, 0x32, 0x0a, 0x0d];

/** The offset of the status code in `HTTP/1.1 100 Continue`. */
const STATUS_AT = 9;

/**
 * The requests and responses of one connection. Requests are not pipelined: one is written when the response before it
 * is complete, and written whole before anything of its own response is read.
 */
class Traffic {
  #requests = 0;
  #phase: 'idle' | 'request' | 'status line' | 'interim headers' | 'response' = 'idle';
  /** Bytes of the status line that were read. */
  #at = 0;
  /** Bytes of the current line of headers. */
  #lineLength = 0;

  /** The connection was used before, and nothing has arrived for the last request. */
  get isStale(): boolean {
    return this.#phase === 'request' && this.#requests > 1;
  }

  sent(): void {
    if (this.#phase === 'request') return;
    this.#phase = 'request';
    this.#requests++;
  }

  /**
   * Rewrites `100 Continue` to `102 Processing`. A client must skip interim responses that it did not ask for (RFC 9110
   * 15.2); undici skips all but this one, and ends the connection there.
   */
  received(chunk: Uint8Array): void {
    if (this.#phase === 'request') this.#beginResponse();
    for (let i = 0; i < chunk.length; i++) {
      if (this.#phase === 'status line') this.#readStatus(chunk, i);
      else if (this.#phase === 'interim headers') this.#readHeader(chunk[i] ?? 0);
      else return;
    }
  }

  #beginResponse(): void {
    this.#phase = 'status line';
    this.#at = 0;
  }

  #readStatus(chunk: Uint8Array, i: number): void {
    const digit = this.#at++ - STATUS_AT;
    if (digit < 0) return;
    if (digit === 0 && chunk[i] !== ONE) this.#phase = 'response';
    // The rest of the status line ends like a header: the blank line follows later.
    else if (digit === 1 && chunk[i] !== ZERO) this.#beginHeaders();
    else if (digit === 2) {
      if (chunk[i] === ZERO) chunk[i] = TWO;
      this.#beginHeaders();
    }
  }

  #beginHeaders(): void {
    this.#phase = 'interim headers';
    this.#lineLength = 1;
  }

  #readHeader(byte: number): void {
    if (byte === LF && this.#lineLength === 0) this.#beginResponse();
    else if (byte === LF) this.#lineLength = 0;
    else if (byte !== CR) this.#lineLength++;
  }
}
