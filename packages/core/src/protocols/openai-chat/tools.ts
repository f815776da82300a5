import type { JsonSchema } from '../../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectList,
  expectName,
  expectObject,
  expectText,
  objectOrEmpty,
  optional,
  textOrEmpty,
  unknownFields,
} from '../../codec/read.ts';
import { noteDropped } from '../../codec/report.ts';
import { buildNativeChoice } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import type { ServerToolRule } from '../../passes/rules.ts';
import { decodeCacheControl, encodeCacheControl, nestedUnknownFields, readExtensions, toExtensions } from './wire.ts';

// ---- decode

const WEB_SEARCH_OPTIONS = 'web_search_options';

/** Decodes the tools of a request. `web_search_options`, a field of search models, becomes a server tool. */
export function decodeTools(body: JsonObject, context: CodecContext): CanonicalTool[] {
  const listed = optional(body['tools'], 'tools', expectList);
  const tools = listed
    ? listed.map((tool, i) =>
        withSource(`/tools/${i}`, decodeTool(expectObject(tool, `tools[${i}]`), `tools[${i}]`), context, {
          strict: `/tools/${i}/function/strict`,
          input_schema: `/tools/${i}/function/parameters`,
        }),
      )
    : (optional(body['functions'], 'functions', expectList) ?? []).map((item, i) => {
        const { extensions, ...rest } = decodeFunction(expectObject(item, `functions[${i}]`), `functions[${i}]`);
        const tool = { ...rest, ...toExtensions(extensions && { function: extensions['openai-chat'] }) };
        return withSource(`/functions/${i}`, tool, context, { input_schema: `/functions/${i}/parameters` });
      });
  const search = optional(body['web_search_options'], 'web_search_options', expectObject);
  return search ? [...tools, withSource('/web_search_options', decodeServerTool(WEB_SEARCH_OPTIONS, search), context)] : tools;
}

const FUNCTION_TOOL_FIELDS = new Set(['type', 'function']);

function decodeTool(tool: JsonObject, param: string): CanonicalTool {
  const type = optional(tool['type'], `${param}.type`, expectText) ?? 'function';
  if (type === 'function') {
    const body = expectObject(tool['function'], `${param}.function`);
    const { extensions, ...rest } = decodeFunction(body, `${param}.function`);
    return {
      ...rest,
      ...decodeCacheControl(tool),
      ...toExtensions({
        ...unknownFields(tool, FUNCTION_TOOL_FIELDS),
        ...(extensions && { function: extensions['openai-chat'] }),
      }),
    };
  }
  if (type === 'custom') return decodeCustom(tool, param);
  const { type: _, ...config } = tool;
  return decodeServerTool(type, config);
}

const FUNCTION_FIELDS = new Set(['name', 'description', 'parameters', 'strict']);

function decodeFunction(body: JsonObject, param: string): CanonicalTool {
  const description = optional(body['description'], `${param}.description`, expectText);
  const schema = optional(body['parameters'], `${param}.parameters`, expectObject);
  const strict = optional(body['strict'], `${param}.strict`, expectBoolean);
  return {
    name: expectName(body['name'], `${param}.name`),
    ...(description !== undefined && { description }),
    ...(schema && { input_schema: schema }),
    ...(strict !== undefined && { strict }),
    // `null` records that the client sent no schema, so that the tool is passed on without one.
    ...toExtensions({ ...unknownFields(body, FUNCTION_FIELDS), ...(!schema && { parameters: null }) }),
  };
}

const CUSTOM_TOOL_FIELDS = new Set(['type', 'custom']);

const CUSTOM_FIELDS = new Set(['name', 'description', 'format']);

function decodeCustom(tool: JsonObject, param: string): CanonicalTool {
  const custom = expectObject(tool['custom'], `${param}.custom`);
  const description = optional(custom['description'], `${param}.custom.description`, expectText);
  const format = decodeFormat(optional(custom['format'], `${param}.custom.format`, expectObject), `${param}.custom.format`);
  return {
    name: expectName(custom['name'], `${param}.custom.name`),
    kind: 'custom',
    ...(description !== undefined && { description }),
    ...(format && { format }),
    ...toExtensions(nestedUnknownFields(tool, CUSTOM_TOOL_FIELDS, 'custom', CUSTOM_FIELDS)),
  };
}

/** Chat nests the grammar: `{type:"grammar",grammar:{definition,syntax}}`. */
function decodeFormat(format: JsonObject | undefined, param: string): CanonicalTool['format'] | undefined {
  if (!format) return undefined;
  if (format['type'] !== 'grammar') return { type: 'text' };
  const grammar = expectObject(format['grammar'], `${param}.grammar`);
  const syntax = grammar['syntax'] === 'regex' ? 'regex' : 'lark';
  return { type: 'grammar', syntax, definition: expectText(grammar['definition'], `${param}.grammar.definition`) };
}

/** A tool that the provider runs, like `openrouter:web_search`. */
function decodeServerTool(wireType: string, config: JsonObject): CanonicalTool {
  const type = wireType === WEB_SEARCH_OPTIONS ? 'web_search' : wireType.slice(wireType.indexOf(':') + 1);
  return {
    name: textOrEmpty(config['name']) || type,
    kind: 'server',
    server: { type, wire_type: wireType, config, origin: 'openai-chat' },
  };
}

/** Decodes the tool choice. The deprecated `function_call` counts only if `tool_choice` is absent. */
export function decodeToolChoice(body: JsonObject): ToolChoice | undefined {
  const { tool_choice: choice, function_call: legacy } = body;
  if (choice !== undefined && choice !== null) return decodeChoice(choice, 'tool_choice');
  if (legacy === undefined || legacy === null) return undefined;
  return isObject(legacy)
    ? { type: 'tool', name: expectName(legacy['name'], 'function_call.name') }
    : decodeChoice(legacy, 'function_call');
}

function decodeChoice(choice: unknown, at: string): ToolChoice {
  const mode = findMode(choice);
  if (mode) return { type: mode };
  if (typeof choice === 'string') return buildNativeChoice(choice, 'openai-chat');
  const body = expectObject(choice, at);
  const type = expectText(body['type'] ?? (isObject(body['function']) ? 'function' : undefined), `${at}.type`);
  if (type === 'function' || type === 'custom') return { type: 'tool', name: readName(body, type, at) };
  if (type === 'allowed_tools') return decodeAllowed(body, at);
  // Anthropic's form, which some servers accept too.
  if (type === 'tool') return decodeNamed(body, at);
  const named = findMode(type);
  return named ? { type: named } : buildNativeChoice(choice, 'openai-chat');
}

/** Tool choice modes; Mistral has "any". */
const MODES: Readonly<Record<string, 'auto' | 'none' | 'any'>> = { auto: 'auto', none: 'none', required: 'any', any: 'any' };

const findMode = (word: unknown): 'auto' | 'none' | 'any' | undefined =>
  typeof word === 'string' && Object.hasOwn(MODES, word) ? MODES[word] : undefined;

/** The name may be nested, as in chat, or flat, as in Responses. */
function readName(body: JsonObject, type: string, at: string): string {
  const nested = objectOrEmpty(body[type])['name'];
  return expectName(nested ?? body['name'], `${at}.${type}.name`);
}

function decodeAllowed(body: JsonObject, at: string): ToolChoice {
  const inner = optional(body['allowed_tools'], `${at}.allowed_tools`, expectObject) ?? body;
  const where = inner === body ? at : `${at}.allowed_tools`;
  const names = expectList(inner['tools'], `${where}.tools`).map((item, i) => {
    const tool = expectObject(item, `${where}.tools[${i}]`);
    return readName(tool, tool['type'] === 'custom' ? 'custom' : 'function', `${where}.tools[${i}]`);
  });
  return { type: findMode(inner['mode']) === 'any' ? 'any' : 'auto', allowed_tools: names };
}

/** Without a name the choice is any tool. */
function decodeNamed({ name }: JsonObject, at: string): ToolChoice {
  return name === undefined || name === null ? { type: 'any' } : { type: 'tool', name: expectName(name, `${at}.name`) };
}

// ---- encode

/** Encodes tools, tool choice and parallel calls. Without tools the API rejects a tool choice. */
export function encodeToolFields(request: CanonicalRequest, context: CodecContext): JsonObject {
  const { tools = [], tool_choice: choice, parallel_tool_use: parallel } = request;
  const encoded = encodeTools(restrictTools(tools, choice, context), context);
  const search = encoded.search && { web_search_options: encoded.search };
  if (encoded.tools.length === 0) {
    if (choice && isForcing(choice) && !search)
      noteDropped(context, {
        path: '/tool_choice',
        feature: 'tool_choice',
        message: 'tool_choice without tools is rejected by the target; dropped',
      });
    return { ...search };
  }
  return {
    tools: encoded.tools,
    ...(choice && encodeChoice(choice, tools, context)),
    ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    ...search,
  };
}

interface EncodedTools {
  tools: JsonObject[];
  /** `web_search_options`. */
  search: JsonObject | undefined;
}

/** Encodes the tools. The server tools of a prepared request are all in the form of chat. */
function encodeTools(tools: readonly CanonicalTool[], context: CodecContext): EncodedTools {
  const encoded: EncodedTools['tools'] = [];
  let search: JsonObject | undefined;
  for (const tool of tools) {
    if (tool.server?.wire_type === WEB_SEARCH_OPTIONS) search = tool.server.config;
    else if (tool.server) encoded.push({ ...tool.server.config, type: tool.server.wire_type });
    else
      encoded.push({
        ...(tool.kind === 'custom' ? encodeCustom(tool) : encodeFunction(tool)),
        ...encodeCacheControl(tool, context),
      });
  }
  return { tools: encoded, search };
}

function encodeCustom({ name, description, format, ...tool }: CanonicalTool): JsonObject {
  const { custom: rest, ...fields } = readExtensions(tool);
  const custom = {
    ...objectOrEmpty(rest),
    name,
    ...(description !== undefined && { description }),
    ...(format && { format: encodeFormat(format) }),
  };
  return { ...fields, type: 'custom', custom };
}

const encodeFormat = (format: NonNullable<CanonicalTool['format']>): JsonObject =>
  format.type === 'text'
    ? { type: 'text' }
    : { type: 'grammar', grammar: { definition: format.definition, syntax: format.syntax } };

const NO_ARGUMENTS: JsonSchema = { type: 'object', properties: {} };

function encodeFunction(tool: CanonicalTool): JsonObject {
  const { function: kept, ...fields } = readExtensions(tool);
  const { parameters: absent, ...rest } = objectOrEmpty(kept);
  const parameters = tool.input_schema ?? (absent === null ? undefined : NO_ARGUMENTS);
  return {
    ...fields,
    type: 'function',
    function: {
      ...rest,
      name: tool.name,
      ...(tool.description !== undefined && { description: tool.description }),
      ...(parameters && { parameters }),
      ...(tool.strict !== undefined && { strict: tool.strict }),
    },
  };
}

/** If a choice cannot be limited to some tools, the others are not sent. */
function restrictTools(
  tools: readonly CanonicalTool[],
  choice: ToolChoice | undefined,
  context: CodecContext,
): readonly CanonicalTool[] {
  const listed = choice && choice.type !== 'tool' ? choice.allowed_tools : undefined;
  if (!listed || context.profile.allowed_tools) return tools;
  const allowed = new Set(listed);
  const kept = tools.filter(({ name }) => allowed.has(name));
  const message = `allowed_tools is not supported by the target; only these ${kept.length} of ${tools.length} tools are sent`;
  context.note({ code: 'APPROXIMATED', path: '/tool_choice', feature: 'tool_choice.allowed_tools', message });
  return kept;
}

const isForcing = ({ type }: ToolChoice): boolean => type === 'any' || type === 'tool';

const WIRE_MODES: Record<'auto' | 'none' | 'any', string> = { auto: 'auto', none: 'none', any: 'required' };

function encodeChoice(choice: ToolChoice, tools: readonly CanonicalTool[], context: CodecContext): JsonObject {
  const custom = new Set(tools.filter(({ kind }) => kind === 'custom').map(({ name }) => name));
  const entry = (name: string): JsonObject =>
    custom.has(name) ? { type: 'custom', custom: { name } } : { type: 'function', function: { name } };
  if (choice.type === 'tool') return { tool_choice: entry(choice.name) };
  if (choice.native) return { tool_choice: choice.native.value };
  if (!choice.allowed_tools || !context.profile.allowed_tools) return { tool_choice: WIRE_MODES[choice.type] };
  const mode = choice.type === 'any' ? 'required' : 'auto';
  return { tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools: choice.allowed_tools.map(entry) } } };
}

const WEB_SEARCH: ServerToolRule = {
  reads: ['search_context_size', 'user_location'],
  write: (config) => ({ wire_type: WEB_SEARCH_OPTIONS, config: encodeSearch(config) }),
};

/** The portable settings of a web search: the user's location and the context size. */
function encodeSearch(config: JsonObject): JsonObject {
  const { type: _, ...place } = objectOrEmpty(config['user_location']);
  const size = config['search_context_size'];
  return {
    ...(typeof size === 'string' && { search_context_size: size }),
    ...(Object.keys(place).length > 0 && { user_location: { type: 'approximate', approximate: place } }),
  };
}

/** Server tools of other protocols with a counterpart in chat: web search, on search models. */
export const serverTools = ({ web_search_options: isSearching }: ProviderProfile): Readonly<Record<string, ServerToolRule>> =>
  isSearching ? { web_search: WEB_SEARCH } : {};
