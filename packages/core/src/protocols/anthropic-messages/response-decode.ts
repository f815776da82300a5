import { isObject } from '../../accumulate/overlay.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { readWhole, upstreamError } from '../shared/answer-body.ts';
import { CodecError, type Glance } from '../shared/codec.ts';
import type { Context } from '../shared/context.ts';
import { listOf } from '../shared/read.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { isWholeMessage } from './message-payloads.ts';
import { decodeStream } from './stream-decode.ts';
import { decodeUsage } from './usage.ts';

/** A whole message, read by the stream decoder: every rule about events holds for it. Throws when it is an error. */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  if (!isObject(body) || !isWholeMessage(body)) throw new CodecError(errorOf(body));
  return readWhole([body], decodeStream(context)).message;
}

/** See `Codec.glance`. 0.1 us instead of 5.9 us for decoding the response. */
export function glance(body: unknown): Glance | undefined {
  if (!isObject(body) || !isWholeMessage(body) || !isObject(body['usage'])) return undefined;
  const [block, another] = listOf(body['content']);
  return isObject(block) && block['type'] === 'text' && !another ? { usage: decodeUsage(body['usage']) } : undefined;
}

function errorOf(body: unknown): CanonicalError {
  const isSilent = isObject(body) && body['type'] !== 'error' && !body['error'];
  return isSilent ? upstreamError('the answer is no message') : decodeErrorBody(body);
}
