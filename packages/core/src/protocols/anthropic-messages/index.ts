import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Protocol } from '../shared/protocol.ts';
import { callFields, extrasOf } from './extras.ts';
import { decodeStream } from './stream-decode.ts';

/** Anthropic Messages, and the servers and relays that speak it. */
export const anthropicMessages: Protocol = {
  id: 'anthropic-messages',
  streamDecoder: decodeStream,
  recognises,
  extras: extrasOf,
  callFields,
};

/** No other protocol has these; `ping` and `error` others have, too. */
const EVENTS: ReadonlySet<unknown> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
]);

function recognises(payload: JsonObject, event: string | undefined): boolean {
  const { type } = payload;
  if (EVENTS.has(type)) return true;
  if (type === undefined) return EVENTS.has(event);
  return type === 'message' ? isMessage(payload) : type === 'error' && isError(payload);
}

/** An output item of Responses is a message, too, and has a status. */
const isMessage = ({ role, content, status }: JsonObject): boolean =>
  role === 'assistant' && Array.isArray(content) && status === undefined;

/** The error event of Responses is numbered, and its error has a code and a param. */
const isError = ({ error, sequence_number: number }: JsonObject): boolean =>
  isObject(error) &&
  typeof error['type'] === 'string' &&
  number === undefined &&
  error['code'] === undefined &&
  error['param'] === undefined;
