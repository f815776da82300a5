import { parseJson } from '../accumulate/overlay.ts';
import type { ToolUseBlock } from '../canonical/blocks.ts';
import type { CanonicalRequest, CanonicalTool } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import { changeAll, changeBlocks } from './blocks.ts';
import { type Called, keyOf } from './call-names.ts';
import type { Rules } from './rules.ts';
import { isObjectRoot, wrapRoot } from './schema/root.ts';

/** Tools that take any value, for a target where arguments are an object: the value is its one property, in earlier calls too (P57). */
export function wrapRoots(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (!rules.objectRoot || !request.tools) return request;
  const wrapped = new Set<string>();
  const id = (called: Called): string => keyOf(called, { ...rules, namespaces: false });
  const tools = changeAll(request.tools, (tool, i): CanonicalTool => {
    if (!isClientCall(tool.kind) || !tool.input_schema || isObjectRoot(tool.input_schema)) return tool;
    wrapped.add(id(tool));
    const message = `${tool.name} takes no object; what it takes is the property "input" of one`;
    rules.note({ code: 'APPROXIMATED', path: `/tools/${i}`, feature: 'tools.schema', message });
    return { ...tool, input_schema: wrapRoot(tool.input_schema) };
  });
  if (tools === request.tools) return request;
  const spoken = changeBlocks(request, (block) =>
    block.type === 'tool_use' && isClientCall(block.kind) && wrapped.has(id(block)) ? wrapInput(block) : block,
  );
  return { ...spoken, tools };
}

/** Decoders keep what is no object as the text it was. */
function wrapInput({ input_raw: raw, input, ...rest }: ToolUseBlock): ToolUseBlock {
  const value = raw === undefined ? input : parseJson(raw);
  return { ...rest, input: { input: value === undefined ? (raw ?? input) : value } };
}
