/** When a failed request is sent again: verdicts, pauses, the retry budget, and optional fields that targets reject. */

import type { CanonicalError, ErrorCode, Provider, ProviderProfile } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { BoundedCache } from '@sluice/core/internal';

/** What to do after an attempt that failed before anything was sent to the client. */
export type Verdict =
  /** Retry the same target. */
  | 'again'
  /** Try another target. */
  | 'next'
  /** The request itself is invalid; every target would reject it. */
  | 'stop';

/** The default verdict for every error code. */
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

/** The verdict for an error; the upstream's `x-should-retry` overrides the default. A response that cannot be used was billed. */
export function findVerdict({ code, details, upstream }: CanonicalError): Verdict {
  // A proxy's 503 may contain the word NOT_FOUND; its status decides.
  const verdict = code !== 'TIMEOUT' && upstream?.status === 503 ? 'again' : VERDICTS[code];
  if (verdict !== 'stop' && details?.['unusable'] === true) return 'next';
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
export const isTargetFault = (error: CanonicalError): boolean =>
  findVerdict(error) !== 'stop' && !REQUEST_FAULTS.has(error.code) && !isGatewayFault(error);

/** The gateway itself ran out of a resource, so nothing is known about the target. */
export const isGatewayFault = ({ details }: CanonicalError): boolean => details?.['overloaded'] === 'gateway';

/** Errors that depend on the request; other requests to the same target may succeed. */
const REQUEST_FAULTS: ReadonlySet<ErrorCode> = new Set([
  'INCOMPATIBLE_FEATURE',
  'NOT_FOUND',
  'UNSUPPORTED_INTERFACE',
  'CONTEXT_LENGTH',
  'PAYLOAD_TOO_LARGE',
  'CONFLICT',
]);

/** Whether a failure is about the key that was sent: another key of the same provider may work. */
export const isKeyFault = ({ code }: CanonicalError): boolean =>
  code === 'RATE_LIMIT' || code === 'AUTHENTICATION' || code === 'BILLING';

/** Whether the upstream may have processed the request and may bill it. */
export function mayBeBilled({ code, details, upstream }: CanonicalError): boolean {
  const known = details?.['may_be_billed'];
  if (typeof known === 'boolean') return known;
  return code === 'TIMEOUT' || code === 'STREAM_TRUNCATED' || upstream?.status === 502 || upstream?.status === 504;
}

/**
 * How long to wait before a retry at the same target; undefined when the target requests more than `maxWaitMs`. (A
 * provider has really requested 277,403 seconds.)
 */
export function computePause(
  attempt: number,
  { retry_after_ms: requested }: CanonicalError,
  maxWaitMs: number,
  random: () => number,
): number | undefined {
  if (requested !== undefined) return requested <= maxWaitMs ? Math.max(0, requested) : undefined;
  return FIRST_PAUSE_MS * 2 ** attempt * (0.5 + random());
}

const FIRST_PAUSE_MS = 250;

/** Converts a `Retry-After` date to seconds, because codecs have no clock. `now`: milliseconds of the wall clock. */
export function withRetrySeconds(headers: Record<string, string>, now: number): Record<string, string> {
  const value = headers['retry-after'];
  if (value === undefined || Number.isFinite(Number(value))) return headers;
  const date = Date.parse(value);
  if (Number.isNaN(date)) return headers;
  return { ...headers, 'retry-after': String(Math.max(0, Math.ceil((date - now) / 1000))) };
}

/**
 * Limits retries to a share of the traffic. When an upstream fails for all clients, retries would multiply its load and
 * keep it down. Requests to another upstream are not retries.
 */
export class RetryBudget {
  readonly #share: number;
  readonly #now: () => number;
  #saved = MAX_SAVED;
  #earnedAt: number;

  /** `now`: milliseconds of a monotonic clock. */
  constructor(share: number, now: () => number) {
    this.#share = share;
    this.#now = now;
    this.#earnedAt = now();
  }

  /** Adds the share of one request. */
  earn(): void {
    this.#save(this.#share);
  }

  /** Takes one retry; false when none is left. */
  spend(): boolean {
    const now = this.#now();
    this.#save(((now - this.#earnedAt) / 1000) * RETRIES_PER_SECOND);
    this.#earnedAt = now;
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }

  #save(amount: number): void {
    this.#saved = Math.min(MAX_SAVED, this.#saved + amount);
  }
}

/** Most retries that are saved: enough for a quiet gateway, too few to harm an upstream that is down. */
const MAX_SAVED = 20;

/** Retries gained per second, so that a single user can retry, too. */
const RETRIES_PER_SECOND = 1;

/** Optional fields of chat requests that some servers reject. */
export type RefusedField = 'stream_options' | 'reasoning';

/** Finds the optional field that the server rejected; undefined for other errors. */
export function findRefusal(error: CanonicalError): RefusedField | undefined {
  const status = error.upstream?.status ?? 0;
  if (status !== 400 && status !== 422) return undefined;
  const body = JSON.stringify(error.upstream?.body) ?? '';
  const text = `${error.message.slice(0, READ_CHARS)}\n${error.param ?? ''}\n${body.replaceAll('\\"', '"').slice(0, READ_CHARS)}`;
  if (!REFUSAL.test(text) || DEMAND.test(text)) return undefined;
  return FIELD_NAMES.stream_options.test(text) ? 'stream_options' : FIELD_NAMES.reasoning.test(text) ? 'reasoning' : undefined;
}

/** How errors name the fields. */
const FIELD_NAMES = {
  stream_options: /\bstream_options\b|\binclude_usage\b/,
  reasoning: /\breasoning_(?:content|details|text)\b|['"`]reasoning['"`]|\bmessages\b[^\n]{0,40}\.reasoning\b/,
} as const satisfies Record<RefusedField, RegExp>;

const REFUSAL =
  /unsupported|not supported|unknown|unrecognized|unexpected|extra|not permitted|not allowed|forbidden|invalid|additional propert/i;

/** The server requires the field or another value of it, so leaving it out would not help. */
const DEMAND = /missing|required|must (?:be|have|contain|include)/i;

/** Characters of an upstream error that are searched. */
const READ_CHARS = 4096;

/** Whether a target may have rejected a request because it ends with an assistant message. */
export const isPrefillRefusal = ({ code, upstream }: CanonicalError): boolean =>
  (upstream?.status === 400 || upstream?.status === 422) && code !== 'CONTEXT_LENGTH' && code !== 'CONTENT_POLICY';

/** The profile without these fields. */
export const removeFields = (profile: ProviderProfile, fields: readonly RefusedField[]): ProviderProfile =>
  Object.freeze(Object.assign({ ...profile }, ...fields.map((field) => PROFILES_WITHOUT[field])));

/** The profile of a server that rejects the field. */
const PROFILES_WITHOUT = {
  stream_options: { stream_usage: false },
  reasoning: { reasoning_replay: 'never' },
} as const satisfies Record<RefusedField, Partial<ProviderProfile>>;

/**
 * Which targets (provider and model) reject which optional fields, learned from their errors until the configuration is
 * reloaded.
 */
export class LearnedRefusals {
  readonly #learned = new BoundedCache<Learned>(TARGET_LIMITS);
  /** Targets that reject a trailing assistant message, with their configured profiles. */
  readonly #prefills = new BoundedCache<ProviderProfile>(TARGET_LIMITS);

  /** The profile of a target without the fields that it has rejected. */
  findProfile({ key, profile }: Target): ProviderProfile {
    const learned = this.#learned.get(key);
    return learned?.base === profile ? learned.profile : profile;
  }

  /** Whether a target continues a trailing assistant message, as far as is known. */
  acceptsPrefill({ key, profile, provider }: PrefillTarget): boolean {
    const known = provider.profile?.prefill ?? CODECS[provider.protocol].acceptsPrefill(profile);
    return known && this.#prefills.get(key) !== profile;
  }

  /** Remembers that a target rejects a trailing assistant message. */
  learnPrefill({ key, profile }: Target): void {
    this.#prefills.set(key, profile);
  }

  /** Remembers that a target rejects these fields. */
  learn(target: Target, fields: readonly RefusedField[]): void {
    const profile = removeFields(this.findProfile(target), fields);
    this.#learned.set(target.key, { base: target.profile, profile });
  }
}

interface Learned {
  /** The configured profile. A reload creates a new one, which invalidates what was learned. */
  base: ProviderProfile;
  profile: ProviderProfile;
}

interface Target {
  key: string;
  profile: ProviderProfile;
}

interface PrefillTarget extends Target {
  provider: Provider;
}

/** Targets contain model names, of which clients can invent any number. */
const TARGET_LIMITS = { entries: 1000, bytes: 512 * 1024 };
