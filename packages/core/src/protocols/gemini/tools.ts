/** Tools and tool choice, in both directions. */

import type { JsonSchema } from '../../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice, ToolMode } from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { expectList, expectName, expectObject, expectText, optional, unknownFields } from '../../codec/read.ts';
import { noteApproximated, noteDropped, refuse } from '../../codec/report.ts';
import { buildNativeChoice } from '../../codec/requests.ts';
import { isObject, type JsonObject, sameJson, setOwn } from '../../json/json.ts';
import type { ServerToolRule } from '../../passes/rules.ts';
import { readExtensions, toCamelCase, toCamelKeys, toCamelObject, toExtensions } from './wire.ts';

const createRule = (wire_type: string): ServerToolRule => ({ reads: [], write: () => ({ wire_type, config: {} }) });

/** Provider tools of other protocols that have a counterpart at Google. They have no settings. */
export const SERVER_TOOLS: Readonly<Record<string, ServerToolRule>> = {
  web_search: createRule('googleSearch'),
  code_execution: createRule('codeExecution'),
  web_fetch: createRule('urlContext'),
};

/** Each entry may contain function declarations and Google's own tools. */
export function decodeTools(value: unknown, context: CodecContext): CanonicalTool[] {
  const list = optional(value, 'tools', (tools, param) => (isObject(tools) ? [tools] : expectList(tools, param))) ?? [];
  return list.flatMap((item, i) => {
    const tool = expectObject(item, `tools[${i}]`);
    const { functionDeclarations: declarations, ...others } = toCamelKeys(tool);
    const functions = optional(declarations, `tools[${i}].functionDeclarations`, expectList) ?? [];
    return [
      ...functions.map((declaration, k) => {
        const param = `tools[${i}].functionDeclarations[${k}]`;
        const place = `/tools/${i}/functionDeclarations/${k}`;
        const wire = toCamelKeys(expectObject(declaration, param));
        return withSource(place, decodeFunction(wire, param), context, locateSchemas(place, wire));
      }),
      ...Object.entries(others)
        .filter(([, config]) => config !== null && config !== undefined)
        .map(([key, config]) => withSource(`/tools/${i}/${key}`, decodeServerTool(key, config), context)),
    ];
  });
}

const FUNCTION_FIELDS: ReadonlySet<string> = new Set(['name', 'description']);

/** The schemas are also kept as extensions, and sent to Google unchanged. */
function decodeFunction(declaration: JsonObject, param: string): CanonicalTool {
  const description = optional(declaration['description'], `${param}.description`, expectText);
  const input = readSchema(declaration, 'parametersJsonSchema', 'parameters', param);
  const output = readSchema(declaration, 'responseJsonSchema', 'response', param);
  return {
    name: expectName(declaration['name'], `${param}.name`),
    ...(description !== undefined && { description }),
    ...(input && { input_schema: input }),
    ...(output && { output_schema: output }),
    ...toExtensions(unknownFields(declaration, FUNCTION_FIELDS)),
  };
}

/** Where the declaration has its schemas: in JSON Schema fields or in those of Google's dialect. */
function locateSchemas(place: string, declaration: JsonObject): Record<string, string> {
  const field = (json: string, own: string): string => `${place}/${declaration[json] === undefined ? own : json}`;
  return {
    input_schema: field('parametersJsonSchema', 'parameters'),
    output_schema: field('responseJsonSchema', 'response'),
  };
}

/** Canonical names of the tools that Google runs; others keep their names. */
const SERVER_TYPES: Readonly<Record<string, string>> = {
  googleSearch: 'web_search',
  googleSearchRetrieval: 'web_search',
  enterpriseWebSearch: 'web_search',
  codeExecution: 'code_execution',
  urlContext: 'web_fetch',
  fileSearch: 'file_search',
  computerUse: 'computer',
  googleMaps: 'google_maps',
  mcpServers: 'mcp',
};

/** A configuration that is not an object (a list of MCP servers) is stored under its own name. */
function decodeServerTool(key: string, config: unknown): CanonicalTool {
  const type = (Object.hasOwn(SERVER_TYPES, key) && SERVER_TYPES[key]) || key;
  return {
    name: key,
    kind: 'server',
    server: { type, wire_type: key, config: isObject(config) ? config : { [key]: config }, origin: 'gemini' },
  };
}

/** Reads a schema from the JSON Schema field, or from the field with Google's dialect. */
export function readSchema(source: JsonObject, json: string, openApi: string, param: string): JsonObject | undefined {
  const schema = optional(source[json], `${param}.${json}`, expectObject);
  if (schema) return schema;
  const own = optional(source[openApi], `${param}.${openApi}`, expectObject);
  return own && decodeSchema(own);
}

/** proto3 JSON may have the number of an enum value. */
const TYPES: readonly string[] = ['type_unspecified', 'string', 'number', 'integer', 'boolean', 'array', 'object', 'null'];

/**
 * Converts Google's `Schema` (a subset of OpenAPI 3.0: `STRING`, `nullable`) to JSON Schema. JSON Schema is left
 * unchanged.
 */
function decodeSchema(schema: JsonObject): JsonSchema {
  const out: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) setOwn(out, toCamelCase(key), decodeKeyword(toCamelCase(key), value));
  const { type, nullable, format, ...rest }: JsonObject = out;
  const isEnum = format === 'enum';
  const named = typeof type === 'number' ? TYPES[type] : typeof type === 'string' ? type.toLowerCase() : type;
  const word = named === 'type_unspecified' ? undefined : named;
  return {
    ...(word !== undefined && { type: nullable === true && typeof word === 'string' ? [word, 'null'] : word }),
    ...(format !== undefined && !isEnum && { format }),
    ...withNull(rest, nullable === true),
  };
}

/** Keywords whose value is a schema. */
const ONE: ReadonlySet<string> = new Set(['items', 'additionalProperties']);

/** Keywords whose value is a list of schemas. */
const LIST: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);

/** Keywords whose value maps names to schemas. */
const NAMED: ReadonlySet<string> = new Set(['properties', '$defs', 'defs']);

/** proto3 JSON writes int64 as text. */
const COUNTS: ReadonlySet<string> = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties']);

function decodeKeyword(key: string, value: unknown): unknown {
  if (ONE.has(key) && isObject(value)) return decodeSchema(value);
  if (LIST.has(key) && Array.isArray(value)) return value.map((item: unknown) => (isObject(item) ? decodeSchema(item) : item));
  if (NAMED.has(key) && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, isObject(item) ? decodeSchema(item) : item]));
  return COUNTS.has(key) && typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
}

/** A nullable schema must also allow null in its enum and anyOf. Without a type, null is allowed anyway. */
function withNull(rest: JsonObject, isNullable: boolean): JsonObject {
  if (!isNullable) return rest;
  const { enum: values, anyOf: schemas } = rest;
  return {
    ...rest,
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
    ...(Array.isArray(schemas) && { anyOf: [...schemas, { type: 'null' }] }),
  };
}

interface Decoded {
  choice?: ToolChoice;
  /** Fields of `toolConfig` without a canonical counterpart. */
  rest?: JsonObject;
}

const CALLING_FIELDS: ReadonlySet<string> = new Set(['mode', 'allowedFunctionNames']);

const CONFIG_FIELDS: ReadonlySet<string> = new Set(['functionCallingConfig']);

/** The tool choice, and the fields of `toolConfig` without a canonical counterpart. */
export function decodeToolConfig(value: unknown): Decoded {
  const config = optional(value, 'toolConfig', expectObject);
  if (!config) return {};
  const at = 'toolConfig.functionCallingConfig';
  const calling = toCamelKeys(optional(toCamelKeys(config)['functionCallingConfig'], at, expectObject) ?? {});
  const word = optional(calling['mode'], `${at}.mode`, expectText)?.toUpperCase();
  const names = optional(calling['allowedFunctionNames'], `${at}.allowedFunctionNames`, expectList)?.map((name, i) =>
    expectName(name, `${at}.allowedFunctionNames[${i}]`),
  );
  const inner = unknownFields(calling, CALLING_FIELDS);
  const rest = { ...unknownFields(toCamelKeys(config), CONFIG_FIELDS), ...(inner && { functionCallingConfig: inner }) };
  const choice = word && !word.endsWith('UNSPECIFIED') ? decodeChoice(word, names ?? []) : undefined;
  return { ...(choice && { choice }), ...(Object.keys(rest).length > 0 && { rest }) };
}

/** VALIDATED leaves the choice to the model, as AUTO does, but enforces the schemas. */
const MODES: Readonly<Record<string, ToolMode>> = {
  AUTO: { type: 'auto' },
  NONE: { type: 'none' },
  ANY: { type: 'any' },
  VALIDATED: { type: 'auto', validated: true },
};

function decodeChoice(word: string, names: string[]): ToolChoice {
  const mode = (Object.hasOwn(MODES, word) && MODES[word]) || buildNativeChoice(word, 'gemini');
  const [name] = names;
  if (mode.type === 'any' && names.length === 1 && name !== undefined) return { type: 'tool', name };
  return names.length > 0 ? { ...mode, allowed_tools: names } : mode;
}

// ---- encode

/** One entry with all functions, and one for each of Google's own tools. */
export function encodeTools(tools: readonly CanonicalTool[], context: CodecContext): JsonObject[] {
  const functions = tools.flatMap((tool) => (tool.server ? [] : [encodeFunction(tool, context)]));
  const others = tools.flatMap((tool, i) =>
    tool.server ? encodeServer(tool, functions.length > 0, `/tools/${i}`, context) : [],
  );
  return [...(functions.length > 0 ? [{ functionDeclarations: functions }] : []), ...others];
}

function encodeFunction(tool: CanonicalTool, context: CodecContext): JsonObject {
  const fields = readExtensions(tool);
  const { name, description } = tool;
  const isOwn = Object.keys(fields).some(isSchemaField);
  return { ...fields, name, ...(description !== undefined && { description }), ...(!isOwn && encodeSchemas(tool, context)) };
}

/**
 * The schemas in the fields that the model accepts. A function without arguments has none: an object without
 * properties is rejected (P53).
 */
function encodeSchemas({ input_schema: input, output_schema: output }: CanonicalTool, { profile }: CodecContext): JsonObject {
  const isJson = profile.json_schema_params;
  return {
    ...(input && !isBare(input) && { [isJson ? 'parametersJsonSchema' : 'parameters']: input }),
    ...(output && { responseJsonSchema: output }),
  };
}

/** Whether a schema is an object without any constraints. */
function isBare({ type = 'object', properties, required: _, additionalProperties: more, ...rest }: JsonObject): boolean {
  const isEmpty = (value: unknown): boolean => !isObject(value) || Object.keys(value).length === 0;
  const isPlain = typeof type === 'string' && type.toLowerCase() === 'object';
  return isPlain && isEmpty(properties) && isEmpty(more) && Object.keys(rest).length === 0;
}

/**
 * Built-in tools that models before Gemini 3 reject beside functions. Code execution is accepted (recorded on
 * gemini-2.5-flash).
 */
const NOT_BESIDE_FUNCTIONS: ReadonlySet<string> = new Set(['web_search', 'web_fetch']);

function encodeServer({ server }: CanonicalTool, besideFunctions: boolean, path: string, context: CodecContext): JsonObject[] {
  if (!server) return [];
  const { wire_type: key, config, type } = server;
  if (besideFunctions && !context.profile.builtin_with_functions && NOT_BESIDE_FUNCTIONS.has(type)) {
    noteDropped(context, {
      path,
      feature: `tools.${type}`,
      message: `${key} with functions is not supported by this model; dropped`,
    });
    return [];
  }
  return [{ [key]: Array.isArray(config[key]) ? config[key] : config }];
}

/** The `toolConfig` for the tools that are sent. `sent` has its extensions. */
export function encodeToolConfig(
  { tool_choice: choice, parallel_tool_use: parallel }: CanonicalRequest,
  tools: readonly CanonicalTool[],
  sent: JsonObject,
  context: CodecContext,
): JsonObject | undefined {
  const functions = tools.filter(({ server }) => !server);
  if (parallel === false && functions.length > 0)
    noteDropped(context, {
      path: '/parallel_tool_use',
      feature: 'parallel_tool_use',
      message: 'disabling parallel tool calls is not supported by Gemini; dropped',
    });
  const calling = {
    ...toCamelObject(sent['functionCallingConfig']),
    ...(choice && encodeChoice(choice, functions, context)),
  };
  const config = { ...sent, ...(Object.keys(calling).length > 0 && { functionCallingConfig: calling }) };
  return Object.keys(config).length > 0 ? config : undefined;
}

/** Without functions there is nothing to choose from, so forced choices are dropped. */
function encodeChoice(choice: ToolChoice, functions: readonly CanonicalTool[], context: CodecContext): JsonObject {
  if (functions.length === 0) {
    if (choice.type === 'tool' || choice.type === 'any')
      noteDropped(context, {
        path: '/tool_choice',
        feature: 'tool_choice',
        message: 'tool_choice without functions is rejected by the target; dropped',
      });
    return choice.type === 'none' || choice.type === 'auto' ? { mode: encodeMode(choice) } : {};
  }
  if (choice.type === 'tool') {
    if (!functions.some(({ name }) => name === choice.name))
      refuse(context, {
        path: '/tool_choice',
        feature: 'tool_choice',
        message: `tool_choice requires "${choice.name}", but the request has no such function`,
      });
    return { mode: 'ANY', allowedFunctionNames: [choice.name] };
  }
  const names = takesNames(choice) ? choice.allowed_tools : undefined;
  return { mode: encodeMode(choice), ...(names && { allowedFunctionNames: names }) };
}

const TO_WIRE = { auto: 'AUTO', none: 'NONE', any: 'ANY' } as const;

const encodeMode = ({ type, validated, native }: ToolMode): unknown =>
  native ? native.value : validated ? 'VALIDATED' : TO_WIRE[type];

/** AUTO cannot name the allowed functions, so the others are not sent. */
export function restrictTools(request: CanonicalRequest, context: CodecContext): readonly CanonicalTool[] {
  const { tools = [], tool_choice: choice } = request;
  if (choice?.type !== 'auto' || !choice.allowed_tools || takesNames(choice)) return tools;
  const allowed = new Set(choice.allowed_tools);
  const left = tools.filter(({ name, server }) => server || allowed.has(name));
  if (left.length < tools.length)
    noteApproximated(context, {
      path: '/tool_choice',
      feature: 'tool_choice.allowed_tools',
      message: `allowed_tools is not supported by the target; only these ${left.length} of ${tools.length} tools are sent`,
    });
  return left;
}

/** AUTO cannot name functions. Unknown modes of a Gemini client are assumed to. */
const takesNames = ({ type, validated, native }: ToolMode): boolean =>
  type === 'any' || validated === true || native !== undefined;

/**
 * Schemas that a Gemini client sent are sent unchanged, so the canonical ones are removed. If the canonical schema
 * has changed since, the extensions are removed instead.
 */
export function preferOwnSchemas(request: CanonicalRequest): CanonicalRequest {
  const { tools } = request;
  if (!tools?.some((tool) => tool.extensions?.gemini)) return request;
  return { ...request, tools: tools.map((tool) => (hasOwnSchema(tool) ? withoutSchema(tool) : withoutExtensionSchemas(tool))) };
}

/** Whether the schema of a tool is still the one that a Gemini client sent. */
function hasOwnSchema({ input_schema: schema, ...tool }: CanonicalTool): boolean {
  const fields = readExtensions(tool);
  return schema !== undefined && sameJson(readSchema(fields, 'parametersJsonSchema', 'parameters', 'tools'), schema);
}

const withoutSchema = ({ input_schema: _, output_schema: __, ...tool }: CanonicalTool): CanonicalTool => tool;

const withoutExtensionSchemas = (tool: CanonicalTool): CanonicalTool =>
  tool.extensions?.gemini ? { ...tool, extensions: { ...tool.extensions, gemini: withoutSchemas(readExtensions(tool)) } } : tool;

const withoutSchemas = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !isSchemaField(key)));

const SCHEMA_FIELDS = ['parametersJsonSchema', 'parameters', 'responseJsonSchema', 'response'] as const;

const isSchemaField = (key: string): boolean => SCHEMA_FIELDS.some((field) => field === key);
