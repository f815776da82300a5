import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { findRoute } from '@sluice/core/engine';
import { FaultError, type Faults, NO_FAULTS, parseFaults, splitModel } from '@sluice/lab/replay';
import { DemoTransport } from '../../../packages/gateway/src/upstream/demo.ts';
import type { Call, Receiver } from '../../../packages/gateway/src/upstream/dialer.ts';
import { errorOf } from '../../../packages/gateway/test/gateway/dialects.ts';

/** The demo model as a server, for clients and gateways alike. The name of the model says what is wrong with its responses. */
export class DemoServer {
  readonly #demo = new DemoTransport(0);
  readonly #server: Server = createServer((request, response) => void this.#serve(request, response));
  readonly #served = new Map<string, number>();
  #gate: Promise<unknown> = Promise.resolve();

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.address() as AddressInfo; // a TCP server has one
    return `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Begins a request of a client: faults with `times` count from here, and the last piece of a stream waits for the gate. */
  expect(gate: Promise<unknown>): void {
    this.#served.clear();
    this.#gate = gate;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const url = request.url ?? '/';
    const { client } = findRoute(url, {});
    const { fault = '', model } = splitModel(readModel(url, body));
    const faults = this.#faultsOf(fault);
    if (faults.page !== undefined) {
      response.writeHead(faults.page, { 'content-type': 'text/html' }).end(PAGE);
      return;
    }
    if (faults.status !== undefined) {
      const error = errorOf(client.id, { code: codeOf(faults.status), message: 'the demo fails', http_status: faults.status });
      response.writeHead(faults.status, { 'content-type': 'application/json' }).end(error.body);
      return;
    }
    // Those that the demo model does not support were handled here.
    const isHandled = HANDLED.test(fault);
    const asked = isHandled ? replaceModel({ url, body }, `${model}!${fault}`, model) : { url, body };
    const call: Call = {
      url: `http://demo.invalid${asked.url}`,
      origin: 'http://demo.invalid',
      method: request.method ?? 'POST',
      headers: { 'content-type': 'application/json' },
      body: asked.body,
      connectMs: 1000,
      repeat: 'never',
    };
    const line = this.#demo.dial(call, new HeldReceiver(response, this.#gate));
    response.on('close', () => line.hangUp());
  }

  #faultsOf(text: string): Faults {
    const faults = parseOrNone(text);
    const count = (this.#served.get(text) ?? 0) + 1;
    this.#served.set(text, count);
    return count > (faults.times ?? Number.POSITIVE_INFINITY) ? NO_FAULTS : faults;
  }
}

const HANDLED = /^(?:status|page)=/;
const PAGE = '<html><body><h1>Bad Gateway</h1></body></html>\n';

/** What the demo model is to reject itself. */
function parseOrNone(text: string): Faults {
  try {
    return parseFaults(text);
  } catch (cause) {
    if (cause instanceof FaultError) return NO_FAULTS;
    throw cause;
  }
}

function readModel(url: string, body: string): string {
  const [, inPath] = /\/models\/(.+):\w+(?:\?|$)/.exec(url) ?? [];
  if (inPath !== undefined) return decodeURIComponent(inPath);
  const { model } = (body === '' ? {} : JSON.parse(body)) as { model?: unknown };
  return typeof model === 'string' ? model : '';
}

const replaceModel = ({ url, body }: { url: string; body: string }, from: string, to: string) => ({
  url: decodeURIComponent(url).replace(from, to),
  body: body.replace(JSON.stringify(from), JSON.stringify(to)),
});

const CODES = { 400: 'INVALID_INPUT', 401: 'AUTHENTICATION', 429: 'RATE_LIMIT', 503: 'OVERLOADED' } as const;
const codeOf = (status: number) => Object.entries(CODES).find(([known]) => Number(known) === status)?.[1] ?? 'INTERNAL';

/** Holds each piece until the next one is there, and the last one until the gate is open. */
class HeldReceiver implements Receiver {
  readonly #response: ServerResponse;
  readonly #gate: Promise<unknown>;
  #held: Uint8Array | undefined;
  #isStream = false;

  constructor(response: ServerResponse, gate: Promise<unknown>) {
    this.#response = response;
    this.#gate = gate;
  }

  start(status: number, headers: Record<string, string>): void {
    this.#isStream = headers['content-type'] === 'text/event-stream';
    this.#response.writeHead(status, headers);
    if (this.#isStream) this.#response.flushHeaders();
  }

  data(chunk: Uint8Array): void {
    if (this.#held) this.#response.write(this.#held);
    this.#held = chunk;
  }

  end(): void {
    void this.#last(() => this.#response.end());
  }

  fail(): void {
    // Closed, not reset: a reset can overtake the bytes before it.
    void this.#last(() => this.#response.destroy());
  }

  async #last(done: () => void): Promise<void> {
    if (this.#isStream) await this.#gate;
    if (this.#held && !this.#response.destroyed) this.#response.write(this.#held, done);
    else done();
  }
}
