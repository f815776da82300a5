import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CodecContext, WireReply } from '../shared/codec.ts';
import { errorValue, messageOfText, withReply } from '../shared/error-reply.ts';
import { decodeWireError, errorBody } from '../shared/wire-error.ts';
import { findError } from './errors.ts';

/** An error answer of a compatible server, whatever shape it has. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return withReply(decodeErrorBody(reply.body, reply.status, context), reply, 'openai-chat');
}

/** The error of a body that was to be a completion and is none. */
export const decodeErrorBody = (body: unknown, status?: number, context?: CodecContext): CanonicalError =>
  decodeWireError('openai-chat', errorObject(body, status, context));

/** One object with a message, out of `{error}`, `{error:"text"}`, `{message}`, `{detail}`, `[{error}]`, JSON in a string, HTML, nothing. */
function errorObject(body: unknown, status: number | undefined, context: CodecContext | undefined): JsonObject {
  const value = errorValue(body);
  if (!isObject(value)) return { message: messageOfText(value, status, context) };
  const error = findError(value, 'error');
  // xAI and Hugging Face write the text into `error` and what kind it is beside it.
  return typeof error === 'string' ? { ...value, message: error } : errorBody(error);
}
