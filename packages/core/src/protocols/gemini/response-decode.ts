import { isObject } from '../../accumulate/overlay.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { readWhole, upstreamError } from '../shared/answer-body.ts';
import { CodecError } from '../shared/codec.ts';
import type { Context } from '../shared/context.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { decodeStream } from './stream-decode.ts';

/** A whole GenerateContentResponse, or the list of its fragments, read by the stream decoder. Throws when it is an error. */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  const fragments: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (!fragments.every(isObject)) throw new CodecError(decodeErrorBody(body));
  const { message, complete } = readWhole(fragments, decodeStream(context));
  if (!complete) throw new CodecError(upstreamError('the response has no finishReason'));
  return message;
}
