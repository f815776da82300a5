import { isObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CodecContext, WireReply } from '../shared/codec.ts';
import { errorValue, messageOfText, withReply } from '../shared/error-reply.ts';
import { decodeError, findError } from './errors.ts';
import { PROTOCOL } from './kept.ts';

/** An error answer, whatever shape it has. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return withReply(decodeErrorBody(reply.body, reply.status, context), reply, PROTOCOL);
}

/** The error of a body that was to be a response and is none: `{error}`, `{detail}`, `[{error}]`, JSON in a string, HTML, nothing. */
export function decodeErrorBody(body: unknown, status?: number, context?: CodecContext): CanonicalError {
  const value = errorValue(body);
  return decodeError(isObject(value) ? findError(value) : { message: messageOfText(value, status, context) });
}
