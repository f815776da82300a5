/** Handles one request: admission, routing to its endpoint, errors, and the record of its result. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodecError, type HeaderBag, type InterfaceType, type Note } from '@sluice/core';
import { encodeError, type Route, readRequestTarget } from '@sluice/core/engine';
import { type ConsoleRequest, EXCHANGE_HEADER } from '../admin/send.ts';
import type { Admission } from '../admission/gate.ts';
import { LimitRefusal } from '../admission/refusals.ts';
import type { ClientConnection } from '../exchange/client-connection.ts';
import { Conversation, findRule } from '../exchange/conversation.ts';
import { checkPassable, findDestination, findModelUse } from '../exchange/destination.ts';
import { respondOnce } from '../exchange/idempotency.ts';
import type { CachedOnly, ModelRequest, Result } from '../exchange/model-request.ts';
import { checkRepeats } from '../exchange/object-fields.ts';
import type { ExchangeObserver, ExchangeObservers, ObservedRequest } from '../exchange/observer.ts';
import { passBytes } from '../exchange/pass-bytes.ts';
import { ExchangeRecord, findSession, type HeaderFacts } from '../exchange/record.ts';
import { type Progress, sendReply, writeHead } from '../exchange/reply.ts';
import { endBeforeRequest, parseRequest, quoteExcerpt, readBody } from '../exchange/request-body.ts';
import type { Lane, Served } from '../exchange/state.ts';
import { type Directory, findEnding, INTERNAL, type Services } from '../exchange/types.ts';
import type { ClientAddress } from '../http/client-address.ts';
import { readAllow, refusal, refuseMethod } from '../http/refusal.ts';
import { isWebSocketOffer } from '../http/upgrade.ts';
import { ANYBODY, type Caller } from '../keys/caller.ts';
import { checkModelScope, checkModelScopes, checkModelsNamed, checkOtherModels } from '../keys/scope.ts';
import { REQUEST_MESSAGE } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { isRecord } from '../routing/prompt-blocks.ts';
import { admit } from './admit.ts';
import { admitModelRequest, admitPassed, admitRepeated, readTags } from './gate.ts';
import { describeModel, listModels, listTargets } from './models.ts';

/** Handles one request from its headers on. Never rejects: every failure is sent to the client in its own protocol. */
export async function handle(incoming: Incoming, services: Services): Promise<void> {
  const { connection } = incoming;
  const { streams } = services;
  const started = services.now();
  const { tracer } = services;
  tracer?.receive(incoming.id, {
    method: incoming.request.method ?? 'GET',
    path: incoming.route.path,
    headers: incoming.headers,
  });
  let record: ExchangeRecord | undefined;
  let result: Result;
  try {
    const caller = admit(incoming, services);
    // What is refused takes no place from others, however long its client reads.
    streams.enter(connection);
    incoming.caller = caller;
    connection.keyId = caller.id;
    if (RECORDED[incoming.route.type]) checkLedger(services);
    record = new ExchangeRecord(RECORDED[incoming.route.type] ? services.keeping : undefined);
    if (incoming.console) incoming.response.setHeader(EXCHANGE_HEADER, record.id);
    result = await respond(incoming, record, services);
  } catch (error) {
    result = refuse(incoming, error, services);
  }
  await connection.closed();
  streams.leave(connection);
  incoming.observer?.ended(result);
  // A background run settles its record and gives back what it holds at the gate when it ends.
  if (record && !result.isDetached) {
    settleRecord(record, incoming, result);
    record.endAdmission(services.gate);
  }
  tracer?.forget(incoming.id);
  report(incoming, result, (services.now() - started) / 1000, services);
}

/** A request and everything known about it before its body is read. */
export interface Incoming {
  id: string;
  request: IncomingMessage;
  response: ServerResponse;
  connection: ClientConnection;
  headers: HeaderBag;
  client: ClientAddress;
  route: Route;
  /** The configuration at the start of the request; a reload does not change it. */
  directory: Directory;
  /** Who sends the request; undefined before it is admitted. */
  caller?: Caller;
  /** The lane of a WebSocket connection that the request came over; undefined for HTTP. */
  lane?: Lane;
  /** Set for a request of the console: the operator chose the key, and perhaps the body of a captured request. */
  console?: Pick<ConsoleRequest, 'caller' | 'body'>;
  /** Set when the request has been read and the exchange is captured. */
  observer?: ExchangeObserver | undefined;
}

/** Routes whose exchanges are recorded: those that can reach an upstream on behalf of a client. */
const RECORDED = {
  CHAT: true,
  COUNT_TOKENS: true,
  EMBEDDINGS: true,
  RERANK: true,
  AUDIO: true,
  IMAGES: true,
  PASSTHROUGH: true,
  MODELS: false,
  MODEL_INFO: false,
} as const satisfies Record<InterfaceType, boolean>;

/** Nothing is sent to an upstream that could not be recorded. */
function checkLedger({ keeping, metrics }: Services): void {
  if (keeping?.ledger.accepting ?? true) return;
  metrics.shed.inc();
  throw refusal(503, 'OVERLOADED', 'usage cannot be recorded at the moment; retry later', 1000);
}

/** Settles what is not settled yet: requests that failed before they reached an upstream, or whose client has left. */
function settleRecord(record: ExchangeRecord, incoming: Incoming, { status, ending, error, notes }: Result): void {
  // An attempt that is still open was ended by a bug of the gateway.
  record.endAttempt({ ending, error, possiblyBilled: true });
  if (!record.isKept) return;
  record.open(describeRequest(incoming));
  void record.settle({ status, ending, error, notes });
}

/** What the ledger knows of a request by its headers. */
const describeRequest = ({ id, route, headers, caller }: Incoming): HeaderFacts => ({
  request_id: id,
  key_id: caller?.id || null,
  key_name: caller?.name || null,
  client_protocol: route.client.id,
  user_agent: headers['user-agent'],
  endpoint: route.type.toLowerCase(),
  tags: readTags(headers, caller),
});

async function respond(incoming: Incoming, record: ExchangeRecord, services: Services): Promise<Result> {
  const { route, directory, request } = incoming;
  checkUpgrade(incoming);
  const methods: readonly string[] = METHODS[route.type];
  if (!methods.includes(request.method ?? '')) {
    const endpoint = `${request.method} ${route.path.split('?', 1)[0]?.slice(0, MAX_PATH)}`;
    throw refuseMethod(endpoint, methods, isResponsesRoute(route) ? ', or upgrade to WebSocket' : '');
  }
  switch (route.type) {
    case 'CHAT':
      return converse('chat', incoming, record, services);
    case 'COUNT_TOKENS':
    case 'EMBEDDINGS':
    case 'RERANK':
      return converse('side', incoming, record, services);
    case 'MODELS':
      return sendJson(incoming, await listModels(route.client, directory, services, incoming.caller), services);
    case 'MODEL_INFO':
      return sendJson(incoming, describeModel(route, directory, incoming.caller), services);
    case 'AUDIO':
    case 'IMAGES':
    case 'PASSTHROUGH':
      return pass(incoming, record, services);
    default:
      return route.type satisfies never;
  }
}

/** Longest path in a message. */
const MAX_PATH = 200;

/** The methods of each interface. */
export const METHODS = {
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

/** Whether a route is one where clients may use WebSocket. */
export const isResponsesRoute = ({ type, client }: Route): boolean => type === 'CHAT' && client.id === 'openai-responses';

/**
 * Refuses WebSocket where it is off. Codex tries it seven times before it uses HTTP, but only once after a 426. Other
 * upgrades are ignored (RFC 9110 7.8).
 */
function checkUpgrade({ request, response, route }: Incoming): void {
  if (!isWebSocketOffer(request) || !isResponsesRoute(route)) return;
  // A 426 names the protocol to use, and that field needs its connection option (RFC 9110 15.5.22).
  response.setHeader('upgrade', 'HTTP/1.1');
  response.setHeader('connection', 'close, upgrade');
  throw refusal(426, 'UNSUPPORTED_INTERFACE', 'WebSocket is off (responses.websocket); send POST requests over HTTP');
}

async function converse(
  kind: ModelRequest['kind'],
  incoming: Incoming,
  record: ExchangeRecord,
  services: Services,
): Promise<Result> {
  const body = incoming.console?.body ?? (await readBody(incoming, services));
  const describe = (): HeaderFacts => describeRequest(incoming);
  const run = async (): Promise<Result> =>
    runModelRequest(await readModelRequest(kind, incoming, body, record, services), incoming, services);
  return respondOnce(incoming, { readBody: async () => body, record, describe, run }, services);
}

async function readModelRequest(
  kind: ModelRequest['kind'],
  incoming: Incoming,
  bytes: Buffer,
  record: ExchangeRecord,
  services: Services,
): Promise<ModelRequest> {
  const { id, request, connection, route, headers, directory, caller, lane } = incoming;
  const { text, body } = parseRequest(bytes, services.limits);
  const wire = { method: request.method ?? 'POST', path: route.path, headers, body, text };
  const target = readRequestTarget(route.client, wire);
  checkOnce(incoming, text, body);
  checkModelScope(incoming.caller ?? ANYBODY, target.model, createTargetFinder(incoming));
  checkOtherModels(incoming.caller ?? ANYBODY, body, createTargetFinder(incoming));
  const session = findSession(headers, body);
  // Again: reading the body may have taken long.
  checkLedger(services);
  if (record.isKept)
    record.open(describeRequest(incoming), { model_requested: target.model, is_stream: target.isStream, session_id: session });
  const { client } = route;
  const rule = kind === 'chat' ? findRule({ client, wire, target, caller, directory }) : undefined;
  // What the request may cost depends on the model that it is sent to.
  const model = rule?.use ?? target.model;
  const history = isResponsesRoute(route) ? services.responses?.measure(body, caller ?? ANYBODY, lane) : undefined;
  const read: ModelRequest = {
    kind,
    id,
    client,
    wire,
    target,
    session,
    rule,
    connection,
    record,
    admission: undefined,
    observer: undefined,
    directory,
    caller,
    receivedAt: 0,
    lane,
  };
  try {
    const measured = { model, body, text, bytes: bytes.length, history: history ?? 0 };
    const gated = admitModelRequest(incoming, record, measured, services);
    read.admission = gated instanceof Promise ? await gated : gated;
  } catch (refused) {
    read.cached = findFree(read, refused, services);
    read.admission = await admitRepeated(incoming, record, services);
  }
  record.admission = read.admission;
  const { observers } = services;
  if (observers) incoming.observer = beginCapture(incoming, record, target, text, observers);
  read.observer = incoming.observer;
  read.receivedAt = services.now();
  return read;
}

/** What clients may use and spend is checked in the parsed body. Its text is sent, so that must not have fields that were not checked. */
function checkOnce({ directory: { gatekeeper, budgets } }: Incoming, text: string | undefined, body: unknown): void {
  if (text !== undefined && (!gatekeeper.isOpen || budgets.length > 0)) checkRepeats(text, body);
}

/** The cached response to a request that a budget refused: it costs nothing. Throws the refusal when there is none. */
function findFree(request: ModelRequest, refused: unknown, { cache }: Services): CachedOnly {
  const isAboutMoney = refused instanceof LimitRefusal && MONEY_LIMITS.has(refused.limit);
  if (!isAboutMoney || request.kind !== 'chat' || !cache) throw refused;
  const { rule, target, directory, client, wire } = request;
  // A background run is not repeated.
  if (isRecord(wire.body) && wire.body['background'] === true) throw refused;
  const caching = cache.begin(request, directory.resolve(rule?.use ?? target.model, client.id));
  if (!caching?.hit) throw refused;
  return { caching, refusal: refused };
}

/** Limits of what a request may cost. */
const MONEY_LIMITS: ReadonlySet<string> = new Set(['budget', 'reserved', 'price']);

/** Runs a request, with the state that it refers to where responses are kept. */
async function runModelRequest(
  request: ModelRequest,
  { caller = ANYBODY, route }: Incoming,
  services: Services,
): Promise<Result> {
  const { responses } = services;
  responses?.check(request, route.type, caller);
  return request.kind === 'chat' && responses
    ? responses.run(request, caller, services)
    : new Conversation(request, services).run();
}

/** Finds what a model name stands for. */
const createTargetFinder =
  ({ directory, route }: Pick<Incoming, 'directory' | 'route'>) =>
  (model: string): readonly string[] =>
    listTargets(directory, route.client.id, model);

/** Begins to capture the exchange; undefined when it is not to be captured. */
function beginCapture(
  { id: requestId, request, route, headers, directory, caller }: Incoming,
  { id }: ExchangeRecord,
  { model, isStream }: Pick<ObservedRequest, 'model' | 'isStream'>,
  body: ObservedRequest['body'],
  observers: ExchangeObservers,
): ExchangeObserver | undefined {
  const { type: endpoint, client, path } = route;
  const isOpen = directory.gatekeeper.isOpen;
  const method = request.method ?? 'POST';
  const key = caller?.name;
  return observers.begin({ id, requestId, endpoint, client, model, isStream, method, path, headers, body, isOpen, key });
}

/** Reads the body only when the endpoint is allowed; the body may name the model and so determine the provider. */
async function pass(incoming: Incoming, record: ExchangeRecord, services: Services): Promise<Result> {
  let body: Promise<Buffer> | undefined;
  const readOnce = (): Promise<Buffer> => (body ??= readBody(incoming, services));
  const describe = (): HeaderFacts => describeRequest(incoming);
  const run = (): Promise<Result> => serveOrForward(incoming, readOnce, record, services);
  return respondOnce(incoming, { readBody: readOnce, record, describe, run }, services);
}

async function serveOrForward(
  incoming: Incoming,
  readOnce: () => Promise<Buffer>,
  record: ExchangeRecord,
  services: Services,
): Promise<Result> {
  const { request, route, directory, caller = ANYBODY } = incoming;
  const admitModel = async (model: string, body: unknown, bytes: number): Promise<Admission | undefined> => {
    checkModelScope(caller, model, createTargetFinder(incoming));
    checkLedger(services);
    if (record.isKept) record.open(describeRequest(incoming), { model_requested: model });
    record.admission = await admitModelRequest(incoming, record, { model, body, bytes, history: 0 }, services);
    return record.admission;
  };
  const served = await services.responses?.serve({ ...incoming, record, caller, readBody: readOnce, admitModel }, services);
  if (served?.is === 'served') return served.result;
  const passed = { method: request.method ?? 'GET', route, directory, keeper: served?.provider };
  checkPassable(passed);
  return forward(incoming, passed, { bytes: await readOnce(), served }, record, services);
}

async function forward(
  incoming: Incoming,
  passed: Parameters<typeof checkPassable>[0],
  { bytes, served }: { bytes: Buffer; served: Exclude<Served, { is: 'served' }> | undefined },
  record: ExchangeRecord,
  services: Services,
): Promise<Result> {
  const { headers, route } = incoming;
  const type = headers['content-type'] ?? '';
  const destination = findDestination(passed, { bytes, type });
  const query = new URL(route.path, 'http://localhost').searchParams;
  served?.checkContent?.({ bytes, type, query }, destination.endpoint);
  const { caller = ANYBODY } = incoming;
  checkOnce(incoming, destination.text, destination.fields);
  checkModelScopes(caller, destination.names, createTargetFinder(incoming));
  checkModelsNamed(
    caller,
    `${passed.method} ${route.path.split('?', 1)[0]?.slice(0, MAX_PATH)}`,
    findModelUse(passed, destination),
  );
  checkOtherModels(caller, destination.fields, createTargetFinder(incoming));
  checkLedger(services);
  if (record.isKept) record.open(describeRequest(incoming), { model_requested: destination.model });
  const gated = admitPassed(incoming, record, { passed, destination }, services);
  const admission = gated instanceof Promise ? await gated : gated;
  record.admission = admission;
  const { observers } = services;
  if (observers)
    incoming.observer = beginCapture(incoming, record, { model: destination.model, isStream: false }, bytes, observers);
  return passBytes({ ...incoming, record, admission, onReply: served?.onReply }, destination, services);
}

function sendJson({ response, id }: Incoming, body: unknown, { limits, redact }: Services): Result {
  const progress: Progress = { id, attempts: 0, notes: [] };
  sendReply(response, { status: 200, headers: {}, body }, progress, { stallMs: limits.stallMs, redact });
  return { ...progress, status: 200, ending: 'answered' };
}

/** Sends an error that the gateway itself found. */
function refuse(incoming: Incoming, cause: unknown, { limits, log, redact }: Services): Result {
  const { id, request, response, connection, route, observer } = incoming;
  const progress: Progress = { id, attempts: 0, notes: [] };
  if (connection.isGone) return { ...progress, status: 499, ending: 'client_aborted' };
  const error = cause instanceof CodecError ? cause.error : INTERNAL;
  if (cause instanceof LimitRefusal) progress.limits = cause.headers;
  if (error === INTERNAL) log.error({ request_id: id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
  const reply = encodeError(quoteExcerpt(error), { to: route.client });
  const allow = readAllow(error);
  if (allow !== undefined && !response.headersSent) response.setHeader('allow', allow);
  if (response.headersSent) response.destroy();
  else if (request.complete) sendReply(response, reply, progress, { stallMs: limits.stallMs, redact, observer });
  else {
    response.setHeader('connection', 'close');
    response.setTimeout(limits.stallMs);
    endBeforeRequest(response, writeHead(response, reply, progress, redact), connection.clock);
  }
  return { ...progress, status: reply.status, ending: findEnding(error), error };
}

/** Records a finished exchange in the metrics and the log. */
function report(incoming: Incoming, result: Result, seconds: number, { log, metrics }: Services): void {
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
  if (result.reused) metrics.reused.inc({ source: result.reused });
  if (usage) {
    series.tokens('input', usage.input_tokens);
    series.tokens('output', usage.output_tokens);
    series.tokens('cached', usage.cache_read_tokens ?? 0);
    series.tokens('cache_write', usage.cache_creation_tokens ?? 0);
    series.tokens('reasoning', usage.reasoning_tokens ?? 0);
  }
}

function buildLogFields({ id, request, route, client }: Incoming, result: Result, seconds: number): object {
  const {
    status,
    ending,
    error,
    provider,
    requested,
    model,
    upstream,
    attempts,
    notes,
    tried = [],
    usage,
    cost,
    reused,
    rule,
    affinity,
    cacheBreak,
  } = result;
  return {
    request_id: id,
    client: client.address,
    method: request.method,
    // Without the query, which may contain a key.
    path: route.path.split('?', 1)[0],
    status,
    ending,
    ...(requested && { requested }),
    ...(rule && { rule }),
    ...(affinity && { affinity }),
    ...(cacheBreak && { cache_break: cacheBreak }),
    ...(provider && { client_protocol: route.client.id, upstream_protocol: upstream, provider, model, attempts }),
    ...(tried.length > 0 && { tried }),
    ...(reused && { reused }),
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
