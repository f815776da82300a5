import { type CanonicalResponse, type ContentBlock, isClientCall, type ToolUseBlock } from '../../canonical/message.ts';
import type { Protocol } from '../../codec/protocol.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { encodeBlock, encodeThinking } from './blocks.ts';
import { decodeStream } from './stream-decode.ts';

/** Anthropic Messages, and the servers and relays that speak it. */
export const anthropicMessages: Protocol = {
  id: 'anthropic-messages',
  streamDecoder: decodeStream,
  recognises,
  extras: extrasOf,
  callFields,
};

/** What a message holds beside text, reasoning and calls, in the words of the wire. */
export function extrasOf({ content }: CanonicalResponse): JsonObject {
  const thinking = content.filter((block) => block.type === 'thinking').map(encodeThinking);
  return {
    ...(thinking.length > 0 && { thinking_blocks: thinking }),
    ...(content.some(isSpecial) && { blocks: content.map(encodeBlock) }),
  };
}

/** Beyond plain text, thinking and calls of the client's tools: only the blocks themselves tell all of it. */
function isSpecial(block: ContentBlock): boolean {
  if (block.type === 'text') return block.citations !== undefined;
  if (block.type === 'tool_use') return !isClientCall(block.kind);
  return block.type !== 'thinking';
}

export function callFields({ extensions }: ToolUseBlock): JsonObject {
  const { type: _, ...fields }: JsonObject = extensions?.['anthropic-messages'] ?? {};
  return fields;
}

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
