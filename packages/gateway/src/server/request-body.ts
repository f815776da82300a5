import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodecError } from '@sluice/core';
import { isDeeperThan } from '../exchange/depth.ts';
import { STOPPED } from '../exchange/failures.ts';
import type { Presence } from '../exchange/presence.ts';
import { Collector } from '../upstream/collect.ts';
import { refusal } from './refusal.ts';

/**
 * The bytes of a request's body. A body that is too long is refused as soon as that is certain; a gateway that has to stop does not wait for
 * the rest.
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  limit: number,
  presence?: Presence,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    checkHead(request, limit);
    // Who asked before sending is told to send only now: a body that is refused need not be sent at all.
    if (request.headers.expect !== undefined) response.writeContinue();
    const collector = new Collector(limit);
    const stop = (): void => {
      if (presence?.isStopped) reject(new CodecError(STOPPED));
    };
    presence?.listen(stop);
    stop();
    request.on('data', (chunk: Buffer) => {
      if (!collector.push(chunk)) reject(tooLarge(limit));
    });
    request.on('end', () => {
      presence?.unlisten(stop);
      resolve(collector.take());
    });
    request.on('error', (error) => reject(error instanceof CodecError ? error : BROKE_OFF));
  });
}

/** What the head says of the body is enough to refuse it. */
function checkHead({ headers }: IncomingMessage, limit: number): void {
  const encoding = headers['content-encoding'];
  if (encoding && encoding !== 'identity')
    throw refusal(415, 'INVALID_INPUT', `a body in ${encoding.slice(0, 40)} is not read: send it plain`);
  if (Number(headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
}

const BROKE_OFF = refusal(499, 'CANCELLED', 'the request broke off');

const tooLarge = (limit: number) => refusal(413, 'PAYLOAD_TOO_LARGE', `the body of the request has more than ${limit} bytes`);

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** A body as text and as what the text says. */
export interface ParsedBody {
  text: string;
  body: unknown;
}

export interface BodyLimits {
  requestDepth: number;
  messages: number;
}

/** The JSON of a body. */
export function parseBody(bytes: Uint8Array, limits: BodyLimits): ParsedBody {
  const text = decode(bytes);
  const body = parse(text);
  if (isDeeperThan(body, limits.requestDepth))
    throw refusal(400, 'INVALID_INPUT', `the body of the request is nested more than ${limits.requestDepth} levels deep`);
  const longest = MESSAGE_LISTS.find((name) => lengthOf(body, name) > limits.messages);
  if (longest) throw refusal(400, 'INVALID_INPUT', `${longest} has more than ${limits.messages} entries`);
  return { text, body };
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw refusal(400, 'JSON_PARSE_ERROR', 'the body of the request is not UTF-8');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const isEmpty = text.trim() === '';
    throw refusal(400, 'JSON_PARSE_ERROR', isEmpty ? 'the request has no body' : 'the body of the request is not JSON');
  }
}

/** Where the four protocols have the turns of a conversation. */
const MESSAGE_LISTS = ['messages', 'input', 'contents'];

function lengthOf(body: unknown, name: string): number {
  const list = isObject(body) ? body[name] : undefined;
  return Array.isArray(list) ? list.length : 0;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
