import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalTool } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import type { CodecContext } from '../shared/codec.ts';
import { expectList, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { unknownFields } from '../shared/read.ts';
import { keep } from './kept.ts';
import { decodeSchema } from './schema-decode.ts';
import { camelKeys } from './wire.ts';

/** What the tools that Google runs are called elsewhere; any other keeps its name. */
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

/** Every entry may hold declarations of functions and tools of Google's own, side by side. */
export function decodeTools(value: unknown, context: CodecContext): CanonicalTool[] {
  const list = optional(value, 'tools', (tools, param) => (isObject(tools) ? [tools] : expectList(tools, param))) ?? [];
  return list.flatMap((item, i) => {
    const tool = expectObject(item, `tools[${i}]`);
    const { functionDeclarations: declarations, ...others } = camelKeys(tool);
    const functions = optional(declarations, `tools[${i}].functionDeclarations`, expectList) ?? [];
    return [
      ...functions.map((declaration, k) => {
        const param = `tools[${i}].functionDeclarations[${k}]`;
        const place = `/tools/${i}/functionDeclarations/${k}`;
        const wire = camelKeys(expectObject(declaration, param));
        return at(place, decodeFunction(wire, param), context, placesOf(place, wire));
      }),
      ...Object.entries(others)
        .filter(([, config]) => config !== null && config !== undefined)
        .map(([key, config]) => at(`/tools/${i}/${key}`, serverTool(key, config), context)),
    ];
  });
}

/** In which of its words a declaration has its schemas. */
function placesOf(place: string, declaration: JsonObject): Record<string, string> {
  const field = (json: string, own: string): string => `${place}/${declaration[json] === undefined ? own : json}`;
  return {
    input_schema: field('parametersJsonSchema', 'parameters'),
    output_schema: field('responseJsonSchema', 'response'),
  };
}

const FUNCTION_FIELDS: ReadonlySet<string> = new Set(['name', 'description']);

/** The schemas are kept as they came too: to Google itself they go back in its own words. */
function decodeFunction(declaration: JsonObject, param: string): CanonicalTool {
  const description = optional(declaration['description'], `${param}.description`, expectText);
  const input = schemaOf(declaration, 'parametersJsonSchema', 'parameters', param);
  const output = schemaOf(declaration, 'responseJsonSchema', 'response', param);
  return {
    name: expectName(declaration['name'], `${param}.name`),
    ...(description !== undefined && { description }),
    ...(input && { input_schema: input }),
    ...(output && { output_schema: output }),
    ...keep(unknownFields(declaration, FUNCTION_FIELDS)),
  };
}

/** In JSON Schema, or in Google's own dialect. */
export function schemaOf(source: JsonObject, json: string, openApi: string, param: string): JsonObject | undefined {
  const schema = optional(source[json], `${param}.${json}`, expectObject);
  if (schema) return schema;
  const own = optional(source[openApi], `${param}.${openApi}`, expectObject);
  return own && decodeSchema(own);
}

/** A configuration that is no object (a list of MCP servers) stands under its own name. */
function serverTool(key: string, config: unknown): CanonicalTool {
  const type = (Object.hasOwn(SERVER_TYPES, key) && SERVER_TYPES[key]) || key;
  return {
    name: key,
    kind: 'server',
    server: { type, wire_type: key, config: isObject(config) ? config : { [key]: config }, origin: 'gemini' },
  };
}
