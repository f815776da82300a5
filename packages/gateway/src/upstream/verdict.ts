import type { CanonicalError, ErrorCode } from '@sluice/core';

/** What may be done about an attempt that failed before the client saw anything of an answer. */
export type Verdict =
  /** The same target may do better next time. */
  | 'again'
  /** This target will not, another may. */
  | 'next'
  /** It is the request that is wrong: nobody would answer it. */
  | 'stop';

const VERDICTS = {
  INVALID_INPUT: 'stop',
  MISSING_REQUIRED_FIELD: 'stop',
  INCOMPATIBLE_FEATURE: 'next',
  TOOL_CALL_PARSE_ERROR: 'again',
  JSON_PARSE_ERROR: 'stop',
  RATE_LIMIT: 'again',
  AUTHENTICATION: 'next',
  PERMISSION: 'next',
  NOT_FOUND: 'next',
  CONTEXT_LENGTH: 'next',
  PAYLOAD_TOO_LARGE: 'next',
  CONTENT_POLICY: 'stop',
  BILLING: 'next',
  CONFLICT: 'again',
  OVERLOADED: 'again',
  TIMEOUT: 'next',
  CANCELLED: 'stop',
  STREAM_TRUNCATED: 'again',
  UNSUPPORTED_INTERFACE: 'next',
  UPSTREAM_ERROR: 'again',
  INTERNAL: 'stop',
} as const satisfies Record<ErrorCode, Verdict>;

/** Where the upstream says itself whether it is worth another try (`x-should-retry`), it knows better. */
export function verdictOf({ code, details, upstream }: CanonicalError): Verdict {
  // A proxy's 503 with the word NOT_FOUND in it: the status tells what happened.
  const verdict = code !== 'TIMEOUT' && upstream?.status === 503 ? 'again' : VERDICTS[code];
  if (verdict === 'stop' || details?.['should_retry'] === undefined) return verdict;
  return details['should_retry'] === 'true' ? 'again' : 'next';
}

/**
 * Failures whose status tells more than that the target is paused: the operator has to act (a key, a bill), or the client is told when to come
 * back.
 */
export const keepsStatus = ({ code, retry_after_ms: wait }: CanonicalError): boolean =>
  code === 'AUTHENTICATION' || code === 'PERMISSION' || code === 'BILLING' || (code === 'RATE_LIMIT' && wait !== undefined);

/** Whether a failure says something about the target, and not about the request. */
export const isTargetsFault = (error: CanonicalError): boolean =>
  verdictOf(error) !== 'stop' && !OF_THE_REQUEST.has(error.code) && !isGatewaysFault(error);

/** The gateway itself ran out of something: nothing is known about the target. */
export const isGatewaysFault = ({ details }: CanonicalError): boolean => details?.['overloaded'] === 'gateway';

const OF_THE_REQUEST: ReadonlySet<ErrorCode> = new Set([
  'INCOMPATIBLE_FEATURE',
  'NOT_FOUND',
  'CONTEXT_LENGTH',
  'PAYLOAD_TOO_LARGE',
  'CONFLICT',
]);

/** The upstream had the request and may have processed it: the attempt may be on its bill. */
export function mayBeBilled({ code, details, upstream }: CanonicalError): boolean {
  const known = details?.['may_be_billed'];
  if (typeof known === 'boolean') return known;
  return code === 'TIMEOUT' || code === 'STREAM_TRUNCATED' || upstream?.status === 502 || upstream?.status === 504;
}

const FIRST_PAUSE_MS = 250;

/**
 * How long to wait before the same target is asked again; undefined when it asks for more than `patience`: then the client is told. (A provider
 * has really asked for 277,403 seconds.)
 */
export function pauseBefore(
  attempt: number,
  { retry_after_ms: asked }: CanonicalError,
  patience: number,
  random: () => number,
): number | undefined {
  if (asked !== undefined) return asked <= patience ? Math.max(0, asked) : undefined;
  return FIRST_PAUSE_MS * 2 ** attempt * (0.5 + random());
}
