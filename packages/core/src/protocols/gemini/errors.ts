import { getOwn, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import { listOf, textOf } from '../shared/read.ts';
import { decodeWireError, errorBody } from '../shared/wire-error.ts';
import { camelObject } from './wire.ts';

/** The error of a payload: `{error}`, all of it under `event: error`, or a status object that lost its wrapper. */
export function findError(payload: JsonObject, event: string | undefined): unknown {
  if (payload['error']) return payload['error'];
  const { code, message, status }: { code?: unknown; message?: unknown; status?: unknown } = payload;
  const isStatus = typeof code === 'number' && code >= 400 && typeof message === 'string' && typeof status === 'string';
  return isStatus || event === 'error' ? payload : undefined;
}

/** Reasons of google.rpc.ErrorInfo that say more than the status they come with. */
const BY_REASON: Record<string, ErrorCode> = {
  API_KEY_INVALID: 'AUTHENTICATION',
  API_KEY_EXPIRED: 'AUTHENTICATION',
  ACCESS_TOKEN_EXPIRED: 'AUTHENTICATION',
  SERVICE_DISABLED: 'PERMISSION',
  API_KEY_SERVICE_BLOCKED: 'PERMISSION',
  BILLING_DISABLED: 'BILLING',
};

export function decodeError(error: unknown): CanonicalError {
  const body = errorBody(error);
  const details = listOf(body['details']).map(camelObject);
  const decoded = decodeWireError('gemini', body, body['status']);
  const code = codeOf(details, decoded.message, body['status']);
  const retry = retryAfter(details);
  return { ...decoded, ...(code && { code }), ...(retry !== undefined && { retry_after_ms: retry }) };
}

function codeOf(details: readonly JsonObject[], message: string, status: unknown): ErrorCode | undefined {
  for (const { reason } of details) {
    const code = getOwn(BY_REASON, reason);
    if (code) return code;
  }
  if (status !== 'FAILED_PRECONDITION') return undefined;
  if (/location is not supported/i.test(message)) return 'PERMISSION';
  return /billing|free tier/i.test(message) ? 'BILLING' : undefined;
}

/** google.rpc.RetryInfo: `"retryDelay": "34.4s"`. */
function retryAfter(details: readonly JsonObject[]): number | undefined {
  for (const { retryDelay } of details) {
    const seconds = /^(\d{1,9}(?:\.\d+)?)s$/.exec(textOf(retryDelay))?.[1];
    if (seconds !== undefined) return Math.round(Number(seconds) * 1000);
  }
  return undefined;
}
