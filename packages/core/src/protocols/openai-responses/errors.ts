import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import { type CanonicalError, ownError } from '../../canonical/errors.ts';
import { decodeWireError, errorBody } from '../shared/wire-error.ts';

/**
 * The error that a payload carries: nested in `error` (as the live API sends it), flat (as the SDK types it), a string beside a `code`
 * (xAI), or FastAPI's `detail`.
 */
export function findError(payload: JsonObject): unknown {
  const nested = payload['error'];
  if (isObject(nested)) return nested;
  return typeof nested === 'string' ? { ...payload, message: nested } : payload;
}

export function decodeError(error: unknown): CanonicalError {
  const body = errorBody(error);
  // In the flat form `type` is the name of the event.
  return decodeWireError('openai-responses', body, body['type'] === 'error' ? null : body['type']);
}

/** `response.failed` and `status: "cancelled"`, which may say nothing about the cause. */
export function decodeFailure(status: string, error: unknown): CanonicalError {
  if (isObject(error) || typeof error === 'string') return decodeError(error);
  if (status === 'cancelled') return ownError('response_failed', 'CANCELLED', 'the response was cancelled');
  return ownError('response_failed', 'UPSTREAM_ERROR', 'the response failed; the server did not say why');
}

/** Whether the server itself said that the response is over: a failure, but not an early end of the stream. */
export const asTerminal = (error: CanonicalError): CanonicalError => ({
  ...error,
  details: { ...error.details, terminal: true },
});
