/** Repeats the conversion of a captured exchange: the client's bytes out of the upstream's. */

import { type CanonicalError, createExchange, type Exchange, type ExchangeOptions } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { SecretRegistry } from '../config/secrets.ts';
import { ResponseMeter } from '../exchange/limits.ts';
import { type ReplyContext, readRefusal, readResponse, redactBytes } from '../exchange/read-reply.ts';
import { formatProvider, type Reply } from '../exchange/types.ts';
import { createAddressRedact, createRedact } from '../observe/redact.ts';
import type { Capture, CapturedAttempt, CapturedResponse, ClientResponse, Conversion } from './capture.ts';

/** The client's bytes, derived again, and how they compare with the recorded ones. */
export type Derivation =
  /** `isPrefix`: the client left or the capture is truncated, and everything that both have is equal. */
  | { is: 'equal'; bytes: Uint8Array; isPrefix: boolean }
  /** `at`: the first byte that differs, in the body without heartbeats. */
  | { is: 'different'; bytes: Uint8Array; recorded: Uint8Array; at: number }
  /** The capture does not have what the conversion needs. */
  | { is: 'unknown'; reason: string };

/**
 * Derives the bytes that the client received from those of the upstream, and compares them with the recorded ones.
 * A difference is a bug of Sluice, unless a secret was removed from the capture.
 */
export function deriveClientBytes(capture: Capture): Derivation {
  const { response, isTruncated, ending } = capture;
  if (!response) return { is: 'unknown', reason: 'nothing was sent to the client' };
  try {
    const bytes = derive(capture, response);
    if (typeof bytes === 'string') return { is: 'unknown', reason: bytes };
    return compare(bytes, pickContent(response), isTruncated || ending === 'client_aborted' || ending === 'client_stalled');
  } catch (error) {
    return { is: 'unknown', reason: `the conversion cannot be repeated: ${String(error)}` };
  }
}

function compare(bytes: Uint8Array, recorded: Uint8Array, mayBeCut: boolean): Derivation {
  const shared = Math.min(bytes.length, recorded.length);
  for (let at = 0; at < shared; at++) if (bytes[at] !== recorded[at]) return { is: 'different', bytes, recorded, at };
  if (!mayBeCut && bytes.length !== recorded.length) return { is: 'different', bytes, recorded, at: shared };
  return { is: 'equal', bytes, isPrefix: mayBeCut };
}

/** The body without heartbeats. */
function pickContent({ body, reads, fills }: ClientResponse): Uint8Array {
  if (fills.length === 0) return body;
  const skipped = new Set(fills);
  return Buffer.concat(splitReads(body, reads).filter((_, index) => !skipped.has(index)));
}

/** The parts of a body. A secret that was removed makes it shorter than its reads; the last parts are cut then. */
function splitReads(body: Uint8Array, reads: CapturedResponse['reads']): Uint8Array[] {
  let from = 0;
  const parts = reads.map(([, size]) => {
    from += size;
    return body.subarray(from - size, from);
  });
  return from < body.length ? [...parts, body.subarray(from)] : parts;
}

/** The bytes, or why they cannot be derived. */
function derive(capture: Capture, response: ClientResponse): Uint8Array | string {
  const attempt = capture.attempts.at(-1);
  if (!attempt) return capture.error ? encodeFailure(capture, response) : 'the gateway responded without an upstream';
  const { conversion } = attempt;
  if (!conversion) return deriveForwarded(capture, attempt);
  if (capture.request.body.length === 0) return 'the request is not in the capture';
  if (holdsSealed(response)) return 'the response contains sealed state of a provider, whose key is not in the capture';
  const exchange = createCapturedExchange(capture, attempt, conversion);
  const context: ReplyContext = { exchange, candidate: conversion, limits: capture.limits, onStrange: () => undefined };
  if (attempt.outcome === 'failed') return deriveFailure(capture, attempt, context, response);
  if (!attempt.response) return 'the response of the upstream is not in the capture';
  if (!capture.isStream || capture.endpoint !== 'CHAT') {
    const outcome = readResponse(toWhole(attempt.response), context);
    return outcome.is === 'answered' && outcome.reply ? writeReply(outcome.reply) : 'the gateway responded by an estimate';
  }
  return deriveStream(capture, attempt, attempt.response, context);
}

/** Whether a response contains a capsule: as text, in the id of a call, or as base64. */
const holdsSealed = ({ body }: ClientResponse): boolean =>
  /"cv2\.|--cv2--|"Y3Yy/.test(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'));

function createCapturedExchange({ protocol, request }: Capture, attempt: CapturedAttempt, conversion: Conversion): Exchange {
  const options: ExchangeOptions = {
    ...conversion,
    tap: 'usage',
    ...(attempt.clock.length > 0 && { now: repeat(attempt.clock) }),
  };
  const exchange = createExchange(CODECS[protocol], CODECS[attempt.protocol], options);
  const text = Buffer.from(request.body).toString('utf8');
  exchange.request({ ...request, body: JSON.parse(text), text });
  return exchange;
}

/** Returns the recorded times in order, and then the last one. */
function repeat(clock: readonly number[]): () => number {
  let next = 0;
  return () => clock[Math.min(next++, clock.length - 1)] ?? 0;
}

function deriveStream(capture: Capture, attempt: CapturedAttempt, response: CapturedResponse, context: ReplyContext): Uint8Array {
  const { exchange } = context;
  const meter = new ResponseMeter(context.limits, formatProvider(context.candidate));
  const stream = exchange.stream({ inspect: (event) => meter.add(event) });
  const sent: Uint8Array[] = [];
  const write = (pieces: Iterable<Uint8Array>): void => {
    sent.push(stream.hasError ? redactBytes(pieces, REDACT_UPSTREAM) : Buffer.concat([...pieces]));
  };
  for (const part of splitReads(response.body, response.reads)) if (!stream.hasFailed) write(stream.push(part));
  const isOpen = attempt.outcome === 'gone' || capture.isTruncated;
  if (!isOpen) write(attempt.error ? stream.fail(attempt.error) : stream.end());
  const repeated = stream.error && exchange.repeatInBand(stream.error);
  if (repeated && !isOpen) write([repeated]);
  return Buffer.concat(sent);
}

/** No upstream responded: the last error, inside the stream if that had begun. */
function deriveFailure(
  { error }: Capture,
  attempt: CapturedAttempt,
  context: ReplyContext,
  { isStream }: ClientResponse,
): Uint8Array | string {
  if (!error) return 'the error is not in the capture';
  const { exchange } = context;
  const redact = chooseRedact(error);
  if (isStream) {
    const repeated = exchange.repeatInBand(error);
    return redactBytes([...exchange.inBand(error), ...(repeated ? [repeated] : [])], redact);
  }
  const { response } = attempt;
  const isSame = JSON.stringify(error) === JSON.stringify(attempt.error);
  const refused = isSame && response && response.status >= 400 ? readRefusal(toWhole(response), context) : undefined;
  const reply = refused?.is === 'failed' ? refused.reply : undefined;
  return redactBytes([writeReply(reply ?? exchange.failure(error))], redact);
}

/** The gateway found the error before any request was sent. */
function encodeFailure({ protocol, error }: Capture, { isStream }: ClientResponse): Uint8Array | string {
  if (!error || isStream) return 'the gateway responded without an upstream';
  const exchange = createExchange(CODECS[protocol], CODECS[protocol], { provider: NO_PROVIDER });
  return redactBytes([writeReply(exchange.failure(error))], chooseRedact(error));
}

const NO_PROVIDER = { id: '', protocol: 'openai-chat', base_url: 'http://localhost' } as const;

function deriveForwarded({ protocol, error }: Capture, { response, provider }: CapturedAttempt): Uint8Array | string {
  if (response && response.status < 400) return response.body;
  if (!error) return 'the error is not in the capture';
  const exchange = createExchange(CODECS[protocol], CODECS[protocol], {
    provider: { id: provider, protocol, base_url: NO_PROVIDER.base_url },
    passthrough: true,
  });
  if (!response) return redactBytes([writeReply(exchange.failure(error))], chooseRedact(error));
  const { status, headers, body } = toWhole(response);
  const text = body.toString('utf8');
  return redactBytes([writeReply(exchange.error({ status, headers, body: parseJson(text) ?? text }))], REDACT_UPSTREAM);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const toWhole = ({ status, headers, body }: CapturedResponse) => ({ status, headers, body: Buffer.from(body) });

const writeReply = ({ body, bytes }: Pick<Reply, 'body'> & { bytes?: Buffer }): Uint8Array =>
  bytes ?? Buffer.from(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));

/** The redaction of the gateway without its secrets, which a capture does not have. */
const REDACT = createRedact(new SecretRegistry());

const REDACT_UPSTREAM = createAddressRedact(REDACT);

const chooseRedact = ({ upstream }: CanonicalError): ((text: string) => string) => (upstream ? REDACT_UPSTREAM : REDACT);
