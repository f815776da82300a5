/** Writes whole responses and the headers of all responses to the client. */

import type { ServerResponse } from 'node:http';
import type { CanonicalError, CanonicalUsage, Framing, Note, ProtocolId } from '@sluice/core';
import { type Cost, formatDollars } from '../prices/cost.ts';
import type { AffinityState } from '../routing/router.ts';
import type { ExchangeObserver } from './observer.ts';
import type { CacheStatus } from './response-cache.ts';
import type { Reply, Services } from './types.ts';

/** Sends a whole response. */
export function sendReply(response: ServerResponse, reply: Reply, progress: Progress, options: SendOptions): void {
  const { stallMs, redact, observer } = options;
  const { data, encoding } = writeHead(response, reply, progress, redact, observer);
  observer?.sent(data, encoding);
  response.end(data, encoding);
  limitStall(response, stallMs);
}

/** Disconnects a client that reads nothing of a response for so long, when all of it has been written. */
export function limitStall(response: ServerResponse, stallMs: number): void {
  if (response.writableLength > 0) response.setTimeout(stallMs);
}

/** How a response is sent. */
export interface SendOptions {
  /** How long the client may read nothing. */
  stallMs: number;
  /** Removes secrets from upstream text. */
  redact: (text: string) => string;
  observer?: ExchangeObserver | undefined;
}

/** What is known of an exchange so far. */
export interface Progress {
  id: string;
  attempts: number;
  notes: readonly Note[];
  /** The model as the client named it: an alias, or `provider/model`. */
  requested?: string | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  /** The rule that chose the model. */
  rule?: string | undefined;
  /** Whether the conversation stayed with its target. */
  affinity?: AffinityState | undefined;
  /** The protocol of the upstream that responded. */
  upstream?: ProtocolId | undefined;
  usage?: CanonicalUsage | undefined;
  /** What the usage costs; null when the price is unknown. Undefined without usage. */
  cost?: Cost | null | undefined;
  /** Targets that failed, with their error codes. */
  tried?: readonly string[] | undefined;
  /** The rates of the client's key, which replace those of the upstream; undefined without limits. */
  limits?: Readonly<Record<string, string>> | undefined;
  /** Whether the response is from the cache; undefined when the request is none that is cached. */
  cache?: CacheStatus | undefined;
}

/** Chooses the redaction for an error: an upstream error may name hosts, while own messages quote the request only. */
export const chooseRedact = (error: CanonicalError | undefined, { redact, redactUpstream }: Services): SendOptions['redact'] =>
  error?.upstream ? redactUpstream : redact;

/**
 * Writes the head of a whole response and returns its body. Errors are redacted, because they may quote an upstream.
 */
export function writeHead(
  response: ServerResponse,
  reply: Reply,
  progress: Progress,
  redact: (text: string) => string,
  observer?: ExchangeObserver,
): Written {
  const { status, headers, bytes } = reply;
  const isError = status >= 400;
  const text = isError ? redact(writeText(reply.body)) : bytes ? undefined : writeText(reply.body);
  const length = text === undefined ? (bytes?.length ?? 0) : Buffer.byteLength(text);
  const own: Record<string, string> = { 'content-type': 'application/json', 'content-length': String(length) };
  const sent = buildExchangeHeaders(progress, addUpstreamHeaders(own, headers, redact));
  response.writeHead(status, sent);
  observer?.opened(status, sent, false);
  return text === undefined ? toWritten(bytes ?? NO_BYTES) : { data: text, encoding: 'utf8' };
}

/** A body as it is written. */
export interface Written {
  data: string | Uint8Array;
  encoding: 'utf8' | 'latin1';
}

const NO_BYTES = Buffer.alloc(0);

const toWritten = (bytes: Buffer): Written =>
  bytes.length <= MAX_COPIED ? { data: bytes.toString('latin1'), encoding: 'latin1' } : { data: bytes, encoding: 'latin1' };

/** Node writes a head and a string at once, but a head and bytes separately. Longer bodies are not worth the copy. */
const MAX_COPIED = 16 * 1024;

const writeText = (body: unknown): string => (typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));

/** Response headers, with what an operator wants to know without reading the log. */
export function buildExchangeHeaders(progress: Progress, others: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { id, attempts, notes, provider, model, requested, rule, affinity, cost, tried = [], limits, cache } = progress;
  const headers: Record<string, string> = {};
  for (const name of Object.keys(others)) headers[name] = others[name] ?? '';
  if (limits) Object.assign(headers, limits);
  headers['x-sluice-request-id'] = id;
  if (provider !== undefined) headers['x-sluice-provider'] = formatHeader(provider);
  if (model !== undefined) headers['x-sluice-model'] = formatHeader(model);
  if (requested !== undefined && requested !== '') headers['x-sluice-requested-model'] = formatHeader(requested);
  if (rule !== undefined) headers['x-sluice-rule'] = rule;
  if (affinity !== undefined) headers['x-sluice-affinity'] = affinity;
  headers['x-sluice-attempts'] = String(attempts);
  if (cost) headers['x-sluice-cost-usd'] = formatDollars(cost.micros);
  if (tried.length > 0) headers['x-sluice-tried'] = tried.map(formatHeader).join('; ').slice(0, 1024);
  if (cache !== undefined) headers['x-sluice-cache'] = cache;
  headers['x-sluice-notes'] = String(notes.length);
  if (notes.length > 0) headers['x-sluice-notes-worst'] = findWorst(notes).toLowerCase();
  return headers;
}

/** From least to most severe. */
const SEVERITIES = ['RENAMED', 'CLAMPED', 'REPAIRED', 'APPROXIMATED', 'DROPPED'] as const satisfies readonly Note['code'][];

const findWorst = (notes: readonly Note[]): string =>
  SEVERITIES.findLast((code) => notes.some((note) => note.code === code)) ?? '';

/** Adds the allow-listed headers of an upstream, without secrets. */
export function addUpstreamHeaders(
  own: Record<string, string>,
  headers: Readonly<Record<string, string>>,
  redact: (text: string) => string,
): Record<string, string> {
  for (const name of Object.keys(headers)) if (isPassed(name)) own[name] = cleanHeader(headers[name] ?? '', redact);
  return own;
}

/** Upstream headers that SDKs read; all others are dropped. */
const PASSED_HEADERS: ReadonlySet<string> = new Set([
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'request-id',
  'x-request-id',
  'openai-processing-ms',
]);

/** Only words and short durations (`5h`) after the prefix: the name itself must not carry a key. */
const RATE_LIMIT = /^(?:x|anthropic)-ratelimit(?:-(?:[a-z_]{1,20}|\d{1,3}[a-z])){1,6}$/;

const isPassed = (name: string): boolean => PASSED_HEADERS.has(name) || RATE_LIMIT.test(name);

/** The value of an upstream's header, redacted and printable. */
const cleanHeader = (value: string, redact: (text: string) => string): string =>
  toVisible(value.length < MIN_SECRET_LENGTH ? value : redact(value));

/** No secret is shorter, so most rate limits need no redaction. */
const MIN_SECRET_LENGTH = 8;

/** A header holds visible ASCII; Node throws on anything else. */
const toVisible = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?');

/** Names come from the configuration and from clients, so they may be long. */
const formatHeader = (text: string): string => toVisible(text).slice(0, 256);

/** Keeps proxies from buffering, changing or storing the stream. */
const UNBUFFERED = { 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' } as const;

/** Headers of a stream by its framing. */
export const STREAM_HEADERS = {
  sse: { 'content-type': 'text/event-stream; charset=utf-8', ...UNBUFFERED },
  'json-array': { 'content-type': 'application/json; charset=utf-8', ...UNBUFFERED },
} as const satisfies Record<Framing, Record<string, string>>;
