import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { type Clock, REAL_CLOCK, sleep as sleepBy } from '../../src/http/clock.ts';

/** What the upstream does, in order. A script that ends without `fin`, `reset` or `hang` leaves the connection open for the next request. */
type Step =
  | { send: string | Uint8Array }
  /** The bytes one by one, or in pieces of this size, with a turn of the event loop between them. */
  | { split: string | Uint8Array; size?: number }
  /** Over and over, until the peer has had enough. */
  | { forever: string | Uint8Array }
  /** Milliseconds, by the clock that faultd was started with. */
  | { wait: number }
  | { reset: true }
  | { fin: true }
  | { hang: true }
  /** Anything: a look at the request, or a handshake with the test. */
  | { run: (served: Served) => unknown };

export type Script = readonly Step[];

/** What faultd knows of a request that it served: its own account, against which a gateway can be held. */
export interface Served {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  /** Connections are numbered: two requests with one number came over the same. */
  connection: number;
  /** Bytes that the system took from us. */
  sent: number;
  /** The script came to its end. */
  isDone: boolean;
  /** When the peer, or the script, closed the connection. */
  closed: Promise<number>;
  isClosed: boolean;
}

/** A scripted upstream on a raw socket: it can do everything that HTTP servers must not. */
export class Faultd {
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #sockets = new Set<Socket>();
  #scripts: Script[] = [];
  #choose: ((served: Served) => Script) | undefined;
  #connections = 0;
  /** Requests in the order in which they came. */
  served: Served[] = [];
  /** The script begins when the head of a request is there, and its body is never read. */
  readsBodies = true;

  private constructor(server: Server, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
  }

  static async start(clock: Clock = REAL_CLOCK): Promise<Faultd> {
    const server = createServer({ noDelay: true });
    const faultd = new Faultd(server, clock);
    server.on('connection', (socket) => void faultd.#serve(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return faultd;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** How many there have been, whether anything was asked over them or not. */
  get connections(): number {
    return this.#connections;
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  /** One script a request; the last one is for all that follow. What was served before is forgotten. */
  play(...scripts: readonly Script[]): void {
    this.#scripts = [...scripts];
    this.#choose = undefined;
    this.served = [];
    this.readsBodies = true;
  }

  /** A script for each request, chosen when the request has been read. */
  playBy(choose: (served: Served) => Script): void {
    this.play();
    this.#choose = choose;
  }

  /** Closes the connections that are kept, as a server that restarts does. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(socket: Socket): Promise<void> {
    const connection = ++this.#connections;
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    const closed = new Promise<number>((resolve) => socket.once('close', () => resolve(performance.now())));
    void closed.then(() => this.#sockets.delete(socket));
    const requests = new RequestReader(socket);
    for (;;) {
      const request = await requests.next(() => this.readsBodies);
      if (!request) return;
      const served: Served = { ...request, connection, sent: 0, isDone: false, closed, isClosed: false };
      void closed.then(() => (served.isClosed = true));
      this.served.push(served);
      const next = this.#scripts.length > 1 ? this.#scripts.shift() : this.#scripts[0];
      const script = this.#choose?.(served) ?? next;
      await play(script ?? [], socket, served, this.#clock);
      served.isDone = true;
    }
  }
}

async function play(script: Script, socket: Socket, served: Served, clock: Clock): Promise<void> {
  const send = async (bytes: string | Uint8Array): Promise<void> => {
    if (socket.destroyed) return;
    const isTaken = socket.write(bytes, () => (served.sent += bytes.length));
    if (!isTaken) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), served.closed]);
  };
  for (const step of script) {
    if (socket.destroyed) return;
    if ('send' in step) await send(step.send);
    else if ('split' in step) for (const piece of pieces(step.split, step.size ?? 1)) await send(piece).then(nextTurn);
    else if ('forever' in step) while (!socket.destroyed) await send(step.forever).then(() => turn());
    else if ('wait' in step) await sleepBy(clock, step.wait);
    else if ('run' in step) await step.run(served);
    else if ('fin' in step) socket.end();
    else if ('reset' in step) {
      // What was written before has to leave first.
      await passTurns(RESET_TURNS);
      socket.resetAndDestroy();
    } else await served.closed;
  }
}

/** Turns of the event loop in which the peer reads what was written before a reset. */
const RESET_TURNS = 20;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function passTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
}

function* pieces(text: string | Uint8Array, size: number): Iterable<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

type Request = Pick<Served, 'method' | 'path' | 'headers' | 'body'>;

/** Requests out of the bytes of a connection, one after the other. */
class RequestReader {
  readonly #socket: Socket;
  #buffer = Buffer.alloc(0);
  #isClosed = false;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk]);
      this.#wake();
    });
    socket.on('close', () => {
      this.#isClosed = true;
      this.#wake();
    });
  }

  async next(readsBodies: () => boolean): Promise<Request | undefined> {
    const end = await this.#until(() => this.#buffer.indexOf('\r\n\r\n') + 4, 4);
    if (end === undefined) return undefined;
    const [line = '', ...fields] = this.#buffer.subarray(0, end).toString('latin1').trimEnd().split('\r\n');
    const [method = '', path = ''] = line.split(' ');
    const headers = Object.fromEntries(
      fields.map((field): [string, string] => {
        const colon = field.indexOf(':');
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
      }),
    );
    if (!readsBodies()) {
      this.#socket.pause();
      this.#buffer = this.#buffer.subarray(end);
      return { method, path, headers, body: '' };
    }
    const length = Number(headers['content-length'] ?? 0);
    if ((await this.#until(() => this.#buffer.length, end + length)) === undefined) return undefined;
    const body = this.#buffer.subarray(end, end + length).toString('utf8');
    this.#buffer = this.#buffer.subarray(end + length);
    return { method, path, headers, body };
  }

  async #until(measure: () => number, least: number): Promise<number | undefined> {
    while (measure() < least || this.#isClosed) {
      if (this.#isClosed) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return measure();
  }
}
