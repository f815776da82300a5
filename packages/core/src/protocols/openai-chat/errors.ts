import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import { decodeWireError, errorBody, isBareError } from '../shared/wire-error.ts';

/** The error of a chunk or body, wherever compatible servers put it: `error`, `choices[].error`, or the whole payload of `event: error`. */
export function findError(payload: JsonObject, event: string | undefined): unknown {
  if (payload['error']) return payload['error'];
  const choices = payload['choices'];
  if (Array.isArray(choices)) for (const choice of choices) if (isObject(choice) && choice['error']) return choice['error'];
  const failure = payload['base_resp'];
  if (isObject(failure) && isFailure(failure)) return failure;
  // FastAPI servers answer {"detail": …}, others {"object":"error","message": …} or {"code": …,"message": …}.
  const isAlone = !Array.isArray(choices) && (payload['detail'] !== undefined || isBareError(payload));
  return event === 'error' || payload['object'] === 'error' || isAlone ? payload : undefined;
}

/** MiniMax puts a verdict on every answer; 0 is success. */
const isFailure = ({ status_code: code }: JsonObject): boolean => typeof code === 'number' && code !== 0;

export const decodeError = (error: unknown): CanonicalError => decodeWireError('openai-chat', errorBody(error));
