import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodecError, encodeError, type HeaderBag, type InterfaceType } from '@sluice/core';
import { Conversation, type Result } from '../exchange/conversation.ts';
import { INTERNAL, STOPPED } from '../exchange/failures.ts';
import { answerLane } from '../exchange/lane.ts';
import { endingOf } from '../exchange/outcome.ts';
import { passBytes } from '../exchange/pass-bytes.ts';
import { closed, watchClient } from '../exchange/presence.ts';
import { type Progress, sendReply, writeHead } from '../exchange/reply.ts';
import type { Directory, Services } from '../exchange/services.ts';
import { admit } from './admit.ts';
import { endBeforeRequest } from './linger.ts';
import { answerModelInfo, answerModels } from './models.ts';
import { record } from './record.ts';
import { refusal } from './refusal.ts';
import { parseBody, readBody } from './request-body.ts';
import type { Route } from './route.ts';
import type { Entry } from './streams.ts';

export interface Incoming {
  id: string;
  request: IncomingMessage;
  response: ServerResponse;
  headers: HeaderBag;
  route: Route;
  /** The configuration of this moment: a reload does not touch an exchange that has begun. */
  directory: Directory;
}

/** An exchange under way. */
interface Exchanging extends Incoming {
  /** Aborted when the client turns away. */
  signal: AbortSignal;
  /** Aborted when the gateway has to stop: the client is told. */
  stopped: AbortSignal;
  onStall: Entry['stall'];
}

/** One request of a client, from its headers on. Never rejects: whatever happens, the client is told in its own language. */
export async function handle(incoming: Incoming, services: Services): Promise<void> {
  const { response } = incoming;
  const started = services.now();
  const { stopped, stall, leave } = services.streams.enter(() => response.destroy());
  const signal = watchClient(response);
  services.metrics.active.inc();
  let result: Result;
  try {
    admit(incoming, services);
    result = await answer({ ...incoming, signal, stopped, onStall: stall }, services);
  } catch (error) {
    result = refuse(incoming, signal, error, services);
  }
  await closed(response);
  leave();
  services.metrics.active.dec();
  record(incoming, result, (services.now() - started) / 1000, services);
}

const METHODS = {
  CHAT: ['POST'],
  COUNT_TOKENS: ['POST'],
  EMBEDDINGS: ['POST'],
  RERANK: ['POST'],
  AUDIO: ['POST'],
  IMAGES: ['POST'],
  MODELS: ['GET', 'HEAD'],
  MODEL_INFO: ['GET', 'HEAD'],
  PASSTHROUGH: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
} as const satisfies Record<InterfaceType, readonly string[]>;

async function answer(exchanging: Exchanging, services: Services): Promise<Result> {
  const { route, directory, request, response } = exchanging;
  const methods: readonly string[] = METHODS[route.type];
  if (!methods.includes(request.method ?? '')) {
    response.setHeader('allow', methods.join(', '));
    throw refusal(405, 'UNSUPPORTED_INTERFACE', `${request.method} is not for this path: use ${methods.join(' or ')}`);
  }
  switch (route.type) {
    case 'CHAT':
      return new Conversation(await questionOf(exchanging, services), services).run();
    case 'COUNT_TOKENS':
    case 'EMBEDDINGS':
    case 'RERANK':
      return answerLane(await questionOf(exchanging, services), services);
    case 'MODELS':
      return tell(exchanging, answerModels(route.client, directory), services);
    case 'MODEL_INFO':
      return tell(exchanging, answerModelInfo(route, directory), services);
    case 'AUDIO':
    case 'IMAGES':
    case 'PASSTHROUGH':
      return passBytes({ ...exchanging, body: await bodyOf(exchanging, services) }, services);
    default:
      return route.type satisfies never;
  }
}

async function questionOf(exchanging: Exchanging, services: Services) {
  const { request, route, headers } = exchanging;
  const parsed = parseBody(await bodyOf(exchanging, services), services.limits);
  const wire = { method: request.method ?? 'POST', path: route.path, headers, ...parsed };
  return { ...exchanging, client: route.client, wire, askedAt: services.now() };
}

/** A gateway that has to stop does not wait for the rest of a request. */
function bodyOf({ request, response, stopped }: Exchanging, { limits }: Services): Promise<Buffer> {
  const stop = new Promise<never>((_, reject) => {
    if (stopped.aborted) reject(new CodecError(STOPPED));
    stopped.addEventListener('abort', () => reject(new CodecError(STOPPED)), { once: true });
  });
  return Promise.race([readBody(request, response, limits.requestBytes), stop]);
}

function tell({ response, id }: Incoming, body: unknown, { limits, redact }: Services): Result {
  const progress: Progress = { id, attempts: 0, notes: [] };
  sendReply(response, { status: 200, headers: {}, body }, progress, { stallMs: limits.stallMs, redact });
  return { ...progress, status: 200, ending: 'answered' };
}

/** What went wrong on our side of the exchange. */
function refuse(incoming: Incoming, signal: AbortSignal, cause: unknown, { log, redact }: Services): Result {
  const { id, request, response, route } = incoming;
  const progress: Progress = { id, attempts: 0, notes: [] };
  if (signal.aborted) return { ...progress, status: 499, ending: 'client_aborted' };
  const error = cause instanceof CodecError ? cause.error : INTERNAL;
  if (error === INTERNAL) log.error({ request_id: id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
  const reply = encodeError(error, { to: route.client });
  if (response.headersSent) response.destroy();
  else if (request.complete) response.end(writeHead(response, reply, progress, redact));
  else {
    response.setHeader('connection', 'close');
    endBeforeRequest(request, response, writeHead(response, reply, progress, redact));
  }
  return { ...progress, status: reply.status, ending: endingOf(error), error };
}
