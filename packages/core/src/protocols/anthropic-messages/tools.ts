/** Tools and tool choice, in both directions. */

import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../../canonical/request.ts';
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
  unknownFields,
} from '../../codec/read.ts';
import { explainStrict, isStrict, noteApproximated, noteDropped, refuse } from '../../codec/report.ts';
import { buildNativeChoice, hoistTools } from '../../codec/requests.ts';
import type { JsonObject } from '../../json/json.ts';
import type { ServerToolRule } from '../../passes/rules.ts';
import { decodeCacheControl, encodeCacheControl, PROTOCOL, readExtensions, toExtensions, withPointer } from './wire.ts';

const WEB_FETCH: ServerToolRule = {
  reads: [],
  write: () => ({ wire_type: 'web_fetch_20250910', config: { name: 'web_fetch' } }),
};

/**
 * Provider tools of other protocols that have a counterpart here. For web search, only the settings that all
 * providers share.
 */
export const SERVER_TOOLS: Readonly<Record<string, ServerToolRule>> = {
  web_search: {
    reads: [
      'max_uses',
      'allowed_domains',
      'blocked_domains',
      'filters/allowed_domains',
      'filters/blocked_domains',
      'user_location',
    ],
    write: (config) => ({ wire_type: 'web_search_20250305', config: { name: 'web_search', ...encodeSearch(config) } }),
  },
  web_fetch: WEB_FETCH,
  url_context: WEB_FETCH,
  code_execution: {
    reads: [],
    write: () => ({ wire_type: 'code_execution_20250825', config: { name: 'code_execution' } }),
  },
};

/** The tools that the request declares. */
export function decodeTools(value: unknown, context: CodecContext): CanonicalTool[] {
  return (optional(value, 'tools', expectList) ?? []).map((item, i) => {
    const at = `tools[${i}]`;
    return withPointer(at, decodeTool(expectObject(item, at), at), context);
  });
}

/**
 * Tools that blocks of the conversation define and the request does not declare, unless a later block removes them. Declared
 * tools that are removed are marked.
 */
export function decodeConversationTools(
  messages: readonly unknown[],
  declared: readonly CanonicalTool[],
  context: CodecContext,
): CanonicalTool[] {
  const found = new Map<string, CanonicalTool>();
  const withdrawn = new Set<string>();
  for (const [i, message] of messages.entries())
    for (const [k, block] of listOrEmpty(objectOrEmpty(message)['content']).entries())
      for (const { change, at } of listChanges(objectOrEmpty(block), `messages[${i}].content[${k}]`)) {
        const { type, definition, name } = objectOrEmpty(change['tool']);
        if (change['type'] === 'tool_removal') found.delete(textOrEmpty(name));
        if (type === 'tool_reference') setMember(withdrawn, textOrEmpty(name), change['type'] === 'tool_removal');
        else if (type === 'tool_definition') {
          const param = `${at}.tool.definition`;
          const tool = withPointer(param, decodeTool(expectObject(definition, param), param), context);
          found.set(tool.name, tool);
        }
      }
  for (const tool of declared) if (withdrawn.has(tool.name)) tool.withdrawn = PROTOCOL;
  return hoistTools([...found.values()], declared, PROTOCOL);
}

function setMember(names: Set<string>, name: string, isMember: boolean): void {
  if (isMember) names.add(name);
  else names.delete(name);
}

/** The tool changes of a block: the block itself, or the changes that a compaction block recorded. */
function listChanges(block: JsonObject, at: string): { change: JsonObject; at: string }[] {
  const { type } = block;
  if (type === 'tool_addition' || type === 'tool_removal') return [{ change: block, at }];
  if (type !== 'compaction') return [];
  return listOrEmpty(block['tool_changes']).map((change, i) => ({
    change: objectOrEmpty(change),
    at: `${at}.tool_changes[${i}]`,
  }));
}

function decodeTool(tool: JsonObject, at: string): CanonicalTool {
  const type = optional(tool['type'], `${at}.type`, expectText) ?? 'custom';
  return type === 'custom' ? decodeCustom(tool, at) : decodeTyped(tool, type);
}

const TOOL_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'defer_loading',
  'allowed_callers',
  'input_examples',
  'eager_input_streaming',
  'cache_control',
]);

function decodeCustom(tool: JsonObject, at: string): CanonicalTool {
  const read = <T>(name: string, expect: (value: unknown, param: string) => T): Record<string, T> => {
    const value = optional(tool[name], `${at}.${name}`, expect);
    return value === undefined ? {} : { [name]: value };
  };
  const callers = optional(tool['allowed_callers'], `${at}.allowed_callers`, expectList);
  const examples = optional(tool['input_examples'], `${at}.input_examples`, expectList);
  return {
    name: expectName(tool['name'], `${at}.name`),
    ...read('description', expectText),
    ...read('input_schema', expectObject),
    ...read('strict', expectBoolean),
    ...read('defer_loading', expectBoolean),
    ...(callers && { allowed_callers: callers.map(textOrEmpty) }),
    ...(examples && { input_examples: [...examples] }),
    ...read('eager_input_streaming', expectBoolean),
    ...decodeCacheControl(tool),
    ...toExtensions(unknownFields(tool, TOOL_FIELDS)),
  };
}

/** Canonical names of types that have more than a date as suffix. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^tool_search_tool_/, 'tool_search'],
  [/^mcp_toolset$/, 'mcp'],
];

/**
 * A tool that is identified by its type; either the provider runs it, or the client does (bash, text_editor, memory,
 * computer).
 */
function decodeTyped(tool: JsonObject, wireType: string): CanonicalTool {
  const { type: _, cache_control: _mark, ...config } = tool;
  const family = FAMILIES.find(([pattern]) => pattern.test(wireType))?.[1] ?? wireType.replace(/_\d{8}$/, '');
  return {
    name: textOrEmpty(tool['name']) || family,
    kind: family === 'mcp' ? 'mcp' : 'server',
    server: { type: family, wire_type: wireType, config, origin: 'anthropic-messages' },
    ...decodeCacheControl(tool),
  };
}

/** The choice and, as part of it, whether parallel calls are allowed. */
export function decodeToolChoice(value: unknown): Pick<CanonicalRequest, 'tool_choice' | 'parallel_tool_use'> {
  const choice = optional(value, 'tool_choice', expectObject);
  if (!choice) return {};
  const isSingle = optional(choice['disable_parallel_tool_use'], 'tool_choice.disable_parallel_tool_use', expectBoolean);
  return { tool_choice: decodeChoice(choice), ...(isSingle !== undefined && { parallel_tool_use: !isSingle }) };
}

const MODES: Readonly<Record<string, 'auto' | 'none' | 'any'>> = { auto: 'auto', none: 'none', any: 'any' };

function decodeChoice(choice: JsonObject): ToolChoice {
  const type = expectText(choice['type'], 'tool_choice.type');
  if (type === 'tool') return { type, name: expectName(choice['name'], 'tool_choice.name') };
  const mode = Object.hasOwn(MODES, type) ? MODES[type] : undefined;
  return mode ? { type: mode } : buildNativeChoice(choice, 'anthropic-messages');
}

const FIELDS: ReadonlySet<string> = new Set(['type', 'name', 'disable_parallel_tool_use']);

/** Fields that only this protocol knows. A choice of unknown type is kept whole by `decodeToolChoice`. */
export function readToolChoiceExtensions(value: unknown): JsonObject {
  const choice = objectOrEmpty(value);
  const rest =
    choice['type'] === 'tool' || Object.hasOwn(MODES, textOrEmpty(choice['type'])) ? unknownFields(choice, FIELDS) : undefined;
  return rest ? { tool_choice: rest } : {};
}

// ---- encode

/** Tools and tool choice. The choice is left out if there are no tools: the API rejects it. */
export function encodeToolFields(request: CanonicalRequest, isThinking: boolean, context: CodecContext): JsonObject {
  const { tools = [], tool_choice: choice } = request;
  const encoded = encodeTools(restrict(tools, choice, context));
  if (encoded.length === 0) {
    if (choice && isForcing(choice))
      noteDropped(context, {
        path: '/tool_choice',
        feature: 'tool_choice',
        message: 'tool_choice without tools is rejected by the target; dropped',
      });
    return {};
  }
  return { tools: encoded, ...encodeChoice(request, isThinking, context) };
}

/** Provider tools have already been mapped to Anthropic's, or dropped. */
const encodeTools = (tools: readonly CanonicalTool[]): JsonObject[] =>
  tools.map((tool) =>
    tool.server ? { type: tool.server.wire_type, ...tool.server.config, ...encodeCacheControl(tool) } : encodeFunction(tool),
  );

function encodeFunction(tool: CanonicalTool): JsonObject {
  return {
    ...readExtensions(tool),
    name: tool.name,
    ...(tool.description && { description: tool.description }),
    input_schema: tool.input_schema ?? { type: 'object', properties: {} },
    ...(tool.strict !== undefined && { strict: tool.strict }),
    ...(tool.defer_loading !== undefined && { defer_loading: tool.defer_loading }),
    ...(tool.allowed_callers && { allowed_callers: tool.allowed_callers }),
    ...(tool.input_examples && { input_examples: tool.input_examples }),
    ...(tool.eager_input_streaming !== undefined && { eager_input_streaming: tool.eager_input_streaming }),
    ...encodeCacheControl(tool),
  };
}

/** A choice cannot be limited to some of the tools, so only the allowed ones are sent (P61). */
function restrict(
  tools: readonly CanonicalTool[],
  choice: ToolChoice | undefined,
  context: CodecContext,
): readonly CanonicalTool[] {
  const listed = choice && choice.type !== 'tool' ? choice.allowed_tools : undefined;
  if (!listed) return tools;
  const allowed = new Set(listed);
  const sent = tools.filter(({ name }) => allowed.has(name));
  const message = `allowed_tools is not supported by the target; only these ${sent.length} of ${tools.length} tools are sent`;
  noteApproximated(context, { path: '/tool_choice', feature: 'tool_choice.allowed_tools', message });
  return sent;
}

function encodeChoice(request: CanonicalRequest, isThinking: boolean, context: CodecContext): JsonObject {
  const { parallel_tool_use: parallel, tool_choice: requested } = request;
  const choice = requested && isThinking && isForcing(requested) ? unforce(requested, context) : requested;
  if (!choice) return parallel === false ? { tool_choice: { type: 'auto', disable_parallel_tool_use: true } } : {};
  const named = choice.type === 'tool' && { name: choice.name };
  const single = parallel !== undefined && choice.type !== 'none' && { disable_parallel_tool_use: !parallel };
  const native = choice.type === 'tool' ? undefined : choice.native;
  if (native) return { tool_choice: { ...objectOrEmpty(native.value), ...single } };
  return { tool_choice: { ...objectOrEmpty(readExtensions(request)['tool_choice']), type: choice.type, ...named, ...single } };
}

const isForcing = ({ type }: ToolChoice): boolean => type === 'any' || type === 'tool';

/**
 * Forced calls are rejected with thinking (P59): 400 "Thinking may not be enabled when tool_choice forces tool use".
 */
function unforce(choice: ToolChoice, context: CodecContext): ToolChoice {
  const feature = 'tool_choice';
  const message = `tool_choice "${choice.type}" is not supported with thinking; sent as "auto"`;
  if (isStrict(context, feature)) refuse(context, { path: '/tool_choice', feature, message: explainStrict(message) });
  noteApproximated(context, { path: '/tool_choice', feature, message });
  return { type: 'auto' };
}

/** OpenAI nests the domains in `filters` and, in Chat, the location in `approximate`. */
function encodeSearch(config: JsonObject): JsonObject {
  const filters = { ...objectOrEmpty(config['filters']), ...config };
  const located = objectOrEmpty(config['user_location']);
  const { type: _, ...place } = objectOrEmpty(located['approximate'] ?? located);
  const uses = config['max_uses'];
  return {
    ...(typeof uses === 'number' && { max_uses: uses }),
    ...encodeDomains('allowed_domains', filters),
    ...encodeDomains('blocked_domains', filters),
    ...(Object.keys(place).length > 0 && { user_location: { type: 'approximate', ...place } }),
  };
}

function encodeDomains(name: string, filters: JsonObject): JsonObject {
  const list = listOrEmpty(filters[name]);
  return list.length > 0 ? { [name]: list } : {};
}
