import { parseJson } from '../../accumulate/overlay.ts';
import type { ContentBlock, ToolResultBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalMessage } from '../../canonical/request.ts';
import { argumentsOf } from '../shared/answer.ts';
import { textOf } from '../shared/read.ts';
import { fieldsOf } from './kept.ts';

/**
 * Calls that the decoder took out of a `parallel` call go back into it, and their results into one under its id: the model remembers that
 * call, not ours (P118). A history that went over the wire has forgotten the wrapper; there they are calls like any other.
 */
export function foldParallel(messages: readonly CanonicalMessage[]): readonly CanonicalMessage[] {
  const wrappers = new Map<string, string>();
  for (const { content } of messages)
    for (const block of content) if (block.type === 'tool_use' && wrapperOf(block)) wrappers.set(block.id, wrapperOf(block));
  if (wrappers.size === 0) return messages;
  return messages.map((message) => ({ ...message, content: fold(message.content, wrappers) }));
}

const wrapperOf = (call: ToolUseBlock): string => textOf(fieldsOf(call)['parallel_call_id']);

/** Neighbours of one wrapper become one block. */
function fold(blocks: readonly ContentBlock[], wrappers: ReadonlyMap<string, string>): ContentBlock[] {
  const groups: { wrapper: string | undefined; blocks: ContentBlock[] }[] = [];
  for (const block of blocks) {
    const id = block.type === 'tool_use' ? block.id : block.type === 'tool_result' ? block.tool_use_id : undefined;
    const wrapper = id === undefined ? undefined : wrappers.get(id);
    const last = groups.at(-1);
    if (wrapper !== undefined && last?.wrapper === wrapper && last.blocks[0]?.type === block.type) last.blocks.push(block);
    else groups.push({ wrapper, blocks: [block] });
  }
  return groups.flatMap((group) => (group.wrapper === undefined ? group.blocks : [joined(group.wrapper, group.blocks)]));
}

function joined(id: string, blocks: readonly ContentBlock[]): ToolUseBlock | ToolResultBlock {
  const calls = blocks.filter((block) => block.type === 'tool_use');
  if (calls.length > 0) {
    const tool_uses = calls.map((call) => ({ recipient_name: `functions.${call.name}`, parameters: parametersOf(call) }));
    return { type: 'tool_use', id, name: 'parallel', input: { tool_uses } };
  }
  const results = blocks.filter((block) => block.type === 'tool_result');
  const texts = results.map(({ name, content }) => ({ recipient_name: `functions.${name ?? ''}`, output: content }));
  return { type: 'tool_result', tool_use_id: id, name: 'parallel', content: JSON.stringify(texts) };
}

function parametersOf(call: ToolUseBlock): unknown {
  const text = argumentsOf(call, false);
  return parseJson(text) ?? text;
}
