import { type CanonicalResponse, type ContentBlock, isClientCall, type ToolUseBlock } from '../../canonical/message.ts';
import type { Protocol } from '../../codec/protocol.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { ANTHROPIC_MESSAGES_TEXTS } from '../../rules/anthropic-messages.ts';
import { encodeBlock, encodeThinking } from './blocks.ts';
import { decodeStream } from './stream-decode.ts';

/** The Anthropic Messages protocol for reading: Anthropic itself, and the servers and relays compatible with it. */
export const anthropicMessages: Protocol = {
  id: 'anthropic-messages',
  rules: ANTHROPIC_MESSAGES_TEXTS,
  streamDecoder: decodeStream,
  recognises,
  extras: buildExtras,
  callFields: readCallFields,
};

/**
 * The thinking blocks of a message and, when text, thinking and client calls are not all of it, its blocks in wire
 * form.
 */
function buildExtras({ content }: CanonicalResponse): JsonObject {
  const thinking = content.filter((block) => block.type === 'thinking').map(encodeThinking);
  return {
    ...(thinking.length > 0 && { thinking_blocks: thinking }),
    ...(content.some(isSpecial) && { blocks: content.map(encodeBlock) }),
  };
}

/** Whether a block holds more than the text, thinking and client calls that every summary of a message shows. */
function isSpecial(block: ContentBlock): boolean {
  if (block.type === 'text') return block.citations !== undefined;
  if (block.type === 'tool_use') return !isClientCall(block.kind);
  return block.type !== 'thinking';
}

/** The fields of a call beside id, name and arguments, as the wire had them. */
function readCallFields({ extensions }: ToolUseBlock): JsonObject {
  const { type: _, ...fields }: JsonObject = extensions?.['anthropic-messages'] ?? {};
  return fields;
}

/** Event types that only this protocol has; `ping` and `error` also occur in others. */
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

/** A Responses output item also has the type `message`, but it has a status. */
const isMessage = ({ role, content, status }: JsonObject): boolean =>
  role === 'assistant' && Array.isArray(content) && status === undefined;

/** The error event of Responses also has the type `error`, but it is numbered, and its error has a code and a param. */
const isError = ({ error, sequence_number: number }: JsonObject): boolean =>
  isObject(error) &&
  typeof error['type'] === 'string' &&
  number === undefined &&
  error['code'] === undefined &&
  error['param'] === undefined;
