import { type CanonicalError, CodecError } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import { buildTooDeepError } from '../codec/answers.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { HeaderBag, Provider, WireReply } from '../codec/protocol.ts';
import { expectShallow } from '../codec/read.ts';
import { createExchange, type Exchange, readRequestTarget } from '../engine/exchange.ts';
import { checkRequestLimits, REQUEST_LIMITS, type RequestLimits } from '../engine/request-limits.ts';
import { encodeError } from '../engine/response.ts';
import { findRoute, type Route } from '../engine/routes.ts';
import { buildTokenEstimate } from '../engine/side-endpoints.ts';
import { findJsonFault } from '../json/fault.ts';
import { isDeeperThan, isObject, parseJson } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { CODECS } from '../protocols/index.ts';
import { streamThrough } from './convert-stream.ts';

/**
 * The gateway as one function from `Request` to `Response`, for runtimes without sockets: workers, edge functions,
 * routes of a web framework. It serves every path of the four protocols with one attempt at one upstream; retries,
 * limits and client keys are features of the gateway only.
 *
 * ```ts
 * const base_url = 'https://api.groq.com/openai/v1';
 * const provider = { id: 'groq', protocol: 'openai-chat', base_url, api_key: 'gsk_…' } as const;
 * export default { fetch: createFetchHandler({ resolve: (model) => ({ provider, model }) }) };
 * ```
 */
export function createFetchHandler(options: FetchHandlerOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    const headers: HeaderBag = Object.fromEntries(request.headers);
    const route = findRoute(request.url, headers);
    try {
      return await handle(request, headers, route, options);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      return toResponse(encodeError(error.error, { to: route.client }));
    }
  };
}

/** Options of `createFetchHandler`. */
export interface FetchHandlerOptions {
  /** Finds the upstream for a model; undefined when there is none. */
  resolve(
    model: string,
    client: ProtocolId,
    request: Request,
  ): ResolvedUpstream | undefined | Promise<ResolvedUpstream | undefined>;
  /** By default the runtime's `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Longest body of a request, and of a response that is not a stream, in bytes; 32 MiB when absent. */
  maxBytes?: number;
  /** Override `REQUEST_LIMITS`; requests above them get a 400. */
  limits?: Partial<RequestLimits>;
  /** Unix seconds, for responses that must carry a time. */
  now?: () => number;
}

/** The upstream for a model. */
export interface ResolvedUpstream {
  provider: Provider;
  /** The model's name at the upstream; by default the one in the request. */
  model?: string;
  profile?: ProviderProfile;
  /**
   * Same protocol on both sides: bytes are passed on unchanged, and nothing is repaired. Only errors that are not JSON,
   * and those that a client would blame on its own key, are rewritten.
   */
  passthrough?: boolean;
}

const MAX_BYTES = 32 * 1024 * 1024;

const SERVED: ReadonlySet<string> = new Set(['CHAT', 'COUNT_TOKENS', 'EMBEDDINGS', 'RERANK']);

async function handle(request: Request, headers: HeaderBag, route: Route, options: FetchHandlerOptions): Promise<Response> {
  const { client, type, path } = route;
  const { method } = request;
  if (method !== 'POST' || !SERVED.has(type)) throw notServed(`${method} ${path.split('?', 1)}`);
  const text = await readText(request.body, options.maxBytes ?? MAX_BYTES, 'request');
  const wire = { method, path, headers, body: parse(text, { ...REQUEST_LIMITS, ...options.limits }), text };
  const { model, isStream } = readRequestTarget(client, wire);
  const found = await options.resolve(model, client.id, request);
  if (!found) throw unknownModel(model);
  const upstream = CODECS[found.provider.protocol];
  if (type === 'COUNT_TOKENS' && !upstream.supports(type)) return Response.json(buildTokenEstimate(wire, client));
  const exchange = createExchange(client, upstream, {
    model,
    ...found,
    ...(options.now && { now: options.now }),
    stream: isStream,
  });
  const { url, method: verb, headers: sent, body, text: passed } = exchange.request(wire);
  const { fetch = globalThis.fetch } = options;
  const reply = await fetchUpstream(() =>
    fetch(url, {
      method: verb,
      headers: sent,
      signal: request.signal,
      redirect: 'manual', // The key must not be sent to another host.
      ...(body !== undefined && { body: passed ?? JSON.stringify(body) }),
    }),
  );
  if (isStream && reply.ok && reply.body)
    return new Response(reply.body.pipeThrough(streamThrough(exchange.stream())), {
      headers: STREAM_HEADERS[findFraming(route)],
    });
  return exchange.isPassing && reply.ok ? passBody(reply, reply.body) : convertWhole(reply, exchange, options);
}

/** The bytes of the upstream, with their type. */
function passBody({ status, headers }: Response, body: BodyInit | null): Response {
  const type = headers.get('content-type');
  const retry = headers.get('retry-after');
  return new Response(body, {
    status,
    headers: { ...(type !== null && { 'content-type': type }), ...(retry !== null && { 'retry-after': retry }) },
  });
}

async function convertWhole(
  reply: Response,
  exchange: Exchange,
  { maxBytes = MAX_BYTES }: FetchHandlerOptions,
): Promise<Response> {
  const text = await readText(reply.body, maxBytes, 'answer');
  const { status } = reply;
  const headers: HeaderBag = Object.fromEntries(reply.headers);
  if (status >= 300 && status < 400) throw unreachable('the upstream responded with a redirect, which is not followed');
  if (!reply.ok) {
    const refused: WireReply = { status, headers, body: parseJson(text) ?? text };
    const error = exchange.error(refused);
    return error === refused ? passBody(reply, text) : toResponse(error);
  }
  const body = tryParse(text);
  if (isDeeperThan(body, MAX_JSON_DEPTH)) throw new CodecError(buildTooDeepError('the response is'));
  if (body === undefined) return toResponse(exchange.responseFromStream(status, headers, new TextEncoder().encode(text)));
  const { text: kept, ...converted } = exchange.response({ status, headers, body, text });
  return kept === undefined ? toResponse(converted) : passBody(reply, kept);
}

const STREAM_HEADERS = {
  sse: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  'json-array': { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' },
} as const;

const findFraming = ({ client, path }: Route): keyof typeof STREAM_HEADERS => client.framing?.(path) ?? 'sse';

/** Of the upstream's headers only `retry-after` is passed on. */
function toResponse({ status, headers, body }: WireReply): Response {
  const { 'retry-after': retry } = headers;
  return Response.json(body, { status, ...(retry !== undefined && { headers: { 'retry-after': retry } }) });
}

async function fetchUpstream(send: () => Promise<Response>): Promise<Response> {
  try {
    return await send();
  } catch {
    // The reason may contain internal host names, so it is not passed on.
    throw unreachable('the upstream cannot be reached');
  }
}

function parse(text: string, limits: RequestLimits): unknown {
  const body = tryParse(text);
  if (isObject(body)) {
    expectShallow(body);
    checkRequestLimits(body, limits);
  }
  if (body !== undefined) return body;
  throw failure('JSON_PARSE_ERROR', 400, explainFault(text));
}

function explainFault(text: string): string {
  const fault = findJsonFault(text);
  return `the request body is not valid JSON${fault ? `: ${fault.message}` : ''}`;
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const failure = (code: CanonicalError['code'], http_status: number, message: string): CodecError =>
  new CodecError({ code, message, http_status });

const unreachable = (message: string): CodecError => failure('UPSTREAM_ERROR', 502, message);

const notServed = (what: string): CodecError => failure('UNSUPPORTED_INTERFACE', 404, `${what} is not supported here`);

const unknownModel = (model: string): CodecError =>
  failure('NOT_FOUND', 404, `no provider is configured for model ${JSON.stringify(model.slice(0, 200))}`);

/** Reads a whole body as text. Throws when it is longer than allowed, or cut: the reason may name internal hosts. */
async function readText(body: ReadableStream<Uint8Array> | null, maxBytes: number, what: 'request' | 'answer'): Promise<string> {
  if (!body) return '';
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  let length = 0;
  const readNext = () => reader.read().catch(() => Promise.reject(what === 'request' ? interrupted() : unreachable(CUT)));
  for (let read = await readNext(); !read.done; read = await readNext()) {
    length += read.value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw tooLongError(maxBytes, what);
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

const CUT = 'the upstream closed the connection in the middle of the response';

const interrupted = (): CodecError =>
  failure('CANCELLED', 499, 'the client closed the connection before the request was complete');

const tooLongError = (maxBytes: number, what: 'request' | 'answer'): CodecError =>
  new CodecError({
    code: what === 'request' ? 'PAYLOAD_TOO_LARGE' : 'UPSTREAM_ERROR',
    message: `the ${what} body has more than ${maxBytes} bytes`,
    http_status: what === 'request' ? 413 : 502,
  });
