import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalRequest, CanonicalTool } from '../canonical/request.ts';
import { changeAll, changeBlocks } from './blocks.ts';
import type { Rules } from './rules.ts';

/** Custom tools, and what was called of them, for a target that knows none: functions with one text. */
export function customAsFunctions(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (rules.custom) return request;
  const tools =
    request.tools &&
    changeAll(request.tools, (tool, i) => {
      if (tool.kind !== 'custom') return tool;
      const message = `the custom tool ${tool.name} is a function there`;
      rules.note({ code: 'APPROXIMATED', path: `/tools/${i}`, feature: 'tools.custom', message });
      return asFunction(tool);
    });
  const spoken = changeBlocks(request, callAsFunction);
  return { ...spoken, ...(tools && { tools }) };
}

/** The text may have a grammar, which the function can only tell. */
export function asFunction(tool: CanonicalTool): CanonicalTool {
  const { kind: _, format, ...rest } = tool;
  const grammar =
    format?.type === 'grammar' ? { description: `Text by this ${format.syntax} grammar:\n${format.definition}` } : {};
  const input_schema = { type: 'object', properties: { input: { type: 'string', ...grammar } }, required: ['input'] };
  return { ...rest, input_schema };
}

function callAsFunction(block: ContentBlock): ContentBlock {
  if (block.type === 'tool_result' && block.kind === 'custom') {
    const { kind: _, ...rest } = block;
    return rest;
  }
  if (block.type !== 'tool_use' || block.kind !== 'custom') return block;
  const { kind: _, input_raw: __, input, ...rest } = block;
  return { ...rest, input: typeof input === 'string' ? { input } : input };
}
