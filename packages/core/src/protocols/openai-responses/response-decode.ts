import { isObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { readWhole, upstreamError } from '../shared/answer-body.ts';
import { CodecError } from '../shared/codec.ts';
import type { Context } from '../shared/context.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { isWholeResponse } from './response-fields.ts';
import { decodeStream } from './stream-decode.ts';
import { filled } from './wire.ts';

/** A whole response, read by the stream decoder: every rule about items holds for it. Throws when it is an error, or has not ended. */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  if (!isObject(body) || !isWholeResponse(body)) throw new CodecError(errorOf(body));
  const { message, complete } = readWhole([body], decodeStream(context));
  // A response in the background: whoever asked for it comes back for it.
  if (!complete)
    throw new CodecError(
      upstreamError(`the response is ${filled(body['status']) ?? 'without a status'}: it has not been finished`),
    );
  return message;
}

function errorOf(body: unknown): CanonicalError {
  const isSilent = isObject(body) && !body['error'] && body['detail'] === undefined && body['message'] === undefined;
  return isSilent ? upstreamError('the answer is no response') : decodeErrorBody(body);
}
