import { MessageAccumulator } from '../../accumulate/message.ts';
import { isObject, writeJson } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { CodecError } from '../shared/codec.ts';
import type { Context } from '../shared/context.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { isWholeMessage } from './message-payloads.ts';
import { decodeStream } from './stream-decode.ts';

/** A whole message, read by the stream decoder: every rule about events holds for it. Throws when it is an error. */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  if (!isObject(body) || !isWholeMessage(body)) throw new CodecError(errorOf(body));
  const data = writeJson(body);
  if (data === undefined) throw new CodecError(upstreamError('the message is nested too deeply to be read'));
  const accumulator = new MessageAccumulator();
  const decoder = decodeStream(context);
  for (const event of decoder.push({ data, bare: true })) accumulator.push(event);
  for (const event of decoder.end()) accumulator.push(event);
  const { message, error } = accumulator.finish();
  if (error) throw new CodecError(error);
  return message;
}

function errorOf(body: unknown): CanonicalError {
  const isSilent = isObject(body) && body['type'] !== 'error' && !body['error'];
  return isSilent ? upstreamError('the answer is no message') : decodeErrorBody(body);
}

const upstreamError = (message: string): CanonicalError => ({ code: 'UPSTREAM_ERROR', message, http_status: 502 });
