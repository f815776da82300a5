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
  field: 'operation' | 'action' | 'arguments';
  /** Where an output names its call, and what it holds. */
  answers: 'call_id' | 'id';
  result: 'output' | 'tools';
  prefix: ItemPrefix;
  /** What the type of the arguments requires. */
  defaults: JsonObject;
  /** Whether the item, or the tool as it was declared, says that the provider runs it. */
  isOther(item: JsonObject): boolean;
}

const BUILT_INS: readonly BuiltIn[] = [
  {
    name: 'apply_patch',
    call: 'apply_patch_call',
    output: 'apply_patch_call_output',
    field: 'operation',
    answers: 'call_id',
    result: 'output',
    prefix: 'apc',
    defaults: {},
    isOther: () => false,
  },
  {
    name: 'shell',
    call: 'shell_call',
    output: 'shell_call_output',
    field: 'action',
    answers: 'call_id',
    result: 'output',
    prefix: 'sh',
    defaults: { timeout_ms: null, max_output_length: null },
    isOther: ({ environment }) => isObject(environment) && environment['type'] !== 'local',
  },
  {
    name: 'local_shell',
    call: 'local_shell_call',
    output: 'local_shell_call_output',
    field: 'action',
    answers: 'id',
    result: 'output',
    prefix: 'lsh',
    defaults: { type: 'exec', env: {} },
    isOther: () => false,
  },
  {
    name: 'tool_search',
    call: 'tool_search_call',
    output: 'tool_search_output',
    field: 'arguments',
    answers: 'call_id',
    result: 'tools',
    prefix: 'tsc',
    defaults: {},
    isOther: ({ execution }) => execution !== 'client',
  },
];

/**
 * Undefined for items of other kinds, and for those that name no call. The item as it came is kept: to this protocol it goes back, to others
 * the call of a function.
 */
export function decodeBuiltInCall(item: JsonObject): ToolUseBlock | undefined {
  const tool = BUILT_INS.find(({ call }) => call === item['type']);
  const value = tool && item[tool.field];
  const input = typeof value === 'string' ? parseJson(value) : value;
  const id = textOf(item['call_id']);
  if (!tool || id === '' || !isObject(input)) return undefined;
  // Whose shell it was makes no difference to the history, where its output is as well. A search of the provider has no call id of its own.
  if (tool.field === 'arguments' && tool.isOther(item)) return undefined;
  return { type: 'tool_use', id, name: tool.name, input, ...keep(item) };
}

/** Whether an item of an answer is a call that is left to the client. */
export function isClientItem(item: JsonObject): boolean {
  const tool = BUILT_INS.find(({ call }) => call === item['type']);
  return tool !== undefined && !tool.isOther(item);
}

export function decodeBuiltInOutput(item: JsonObject): ToolResultBlock | undefined {
  const tool = BUILT_INS.find(({ output }) => output === item['type']);
  const id = tool ? textOf(item[tool.answers]) : '';
  if (!tool || id === '' || (tool.field === 'arguments' && tool.isOther(item))) return undefined;
  const { status } = item;
  const output = item[tool.result];
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
  const tool = builtInOf(block);
  if (!tool) return undefined;
  return block.type === 'tool_use' ? { ...item, call_id: block.id } : { ...item, [tool.answers]: block.tool_use_id };
}

/** The tool whose item a block came as. */
export function builtInOf(block: ToolUseBlock | ToolResultBlock): BuiltIn | undefined {
  const { type } = fieldsOf(block);
  return BUILT_INS.find(({ call, output }) => type === (block.type === 'tool_use' ? call : output));
}

/** The tools of this kind that a client has offered, by name: it waits for their items, and knows no function of that name. */
export function builtInsOf(request: CanonicalRequest | undefined): ReadonlyMap<string, BuiltIn> {
  const offered = (request?.tools ?? []).filter(({ server }) => server?.origin === PROTOCOL);
  return new Map(
    offered.flatMap(({ name, server }) =>
      BUILT_INS.filter((tool) => tool.name === server?.wire_type && !tool.isOther(server.config)).map((tool) => [name, tool]),
    ),
  );
}

/** The item of a call in an answer, but for its ids; undefined when its arguments are none. */
export function encodeBuiltInCall(tool: BuiltIn, text: string): JsonObject | undefined {
  const input = parseJson(text);
  if (!isObject(input)) return undefined;
  const execution = tool.field === 'arguments' && { execution: 'client' };
  return { type: tool.call, status: 'completed', ...execution, [tool.field]: { ...tool.defaults, ...input } };
}
