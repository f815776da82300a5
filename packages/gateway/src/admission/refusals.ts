/** The errors of requests that a limit refuses. Messages name the limit and its numbers, never another key. */

import { type CanonicalError, CodecError, type HeaderBag } from '@sluice/core';
import { formatUsd } from '../keys/amounts.ts';
import type { RateState, Shortage } from './backend.ts';
import type { DemandTarget } from './demand.ts';

/** The limits that refuse requests, as metrics name them. `reserved`: a budget that running requests hold. */
type LimitKind = 'concurrency' | 'requests' | 'tokens' | 'budget' | 'reserved' | 'price' | 'unavailable';

/** A request that a limit refuses. */
export class LimitRefusal extends CodecError {
  readonly limit: LimitKind;
  /** The state of the rates of its key. */
  readonly headers: HeaderBag;

  constructor(limit: LimitKind, error: CanonicalError, headers: HeaderBag = {}) {
    super(error);
    this.limit = limit;
    this.headers = headers;
  }
}

/** A retry cannot help before the operator or the calendar does something. */
const HOPELESS = { should_retry: 'false' } as const;

const refuseRate = (limit: LimitKind, message: string, waitMs: number, headers?: HeaderBag): LimitRefusal =>
  new LimitRefusal(
    limit,
    { code: 'RATE_LIMIT', message, http_status: 429, retry_after_ms: Math.max(1, Math.ceil(waitMs)) },
    headers,
  );

/** All slots of a key are taken. */
export const refuseConcurrency = (limit: number): LimitRefusal =>
  refuseRate(
    'concurrency',
    `this key allows ${formatCount(limit, 'request')} at the same time, and that many are running; retry when one has ended`,
    RETRY_MS,
  );

/** A key has sent its requests of this minute. */
export const refuseRequests = (limit: number, { used, resetsInMs }: RateState, headers: HeaderBag): LimitRefusal =>
  refuseRate(
    'requests',
    `this key allows ${formatCount(limit, 'request')} per minute and has sent ${used}; the limit resets in ${formatWait(resetsInMs)}`,
    resetsInMs,
    headers,
  );

/** A key has used its tokens of this minute. */
export const refuseTokens = (limit: number, needed: number, { used, resetsInMs }: RateState, headers: HeaderBag): LimitRefusal =>
  refuseRate(
    'tokens',
    `this key allows ${formatCount(limit, 'token')} per minute and has used ${used}; this request needs about ${needed}. The limit resets in ${formatWait(resetsInMs)}`,
    resetsInMs,
    headers,
  );

/** A budget does not allow a request that may cost this much. */
export function refuseMoney(micros: number, { account, spent, reserved }: Shortage): LimitRefusal {
  const { by, name, window, period } = account;
  const of = by === 'key' ? 'this key' : `tag ${name}`;
  const left = Math.max(0, account.micros - spent - reserved);
  const isSpent = spent >= account.micros;
  const resets = period === 'total' ? '' : `; it resets at ${new Date(window.end).toISOString()}`;
  const numbers = `limit ${formatUsd(account.micros)} USD per ${period}, spent ${formatUsd(spent)}, reserved by running requests ${formatUsd(reserved)}, left ${formatUsd(left)}${resets}`;
  const need = `this request may cost up to ${formatUsd(micros)} USD`;
  if (spent + micros <= account.micros)
    return refuseRate(
      'reserved',
      `running requests hold the rest of the budget of ${of}: ${numbers}. ${capitalize(need)}; retry soon`,
      RETRY_MS,
    );
  const what = isSpent ? 'is spent' : 'is too low for this request';
  const advice = isSpent ? '' : '; set a lower output limit, or send less input';
  const message = `the budget of ${of} ${what}: ${numbers}. ${capitalize(need)}${advice}`;
  // Each protocol has its own status: OpenAI 429, Anthropic 402, Gemini 400, which their clients do not retry.
  return new LimitRefusal('budget', { code: 'BILLING', message, details: HOPELESS });
}

/** A budget applies, and what the request costs cannot be known. */
export const refuseUnpriced = ({ provider, model }: DemandTarget): LimitRefusal =>
  refuseUnknown(
    `the price of model ${JSON.stringify(`${provider}/${model}`.slice(0, MAX_NAME))} is not known, and a budget applies to this request; set its price under prices, or default_price`,
  );

/** A budget applies, and the endpoint does work whose cost the gateway never sees. */
export const refuseUncounted = (endpoint: string): LimitRefusal =>
  refuseUnknown(
    `the cost of ${endpoint.slice(0, MAX_NAME)} is not known, and a budget applies to this request; use a key without a budget`,
  );

/** A budget applies, and a field of the request changes its price in a way that is not known. */
export const refuseUnknownPrice = (what: string): LimitRefusal =>
  refuseUnknown(
    `the price of ${what.slice(0, MAX_NAME)} is not known, and a budget applies to this request; leave it out, or use a key without a budget`,
  );

const refuseUnknown = (message: string): LimitRefusal =>
  new LimitRefusal('price', { code: 'PERMISSION', message, http_status: 403, details: HOPELESS });

/** What was spent before cannot be read, so nothing more may be spent. */
export const refuseUnread = (): LimitRefusal =>
  new LimitRefusal('unavailable', {
    code: 'OVERLOADED',
    message: 'what the budget of this request has left cannot be read at the moment; retry later',
    http_status: 503,
    retry_after_ms: RETRY_MS,
  });

/** Running requests end at any time. */
const RETRY_MS = 2000;

const MAX_NAME = 200;

const formatCount = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`;

const formatWait = (ms: number): string => `${Math.ceil(ms / 1000)} s`;

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
