import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import { type CanonicalResponse, isClientCall } from '../../canonical/response.ts';
import { encodeBlock, encodeThinking } from './blocks.ts';

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
