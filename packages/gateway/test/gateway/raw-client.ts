import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { pace } from '../../../../test/wait.ts';
import { parseReply, type Reply } from './http.ts';

/** A client on a raw socket: it can break off anywhere, send anything, and read as slowly as it likes. */
export class RawClient {
  readonly socket: Socket;
  /** The TCP connection below TLS; without TLS the same as `socket`. */
  readonly #connection: Socket;
  readonly #chunks: Buffer[] = [];
  #isClosed = false;
  /** The peer has closed its side. */
  #hasEnded = false;
  #wake: () => void = () => undefined;

  private constructor(socket: Socket, connection: Socket) {
    this.socket = socket;
    this.#connection = connection;
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#wake();
    });
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#wake();
    });
    socket.on('close', () => {
      this.#isClosed = true;
      this.#wake();
    });
    socket.on('error', () => undefined);
  }

  static async open(url: string): Promise<RawClient> {
    const { hostname, port, protocol } = new URL(url);
    const connection = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    await once(connection, 'connect');
    if (protocol === 'http:') return new RawClient(connection, connection);
    // Whether the certificate is valid is a matter of other tests.
    const socket = connectTls({ socket: connection, rejectUnauthorized: false });
    const client = new RawClient(socket, connection);
    await once(socket, 'secureConnect');
    return client;
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#hasEnded;
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes);
    return this;
  }

  /** Reads nothing from now on, also not below TLS. */
  pause(): void {
    this.socket.pause();
    this.#connection.pause();
  }

  /** Nothing more to send; still reading. */
  halfClose(): this {
    this.socket.end();
    return this;
  }

  /** Closes as programs do: with a FIN. */
  leave(): void {
    this.socket.destroy();
  }

  reset(): void {
    this.#connection.resetAndDestroy();
  }

  /** The answer, when it is whole or when the connection ends. */
  async reply(ms = 60_000): Promise<Reply> {
    await this.#until(() => this.isClosed || (this.#mayBeWhole && parseReply(this.received)?.isWhole === true), ms);
    const reply = parseReply(this.received);
    if (!reply) throw new Error(`no answer: ${JSON.stringify(this.received.toString('latin1').slice(0, 200))}`);
    return reply;
  }

  /** Long answers are not read anew with every piece of them. */
  get #mayBeWhole(): boolean {
    const isLong = this.#chunks.length > 20;
    return !isLong || this.#chunks.at(-1)?.toString('latin1').endsWith('0\r\n\r\n') === true;
  }

  /** Waits until the bytes so far have this in them. */
  async sees(text: string, ms = 60_000): Promise<void> {
    await this.#until(() => this.received.includes(text), ms);
  }

  async closed(ms = 60_000): Promise<void> {
    await this.#until(() => this.isClosed, ms);
  }

  async #until(isTrue: () => boolean, ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    while (!isTrue()) {
      const left = deadline - performance.now();
      if (left <= 0)
        throw new Error(`waited ${ms} ms in vain; received ${JSON.stringify(this.received.toString('latin1').slice(0, 500))}`);
      await Promise.race([new Promise<void>((resolve) => (this.#wake = resolve)), pace(Math.min(left, 250))]);
    }
  }
}

/** A request as text. */
export function requestText(method: string, path: string, headers: Record<string, string> = {}, body = ''): string {
  const all = {
    host: '127.0.0.1',
    ...(body !== '' && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}
