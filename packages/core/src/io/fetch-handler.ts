import { type CanonicalError, CodecError } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import { tooDeep } from '../codec/answers.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { HeaderBag, Provider, WireReply } from '../codec/protocol.ts';
import { expectShallow } from '../codec/read.ts';
import { type Exchange, type Route, readAsked, routeOf, translate } from '../engine/exchange.ts';
import { checkRequestLimits, REQUEST_LIMITS, type RequestLimits } from '../engine/request-limits.ts';
import { encodeError } from '../engine/response.ts';
import { estimateAnswer } from '../engine/side-endpoints.ts';
import { isDeeperThan, isObject, parseJson } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { CODECS } from '../protocols/index.ts';
import { readText } from './accumulate.ts';
import { streamThrough } from './convert-stream.ts';

/** Who answers, and under which name it knows the model. */
export interface Answerer {
  provider: Provider;
  /** The name that the client asked for, unless said. */
  model?: string;
  profile?: ProviderProfile;
  /** Same protocol on both sides: bytes go through as they are, and nothing is mended. */
  passthrough?: boolean;
}

export interface FetchHandlerOptions {
  /** Who answers for a model; undefined when nobody does. */
  resolve(model: string, client: ProtocolId, request: Request): Answerer | undefined | Promise<Answerer | undefined>;
  /** By default the one of the runtime. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Longest body of a request, and of an answer that is no stream, in bytes; 32 MiB when absent. */
  maxBytes?: number;
  /** Instead of `REQUEST_LIMITS`; 400 above them. */
  limits?: Partial<RequestLimits>;
  /** Seconds since 1970, for answers that must carry a time. */
  now?: () => number;
}

const MAX_BYTES = 32 * 1024 * 1024;

const ANSWERED: ReadonlySet<string> = new Set(['CHAT', 'COUNT_TOKENS', 'EMBEDDINGS', 'RERANK']);

/**
 * The gate as one function from `Request` to `Response`, for runtimes without sockets of their own: workers, edge functions, routes of a web
 * framework. Every path of the four protocols, one attempt at one upstream; retries, limits and keys of clients are the gateway's.
 *
 * ```ts
 * export default {
 *   fetch: createFetchHandler({
 *     resolve: (model) => ({ provider: { id: 'groq', protocol: 'openai-chat', base_url: 'https://api.groq.com/openai/v1', api_key }, model }),
 *   }),
 * };
 * ```
 */
export function createFetchHandler(options: FetchHandlerOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    const headers: HeaderBag = Object.fromEntries(request.headers);
    const route = routeOf(request.url, headers);
    try {
      return await answer(request, headers, route, options);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      return toResponse(encodeError(error.error, { to: route.client }));
    }
  };
}

async function answer(request: Request, headers: HeaderBag, route: Route, options: FetchHandlerOptions): Promise<Response> {
  const { client, type, path } = route;
  const { method } = request;
  if (method !== 'POST' || !ANSWERED.has(type)) throw notAnswered(`${method} ${path.split('?', 1)}`);
  const text = await readText(request.body, options.maxBytes ?? MAX_BYTES, 'request');
  const wire = { method, path, headers, body: parse(text, { ...REQUEST_LIMITS, ...options.limits }), text };
  const { model, isStream } = readAsked(client, wire);
  const found = await options.resolve(model, client.id, request);
  if (!found) throw unknownModel(model);
  const upstream = CODECS[found.provider.protocol];
  if (type === 'COUNT_TOKENS' && !upstream.supports(type)) return Response.json(estimateAnswer(wire, client));
  const exchange = translate(client, upstream, { model, ...found, ...(options.now && { now: options.now }), stream: isStream });
  const { url, method: verb, headers: sent, body, text: passed } = exchange.request(wire);
  const { fetch = globalThis.fetch } = options;
  const reply = await reach(() =>
    fetch(url, {
      method: verb,
      headers: sent,
      signal: request.signal,
      redirect: 'manual', // A key is for one host only.
      ...(body !== undefined && { body: passed ?? JSON.stringify(body) }),
    }),
  );
  return isStream && reply.ok && reply.body
    ? new Response(reply.body.pipeThrough(streamThrough(exchange.stream())), { headers: STREAM_HEADERS[framingOf(route)] })
    : toResponse(await wholeAnswer(reply, exchange, options));
}

async function wholeAnswer(
  reply: Response,
  exchange: Exchange,
  { maxBytes = MAX_BYTES }: FetchHandlerOptions,
): Promise<WireReply> {
  const text = await readText(reply.body, maxBytes, 'answer');
  const headers: HeaderBag = Object.fromEntries(reply.headers);
  if (reply.status >= 300 && reply.status < 400) throw unreachable('the upstream answered with a redirect');
  if (!reply.ok) return exchange.error({ status: reply.status, headers, body: parseJson(text) ?? text });
  const body = attempt(text);
  if (isDeeperThan(body, MAX_JSON_DEPTH)) throw new CodecError(tooDeep('the response is'));
  if (body === undefined) return exchange.collected(reply.status, headers, new TextEncoder().encode(text));
  return exchange.response({ status: reply.status, headers, body });
}

const STREAM_HEADERS = {
  sse: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  'json-array': { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' },
} as const;

const framingOf = ({ client, path }: Route): keyof typeof STREAM_HEADERS => client.framing?.(path) ?? 'sse';

/** Of the upstream's headers only those that say when to come back. */
function toResponse({ status, headers, body }: WireReply): Response {
  const { 'retry-after': retry } = headers;
  return Response.json(body, { status, ...(retry !== undefined && { headers: { 'retry-after': retry } }) });
}

async function reach(ask: () => Promise<Response>): Promise<Response> {
  try {
    return await ask();
  } catch {
    // The reason may name hosts that are nobody's business.
    throw unreachable('the upstream cannot be reached');
  }
}

function parse(text: string, limits: RequestLimits): unknown {
  const body = attempt(text);
  if (isObject(body)) {
    expectShallow(body);
    checkRequestLimits(body, limits);
  }
  if (body !== undefined) return body;
  throw new CodecError({ code: 'JSON_PARSE_ERROR', message: 'the body of the request is not JSON', http_status: 400 });
}

function attempt(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const failure = (code: CanonicalError['code'], http_status: number, message: string): CodecError =>
  new CodecError({ code, message, http_status });

const unreachable = (message: string): CodecError => failure('UPSTREAM_ERROR', 502, message);

const notAnswered = (what: string): CodecError => failure('UNSUPPORTED_INTERFACE', 404, `${what} is not answered here`);

const unknownModel = (model: string): CodecError =>
  failure('NOT_FOUND', 404, `no provider is configured for model ${JSON.stringify(model.slice(0, 200))}`);
