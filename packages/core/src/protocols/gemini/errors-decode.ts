import { isObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CodecContext, WireReply } from '../shared/codec.ts';
import { errorValue, messageOfText, withReply } from '../shared/error-reply.ts';
import { decodeError, findError } from './errors.ts';

/** An error answer, whatever shape it has. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return withReply(decodeErrorBody(reply.body, reply.status, context), reply, 'gemini');
}

/** The error of a body that was to be an answer: `{error}`, the list `[{error}]` of a stream that did not begin, JSON in a string, a page, nothing. */
export function decodeErrorBody(body: unknown, status?: number, context?: CodecContext): CanonicalError {
  const value = errorValue(body);
  return decodeError(isObject(value) ? findError(value, 'error') : { message: messageOfText(value, status, context) });
}
