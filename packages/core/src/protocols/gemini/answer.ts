import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import { CodecError } from '../shared/codec.ts';
import { findError } from './errors.ts';
import { decodeErrorBody } from './errors-decode.ts';

export const upstreamError = (message: string): CanonicalError => ({ code: 'UPSTREAM_ERROR', message, http_status: 502 });

/** The body of an answer; an error that came with status 200, and a text or a page instead of JSON, are thrown as what they are. */
export function answerOf(wire: unknown): JsonObject {
  if (isObject(wire) && findError(wire, undefined) === undefined) return wire;
  throw new CodecError(decodeErrorBody(wire));
}

/** The server's answer is wrong at `param`: nothing that the client could mend. */
export function badAnswer(param: string, message: string): CodecError {
  return new CodecError({ ...upstreamError(`${param} of the answer ${message}`), param });
}
