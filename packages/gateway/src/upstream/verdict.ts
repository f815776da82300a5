import type { CanonicalError, ErrorCode } from '@sluice/core';

/** What to do after an attempt that failed before anything was sent to the client. */
export type Verdict =
  /** Retry the same target. */
  | 'again'
  /** Try another target. */
  | 'next'
  /** The request itself is invalid; every target would reject it. */
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

/** The verdict for an error; the upstream's `x-should-retry` overrides the default. */
export function findVerdict({ code, details, upstream }: CanonicalError): Verdict {
  // A proxy's 503 may contain the word NOT_FOUND; its status decides.
  const verdict = code !== 'TIMEOUT' && upstream?.status === 503 ? 'again' : VERDICTS[code];
  if (verdict === 'stop' || details?.['should_retry'] === undefined) return verdict;
  return details['should_retry'] === 'true' ? 'again' : 'next';
}

/**
 * Failures whose own status is more useful than that of a pause: the operator has to act (key, bill), or the client
 * knows when to retry.
 */
export const keepsStatus = ({ code, retry_after_ms: wait }: CanonicalError): boolean =>
  code === 'AUTHENTICATION' || code === 'PERMISSION' || code === 'BILLING' || (code === 'RATE_LIMIT' && wait !== undefined);

/** Whether a failure is caused by the target rather than the request. */
export const isTargetsFault = (error: CanonicalError): boolean =>
  findVerdict(error) !== 'stop' && !OF_THE_REQUEST.has(error.code) && !isGatewaysFault(error);

/** The gateway itself ran out of a resource, so nothing is known about the target. */
export const isGatewaysFault = ({ details }: CanonicalError): boolean => details?.['overloaded'] === 'gateway';

const OF_THE_REQUEST: ReadonlySet<ErrorCode> = new Set([
  'INCOMPATIBLE_FEATURE',
  'NOT_FOUND',
  'CONTEXT_LENGTH',
  'PAYLOAD_TOO_LARGE',
  'CONFLICT',
]);

/** Whether the upstream may have processed the request and may bill it. */
export function mayBeBilled({ code, details, upstream }: CanonicalError): boolean {
  const known = details?.['may_be_billed'];
  if (typeof known === 'boolean') return known;
  return code === 'TIMEOUT' || code === 'STREAM_TRUNCATED' || upstream?.status === 502 || upstream?.status === 504;
}

const FIRST_PAUSE_MS = 250;

/**
 * How long to wait before a retry at the same target; undefined when it requests more than `patience`. (A provider has
 * really requested 277,403 seconds.)
 */
export function pauseBefore(
  attempt: number,
  { retry_after_ms: asked }: CanonicalError,
  maxWaitMs: number,
  random: () => number,
): number | undefined {
  if (asked !== undefined) return asked <= maxWaitMs ? Math.max(0, asked) : undefined;
  return FIRST_PAUSE_MS * 2 ** attempt * (0.5 + random());
}
