/** Handles one request: admission, routing to its endpoint, errors, and the record of its result. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodecError, type HeaderBag, type InterfaceType, type Note } from '@sluice/core';
import { encodeError, type Route } from '@sluice/core/engine';
import type { ClientConnection } from '../exchange/client-connection.ts';
import { Conversation, type ModelRequest, type Result } from '../exchange/conversation.ts';
import { checkPassable, findDestination } from '../exchange/destination.ts';
import { passBytes } from '../exchange/pass-bytes.ts';
import { type Progress, sendReply, writeHead } from '../exchange/reply.ts';
import { endBeforeRequest, parseRequest, readBody } from '../exchange/request-body.ts';
import { type Directory, findEnding, INTERNAL, type Services } from '../exchange/types.ts';
import { refusal } from '../http/refusal.ts';
import { REQUEST_MESSAGE } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { admit } from './admit.ts';
import { describeModel, listModels } from './models.ts';

/** Handles one request from its headers on. Never rejects: every failure is sent to the client in its own protocol. */
export async function handle(incoming: Incoming, services: Services): Promise<void> {
  const { connection } = incoming;
  const { streams } = services;
  const started = services.now();
  streams.enter(connection);
  let result: Result;
  try {
    admit(incoming, services);
    result = await respond(incoming, services);
  } catch (error) {
    result = refuse(incoming, error, services);
  }
  await connection.closed();
  streams.leave(connection);
  record(incoming, result, (services.now() - started) / 1000, services);
}

/** A request and everything known about it before its body is read. */
export interface Incoming {
  id: string;
  request: IncomingMessage;
  response: ServerResponse;
  connection: ClientConnection;
  headers: HeaderBag;
  route: Route;
  /** The configuration at the start of the request; a reload does not change it. */
  directory: Directory;
}

async function respond(incoming: Incoming, services: Services): Promise<Result> {
  const { route, directory, request, response } = incoming;
  checkUpgrade(incoming);
  const methods: readonly string[] = METHODS[route.type];
  if (!methods.includes(request.method ?? '')) {
    response.setHeader('allow', methods.join(', '));
    throw refusal(
      405,
      'UNSUPPORTED_INTERFACE',
      `method ${request.method} is not allowed for this path; use ${methods.join(' or ')}`,
    );
  }
  switch (route.type) {
    case 'CHAT':
      return new Conversation(await readModelRequest('chat', incoming, services), services).run();
    case 'COUNT_TOKENS':
    case 'EMBEDDINGS':
    case 'RERANK':
      return new Conversation(await readModelRequest('side', incoming, services), services).run();
    case 'MODELS':
      return sendJson(incoming, await listModels(route.client, directory, services), services);
    case 'MODEL_INFO':
      return sendJson(incoming, describeModel(route, directory), services);
    case 'AUDIO':
    case 'IMAGES':
    case 'PASSTHROUGH':
      return pass(incoming, services);
    default:
      return route.type satisfies never;
  }
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

/**
 * Codex tries WebSocket seven times before it uses HTTP, but only once after a 426. Other upgrades are ignored (RFC
 * 9110 7.8).
 */
function checkUpgrade({ request, response, route }: Incoming): void {
  const isWebSocket = request.method === 'GET' && /(?:^|[,\s])websocket(?:$|[,\s])/i.test(request.headers.upgrade ?? '');
  if (!isWebSocket || route.type !== 'CHAT' || route.client.id !== 'openai-responses') return;
  // A 426 names the protocol to use, and that field needs its connection option (RFC 9110 15.5.22).
  response.setHeader('upgrade', 'HTTP/1.1');
  response.setHeader('connection', 'close, upgrade');
  throw refusal(426, 'UNSUPPORTED_INTERFACE', 'WebSocket is not supported; send POST requests over HTTP');
}

async function readModelRequest(kind: ModelRequest['kind'], incoming: Incoming, services: Services): Promise<ModelRequest> {
  const { id, request, connection, route, headers, directory } = incoming;
  const { text, body } = parseRequest(await readBody(incoming, services.limits), services.limits);
  const wire = { method: request.method ?? 'POST', path: route.path, headers, body, text };
  return { kind, id, client: route.client, wire, connection, directory, receivedAt: services.now() };
}

/** Reads the body only when the endpoint is allowed; the body may name the model and so determine the provider. */
async function pass(incoming: Incoming, services: Services): Promise<Result> {
  const { request, headers, route, directory } = incoming;
  const passed = { method: request.method ?? 'GET', route, directory };
  checkPassable(passed);
  const bytes = await readBody(incoming, services.limits);
  return passBytes(incoming, findDestination(passed, { bytes, type: headers['content-type'] ?? '' }), services);
}

function sendJson({ response, id }: Incoming, body: unknown, { limits, redact }: Services): Result {
  const progress: Progress = { id, attempts: 0, notes: [] };
  sendReply(response, { status: 200, headers: {}, body }, progress, { stallMs: limits.stallMs, redact });
  return { ...progress, status: 200, ending: 'answered' };
}

/** Sends an error that the gateway itself found. */
function refuse(incoming: Incoming, cause: unknown, { limits, log, redact }: Services): Result {
  const { id, request, response, connection, route } = incoming;
  const progress: Progress = { id, attempts: 0, notes: [] };
  if (connection.isGone) return { ...progress, status: 499, ending: 'client_aborted' };
  const error = cause instanceof CodecError ? cause.error : INTERNAL;
  if (error === INTERNAL) log.error({ request_id: id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
  const reply = encodeError(error, { to: route.client });
  if (response.headersSent) response.destroy();
  else if (request.complete) sendReply(response, reply, progress, { stallMs: limits.stallMs, redact });
  else {
    response.setHeader('connection', 'close');
    endBeforeRequest(response, writeHead(response, reply, progress, redact), connection.clock);
  }
  return { ...progress, status: reply.status, ending: findEnding(error), error };
}

/** Records a finished exchange in the metrics and the log. */
function record(incoming: Incoming, result: Result, seconds: number, { log, metrics }: Services): void {
  countResult(incoming, result, seconds, metrics);
  const level = chooseLevel(result);
  if (log.isLevelEnabled(level)) log[level](buildLogFields(incoming, result, seconds), REQUEST_MESSAGE);
}

/** A stream that fails after its head has status 200 and an error. */
const chooseLevel = ({ status, error }: Result): 'error' | 'warn' | 'info' =>
  status >= 500 ? 'error' : status >= 400 || error ? 'warn' : 'info';

function countResult({ route }: Incoming, result: Result, seconds: number, metrics: Metrics): void {
  const { status, provider = '', model = '', upstream = '', notes, usage } = result;
  const series = result.series ?? metrics.of({ provider, model, client_protocol: route.client.id, upstream_protocol: upstream });
  series.answered(status, seconds);
  for (const { code } of notes) series.noted(code);
  if (usage) {
    series.tokens('input', usage.input_tokens);
    series.tokens('output', usage.output_tokens);
  }
}

function buildLogFields({ id, request, route }: Incoming, result: Result, seconds: number): object {
  const { status, ending, error, provider, requested, model, upstream, attempts, notes, tried = [], usage, cost } = result;
  return {
    request_id: id,
    method: request.method,
    // Without the query, which may contain a key.
    path: route.path.split('?', 1)[0],
    status,
    ending,
    ...(requested && { requested }),
    ...(provider && { client_protocol: route.client.id, upstream_protocol: upstream, provider, model, attempts }),
    ...(tried.length > 0 && { tried }),
    ...(notes.length > 0 && { notes: notes.length, changes: notes.slice(0, MAX_CHANGES).map(buildChange) }),
    ...(usage && { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }),
    ...(cost && { cost_usd: cost.micros / 1e6, price_version: cost.version }),
    ...(error && { error: error.code, reason: error.message }),
    ms: Math.round(seconds * 1000),
  };
}

/** A loss in every message makes many notes; the first ones are enough to find the cause. */
const MAX_CHANGES = 20;

const MAX_CHANGE_CHARS = 120;

/** What was changed, and where. Without messages, which may quote the request. */
const buildChange = ({ code, path, feature }: Note): object => ({
  code,
  path: path.slice(0, MAX_CHANGE_CHARS),
  feature: feature.slice(0, MAX_CHANGE_CHARS),
});
