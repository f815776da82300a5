import type { ServerResponse } from 'node:http';
import type { CanonicalUsage, Framing, Note, ProtocolId } from '@sluice/core';
import type { Reply } from './outcome.ts';

/** How far an exchange has come. */
export interface Progress {
  id: string;
  attempts: number;
  notes: readonly Note[];
  provider?: string;
  model?: string;
  /** The protocol of who answered. */
  upstream?: ProtocolId;
  usage?: CanonicalUsage;
  /** Who was asked in vain, and what came of it. */
  tried?: readonly string[];
}

/** No proxy may hold, change or store the stream. */
const UNTOUCHED = { 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' } as const;

export const STREAM_HEADERS = {
  sse: { 'content-type': 'text/event-stream; charset=utf-8', ...UNTOUCHED },
  'json-array': { 'content-type': 'application/json; charset=utf-8', ...UNTOUCHED },
} as const satisfies Record<Framing, Record<string, string>>;

/** From harmless to harmful. */
const SEVERITIES = ['RENAMED', 'CLAMPED', 'REPAIRED', 'APPROXIMATED', 'DROPPED'] as const satisfies readonly Note['code'][];

/** What an operator wants to know of an answer without a look into a log. */
export function exchangeHeaders({ id, attempts, notes, provider, model, tried = [] }: Progress): Record<string, string> {
  const worst = SEVERITIES.findLast((code) => notes.some((note) => note.code === code));
  return {
    'x-sluice-request-id': id,
    ...(provider !== undefined && { 'x-sluice-provider': headerText(provider) }),
    ...(model !== undefined && { 'x-sluice-model': headerText(model) }),
    'x-sluice-attempts': String(attempts),
    ...(tried.length > 0 && { 'x-sluice-tried': tried.map(headerText).join('; ').slice(0, 1024) }),
    'x-sluice-notes': String(notes.length),
    ...(worst && { 'x-sluice-notes-worst': worst.toLowerCase() }),
  };
}

/** Headers of an upstream that a client's SDK reads; everything else is the upstream's own business. */
const PASSED =
  /^(retry-after(-ms)?|x-should-retry|request-id|x-request-id|anthropic-ratelimit-.*|x-ratelimit-.*|openai-processing-ms)$/;

export interface SendOptions {
  /** How long the client may read nothing of it. */
  stallMs: number;
  /** Takes secrets out of what an upstream said. */
  redact: (text: string) => string;
}

/** Sends a whole answer. */
export function sendReply(response: ServerResponse, reply: Reply, progress: Progress, { stallMs, redact }: SendOptions): void {
  response.end(writeHead(response, reply, progress, redact));
  if (response.writableLength > 0) response.setTimeout(stallMs);
}

/** Writes the head of a whole answer, and gives back its body. What errors say is not ours alone, and is looked through. */
export function writeHead(
  response: ServerResponse,
  reply: Reply,
  progress: Progress,
  redact: (text: string) => string,
): Uint8Array {
  const { status, headers } = reply;
  const body = status >= 400 ? Buffer.from(redact(textOf(reply.body))) : (reply.bytes ?? Buffer.from(textOf(reply.body)));
  const passed = Object.fromEntries(Object.entries(headers).filter(([name]) => PASSED.test(name)));
  response.writeHead(status, {
    ...passed,
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...exchangeHeaders(progress),
  });
  return body;
}

const textOf = (body: unknown): string => (typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));

/** Names come from configurations and clients; a header holds visible ASCII. */
const headerText = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 256);
