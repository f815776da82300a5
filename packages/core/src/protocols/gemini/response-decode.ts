import { MessageAccumulator } from '../../accumulate/message.ts';
import { isObject, writeJson } from '../../accumulate/overlay.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { CodecError } from '../shared/codec.ts';
import type { Context } from '../shared/context.ts';
import { upstreamError } from './answer.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { decodeStream } from './stream-decode.ts';

/** A whole GenerateContentResponse, or the list of its fragments, read by the stream decoder. Throws when it is an error. */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  const fragments: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (!fragments.every(isObject)) throw new CodecError(decodeErrorBody(body));
  const accumulator = new MessageAccumulator();
  const decoder = decodeStream(context);
  for (const fragment of fragments) {
    const data = writeJson(fragment);
    if (data === undefined) throw new CodecError(upstreamError('the response is nested too deeply to be read'));
    for (const event of decoder.push({ data, bare: true })) accumulator.push(event);
  }
  for (const event of decoder.end()) accumulator.push(event);
  const { message, error, complete } = accumulator.finish();
  if (error) throw new CodecError(error);
  if (!complete) throw new CodecError(upstreamError('the response has no finishReason'));
  return message;
}
