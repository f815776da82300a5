import { isObject, parseJson } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';

/** A call as it is in the end, for `late_blocks`: some servers go back to a call after they have begun another. */
export function lateCall(block: ToolUseBlock, text: string): ToolUseBlock {
  if (text === '') return block;
  if (block.kind === 'custom') return { ...block, input: text, input_raw: text };
  const value = parseJson(text);
  return { ...block, input: isObject(value) ? value : {}, input_raw: text };
}
