import type { ContentBlock, ToolResultBlock, ToolUseBlock } from '../../canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool, ToolChoice } from '../../canonical/request.ts';
import { withFieldSource, withSource } from '../../canonical/source.ts';
import { buildArgumentText } from '../../codec/answers.ts';
import { extensionPath } from '../../codec/extensions.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectList,
  expectName,
  expectObject,
  expectText,
  listOrEmpty,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toPointer,
  unknownFields,
} from '../../codec/read.ts';
import { buildNativeChoice, hoistTools } from '../../codec/requests.ts';
import { isObject, type JsonObject, parseJson, sameJson, writeJson } from '../../json/json.ts';
import type { ServerToolRule } from '../../passes/rules.ts';
import type { ItemPrefix } from './endpoints.ts';
import { PROTOCOL, readExtensions, toExtensions } from './wire.ts';

// ---- tools

/** Decodes a list of tools. A namespace is not a tool: each of its tools names it. */
export function decodeTools(value: unknown, at: string, context: CodecContext): CanonicalTool[] {
  return (optional(value, at, expectList) ?? []).flatMap((item, i): CanonicalTool[] => {
    const param = `${at}[${i}]`;
    const tool = expectObject(item, param);
    const isGroup = tool['type'] === 'namespace' && listOrEmpty(tool['tools']).length > 0;
    return isGroup ? decodeNamespace(tool, param, context) : [traceTool(param, decodeTool(tool, param), context)];
  });
}

const NAMESPACE_FIELDS = new Set(['type', 'name', 'tools']);

/** Fields of the namespace are kept on its first tool. */
function decodeNamespace(group: JsonObject, param: string, context: CodecContext): CanonicalTool[] {
  const namespace = expectName(group['name'], `${param}.name`);
  const rest = unknownFields(group, NAMESPACE_FIELDS);
  return expectList(group['tools'], `${param}.tools`).map((item, i) => {
    const inner = `${param}.tools[${i}]`;
    const tool = decodeTool(expectObject(item, inner), inner);
    const fields = { ...tool.extensions?.[PROTOCOL], ...(i === 0 && rest && { group: rest }) };
    const placed = traceTool(inner, { ...tool, namespace, ...toExtensions(fields) }, context);
    return i === 0 && rest ? withFieldSource(extensionPath(PROTOCOL, 'group'), toPointer(param), placed, context) : placed;
  });
}

function decodeTool(tool: JsonObject, param: string): CanonicalTool {
  const type = optional(tool['type'], `${param}.type`, expectText) ?? 'function';
  if (type === 'function') return decodeFunction(tool, param);
  return type === 'custom' ? decodeCustom(tool, param) : decodeServerTool(type, tool);
}

const FUNCTION_FIELDS = new Set([
  'type',
  'function',
  'name',
  'description',
  'parameters',
  'strict',
  'defer_loading',
  'allowed_callers',
  'output_schema',
]);

/** The function is flat; some clients nest it as in chat. */
function decodeFunction(tool: JsonObject, param: string): CanonicalTool {
  const nested = objectOrEmpty(tool['function']);
  const body = { ...nested, ...tool };
  const schema = optional(body['parameters'], `${param}.parameters`, expectObject);
  const strict = optional(body['strict'], `${param}.strict`, expectBoolean);
  const output = optional(body['output_schema'], `${param}.output_schema`, expectObject);
  return {
    ...decodeCommon(body, param),
    ...(schema && { input_schema: schema }),
    ...(strict !== undefined && { strict }),
    ...(output && { output_schema: output }),
    ...toExtensions(unknownFields(body, FUNCTION_FIELDS)),
  };
}

function decodeCommon(tool: JsonObject, param: string): CanonicalTool {
  const description = optional(tool['description'], `${param}.description`, expectText);
  const deferred = optional(tool['defer_loading'], `${param}.defer_loading`, expectBoolean);
  const callers = optional(tool['allowed_callers'], `${param}.allowed_callers`, expectList);
  return {
    name: expectName(tool['name'], `${param}.name`),
    ...(description !== undefined && { description }),
    ...(deferred !== undefined && { defer_loading: deferred }),
    ...(callers && { allowed_callers: callers.map((caller, i) => expectText(caller, `${param}.allowed_callers[${i}]`)) }),
  };
}

const CUSTOM_FIELDS = new Set(['type', 'name', 'description', 'format', 'defer_loading', 'allowed_callers']);

function decodeCustom(tool: JsonObject, param: string): CanonicalTool {
  const format = decodeFormat(optional(tool['format'], `${param}.format`, expectObject), `${param}.format`);
  return {
    ...decodeCommon(tool, param),
    kind: 'custom',
    ...(format && { format }),
    ...toExtensions(unknownFields(tool, CUSTOM_FIELDS)),
  };
}

/** `{type:"grammar",syntax,definition}`; chat nests the two in `grammar`. */
function decodeFormat(format: JsonObject | undefined, param: string): CanonicalTool['format'] | undefined {
  if (!format) return undefined;
  if (format['type'] !== 'grammar') return { type: 'text' };
  const grammar = isObject(format['grammar']) ? format['grammar'] : format;
  const syntax = grammar['syntax'] === 'regex' ? 'regex' : 'lark';
  return { type: 'grammar', syntax, definition: expectText(grammar['definition'], `${param}.definition`) };
}

/** Canonical names of server tools; others have the same name everywhere. */
const SERVER_TYPES: readonly (readonly [RegExp, string])[] = [
  [/^web_search/, 'web_search'],
  [/^code_interpreter$/, 'code_execution'],
  [/^computer/, 'computer'],
];

function decodeServerTool(wireType: string, { type: _, ...config }: JsonObject): CanonicalTool {
  const type = SERVER_TYPES.find(([pattern]) => pattern.test(wireType))?.[1] ?? wireType;
  return {
    name: textOrEmpty(config['name']) || textOrEmpty(config['server_label']) || wireType,
    kind: wireType === 'mcp' ? 'mcp' : 'server',
    server: { type, wire_type: wireType, config, origin: PROTOCOL },
  };
}

const traceTool = (param: string, tool: CanonicalTool, context: CodecContext): CanonicalTool =>
  withSource(toPointer(param), tool, context, { input_schema: `${toPointer(param)}/parameters` });

/** Items of the input that declare tools. */
const DECLARING: ReadonlySet<unknown> = new Set(['additional_tools', 'tool_search_output']);

/** Tools that items of the input declare and the request does not. */
export function decodeInputTools(
  input: readonly unknown[],
  declared: readonly CanonicalTool[],
  context: CodecContext,
): CanonicalTool[] {
  const found = input.flatMap((item, i) =>
    isObject(item) && DECLARING.has(item['type']) ? decodeTools(item['tools'], `input[${i}].tools`, context) : [],
  );
  return hoistTools(found, declared, PROTOCOL);
}

/** Encodes the tools. `isOwn`: the client uses this protocol, so fields that it left out stay absent. */
export function encodeTools(tools: readonly CanonicalTool[], isOwn: boolean): JsonObject[] {
  const encoded: JsonObject[] = [];
  const groups = new Map<string, JsonObject[]>();
  for (const tool of tools) {
    const { namespace } = tool;
    const one = encodeTool(tool, isOwn);
    const group = namespace === undefined ? encoded : groups.get(namespace);
    if (group) group.push(one);
    else if (namespace !== undefined) {
      const inner = [one];
      groups.set(namespace, inner);
      encoded.push({
        description: '',
        ...objectOrEmpty(readExtensions(tool)['group']),
        type: 'namespace',
        name: namespace,
        tools: inner,
      });
    }
  }
  return encoded;
}

function encodeTool(tool: CanonicalTool, isOwn: boolean): JsonObject {
  const { server } = tool;
  if (server) return { ...server.config, type: server.wire_type };
  return tool.kind === 'custom' ? encodeCustom(tool) : encodeFunction(tool, isOwn);
}

const encodeCustom = (tool: CanonicalTool): JsonObject => ({
  ...encodeCommon(tool, 'custom'),
  ...(tool.format && { format: tool.format }),
});

function encodeCommon(tool: CanonicalTool, type: string): JsonObject {
  const { group: _, ...fields } = readExtensions(tool);
  const { name, description, defer_loading: deferred, allowed_callers: callers } = tool;
  return {
    ...fields,
    type,
    name,
    ...(description !== undefined && { description }),
    ...(deferred !== undefined && { defer_loading: deferred }),
    ...(callers && { allowed_callers: callers }),
  };
}

/** Without `strict` the API tries strict mode, which fills optional parameters; other protocols mean false. */
function encodeFunction(tool: CanonicalTool, isOwn: boolean): JsonObject {
  const strict = tool.strict ?? (isOwn ? undefined : false);
  return {
    ...encodeCommon(tool, 'function'),
    ...(tool.input_schema ? { parameters: tool.input_schema } : !isOwn && { parameters: { type: 'object', properties: {} } }),
    ...(strict !== undefined && { strict }),
    ...(tool.output_schema && { output_schema: tool.output_schema }),
  };
}

/** Server tools of other protocols with a counterpart here. */
export const SERVER_TOOLS: Readonly<Record<string, ServerToolRule>> = {
  web_search: {
    reads: ['allowed_domains', 'search_context_size', 'user_location'],
    write: (config) => ({ wire_type: 'web_search', config: encodeSearch(config) }),
  },
  code_execution: {
    reads: [],
    write: () => ({ wire_type: 'code_interpreter', config: { container: { type: 'auto' } } }),
  },
};

/** The portable settings of a search: domains, context size and the user's location. */
function encodeSearch(config: JsonObject): JsonObject {
  const { allowed_domains: domains, search_context_size: size, user_location: place } = config;
  const { approximate, ...flat } = objectOrEmpty(place);
  return {
    ...(Array.isArray(domains) && domains.length > 0 && { filters: { allowed_domains: domains } }),
    ...(typeof size === 'string' && { search_context_size: size }),
    ...(place !== undefined && { user_location: { ...flat, ...objectOrEmpty(approximate), type: 'approximate' } }),
  };
}

// ---- tool choice

/** Decodes the tool choice. */
export function decodeToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined;
  const mode = findMode(choice);
  if (mode) return { type: mode };
  if (typeof choice === 'string') return buildNativeChoice(choice, PROTOCOL);
  const body = expectObject(choice, 'tool_choice');
  if (body['type'] === 'allowed_tools') return decodeAllowed(body);
  // Modes of chat and Anthropic as an object; a tool without a name is any tool.
  const named = findMode(body['type'] === 'tool' && !textOrEmpty(body['name']) ? 'any' : body['type']);
  if (named) return { type: named };
  return { type: 'tool', name: readName(body, 'tool_choice') };
}

const MODES: Readonly<Record<string, 'auto' | 'none' | 'any'>> = { auto: 'auto', none: 'none', required: 'any', any: 'any' };

const findMode = (word: unknown): 'auto' | 'none' | 'any' | undefined =>
  typeof word === 'string' && Object.hasOwn(MODES, word) ? MODES[word] : undefined;

function decodeAllowed(body: JsonObject): ToolChoice {
  const names = expectList(body['tools'], 'tool_choice.tools').map((item, i) =>
    readName(expectObject(item, `tool_choice.tools[${i}]`), `tool_choice.tools[${i}]`),
  );
  return { type: findMode(body['mode']) === 'any' ? 'any' : 'auto', allowed_tools: names };
}

/** The name, the label of an MCP server, or the type alone; chat nests the name in `function`. */
function readName(entry: JsonObject, param: string): string {
  const type = expectText(entry['type'], `${param}.type`);
  const isNamed = type === 'function' || type === 'custom';
  const name = textOrEmpty(entry['name']) || textOrEmpty(objectOrEmpty(entry[type])['name']);
  if (isNamed) return expectName(name || entry['name'], `${param}.name`);
  return textOrEmpty(entry['server_label']) || name || type;
}

/** The tool choice to keep as an extension, if `encodeToolChoice` would not restore it. */
export function collectToolChoiceExtensions(choice: unknown, tools: readonly CanonicalTool[]): JsonObject {
  const decoded = decodeToolChoice(choice);
  return decoded && !sameJson(encodeToolChoice(decoded, tools, undefined), choice) ? { tool_choice: choice } : {};
}

const WIRE_MODES: Record<'auto' | 'none' | 'any', string> = { auto: 'auto', none: 'none', any: 'required' };

/**
 * Encodes the tool choice. `kept`: the value that the client sent, which may have more fields; used if it still
 * matches.
 */
export function encodeToolChoice(choice: ToolChoice, tools: readonly CanonicalTool[], kept: unknown): unknown {
  if (kept !== undefined && sameJson(decodeToolChoice(kept), choice)) return kept;
  const entry = (name: string): JsonObject => encodeEntry(name, tools);
  if (choice.type === 'tool') return entry(choice.name);
  if (choice.native) return choice.native.value;
  if (!choice.allowed_tools) return WIRE_MODES[choice.type];
  const mode = choice.type === 'any' ? 'required' : 'auto';
  return { type: 'allowed_tools', mode, tools: choice.allowed_tools.map(entry) };
}

function encodeEntry(name: string, tools: readonly CanonicalTool[]): JsonObject {
  const tool = tools.find((one) => one.name === name);
  if (tool?.kind === 'mcp') return { type: 'mcp', server_label: name };
  if (tool?.server) return { type: tool.server.wire_type };
  return { type: tool?.kind === 'custom' ? 'custom' : 'function', name };
}

// ---- built-in tools

/** A tool with a type of its own in the API that the client runs; other protocols see a function. */
interface BuiltIn {
  name: string;
  call: string;
  output: string;
  /** The field of the arguments. */
  field: 'operation' | 'action' | 'arguments';
  /** The fields of an output for the call id and the result. */
  answers: 'call_id' | 'id';
  result: 'output' | 'tools';
  prefix: ItemPrefix;
  /** Arguments that the type requires. */
  defaults: JsonObject;
  /** Whether the provider runs the tool, by the item or the declaration. */
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
 * Decodes a built-in call; undefined for other items and for those without a call id. The item is kept as an extension,
 * for this protocol; others get a function call.
 */
export function decodeBuiltInCall(item: JsonObject): ToolUseBlock | undefined {
  const tool = BUILT_INS.find(({ call }) => call === item['type']);
  const value = tool && item[tool.field];
  const input = typeof value === 'string' ? parseJson(value) : value;
  const id = textOrEmpty(item['call_id']);
  if (!tool || id === '' || !isObject(input)) return undefined;
  // Who ran a shell does not matter in a history, which has its output as well. A tool search of the provider has no
  // call id.
  if (tool.field === 'arguments' && tool.isOther(item)) return undefined;
  return { type: 'tool_use', id, name: tool.name, input, ...toExtensions(item) };
}

/** Whether an item of a response is a built-in call for the client to run. */
export function isClientItem(item: JsonObject): boolean {
  const tool = BUILT_INS.find(({ call }) => call === item['type']);
  return tool !== undefined && !tool.isOther(item);
}

/** Decodes the output of a built-in call; undefined for other items. */
export function decodeBuiltInOutput(item: JsonObject): ToolResultBlock | undefined {
  const tool = BUILT_INS.find(({ output }) => output === item['type']);
  const id = tool ? textOrEmpty(item[tool.answers]) : '';
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
    ...toExtensions(item),
  };
}

/** The original item of a built-in call or output, with the current id of the call. */
export function encodeBuiltIn(block: ToolUseBlock | ToolResultBlock): JsonObject | undefined {
  const item = readExtensions(block);
  const tool = findBuiltIn(block);
  if (!tool) return undefined;
  return block.type === 'tool_use' ? { ...item, call_id: block.id } : { ...item, [tool.answers]: block.tool_use_id };
}

/** The built-in tool of a block that came as its item. */
export function findBuiltIn(block: ToolUseBlock | ToolResultBlock): BuiltIn | undefined {
  const { type } = readExtensions(block);
  return BUILT_INS.find(({ call, output }) => type === (block.type === 'tool_use' ? call : output));
}

/** The built-in tools that a client has declared, by name: it expects their items, not function calls. */
export function listBuiltIns(request: CanonicalRequest | undefined): ReadonlyMap<string, BuiltIn> {
  const offered = (request?.tools ?? []).filter(({ server }) => server?.origin === PROTOCOL);
  return new Map(
    offered.flatMap(({ name, server }) =>
      BUILT_INS.filter((tool) => tool.name === server?.wire_type && !tool.isOther(server.config)).map((tool) => [name, tool]),
    ),
  );
}

/** The item of a built-in call in a response, without ids; undefined if its arguments are not JSON. */
export function encodeBuiltInCall(tool: BuiltIn, text: string): JsonObject | undefined {
  const input = parseJson(text);
  if (!isObject(input)) return undefined;
  const execution = tool.field === 'arguments' && { execution: 'client' };
  return { type: tool.call, status: 'completed', ...execution, [tool.field]: { ...tool.defaults, ...input } };
}

// ---- parallel calls

/**
 * Merges calls that came from a `parallel` call, and their results, because the model remembers only that call. Clients
 * of other protocols lose the wrapper; there, they stay separate calls.
 */
export function foldParallel(messages: readonly CanonicalMessage[]): readonly CanonicalMessage[] {
  const wrappers = new Map<string, string>();
  for (const { content } of messages)
    for (const block of content) if (block.type === 'tool_use' && readWrapper(block)) wrappers.set(block.id, readWrapper(block));
  if (wrappers.size === 0) return messages;
  return messages.map((message) => ({ ...message, content: foldBlocks(message.content, wrappers) }));
}

const readWrapper = (call: ToolUseBlock): string => textOrEmpty(readExtensions(call)['parallel_call_id']);

/** Merges adjacent blocks of one wrapper. */
function foldBlocks(blocks: readonly ContentBlock[], wrappers: ReadonlyMap<string, string>): ContentBlock[] {
  const groups: { wrapper: string | undefined; blocks: ContentBlock[] }[] = [];
  for (const block of blocks) {
    const id = block.type === 'tool_use' ? block.id : block.type === 'tool_result' ? block.tool_use_id : undefined;
    const wrapper = id === undefined ? undefined : wrappers.get(id);
    const last = groups.at(-1);
    if (wrapper !== undefined && last?.wrapper === wrapper && last.blocks[0]?.type === block.type) last.blocks.push(block);
    else groups.push({ wrapper, blocks: [block] });
  }
  return groups.flatMap((group) => (group.wrapper === undefined ? group.blocks : [joinBlocks(group.wrapper, group.blocks)]));
}

function joinBlocks(id: string, blocks: readonly ContentBlock[]): ToolUseBlock | ToolResultBlock {
  const calls = blocks.filter((block) => block.type === 'tool_use');
  if (calls.length > 0) {
    const tool_uses = calls.map((call) => ({ recipient_name: `functions.${call.name}`, parameters: readParameters(call) }));
    return { type: 'tool_use', id, name: 'parallel', input: { tool_uses } };
  }
  const results = blocks.filter((block) => block.type === 'tool_result');
  const texts = results.map(({ name, content }) => ({ recipient_name: `functions.${name ?? ''}`, output: content }));
  return { type: 'tool_result', tool_use_id: id, name: 'parallel', content: JSON.stringify(texts) };
}

function readParameters(call: ToolUseBlock): unknown {
  const text = buildArgumentText(call, false);
  return parseJson(text) ?? text;
}
