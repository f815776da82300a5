import { createHash } from 'node:crypto';
import {
  type CanonicalRequest,
  type CanonicalResponse,
  type Codec,
  type CodecContext,
  CodecError,
  type InterfaceType,
  type SseFrame,
  type WireRequest,
} from '@sluice/core';
import { buildTokenEstimate, encodeError, findRoute, type Route } from '@sluice/core/engine';
import { buildDemoResponse, embed, rank, readFaults, streamWords } from '@sluice/lab/demo';
import { mutateStream, PLAIN_FRAMING, seededRandom, type WireStream, writeStream } from '@sluice/lab/mutate';
import { type BodySink, play } from '@sluice/lab/replay';
import type { Call, Line, Receiver, Transport } from './dialer.ts';

/**
 * A model that needs no key. It supports all four protocols, with the faults that its name requests (`demo/no-index`).
 * It responds inside this process: without its own port, it cannot be reached past the gateway and its client keys.
 */
export class DemoTransport implements Transport {
  readonly #paceMs: number;

  constructor(paceMs: number = PACE_MS) {
    this.#paceMs = paceMs;
  }

  dial(call: Call, receiver: Receiver): Line {
    const { pathname, search } = new URL(call.url);
    const route = findRoute(pathname + search, call.headers);
    const line = new DemoLine(receiver);
    // Deferred, as on a network, so that the caller has its line by then.
    setImmediate(() => void this.#respond(call, route, line));
    return line;
  }

  /** Never rejects. */
  async #respond({ method, headers, body }: Call, { client, type, path }: Route, line: DemoLine): Promise<void> {
    if (line.isClosed) return;
    try {
      const wire = { method, path, headers, body: JSON.parse(readText(body)) };
      if (type === 'CHAT') await this.#respondChat(client.request.decode(wire, createContext(client)), client, line);
      else await line.json(200, respondSide(type, wire, client));
    } catch (cause) {
      const error =
        cause instanceof CodecError ? cause.error : { code: 'INTERNAL' as const, message: String(cause), http_status: 500 };
      const reply = encodeError(error, { to: client });
      await line.json(reply.status, reply.body);
    }
  }

  async #respondChat(request: CanonicalRequest, client: Codec, line: DemoLine): Promise<void> {
    const faults = readFaults(request.model);
    const response = buildResponse(request);
    const context = createContext(client, request);
    if (!request.stream) {
      await line.json(200, client.response.encode(response, context));
      return;
    }
    const encoder = client.streamEncoder(context);
    const frames: SseFrame[] = [...streamWords(response)].flatMap((event) => [...encoder.push(event)]);
    const clean: WireStream = { protocol: client.id, frames: [...frames, ...encoder.end()], framing: PLAIN_FRAMING };
    const random = seededRandom(1);
    const chunks = writeStream(mutateStream(clean, faults.mutations, random), random);
    line.start(200, { 'content-type': 'text/event-stream' });
    await play(
      line,
      chunks.map((bytes) => ({ waitMs: this.#paceMs, bytes })),
      true,
      faults,
    );
  }
}

/** Pause between two chunks of a stream. */
const PACE_MS = 15;

/** A fixed time, so that responses are reproducible. */
const CREATED = 1_700_000_000;

/** Responses of the side endpoints. */
function respondSide(type: InterfaceType, wire: WireRequest, client: Codec): unknown {
  const context = createContext(client);
  if (type === 'COUNT_TOKENS') return buildTokenEstimate(wire, client);
  if (type === 'EMBEDDINGS' && client.embeddings) {
    const embedding = client.embeddings.request.decode(wire, context);
    return client.embeddings.response.encode(embed(embedding), { ...context, embedding });
  }
  if (type === 'RERANK' && client.rerank) {
    const rerank = client.rerank.request.decode(wire, context);
    return client.rerank.response.encode(rank(rerank), { ...context, rerank });
  }
  throw new CodecError({
    code: 'UNSUPPORTED_INTERFACE',
    message: 'the demo model does not support this endpoint',
    http_status: 404,
  });
}

function buildResponse(request: CanonicalRequest): CanonicalResponse {
  const { content, stop_reason } = buildDemoResponse(request);
  const words = JSON.stringify(content).length >> 2;
  return {
    id: `demo-${nameRequest(request)}`,
    model: request.model,
    created: CREATED,
    content,
    stop_reason,
    usage: { input_tokens: JSON.stringify(request.messages).length >> 2, output_tokens: words },
  };
}

/** The same for equal requests only: clients refer to responses and items by their ids. */
const nameRequest = ({ messages }: CanonicalRequest): string =>
  createHash('sha256').update(JSON.stringify(messages)).digest('hex').slice(0, 16);

/** The demo reports no losses and has a fixed clock. */
const createContext = (client: Codec, request?: CanonicalRequest): CodecContext => ({
  report: () => undefined,
  note: () => undefined,
  now: () => CREATED,
  newId: createIds(request),
  profile: client.profileFor(''),
  policy: {},
  ...(request && { request }),
});

function createIds(request: CanonicalRequest | undefined): (prefix: string) => string {
  let count = 0;
  return (prefix) => (request ? `${prefix}demo_${nameRequest(request)}_${count++}` : `${prefix}demo`);
}

const readText = (body: Call['body'] = ''): string => (typeof body === 'string' ? body : Buffer.from(body).toString());

/** A call that is served inside this process. */
class DemoLine implements Line, BodySink {
  readonly hasLength = false;
  readonly #receiver: Receiver;
  readonly #listeners = new Set<() => void>();
  #state: 'open' | 'paused' | 'closed' = 'open';
  #hasStarted = false;
  /** Continues a write that waits for a paused receiver. */
  #wake: (() => void) | undefined;

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  pause(): void {
    if (this.#state === 'open') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'open';
    this.#wake?.();
  }

  hangUp(): void {
    if (this.isClosed) return;
    this.#state = 'closed';
    this.#wake?.();
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  onClose(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  start(status: number, headers: Record<string, string>): void {
    this.#hasStarted = true;
    if (!this.isClosed) this.#receiver.start(status, headers);
  }

  async json(status: number, body: unknown): Promise<void> {
    // The response has begun, so an error can only truncate it.
    if (this.#hasStarted) {
      await this.breakOff('close');
      return;
    }
    this.start(status, { 'content-type': 'application/json' });
    await this.write(Buffer.from(JSON.stringify(body)));
    await this.end();
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#untilOpen();
    if (!this.isClosed && bytes.length > 0) this.#receiver.data(bytes);
    // Lets other requests run between two chunks.
    await new Promise((resolve) => setImmediate(resolve));
  }

  async end(): Promise<void> {
    await this.#untilOpen();
    if (this.isClosed) return;
    this.hangUp();
    this.#receiver.end();
  }

  async breakOff(how: 'close' | 'reset'): Promise<void> {
    if (this.isClosed) return;
    this.hangUp();
    const code = how === 'reset' ? 'ECONNRESET' : 'UND_ERR_SOCKET';
    this.#receiver.fail(Object.assign(new Error('the demo model closed the connection'), { code }));
  }

  async #untilOpen(): Promise<void> {
    if (this.#state === 'paused') await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
