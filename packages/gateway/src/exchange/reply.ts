import type { ServerResponse } from 'node:http';
import type { CanonicalError, CanonicalUsage, Framing, Note, ProtocolId } from '@sluice/core';
import type { Reply } from './outcome.ts';
import type { Services } from './services.ts';

/** How far an exchange has come. */
export interface Progress {
  id: string;
  attempts: number;
  notes: readonly Note[];
  provider?: string | undefined;
  model?: string | undefined;
  /** The protocol of who answered. */
  upstream?: ProtocolId | undefined;
  usage?: CanonicalUsage | undefined;
  /** Who was asked in vain, and what came of it. */
  tried?: readonly string[] | undefined;
}

/** No proxy may hold, change or store the stream. */
const UNTOUCHED = { 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' } as const;

export const STREAM_HEADERS = {
  sse: { 'content-type': 'text/event-stream; charset=utf-8', ...UNTOUCHED },
  'json-array': { 'content-type': 'application/json; charset=utf-8', ...UNTOUCHED },
} as const satisfies Record<Framing, Record<string, string>>;

/** From harmless to harmful. */
const SEVERITIES = ['RENAMED', 'CLAMPED', 'REPAIRED', 'APPROXIMATED', 'DROPPED'] as const satisfies readonly Note['code'][];

/** The headers of an answer, with what an operator wants to know of it without a look into a log. */
export function exchangeHeaders(progress: Progress, others: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { id, attempts, notes, provider, model, tried = [] } = progress;
  const headers: Record<string, string> = {};
  for (const name of Object.keys(others)) headers[name] = others[name] ?? '';
  headers['x-sluice-request-id'] = id;
  if (provider !== undefined) headers['x-sluice-provider'] = headerText(provider);
  if (model !== undefined) headers['x-sluice-model'] = headerText(model);
  headers['x-sluice-attempts'] = String(attempts);
  if (tried.length > 0) headers['x-sluice-tried'] = tried.map(headerText).join('; ').slice(0, 1024);
  headers['x-sluice-notes'] = String(notes.length);
  if (notes.length > 0) headers['x-sluice-notes-worst'] = worstOf(notes).toLowerCase();
  return headers;
}

const worstOf = (notes: readonly Note[]): string => SEVERITIES.findLast((code) => notes.some((note) => note.code === code)) ?? '';

/** Headers of an upstream that a client's SDK reads; everything else is the upstream's own business. */
const PASSED: ReadonlySet<string> = new Set([
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'request-id',
  'x-request-id',
  'openai-processing-ms',
]);

/** Only words and short durations (`5h`) after the prefix: the name itself must not carry a key. */
const RATE_LIMIT = /^(?:x|anthropic)-ratelimit(?:-(?:[a-z_]{1,20}|\d{1,3}[a-z])){1,6}$/;

const isPassed = (name: string): boolean => PASSED.has(name) || RATE_LIMIT.test(name);

/** Adds the allow-listed headers of an upstream, without secrets. */
export function addPassed(
  own: Record<string, string>,
  headers: Readonly<Record<string, string>>,
  redact: (text: string) => string,
): Record<string, string> {
  for (const name of Object.keys(headers)) if (isPassed(name)) own[name] = cleanHeader(headers[name] ?? '', redact);
  return own;
}

/** No secret is shorter, and most rate limits are: those cost nothing. */
const SHORTEST_SECRET = 8;

/** The value of an upstream's header, or a field of its body that becomes one. */
const cleanHeader = (value: string, redact: (text: string) => string): string =>
  visible(value.length < SHORTEST_SECRET ? value : redact(value));

export interface SendOptions {
  /** How long the client may read nothing of it. */
  stallMs: number;
  /** Takes secrets out of what an upstream said. */
  redact: (text: string) => string;
}

/** An upstream's error may name its machines; the gateway's own messages repeat only what the client sent. */
export const redactFor = (error: CanonicalError | undefined, { redact, redactUpstream }: Services): SendOptions['redact'] =>
  error?.upstream ? redactUpstream : redact;

/** Sends a whole answer. */
export function sendReply(response: ServerResponse, reply: Reply, progress: Progress, { stallMs, redact }: SendOptions): void {
  const { data, encoding } = writeHead(response, reply, progress, redact);
  response.end(data, encoding);
  if (response.writableLength > 0) response.setTimeout(stallMs);
}

/** A body as it is written. */
export interface Written {
  data: string | Uint8Array;
  encoding: 'utf8' | 'latin1';
}

/** Writes the head of a whole answer, and gives back its body. What errors say is not ours alone, and is looked through. */
export function writeHead(response: ServerResponse, reply: Reply, progress: Progress, redact: (text: string) => string): Written {
  const { status, headers, bytes } = reply;
  const isError = status >= 400;
  const text = isError ? redact(textOf(reply.body)) : bytes ? undefined : textOf(reply.body);
  const length = text === undefined ? (bytes?.length ?? 0) : Buffer.byteLength(text);
  const own: Record<string, string> = { 'content-type': 'application/json', 'content-length': String(length) };
  response.writeHead(status, exchangeHeaders(progress, addPassed(own, headers, redact)));
  return text === undefined ? asWritten(bytes ?? NO_BYTES) : { data: text, encoding: 'utf8' };
}

const NO_BYTES = Buffer.alloc(0);
/** Node writes a head and a text at once, a head and bytes in two pieces. What is longer is not worth a copy. */
const MOST_COPIED = 16 * 1024;

const asWritten = (bytes: Buffer): Written =>
  bytes.length <= MOST_COPIED ? { data: bytes.toString('latin1'), encoding: 'latin1' } : { data: bytes, encoding: 'latin1' };

const textOf = (body: unknown): string => (typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));

/** A header holds visible ASCII; Node throws on anything else. */
const visible = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?');

/** Names come from configurations and clients. */
const headerText = (text: string): string => visible(text).slice(0, 256);
