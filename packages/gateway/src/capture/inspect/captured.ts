/** The stream of a captured exchange, converted again. It runs in browsers, too. */

import { type CanonicalError, createExchange, type Exchange, type ExchangeOptions } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { repairInPlace } from '@sluice/core/internal';
import { redactPatterns } from '../../config/secret-patterns.ts';
import { ResponseMeter } from '../../exchange/limits.ts';
import { formatProvider } from '../../exchange/response-errors.ts';
import { createAddressRedact, createRedact } from '../../observe/redact.ts';
import type { Capture, CapturedAttempt, CapturedResponse, ClientResponse, Conversion } from '../capture.ts';
import { type Boundary, cutFrames, type Frame, listBoundaries } from './frames.ts';
import { type Trace, traceStream } from './trace.ts';

/** The redaction of the gateway without its secrets, which a capture does not have. */
const redact = createRedact({ redact: redactPatterns });

const redactUpstream = createAddressRedact(redact);

/** The redaction of an error: texts of an upstream may have addresses. */
export const chooseRedact = ({ upstream }: Pick<CanonicalError, 'upstream'>): ((text: string) => string) =>
  upstream ? redactUpstream : redact;

/** Creates the exchange again, with the request of the client. Throws if that cannot be read. */
export function createCapturedExchange(
  { protocol, request }: Pick<Capture, 'protocol' | 'request'>,
  attempt: CapturedAttempt,
  conversion: Conversion,
): Exchange {
  const { inPlace, ...kept } = conversion;
  const options: ExchangeOptions = {
    ...kept,
    ...(inPlace && { repair: repairInPlace }),
    tap: 'usage',
    ...(attempt.clock.length > 0 && { now: repeatClock(attempt.clock) }),
  };
  const exchange = createExchange(CODECS[protocol], CODECS[attempt.protocol], options);
  const text = decodeText(request.body);
  exchange.request({ ...request, body: JSON.parse(text), text });
  return exchange;
}

/** Returns the recorded times in order, and then the last one. */
function repeatClock(clock: readonly number[]): () => number {
  let next = 0;
  return () => clock[Math.min(next++, clock.length - 1)] ?? 0;
}

/** Bytes as text. A byte order mark stays, as it would in the gateway. */
export const decodeText = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** A converted stream with its frames and reads. */
export interface CapturedTrace extends Trace {
  frames: Frame[];
  reads: Boundary[];
}

/** Converts the stream of a capture again, as the gateway did. */
export function traceCapture(
  capture: Capture,
  attempt: CapturedAttempt,
  { body, reads }: CapturedResponse,
  exchange: Exchange,
  conversion: Conversion,
): CapturedTrace {
  const meter = new ResponseMeter(capture.limits, formatProvider(conversion));
  const { maxLineBytes, maxEventBytes } = conversion;
  const frames = cutFrames(body, { ...(maxLineBytes && { maxLineBytes }), ...(maxEventBytes && { maxEventBytes }) });
  const boundaries = listBoundaries(body, reads, attempt.startMs);
  const isOpen = attempt.outcome === 'gone' || capture.isTruncated;
  const trace = traceStream({
    body,
    frames,
    reads: boundaries,
    open: (observers) => exchange.stream({ ...observers, inspect: (event) => meter.add(event) }),
    ending: isOpen ? 'open' : (attempt.error ?? 'end'),
    repeat: (error, diagnostics) => exchange.repeatInStream(error, diagnostics),
    redact: redactUpstream,
  });
  return { ...trace, frames, reads: boundaries };
}

/** How derived bytes compare with the recorded ones. */
export type Comparison =
  /** `isPrefix`: the client left or the capture is truncated, and everything that both have is equal. */
  | { is: 'equal'; isPrefix: boolean }
  /** `at`: the first byte that differs, in the body without heartbeats. */
  | { is: 'different'; recorded: Uint8Array; at: number };

/** Why a response with sealed state cannot be derived. */
export const SEALED = 'the response contains sealed state of a provider, whose key is not in the capture';

/** Whether a response contains a capsule: as text, in the id of a call, or as base64. */
export const holdsSealed = ({ body }: ClientResponse): boolean =>
  /"cv2\.|--cv2--|"Y3Yy/.test(new TextDecoder('latin1').decode(body));

/** Compares derived bytes with those that the client received. */
export function compareBytes(bytes: Uint8Array, response: ClientResponse, { isTruncated, ending }: Capture): Comparison {
  const recorded = pickContent(response);
  const mayBeCut = isTruncated || ending === 'client_aborted' || ending === 'client_stalled';
  const shared = Math.min(bytes.length, recorded.length);
  for (let at = 0; at < shared; at++) if (bytes[at] !== recorded[at]) return { is: 'different', recorded, at };
  if (!mayBeCut && bytes.length !== recorded.length) return { is: 'different', recorded, at: shared };
  return { is: 'equal', isPrefix: mayBeCut };
}

/** The body without heartbeats. */
export function pickContent({ body, reads, fills }: ClientResponse): Uint8Array {
  if (fills.length === 0) return body;
  const skipped = new Set(fills);
  return joinBytes(splitReads(body, reads).filter((_, index) => !skipped.has(index)));
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

/** All parts as one array. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
