import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { Protocol } from '../shared/protocol.ts';
import { extrasOf } from './extras.ts';
import { decodeStream } from './stream-decode.ts';

/** OpenAI Chat Completions, and the many servers that call themselves compatible with it. */
export const openaiChat: Protocol = {
  id: 'openai-chat',
  streamDecoder: decodeStream,
  recognises,
  extras: extrasOf,
  callFields,
  callIndex,
};

function recognises({ object, choices }: JsonObject): boolean {
  // Azure: extensions.chat.completion.chunk.
  if (typeof object === 'string' && (object.includes('chat.completion') || object === 'text_completion')) return true;
  return (
    Array.isArray(choices) &&
    choices.every((choice) => isObject(choice) && (isObject(choice['delta']) || isObject(choice['message'])))
  );
}

function callFields({ extensions }: ToolUseBlock): JsonObject {
  const { index: _, ...fields }: JsonObject = extensions?.['openai-chat'] ?? {};
  return fields;
}

function callIndex({ extensions }: ToolUseBlock): number | undefined {
  const index = extensions?.['openai-chat']?.['index'];
  return typeof index === 'number' ? index : undefined;
}
