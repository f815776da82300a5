import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalTool } from '../../canonical/request.ts';
import { asFunction } from '../../passes/custom-tools.ts';
import { completeSchema } from '../../passes/schema.ts';
import { type CodecContext, drop, incompatible } from '../shared/codec.ts';
import { expectBoolean, expectList, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { objectOf, textOf, unknownFields } from '../shared/read.ts';
import { decodeCacheControl, fieldsOf, keep, unknownWithin } from './fields.ts';

/** The request's tools; search models are told to search by a field of its own, which is a tool like any other. */
export function decodeTools(body: JsonObject): CanonicalTool[] {
  const listed = optional(body['tools'], 'tools', expectList);
  const tools = listed
    ? listed.map((tool, i) => decodeTool(expectObject(tool, `tools[${i}]`), `tools[${i}]`))
    : (optional(body['functions'], 'functions', expectList) ?? []).map((item, i) => {
        const { extensions, ...rest } = decodeFunction(expectObject(item, `functions[${i}]`), `functions[${i}]`);
        return { ...rest, ...keep(extensions && { function: extensions['openai-chat'] }) };
      });
  const search = optional(body['web_search_options'], 'web_search_options', expectObject);
  return search ? [...tools, serverTool(WEB_SEARCH_OPTIONS, search)] : tools;
}

const WEB_SEARCH_OPTIONS = 'web_search_options';
const FUNCTION_TOOL_FIELDS = new Set(['type', 'function']);
const CUSTOM_TOOL_FIELDS = new Set(['type', 'custom']);

function decodeTool(tool: JsonObject, at: string): CanonicalTool {
  const type = optional(tool['type'], `${at}.type`, expectText) ?? 'function';
  if (type === 'function') {
    const { extensions: _, ...rest } = decodeFunction(expectObject(tool['function'], `${at}.function`), `${at}.function`);
    return {
      ...rest,
      ...decodeCacheControl(tool, undefined),
      ...keep(unknownWithin(tool, FUNCTION_TOOL_FIELDS, 'function', FUNCTION_FIELDS)),
    };
  }
  if (type === 'custom') return decodeCustom(tool, at);
  const { type: _, ...config } = tool;
  return serverTool(type, config);
}

const FUNCTION_FIELDS = new Set(['name', 'description', 'parameters', 'strict']);

function decodeFunction(body: JsonObject, at: string): CanonicalTool {
  const description = optional(body['description'], `${at}.description`, expectText);
  const schema = optional(body['parameters'], `${at}.parameters`, expectObject);
  const strict = optional(body['strict'], `${at}.strict`, expectBoolean);
  return {
    name: expectName(body['name'], `${at}.name`),
    ...(description !== undefined && { description }),
    ...(schema && { input_schema: schema }),
    ...(strict !== undefined && { strict }),
    ...keep(unknownFields(body, FUNCTION_FIELDS)),
  };
}

const CUSTOM_FIELDS = new Set(['name', 'description', 'format']);

function decodeCustom(tool: JsonObject, at: string): CanonicalTool {
  const custom = expectObject(tool['custom'], `${at}.custom`);
  const description = optional(custom['description'], `${at}.custom.description`, expectText);
  const format = decodeFormat(optional(custom['format'], `${at}.custom.format`, expectObject), `${at}.custom.format`);
  return {
    name: expectName(custom['name'], `${at}.custom.name`),
    kind: 'custom',
    ...(description !== undefined && { description }),
    ...(format && { format }),
    ...keep(unknownWithin(tool, CUSTOM_TOOL_FIELDS, 'custom', CUSTOM_FIELDS)),
  };
}

/** Chat nests the grammar: `{type:"grammar",grammar:{definition,syntax}}`. */
function decodeFormat(format: JsonObject | undefined, at: string): CanonicalTool['format'] | undefined {
  if (!format) return undefined;
  if (format['type'] !== 'grammar') return { type: 'text' };
  const grammar = expectObject(format['grammar'], `${at}.grammar`);
  const syntax = grammar['syntax'] === 'regex' ? 'regex' : 'lark';
  return { type: 'grammar', syntax, definition: expectText(grammar['definition'], `${at}.grammar.definition`) };
}

/** A tool that the provider runs itself: `openrouter:web_search` and the like. */
function serverTool(wireType: string, config: JsonObject): CanonicalTool {
  const type = wireType === WEB_SEARCH_OPTIONS ? 'web_search' : wireType.slice(wireType.indexOf(':') + 1);
  return {
    name: textOf(config['name']) || type,
    kind: 'server',
    server: { type, wire_type: wireType, config, origin: 'openai-chat' },
  };
}

/** What only other protocols say of a tool. */
const FOREIGN_FIELDS = ['defer_loading', 'allowed_callers', 'output_schema', 'input_examples', 'eager_input_streaming'] as const;

export interface EncodedTools {
  tools: JsonObject[];
  /** `web_search_options`. */
  search: JsonObject | undefined;
  /** Names of tools that the target does not have. */
  lost: ReadonlySet<string>;
}

export function encodeTools(tools: readonly CanonicalTool[], context: CodecContext): EncodedTools {
  const encoded: EncodedTools['tools'] = [];
  const lost = new Set<string>();
  let search: JsonObject | undefined;
  tools.forEach((tool, i) => {
    const { server } = tool;
    for (const name of FOREIGN_FIELDS)
      if (tool[name] !== undefined)
        drop(context, { path: `/tools/${i}/${name}`, feature: `tools.${name}`, message: `OpenAI Chat has no ${name} of tools` });
    if (!server)
      encoded.push(
        tool.kind === 'custom' ? encodeCustom(tool, `/tools/${i}`, context) : encodeFunction(tool, `/tools/${i}`, context),
      );
    else if (
      server.wire_type === WEB_SEARCH_OPTIONS ||
      (server.type === 'web_search' && isForeign(server) && context.profile.web_search_options)
    )
      search = isForeign(server) ? encodeSearch(server.config) : server.config;
    else if (!isForeign(server)) encoded.push({ ...server.config, type: server.wire_type });
    else {
      lost.add(tool.name);
      drop(context, {
        path: `/tools/${i}`,
        feature: `tools.${server.type}`,
        message: `${server.wire_type} is no tool of this provider`,
      });
    }
  });
  return { tools: encoded, search, lost };
}

const isForeign = ({ origin }: { origin: string }): boolean => origin !== 'openai-chat';

/** The portable core of a web search: where the user is, and how much is read. */
function encodeSearch(config: JsonObject): JsonObject {
  const { type: _, ...place } = objectOf(config['user_location']);
  const size = config['search_context_size'];
  return {
    ...(typeof size === 'string' && { search_context_size: size }),
    ...(Object.keys(place).length > 0 && { user_location: { type: 'approximate', approximate: place } }),
  };
}

function encodeFunction(tool: CanonicalTool, at: string, context: CodecContext): JsonObject {
  const { function: rest, ...fields } = fieldsOf(tool);
  const schema = tool.input_schema ?? {};
  const parameters = completeSchema(schema);
  if (tool.input_schema && parameters !== schema)
    context.note({
      code: 'REPAIRED',
      path: at,
      feature: 'tools.schema',
      message: `the schema of ${tool.name} lacked properties or items`,
    });
  return {
    ...fields,
    type: 'function',
    function: {
      ...objectOf(rest),
      name: tool.name,
      ...(tool.description !== undefined && { description: tool.description }),
      parameters,
      ...(tool.strict !== undefined && { strict: tool.strict }),
    },
  };
}

function encodeCustom(tool: CanonicalTool, at: string, context: CodecContext): JsonObject {
  if (!context.profile.custom_tools) {
    context.note({
      code: 'APPROXIMATED',
      path: at,
      feature: 'tools.custom',
      message: `the custom tool ${tool.name} is a function there`,
    });
    return encodeFunction(asFunction(tool), at, context);
  }
  const { custom: rest, ...fields } = fieldsOf(tool);
  const { name, description, format } = tool;
  const custom = {
    ...objectOf(rest),
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

/** A tool that must be called and is not there would be a different question. */
export const refuseForced = (name: string): Error =>
  incompatible({
    path: '/tool_choice',
    feature: 'tool_choice',
    message: `${name} must be called, but this provider has no such tool`,
  });
