import { isObject, type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, CanonicalTool } from '../../canonical/request.ts';
import type { ServerToolRule } from '../../passes/rules.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { fieldsOf } from './kept.ts';
import { schemaOf } from './tools-decode.ts';

const bare = (wire_type: string): ServerToolRule => ({ reads: [], write: () => ({ wire_type, config: {} }) });

/** Tools of other protocols that Google has too. They take no settings. */
export const SERVER_TOOLS: Readonly<Record<string, ServerToolRule>> = {
  web_search: bare('googleSearch'),
  code_execution: bare('codeExecution'),
  web_fetch: bare('urlContext'),
};

const SCHEMA_FIELDS = ['parametersJsonSchema', 'parameters', 'responseJsonSchema', 'response'] as const;

/** Whether the schema of a tool is still the one that a client sent in this protocol. */
function hasOwnSchema({ input_schema: schema, ...tool }: CanonicalTool): boolean {
  const kept = fieldsOf(tool);
  return schema !== undefined && sameJson(schemaOf(kept, 'parametersJsonSchema', 'parameters', 'tools'), schema);
}

/**
 * Schemas that a client sent in this protocol go back in its own words: they are kept beside the canonical ones, and nobody has to convert
 * these. What is kept of a schema that was changed since is forgotten.
 */
export function withOwnSchemas(request: CanonicalRequest): CanonicalRequest {
  const { tools } = request;
  if (!tools?.some((tool) => tool.extensions?.gemini)) return request;
  return { ...request, tools: tools.map((tool) => (hasOwnSchema(tool) ? withoutSchema(tool) : withoutKept(tool))) };
}

const withoutSchema = ({ input_schema: _, output_schema: __, ...tool }: CanonicalTool): CanonicalTool => tool;

const withoutKept = (tool: CanonicalTool): CanonicalTool =>
  tool.extensions?.gemini ? { ...tool, extensions: { ...tool.extensions, gemini: withoutSchemas(fieldsOf(tool)) } } : tool;

const withoutSchemas = (kept: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(kept).filter(([key]) => !isSchemaField(key)));

const isSchemaField = (key: string): boolean => SCHEMA_FIELDS.some((field) => field === key);

/** Built-in tools that models before Gemini 3 reject beside functions; code execution is accepted (recorded on gemini-2.5-flash). */
const NOT_BESIDE_FUNCTIONS: ReadonlySet<string> = new Set(['web_search', 'web_fetch']);

/** One entry with all functions, and one for each tool of Google's own. */
export function encodeTools(tools: readonly CanonicalTool[], context: CodecContext): JsonObject[] {
  const functions = tools.flatMap((tool) => (tool.server ? [] : [encodeFunction(tool, context)]));
  const others = tools.flatMap((tool, i) =>
    tool.server ? encodeServer(tool, functions.length > 0, `/tools/${i}`, context) : [],
  );
  return [...(functions.length > 0 ? [{ functionDeclarations: functions }] : []), ...others];
}

function encodeServer({ server }: CanonicalTool, besideFunctions: boolean, path: string, context: CodecContext): JsonObject[] {
  if (!server) return [];
  const { wire_type: key, config, type } = server;
  if (besideFunctions && !context.profile.builtin_with_functions && NOT_BESIDE_FUNCTIONS.has(type)) {
    drop(context, { path, feature: `tools.${type}`, message: `this model takes no ${key} beside functions` });
    return [];
  }
  return [{ [key]: Array.isArray(config[key]) ? config[key] : config }];
}

function encodeFunction(tool: CanonicalTool, context: CodecContext): JsonObject {
  const kept = fieldsOf(tool);
  const { name, description } = tool;
  const isOwn = Object.keys(kept).some(isSchemaField);
  return { ...kept, name, ...(description !== undefined && { description }), ...(!isOwn && encodeSchemas(tool, context)) };
}

/** In the field that the model takes. A function without arguments has no schema: an object without properties is refused (P53). */
function encodeSchemas({ input_schema: input, output_schema: output }: CanonicalTool, { profile }: CodecContext): JsonObject {
  const isJson = profile.json_schema_params;
  return {
    ...(input && !isBare(input) && { [isJson ? 'parametersJsonSchema' : 'parameters']: input }),
    ...(output && { responseJsonSchema: output }),
  };
}

/** An object of which nothing is said. */
function isBare({ type = 'object', properties, required: _, additionalProperties: more, ...rest }: JsonObject): boolean {
  const isEmpty = (value: unknown): boolean => !isObject(value) || Object.keys(value).length === 0;
  const isPlain = typeof type === 'string' && type.toLowerCase() === 'object';
  return isPlain && isEmpty(properties) && isEmpty(more) && Object.keys(rest).length === 0;
}
