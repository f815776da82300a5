import { sameJson } from '../accumulate/overlay.ts';
import type { JsonSchema } from '../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import { changeAll } from './blocks.ts';
import type { Rules, SchemaDialect } from './rules.ts';
import { completeSchema, withItems } from './schema/complete.ts';
import { convertSchema } from './schema/convert.ts';
import { DIALECTS } from './schema/dialects.ts';
import { asObjectRoot, isObjectRoot } from './schema/root.ts';
import { isStrictShape } from './schema/strict-shape.ts';

/** Converts the schemas of tools and of the output format to the target's dialect ("Schema dialects" in docs/canonical.md). */
export function convertSchemas(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const { output_format: format } = request;
  const tools = request.tools && changeAll(request.tools, (tool, i) => convertTool(tool, `/tools/${i}`, rules));
  const converted = tools === request.tools ? request : { ...request, ...(tools && { tools }) };
  if (format?.type !== 'json_schema') return converted;
  const { schema, name = 'the answer' } = format.json_schema;
  const told = { path: '/output_format/json_schema/schema', feature: 'output_format.schema', name };
  const after = rules.schemas.output === 'openai' ? withItems(schema) : convert(schema, rules.schemas.output, told, rules);
  return after === schema
    ? converted
    : { ...converted, output_format: { ...format, json_schema: { ...format.json_schema, schema: after } } };
}

/** Whether strict mode of OpenAI takes a schema as it is. */
export const fitsStrictMode = (schema: JsonSchema): boolean =>
  schema['type'] === 'object' &&
  isStrictShape(schema) &&
  sameJson(convertSchema(schema, DIALECTS['openai-strict']).schema, schema);

function convertTool(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool {
  if (!isClientCall(tool.kind) || tool.kind === 'custom') return tool;
  const { input_schema: schema, ...rest } = tool;
  const dialect = tool.strict ? rules.schemas.strictTool : rules.schemas.tool;
  const told = { path: `${path}/input_schema`, feature: 'tools.schema', name: tool.name };
  const after = convertArguments(schema, dialect, told, rules);
  if (after === schema) return tool;
  return { ...rest, ...(after && { input_schema: after }) };
}

interface Told {
  path: string;
  feature: string;
  name: string;
}

const NO_ARGUMENTS: JsonSchema = { type: 'object', properties: {} };

/** Arguments are an object. An absent schema says so already, but not that it is closed. */
function convertArguments(
  schema: JsonSchema | undefined,
  dialect: SchemaDialect,
  told: Told,
  rules: Rules,
): JsonSchema | undefined {
  if (!schema) return isClosed(dialect) ? convert(NO_ARGUMENTS, dialect, told, rules) : undefined;
  const root = isObjectRoot(schema) ? asObjectRoot(schema) : schema;
  if (dialect === 'anthropic') return root;
  if (dialect === 'openai') return completed(schema, root, told, rules);
  const after = convert(root, dialect, told, rules);
  // Gemini refuses an object without properties (P53).
  if (dialect === 'gemini-openapi' && after['type'] === 'OBJECT' && after['properties'] === undefined) return undefined;
  return sameJson(after, schema) ? schema : after;
}

const isClosed = (dialect: SchemaDialect): boolean =>
  dialect !== 'openai' && dialect !== 'anthropic' && DIALECTS[dialect].isClosed;

function completed(schema: JsonSchema, root: JsonSchema, { path, feature, name }: Told, rules: Rules): JsonSchema {
  const whole = completeSchema(root);
  if (whole === schema) return schema;
  rules.note({ code: 'REPAIRED', path, feature, message: `the schema of ${name} lacked type, properties or items` });
  return whole;
}

/** Words about a schema rather than about the value: nobody misses them. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['$id', '$anchor', '$comment', 'title', 'examples', 'optional properties']);

function convert(schema: JsonSchema, dialect: SchemaDialect, { path, feature, name }: Told, rules: Rules): JsonSchema {
  if (dialect === 'openai' || dialect === 'anthropic') return schema;
  if (dialect === 'openai-strict' && isStrictShape(schema)) return schema;
  const { schema: after, lost } = convertSchema(schema, DIALECTS[dialect]);
  if (lost.size > 0) {
    const loss = { path, feature, message: `the schema of ${name} is sent without ${[...lost].join(', ')}` };
    if ([...lost].every((keyword) => ANNOTATIONS.has(keyword))) rules.note({ code: 'DROPPED', ...loss });
    else rules.drop(loss);
  }
  return sameJson(after, schema) ? schema : after;
}
