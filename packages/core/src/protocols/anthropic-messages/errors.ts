import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import { decodeWireError, errorBody } from '../shared/wire-error.ts';

/** `{type: "error", error: {type, message}, request_id}`, or what relays send in its place: text, or the inner object alone. */
export function decodeError(payload: JsonObject): CanonicalError {
  const body = payload['error'] ? errorBody(payload['error']) : payload;
  const requestId = payload['request_id'];
  return {
    ...decodeWireError('anthropic-messages', body),
    ...(isSpendLimit(body) && { code: 'BILLING' as const }),
    ...(typeof requestId === 'string' && { request_id: requestId }),
  };
}

/** The organisation's own limit: waiting does not help, although the status is 429. */
const isSpendLimit = ({ details }: JsonObject): boolean =>
  isObject(details) && details['error_code'] === 'enforced_spend_limit_reached';
