import { MessageAccumulator } from '../../accumulate/message.ts';
import { isObject, writeJson } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { CodecError } from '../shared/codec.ts';
import type { Context } from '../shared/context.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { isWholeResponse } from './response-fields.ts';
import { decodeStream } from './stream-decode.ts';

/** A whole response, read by the stream decoder: every rule about items holds for it. Throws when it is an error, or has not ended. */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  if (!isObject(body) || !isWholeResponse(body)) throw new CodecError(errorOf(body));
  const data = writeJson(body);
  if (data === undefined) throw new CodecError(upstreamError('the response is nested too deeply to be read'));
  const accumulator = new MessageAccumulator();
  const decoder = decodeStream(context);
  for (const event of decoder.push({ data, bare: true })) accumulator.push(event);
  for (const event of decoder.end()) accumulator.push(event);
  const { message, error, complete } = accumulator.finish();
  if (error) throw new CodecError(error);
  // A response in the background: whoever asked for it comes back for it.
  if (!complete) throw new CodecError(upstreamError(`the response is ${String(body['status'])}: it has not been finished`));
  return message;
}

function errorOf(body: unknown): CanonicalError {
  const isSilent = isObject(body) && !body['error'] && body['detail'] === undefined && body['message'] === undefined;
  return isSilent ? upstreamError('the answer is no response') : decodeErrorBody(body);
}

const upstreamError = (message: string): CanonicalError => ({ code: 'UPSTREAM_ERROR', message, http_status: 502 });
