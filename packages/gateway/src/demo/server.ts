import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CanonicalRequest,
  type CanonicalResponse,
  type CodecContext,
  CodecError,
  encodeError,
  estimateAnswer,
  type InterfaceType,
  type ProtocolCodec,
  routeOf,
  type SseFrame,
  type WireRequest,
} from '@sluice/core';
import { spoken } from '../mutate/by-name.ts';
import { PLAIN_FRAMING, seededRandom, type WireStream, writeStream } from '../mutate/index.ts';
import { parseBody, readBody } from '../server/request-body.ts';
import { play } from '../tape/play.ts';
import { answerOf } from './brain.ts';
import { faultsOf } from './misbehave.ts';
import { inPieces } from './pieces.ts';
import { embed, rank } from './vectors.ts';

const MOST_BYTES = 32 * 1024 * 1024;
/** The gateway has looked at it before. */
const DEMO_LIMITS = { requestDepth: 256, messages: 1_000_000 };
const PACE_MS = 15;
const CREATED = 1_700_000_000;

/** A model that needs no key: it speaks all four protocols, and speaks them badly when its name says so (`demo/no-index`). */
export class DemoUpstream {
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));
  readonly #paceMs: number;

  constructor(paceMs: number = PACE_MS) {
    this.#paceMs = paceMs;
  }

  /** Listens on the loopback, on a port of the system's choice. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`; // a TCP server has one
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const { client, type, path } = routeOf(request.url ?? '/', headers);
    try {
      const { body } = parseBody(await readBody(request, response, MOST_BYTES), DEMO_LIMITS);
      const wire = { method: 'POST', path, headers, body };
      if (type === 'CHAT') await this.#tell(client.request.decode(wire, contextOf(client)), client, response);
      else sendJson(response, 200, answerBeside(type, wire, client));
    } catch (cause) {
      const error =
        cause instanceof CodecError ? cause.error : { code: 'INTERNAL' as const, message: String(cause), http_status: 500 };
      const { status, body } = encodeError(error, { to: client });
      if (!response.headersSent) sendJson(response, status, body);
      else response.destroy();
    }
  }

  async #tell(question: CanonicalRequest, client: ProtocolCodec, response: ServerResponse): Promise<void> {
    const faults = faultsOf(question.model);
    const answer = wholeAnswer(question);
    const context = contextOf(client, question);
    if (!question.stream) {
      sendJson(response, 200, client.response.encode(answer, context));
      return;
    }
    const encoder = client.streamEncoder(context);
    const frames: SseFrame[] = [...inPieces(answer)].flatMap((event) => [...encoder.push(event)]);
    const clean: WireStream = { protocol: client.id, frames: [...frames, ...encoder.end()], framing: PLAIN_FRAMING };
    const random = seededRandom(1);
    const chunks = writeStream(spoken(clean, faults.mutations, random), random);
    response.setHeader('content-type', 'text/event-stream');
    await play(
      response,
      chunks.map((bytes) => ({ waitMs: this.#paceMs, bytes })),
      true,
      faults,
    );
  }
}

/** What is asked beside conversations. */
function answerBeside(type: InterfaceType, wire: WireRequest, client: ProtocolCodec): unknown {
  const context = contextOf(client);
  if (type === 'COUNT_TOKENS') return estimateAnswer(wire, client);
  if (type === 'EMBEDDINGS' && client.embeddings) {
    const embedding = client.embeddings.request.decode(wire, context);
    return client.embeddings.response.encode(embed(embedding), { ...context, embedding });
  }
  if (type === 'RERANK' && client.rerank) {
    const rerank = client.rerank.request.decode(wire, context);
    return client.rerank.response.encode(rank(rerank), { ...context, rerank });
  }
  throw new CodecError({ code: 'UNSUPPORTED_INTERFACE', message: 'the demo model does not do that', http_status: 404 });
}

const sendJson = (response: ServerResponse, status: number, body: unknown): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

function wholeAnswer(question: CanonicalRequest): CanonicalResponse {
  const { content, stop_reason } = answerOf(question);
  const words = JSON.stringify(content).length >> 2;
  return {
    id: `demo-${question.messages.length}`,
    model: question.model,
    created: CREATED,
    content,
    stop_reason,
    usage: { input_tokens: JSON.stringify(question.messages).length >> 2, output_tokens: words },
  };
}

/** The demo has neither losses to tell nor a clock. */
const contextOf = (client: ProtocolCodec, request?: CanonicalRequest): CodecContext => ({
  report: () => undefined,
  note: () => undefined,
  now: () => CREATED,
  newId: (prefix) => `${prefix}demo`,
  profile: client.profileFor(''),
  policy: {},
  ...(request && { request }),
});
