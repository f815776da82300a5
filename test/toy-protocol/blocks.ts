import type { ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock } from '../../packages/core/src/canonical/message.ts';
import { objectOrEmpty, textOrEmpty } from '../../packages/core/src/codec/read.ts';
import { isObject } from '../../packages/core/src/json/json.ts';
import type { ToyCall, ToyPart } from './wire.ts';

export function decodePart(part: unknown): TextBlock | ToolUseBlock | ToolResultBlock {
  const { text, call, result } = objectOrEmpty(part);
  if (isObject(call))
    return {
      type: 'tool_use',
      id: textOrEmpty(call['id']),
      name: textOrEmpty(call['name']),
      input: objectOrEmpty(call['input']),
    };
  if (isObject(result))
    return { type: 'tool_result', tool_use_id: textOrEmpty(result['id']), content: textOrEmpty(result['output']) };
  return { type: 'text', text: textOrEmpty(text) };
}

export const encodeCall = ({ id, name, input }: ToolUseBlock): ToyCall => ({ id, name, input: objectOrEmpty(input) });

/** Undefined for what the protocol has no part for. */
export function encodePart(block: ContentBlock): ToyPart | undefined {
  if (block.type === 'text') return { text: block.text };
  if (block.type === 'tool_use') return { call: encodeCall(block) };
  return block.type === 'tool_result' ? { result: { id: block.tool_use_id, output: outputOf(block) } } : undefined;
}

const outputOf = ({ content }: ToolResultBlock): string =>
  typeof content === 'string' ? content : content.map((block) => (block.type === 'text' ? block.text : '')).join('');
