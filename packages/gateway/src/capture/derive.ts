/** Repeats the conversion of a captured exchange: the client's bytes out of the upstream's. */

import { createExchange } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { type ReplyContext, readRefusal, readResponse, redactBytes } from '../exchange/read-reply.ts';
import type { Reply } from '../exchange/types.ts';
import type { Capture, CapturedAttempt, CapturedResponse, ClientResponse, Conversion } from './capture.ts';
import {
  type Comparison,
  chooseRedact,
  compareBytes,
  createCapturedExchange,
  holdsSealed,
  joinBytes,
  SEALED,
  traceCapture,
} from './inspect/captured.ts';

/** The client's bytes, derived again, and how they compare with the recorded ones. */
export type Derivation =
  | (Comparison & { bytes: Uint8Array })
  /** The capture does not have what the conversion needs. */
  | { is: 'unknown'; reason: string };

/**
 * Derives the bytes that the client received from those of the upstream, and compares them with the recorded ones.
 * A difference is a bug of Sluice, unless a secret was removed from the capture.
 */
export function deriveClientBytes(capture: Capture): Derivation {
  const { response } = capture;
  if (!response) return { is: 'unknown', reason: 'nothing was sent to the client' };
  try {
    const bytes = derive(capture, response);
    if (typeof bytes === 'string') return { is: 'unknown', reason: bytes };
    return { ...compareBytes(bytes, response, capture), bytes };
  } catch (error) {
    return { is: 'unknown', reason: `the conversion cannot be repeated: ${String(error)}` };
  }
}

/** The bytes, or why they cannot be derived. */
function derive(capture: Capture, response: ClientResponse): Uint8Array | string {
  const attempt = capture.attempts.at(-1);
  if (!attempt) return capture.error ? encodeFailure(capture, response) : 'the gateway responded without an upstream';
  const { conversion } = attempt;
  if (!conversion) return deriveForwarded(capture, attempt);
  if (capture.request.body.length === 0) return 'the request is not in the capture';
  if (holdsSealed(response)) return SEALED;
  const exchange = createCapturedExchange(capture, attempt, conversion);
  const context: ReplyContext = { exchange, candidate: conversion, limits: capture.limits, onStrange: () => undefined };
  if (attempt.outcome === 'failed') return deriveFailure(capture, attempt, context, response);
  if (!attempt.response) return 'the response of the upstream is not in the capture';
  if (!capture.isStream || capture.endpoint !== 'CHAT') {
    const outcome = readResponse(toWhole(attempt.response), context);
    return outcome.is === 'answered' && outcome.reply ? writeReply(outcome.reply) : 'the gateway responded by an estimate';
  }
  return deriveStream(capture, attempt, attempt.response, context, conversion);
}

function deriveStream(
  capture: Capture,
  attempt: CapturedAttempt,
  response: CapturedResponse,
  { exchange }: ReplyContext,
  conversion: Conversion,
): Uint8Array {
  const { pieces } = traceCapture(capture, attempt, response, exchange, conversion);
  return joinBytes(pieces.map(({ bytes }) => bytes));
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
  const isDerived = isSame && error.code !== 'UNSUPPORTED_INTERFACE';
  const refused = isDerived && response && response.status >= 400 ? readRefusal(toWhole(response), context) : undefined;
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
  // The address of the upstream is not in the capture.
  if (!response || error.code === 'UNSUPPORTED_INTERFACE')
    return redactBytes([writeReply(exchange.failure(error))], chooseRedact(error));
  const { status, headers, body } = toWhole(response);
  const text = body.toString('utf8');
  return redactBytes(
    [writeReply(exchange.error({ status, headers, body: parseJson(text) ?? text }))],
    chooseRedact({ upstream: { protocol } }),
  );
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
