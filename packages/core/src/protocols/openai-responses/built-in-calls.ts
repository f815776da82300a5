import { isObject, type JsonObject, parseJson, writeJson } from '../../accumulate/overlay.ts';
import type { ToolResultBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { textOf } from '../shared/read.ts';
import type { ItemPrefix } from './ids.ts';
import { fieldsOf, keep, PROTOCOL } from './kept.ts';

/** A tool that the API knows by its type and the client runs: a function by another name, for other protocols too. */
interface BuiltIn {
  name: string;
  call: string;
  output: string;
  /** Where the arguments stand. */
  field: 'operation' | 'action';
  /** Where an output names its call. */
  answers: 'call_id' | 'id';
  prefix: ItemPrefix;
  /** What the type of the arguments requires. */
  defaults: JsonObject;
}

const BUILT_INS: readonly BuiltIn[] = [
  {
    name: 'apply_patch',
    call: 'apply_patch_call',
    output: 'apply_patch_call_output',
    field: 'operation',
    answers: 'call_id',
    prefix: 'apc',
    defaults: {},
  },
  {
    name: 'shell',
    call: 'shell_call',
    output: 'shell_call_output',
    field: 'action',
    answers: 'call_id',
    prefix: 'sh',
    defaults: { timeout_ms: null, max_output_length: null },
  },
  {
    name: 'local_shell',
    call: 'local_shell_call',
    output: 'local_shell_call_output',
    field: 'action',
    answers: 'id',
    prefix: 'lsh',
    defaults: { type: 'exec', env: {} },
  },
];

/**
 * Undefined for items of other kinds, and for those that name no call. The item as it came is kept: to this protocol it goes back, to others
 * the call of a function.
 */
export function decodeBuiltInCall(item: JsonObject): ToolUseBlock | undefined {
  const tool = BUILT_INS.find(({ call }) => call === item['type']);
  const input = tool && item[tool.field];
  const id = textOf(item['call_id']);
  if (!tool || id === '' || !isObject(input)) return undefined;
  return { type: 'tool_use', id, name: tool.name, input, ...keep(item) };
}

export function decodeBuiltInOutput(item: JsonObject): ToolResultBlock | undefined {
  const tool = BUILT_INS.find(({ output }) => output === item['type']);
  const id = tool ? textOf(item[tool.answers]) : '';
  if (!tool || id === '') return undefined;
  const { output, status } = item;
  const content = typeof output === 'string' ? output : (writeJson(output ?? status ?? '') ?? '');
  const isError = status === 'failed' || status === 'incomplete';
  return {
    type: 'tool_result',
    tool_use_id: id,
    name: tool.name,
    content,
    ...(isError && { is_error: true }),
    ...keep(item),
  };
}

/** The item of a call or of an output that came as one; the id of the call may have changed on the way. */
export function encodeBuiltIn(block: ToolUseBlock | ToolResultBlock): JsonObject | undefined {
  const item = fieldsOf(block);
  const tool = BUILT_INS.find(({ call, output }) => item['type'] === (block.type === 'tool_use' ? call : output));
  if (!tool) return undefined;
  return block.type === 'tool_use' ? { ...item, call_id: block.id } : { ...item, [tool.answers]: block.tool_use_id };
}

/** The tools of this kind that a client has offered, by name: it waits for their items, and knows no function of that name. */
export function builtInsOf(request: CanonicalRequest | undefined): ReadonlyMap<string, BuiltIn> {
  const offered = (request?.tools ?? []).filter(({ server }) => server?.origin === PROTOCOL);
  return new Map(
    offered.flatMap(({ name, server }) =>
      BUILT_INS.filter((tool) => tool.name === server?.wire_type).map((tool) => [name, tool]),
    ),
  );
}

/** The item of a call in an answer, but for its ids; undefined when its arguments are none. */
export function encodeBuiltInCall(tool: BuiltIn, text: string): JsonObject | undefined {
  const input = parseJson(text);
  if (!isObject(input)) return undefined;
  return { type: tool.call, status: 'completed', [tool.field]: { ...tool.defaults, ...input } };
}
