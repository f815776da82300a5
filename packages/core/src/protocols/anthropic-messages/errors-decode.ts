import { isObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { errorValue, messageOfText, withReply } from '../shared/error-reply.ts';
import { decodeError } from './errors.ts';

/** An error answer, whatever shape it has. How much may still be asked is told, too. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  const error = withReply(decodeErrorBody(reply.body, reply.status, context), reply, 'anthropic-messages');
  const limits = limitsOf(reply.headers);
  return limits ? { ...error, details: { ...error.details, rate_limits: limits } } : error;
}

/** The error of a body that was to be something else: `{type:"error",error}`, JSON in a string, a page, a text, nothing. */
export function decodeErrorBody(body: unknown, status?: number, context?: CodecContext): CanonicalError {
  const value = errorValue(body);
  return decodeError(isObject(value) ? value : { message: messageOfText(value, status, context) });
}

export const LIMIT_HEADER = 'anthropic-ratelimit-';

function limitsOf(headers: HeaderBag): HeaderBag | undefined {
  const limits = Object.entries(headers).filter(([name]) => name.startsWith(LIMIT_HEADER));
  return limits.length > 0 ? Object.fromEntries(limits) : undefined;
}
