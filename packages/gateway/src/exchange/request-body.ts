/** Reads, decompresses and parses request bodies. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type CanonicalError, CodecError } from '@sluice/core';
import { checkRequestLimits } from '@sluice/core/engine';
import { findJsonFault, isDeeperThan, isDeepText } from '@sluice/core/internal';
import type { Limits } from '../config/options.ts';
import type { Clock } from '../http/clock.ts';
import { refusal } from '../http/refusal.ts';
import { Collector } from '../upstream/body.ts';
import { DecompressionError, type Receiver, readCoding, SUPPORTED_CODINGS, TooLargeError, Unpacker } from '../upstream/dialer.ts';
import type { ClientConnection } from './client-connection.ts';
import { type PendingBytes, type PendingShare, PIECE_BYTES } from './pending-bytes.ts';
import type { Written } from './reply.ts';

/**
 * Reads and decompresses the body of a request. Rejects a body as soon as it exceeds its limit, and any unfinished body
 * when the gateway shuts down.
 */
export function readBody(source: BodySource, { limits, pending }: BodyServices): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const { request, response } = source;
    const coding = checkHead(source, limits.requestBytes);
    // A client that sent `Expect: 100-continue` need not send a body that is rejected.
    if (request.headers.expect !== undefined) response.writeContinue();
    const share = pending.open(source.connection.keyId);
    new BodyReader({ source, limits, share, coding, resolve, reject }).begin();
  });
}

/** The request of a body, and its response, which may have to send `100 Continue`. */
export interface BodySource {
  request: IncomingMessage;
  response: ServerResponse;
  connection: ClientConnection;
}

interface BodyServices {
  limits: BodyLimits;
  pending: PendingBytes;
}

type BodyLimits = Pick<Limits, 'requestBytes' | 'compressionRatio'>;

/** Rejects a body by its headers. Returns its content coding; undefined for a plain body. */
function checkHead({ request: { headers }, response }: BodySource, limit: number): string | undefined {
  if (Number(headers['content-length'] ?? 0) > limit) throw createTooLargeError(limit);
  try {
    return readCoding(headers['content-encoding']);
  } catch {
    response.setHeader('accept-encoding', SUPPORTED_CODINGS);
    throw refusal(415, 'INVALID_INPUT', `unsupported content-encoding; use one of: ${SUPPORTED_CODINGS}`);
  }
}

interface BodyReaderOptions {
  source: BodySource;
  limits: BodyLimits;
  /** What the body holds until it is complete. */
  share: PendingShare;
  coding: string | undefined;
  resolve: (body: Buffer) => void;
  reject: (reason: Error) => void;
}

/** Collects a body; ignores everything after the outcome. */
class BodyReader implements Receiver {
  readonly #options: BodyReaderOptions;
  readonly #collector: Collector;
  readonly #unpacker: Unpacker | undefined;
  /** Bytes on the wire, limited as well, because compressed data may decompress to nothing. */
  #received = 0;

  constructor(options: BodyReaderOptions) {
    const { source, limits, coding } = options;
    this.#options = options;
    this.#collector = new Collector(limits.requestBytes);
    this.#unpacker =
      coding === undefined
        ? undefined
        : new Unpacker(this, { coding, end: 'strict', maxRatio: limits.compressionRatio, source: source.request });
  }

  begin(): void {
    const { request, connection } = this.#options.source;
    connection.listen(this.#onInterruption);
    request.on('data', this.#onData);
    request.on('end', this.#onEnd);
    request.on('error', (error) => this.fail(error));
    this.#onInterruption();
  }

  start(): void {
    // The headers were read before.
  }

  data(chunk: Uint8Array): void {
    const { limits, share } = this.#options;
    const refused = share.add(chunk.length + PIECE_BYTES);
    if (refused) this.fail(refused);
    else if (!this.#collector.push(chunk)) this.fail(createTooLargeError(limits.requestBytes));
  }

  end(): void {
    this.#settle();
    this.#options.resolve(this.#collector.take());
  }

  fail(error: Error): void {
    this.#settle();
    this.#options.reject(this.#toRefusal(error));
  }

  #toRefusal(error: Error): CodecError {
    const { limits, coding } = this.#options;
    if (error instanceof CodecError) return error;
    if (error instanceof DecompressionError)
      return refusal(
        400,
        'INVALID_INPUT',
        `the request body cannot be decompressed as ${coding}; correct content-encoding, or send it uncompressed`,
      );
    return error instanceof TooLargeError ? createRatioError(limits.compressionRatio) : BROKE_OFF;
  }

  readonly #onData = (chunk: Buffer): void => {
    const { requestBytes } = this.#options.limits;
    this.#received += chunk.length;
    if (this.#received > requestBytes) this.fail(createTooLargeError(requestBytes));
    else (this.#unpacker ?? this).data(chunk);
  };

  readonly #onEnd = (): void => (this.#unpacker ?? this).end();

  readonly #onInterruption = (): void => {
    const { connection } = this.#options.source;
    if (connection.stopError) this.fail(new CodecError(connection.stopError));
    else if (connection.isGone) this.fail(BROKE_OFF);
  };

  #settle(): void {
    const { request, connection } = this.#options.source;
    connection.unlisten(this.#onInterruption);
    request.off('data', this.#onData);
    request.off('end', this.#onEnd);
    this.#unpacker?.close();
    this.#options.share.release();
  }
}

const BROKE_OFF = refusal(499, 'CANCELLED', 'the client closed the connection before the request was complete');

const createTooLargeError = (limit: number) =>
  refusal(413, 'PAYLOAD_TOO_LARGE', `the request body has more than ${limit} bytes (limits.request_bytes)`);

const createRatioError = (ratio: number) =>
  refusal(
    413,
    'PAYLOAD_TOO_LARGE',
    `the request body grows more than ${ratio} times when decompressed (limits.compression_ratio)`,
  );

/** Parses the JSON of a request and checks the limits of its lists and objects. */
export function parseRequest(bytes: Uint8Array, limits: Limits): ParsedBody {
  const parsed = parseBody(bytes, limits.requestDepth);
  checkObject(parsed.body);
  // The message names the option as the configuration file has it.
  checkRequestLimits(parsed.body, limits, (limit) => `limits.${limit.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}`);
  return parsed;
}

function checkObject(body: unknown): void {
  if (isRecord(body)) return;
  const kind = Array.isArray(body) ? 'an array' : body === null ? 'null' : `a ${typeof body}`;
  throw refusal(400, 'INVALID_INPUT', `the request body must be a JSON object, not ${kind}`);
}

const isRecord = (body: unknown): boolean => typeof body === 'object' && body !== null && !Array.isArray(body);

/** Parses the JSON of a body and checks its depth. */
export function parseBody(bytes: Uint8Array, maxDepth: number): ParsedBody {
  const text = decode(bytes);
  if (isDeepText(text, maxDepth)) throw createDepthError(maxDepth);
  const body = parse(text);
  if (isDeeperThan(body, maxDepth)) throw createDepthError(maxDepth);
  return { text, body };
}

const createDepthError = (maxDepth: number): CodecError =>
  refusal(400, 'INVALID_INPUT', `the request body is nested more than ${maxDepth} levels deep (limits.request_depth)`);

/** A body as text and as parsed JSON. */
export interface ParsedBody {
  text: string;
  body: unknown;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw refusal(400, 'JSON_PARSE_ERROR', 'the request body is not valid UTF-8; encode it as UTF-8');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw text.trim() === '' ? EMPTY : createJsonError(text);
  }
}

const EMPTY = refusal(400, 'JSON_PARSE_ERROR', 'a request body is required; send a JSON object');

/** The error for a body that is not JSON, with its place. The excerpt is for the client alone, not for the log. */
export function createJsonError(text: string): CodecError {
  const fault = findJsonFault(text);
  const where = fault ? `: ${fault.message}` : '';
  return new CodecError({
    code: 'JSON_PARSE_ERROR',
    message: `the request body is not valid JSON${where}${FORM.test(text) ? '; it is a form, send JSON' : ''}`,
    http_status: 400,
    ...(fault && { details: { excerpt: fault.excerpt } }),
  });
}

/** How curl sends `-d name=value`. */
const FORM = /^[\w.%+[\]-]{1,100}=/;

/** The error as the client that sent the body reads it. */
export function quoteExcerpt(error: CanonicalError): CanonicalError {
  const excerpt = error.details?.['excerpt'];
  return typeof excerpt === 'string' ? { ...error, message: `${error.message}; near: ${excerpt}` } : error;
}

/**
 * Ends the response to a request that is still being sent, and closes the connection. Closing while bytes arrive would
 * reset the connection before the client reads the response, so the rest of the request is discarded for a while.
 */
export function endBeforeRequest(response: ServerResponse, { data, encoding }: Written, clock: Clock): void {
  const { req: request } = response;
  const end = (): void => {
    timer.close();
    response.end();
  };
  const timer = clock.setTimer(end, LINGER_MS);
  let left = LINGER_BYTES;
  response.write(data, encoding);
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) end();
  });
  request.once('end', end);
  request.once('close', end);
  request.resume();
}

/** How long a rejected request is still read. */
const LINGER_MS = 1000;

/** How many bytes of a rejected request are still read. */
const LINGER_BYTES = 16 * 1024 * 1024;
