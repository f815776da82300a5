/** What a captured exchange holds. docs/capture.md describes it. */

import type { CanonicalError, ExchangeOptions, InterfaceType, ProtocolId, Provider } from '@sluice/core';
import type { Read, Ending as TapeEnding } from '@sluice/lab/tape';
import type { ResponseLimits } from '../exchange/limits.ts';
import type { Ending } from '../exchange/types.ts';

/** Raised when readers of the previous version would misread a capture. */
export const CAPTURE_VERSION = 1;

/** A captured exchange without secrets. */
export interface Capture {
  capture: typeof CAPTURE_VERSION;
  /** The id of the exchange in the ledger; that of the request where there is no ledger. */
  id: string;
  /** The id that the client received. */
  requestId: string;
  /** When the request had arrived, ISO 8601. */
  at: string;
  endpoint: InterfaceType;
  protocol: ProtocolId;
  /** The model that the client requested. */
  model: string | null;
  isStream: boolean;
  request: CapturedRequest;
  attempts: CapturedAttempt[];
  /** Null when nothing was sent to the client. */
  response: ClientResponse | null;
  /** How the exchange ended. */
  ending: Ending;
  /** The error that the client received. */
  error?: CanonicalError | undefined;
  /** Some bytes are missing because the exchange was longer than `capture.exchange_bytes`. */
  isTruncated: boolean;
  /** A secret was removed from a body. */
  isRedacted: boolean;
  /** The limits that the conversion obeyed. */
  limits: ResponseLimits;
}

/** A request without credentials. */
export interface CapturedRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

/** A response body with its network reads: milliseconds since the request of its side, and bytes. */
export interface CapturedResponse {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
  reads: Read[];
}

/** The response as the client received it; `reads` are the writes of the gateway. */
export interface ClientResponse extends CapturedResponse {
  /** The headers were those of a stream. */
  isStream: boolean;
  /** Indexes of writes that clients ignore, such as heartbeats. They do not come from the upstream. */
  fills: number[];
}

/** One request to an upstream. */
export interface CapturedAttempt {
  /** Milliseconds between the client's request and this one. */
  startMs: number;
  provider: string;
  protocol: ProtocolId;
  /** How request and response were converted; null when they were forwarded. */
  conversion: Conversion | null;
  /** The times that the conversion read, in order: Unix seconds. Ids are derived from the response and need no seed. */
  clock: number[];
  request: CapturedRequest & { url: string };
  /** Null when there was no response. */
  response: CapturedResponse | null;
  end: TapeEnding;
  outcome: 'answered' | 'failed' | 'broken' | 'lost' | 'gone';
  /** The error of the attempt. */
  error?: CanonicalError | undefined;
}

/** The options of a conversion that affect its output. The provider has no credentials. */
export type Conversion = Pick<ExchangeOptions, (typeof CONVERSION_FIELDS)[number]> & {
  /** Responses in the client's protocol were repaired in place. Absent: they were decoded and encoded again. */
  inPlace?: true;
  provider: Pick<Provider, 'id' | 'protocol' | 'base_url'>;
};

/** The options of a conversion that are kept as they are. */
export const CONVERSION_FIELDS = [
  'model',
  'profile',
  'stream',
  'passthrough',
  'passRequest',
  'policy',
  'maxLineBytes',
  'maxEventBytes',
  'envelope',
] as const satisfies readonly (keyof ExchangeOptions)[];

/** What a list of captures shows. */
export interface CaptureSummary
  extends Pick<
    Capture,
    'id' | 'requestId' | 'at' | 'endpoint' | 'protocol' | 'model' | 'isStream' | 'ending' | 'isTruncated' | 'isRedacted'
  > {
  status: number | null;
  attempts: number;
  /** Where it is kept. */
  place: 'memory' | 'folder';
}

/** What a list shows of a capture. */
export const summarize = (capture: Summarized, place: CaptureSummary['place']): CaptureSummary => {
  const { id, requestId, at, endpoint, protocol, model, isStream, ending, isTruncated, isRedacted } = capture;
  const { response, attempts } = capture;
  const facts = { id, requestId, at, endpoint, protocol, model, isStream, ending, isTruncated, isRedacted };
  return { ...facts, status: response?.status ?? null, attempts: attempts.length, place };
};

/** What a summary is made of. */
type Summarized = Omit<Capture, 'request' | 'limits' | 'response' | 'attempts'> & {
  response: Pick<ClientResponse, 'status'> | null;
  attempts: { length: number };
};

/** Bytes that a capture takes in memory, with its reads. */
export function measure({ request, response, attempts }: Pick<Capture, 'request' | 'response' | 'attempts'>): number {
  const sizeOf = (part: CapturedResponse | null): number => (part ? part.body.length + part.reads.length * BYTES_PER_READ : 0);
  const own = request.body.length + sizeOf(response) + OWN_BYTES;
  return attempts.reduce((sum, attempt) => sum + attempt.request.body.length + sizeOf(attempt.response) + OWN_BYTES, own);
}

/** A pair in a list. */
export const BYTES_PER_READ = 32;

/** Headers, ids and objects. */
const OWN_BYTES = 2048;
