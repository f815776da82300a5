import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CanonicalResponse, ProtocolId } from '@sluice/core';
import { CODECS, decodeRequest } from '@sluice/core/engine';
import { ANSWER, errorOf, framesOf } from '../gateway/dialects.ts';

/** What a server does with a trailing assistant message: continue it, ignore it, reject it, or say something else. */
export type Manner = 'continue' | 'repeat' | 'refuse' | 'differ';

/** How a server answers the next requests. */
export interface Plan {
  text: string;
  manner: Manner;
  /** Closes the connection after this many bytes of a response; undefined: never. */
  cutAt?: number | undefined;
  /** How many responses are cut; by default all. */
  cuts?: number;
  /** Stops sending after this many bytes, and leaves the connection open. */
  stallAt?: number | undefined;
  /** The whole answer, where it is not only text. */
  answer?: CanonicalResponse;
}

/** A request that the server got. */
export interface Asked {
  protocol: ProtocolId;
  prefill: string | undefined;
}

/** Serves the four protocols under `/<protocol>`, and continues responses that another server began. */
export class Continuer {
  readonly #server: Server;
  plan: Plan = { text: '', manner: 'continue' };
  asked: Asked[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Continuer> {
    const server = createServer({ noDelay: true });
    const continuer = new Continuer(server);
    server.on('request', (request, response) => void continuer.#serve(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return continuer;
  }

  urlOf(protocol: ProtocolId): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${protocol}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { plan } = this;
    response.on('error', () => undefined);
    const [, protocol] = (request.url ?? '').split('/') as [string, ProtocolId];
    const prefill = await readPrefill(request, protocol);
    this.asked.push({ protocol, prefill });
    if (prefill !== undefined && plan.manner === 'refuse') {
      const error = { code: 'INVALID_INPUT', message: 'prefill is not supported', http_status: 400 } as const;
      response.writeHead(400, { 'content-type': 'application/json' }).end(errorOf(protocol, error).body);
      return;
    }
    const body = Buffer.from(framesOf(protocol, plan.answer ?? answerOf(plan, prefill)).join(''));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const { cutAt, stallAt, cuts = Number.POSITIVE_INFINITY } = plan;
    if (cutAt !== undefined && cutAt < body.length && this.asked.length <= cuts) await cut(response, body.subarray(0, cutAt));
    else if (stallAt !== undefined) response.write(body.subarray(0, stallAt));
    else response.end(body);
  }
}

async function readPrefill(request: IncomingMessage, protocol: ProtocolId): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const path = (request.url ?? '').slice(protocol.length + 1);
  const { messages } = decodeRequest(JSON.parse(Buffer.concat(chunks).toString('utf8')), { from: CODECS[protocol], path });
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return undefined;
  return last.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

function answerOf({ text, manner }: Plan, prefill = ''): CanonicalResponse {
  const isContinued = manner === 'continue' && text.startsWith(prefill);
  const said = manner === 'differ' ? `Well, ${text}` : isContinued ? text.slice(prefill.length) : text;
  return { ...ANSWER, content: said === '' ? [] : [{ type: 'text', text: said }] };
}

/** What was written has to be read before the connection is lost. */
async function cut(response: ServerResponse, body: Buffer): Promise<void> {
  if (body.length > 0) await new Promise((resolve) => response.write(body, resolve));
  else response.flushHeaders();
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  response.socket?.resetAndDestroy();
}
