/** Reads the responses of upstreams: errors, whole responses, and streams sent in their place. */

import { type CanonicalError, CodecError, type WireReply } from '@sluice/core';
import { nameProvider } from '@sluice/core/engine';
import { buildTooDeepError, isDeepText, MAX_JSON_DEPTH, parseJson } from '@sluice/core/internal';
import { type WholeReply, withoutBom } from '../upstream/body.ts';
import { withRetrySeconds } from '../upstream/retry.ts';
import { findExcess, type ResponseLimits } from './limits.ts';
import { findMissingEndpoint } from './missing-endpoint.ts';
import { REMEDY } from './response-errors.ts';
import {
  type Attempt,
  createInvalidResponseError,
  findRedirectError,
  formatProvider,
  type Outcome,
  type Reply,
  toUpstreamError,
} from './types.ts';

/** What reading a response needs of its attempt. */
export type ReplyContext = Pick<Attempt, 'exchange' | 'onStrange'> & {
  candidate: Pick<Attempt['candidate'], 'provider'>;
  limits: ResponseLimits;
};

/** Reads a whole response, or a stream that was sent in its place. */
export function readResponse(reply: WholeReply, attempt: ReplyContext): Outcome {
  const name = formatProvider(attempt.candidate);
  const wrong = findRedirectError(name, reply.status);
  if (wrong) return { is: 'failed', error: wrong };
  if (reply.status >= 400) return readRefusal(reply, attempt);
  try {
    const response = isStream(reply.body) ? convertStreamed(reply, attempt) : convertWhole(reply, attempt);
    const { exchange, limits } = attempt;
    // A response whose usage was peeked is text only, so no limit applies.
    const answer = exchange.hasUsageOnly ? undefined : exchange.canonicalResponse;
    const excess = answer && findExcess(answer, reply.body.length, limits, name);
    return excess ? { is: 'failed', error: excess } : { is: 'answered', reply: response };
  } catch (error) {
    if (error instanceof CodecError) return { is: 'failed', error: addRemedy(blameUpstream(error.error, attempt)) };
    throw error;
  }
}

const convertStreamed = ({ status, headers, body }: WholeReply, { exchange }: ReplyContext): Reply =>
  exchange.responseFromStream(status, headers, body);

function convertWhole(received: WholeReply, { exchange, candidate, onStrange }: ReplyContext): Reply {
  const { status, headers } = received;
  const body = withoutBom(received.body);
  const text = body.toString('utf8');
  if (isDeepText(text, MAX_JSON_DEPTH)) throw new CodecError(buildTooDeepError('the response is'));
  const parsed = parse(text);
  if (parsed === undefined) {
    onStrange(readHead(body));
    throw new CodecError(createInvalidResponseError(formatProvider(candidate), headers));
  }
  const { text: kept, ...reply } = exchange.response({ status, headers, body: parsed, text });
  return kept === undefined ? reply : { ...reply, bytes: kept === text ? body : Buffer.from(kept) };
}

function isStream(body: Buffer): boolean {
  if (body[0] === OPEN_BRACE) return false;
  const head = body.toString('latin1', 0, HEAD_BYTES).replace(/^\xef\xbb\xbf/, '');
  return !DOCUMENT_START.test(head) && STREAM_FIELD.test(head);
}

/** Some servers stream even when a whole response was requested. A stream begins with a field name. */
const STREAM_FIELD = /^(?:data|event|id|retry)?:/m;

/** A document begins with a bracket, quote or tag. */
const DOCUMENT_START = /^\s*[{["<]/;

const HEAD_BYTES = 1024;

/** The first byte of nearly every response. */
const OPEN_BRACE = 0x7b;

/** Reads a response with an error status: what it means, and what the client receives. */
export function readRefusal(reply: WholeReply, { exchange, candidate, onStrange }: ReplyContext): Outcome {
  const { status } = reply;
  const body = withoutBom(reply.body);
  const headers = withRetrySeconds(reply.headers, Date.now());
  // Undefined for JSON that is nested too deeply, which cannot be serialised again.
  const parsed = parseJson(body.toString('utf8'));
  if (parsed === undefined) onStrange(readHead(body));
  const wire: WireReply = { status, headers, body: parsed ?? body.toString('utf8', 0, SHOWN_BYTES) };
  const error = exchange.readError(wire);
  const missing = exchange.sent && findMissingEndpoint(wire, error, { ...candidate, ...exchange.sent });
  const converted = missing ? exchange.failure(missing) : exchange.error(wire);
  return {
    is: 'failed',
    error: missing ?? error,
    reply: { ...converted, headers: { ...headers, ...converted.headers } },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const readHead = (body: Buffer): string => body.toString('utf8', 0, SHOWN_BYTES);

/** How much of an unreadable response is logged. */
const SHOWN_BYTES = 4096;

/** An error that the decoder found in a stream, as the client receives it. */
export const explainStreamError = (
  error: CanonicalError,
  headers: Record<string, string>,
  attempt: ReplyContext,
): CanonicalError =>
  error.details?.['code'] === 'not_a_stream'
    ? createInvalidResponseError(formatProvider(attempt.candidate), headers)
    : blameUpstream(error, attempt);

/** Marks an error as the upstream's and names its provider. */
const blameUpstream = (error: CanonicalError, { candidate }: ReplyContext): CanonicalError =>
  nameProvider(toUpstreamError(error, formatProvider(candidate)), candidate.provider.id);

/** What cannot be read at all is often a response of another protocol. */
const addRemedy = (error: CanonicalError): CanonicalError =>
  error.upstream || error.code !== 'UPSTREAM_ERROR' || error.message.endsWith(REMEDY)
    ? error
    : { ...error, message: `${error.message}; ${REMEDY}` };

/** Redacts upstream errors, which may quote the key that was sent. */
export function redactBytes(pieces: Iterable<Uint8Array>, redact: (text: string) => string): Uint8Array {
  return Buffer.from(redact(Buffer.concat([...pieces]).toString('utf8')));
}
