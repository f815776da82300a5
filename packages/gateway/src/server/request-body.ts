import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodecError, checkRequestLimits } from '@sluice/core';
import type { Limits } from '../config/limits.ts';
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

/** The JSON of a body. */
export function parseBody(bytes: Uint8Array, maxDepth: number): ParsedBody {
  const text = decode(bytes);
  const body = parse(text);
  if (isDeeperThan(body, maxDepth))
    throw refusal(400, 'INVALID_INPUT', `the request body is nested more than ${maxDepth} levels deep (limits.request_depth)`);
  return { text, body };
}

/** The JSON of a client's request, within the limits of its lists and objects. */
export function parseRequest(bytes: Uint8Array, limits: Limits): ParsedBody {
  const parsed = parseBody(bytes, limits.requestDepth);
  checkRequestLimits(parsed.body, {
    tools: limits.tools,
    messages: limits.messages,
    content_parts: limits.contentParts,
    calls_per_message: limits.callsPerMessage,
    metadata_keys: limits.metadataKeys,
    top_level_keys: limits.topLevelKeys,
  });
  return parsed;
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
