import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalTool } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import type { CodecContext } from '../shared/codec.ts';
import { expectBoolean, expectList, expectName, expectObject, expectText, optional, pointerOf } from '../shared/expect.ts';
import { hoistTools } from '../shared/hoisted-tools.ts';
import { listOf, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { keep, PROTOCOL } from './kept.ts';

/** A list of tools. A namespace is no tool: its tools are, and each names it. */
export function decodeTools(value: unknown, at: string, context: CodecContext): CanonicalTool[] {
  return (optional(value, at, expectList) ?? []).flatMap((item, i): CanonicalTool[] => {
    const param = `${at}[${i}]`;
    const tool = expectObject(item, param);
    const isGroup = tool['type'] === 'namespace' && listOf(tool['tools']).length > 0;
    return isGroup ? decodeNamespace(tool, param, context) : [placed(param, decodeTool(tool, param), context)];
  });
}

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

const placed = (param: string, tool: CanonicalTool, context: CodecContext): CanonicalTool =>
  at(pointerOf(param), tool, context, { input_schema: `${pointerOf(param)}/parameters` });

const NAMESPACE_FIELDS = new Set(['type', 'name', 'tools']);

/** What the namespace says of itself stays with its first tool. */
function decodeNamespace(group: JsonObject, param: string, context: CodecContext): CanonicalTool[] {
  const namespace = expectName(group['name'], `${param}.name`);
  const rest = unknownFields(group, NAMESPACE_FIELDS);
  return expectList(group['tools'], `${param}.tools`).map((item, i) => {
    const inner = `${param}.tools[${i}]`;
    const tool = decodeTool(expectObject(item, inner), inner);
    const fields = { ...tool.extensions?.[PROTOCOL], ...(i === 0 && rest && { group: rest }) };
    return placed(inner, { ...tool, namespace, ...keep(fields) }, context);
  });
}

function decodeTool(tool: JsonObject, param: string): CanonicalTool {
  const type = optional(tool['type'], `${param}.type`, expectText) ?? 'function';
  if (type === 'function') return decodeFunction(tool, param);
  return type === 'custom' ? decodeCustom(tool, param) : serverTool(type, tool);
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

/** Flat; some clients nest it as in OpenAI Chat. */
function decodeFunction(tool: JsonObject, param: string): CanonicalTool {
  const nested = objectOf(tool['function']);
  const body = { ...nested, ...tool };
  const schema = optional(body['parameters'], `${param}.parameters`, expectObject);
  const strict = optional(body['strict'], `${param}.strict`, expectBoolean);
  const output = optional(body['output_schema'], `${param}.output_schema`, expectObject);
  return {
    ...decodeCommon(body, param),
    ...(schema && { input_schema: schema }),
    ...(strict !== undefined && { strict }),
    ...(output && { output_schema: output }),
    ...keep(unknownFields(body, FUNCTION_FIELDS)),
  };
}

const CUSTOM_FIELDS = new Set(['type', 'name', 'description', 'format', 'defer_loading', 'allowed_callers']);

function decodeCustom(tool: JsonObject, param: string): CanonicalTool {
  const format = decodeFormat(optional(tool['format'], `${param}.format`, expectObject), `${param}.format`);
  return {
    ...decodeCommon(tool, param),
    kind: 'custom',
    ...(format && { format }),
    ...keep(unknownFields(tool, CUSTOM_FIELDS)),
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

/** `{type:"grammar",syntax,definition}`; chat nests the two in `grammar`. */
function decodeFormat(format: JsonObject | undefined, param: string): CanonicalTool['format'] | undefined {
  if (!format) return undefined;
  if (format['type'] !== 'grammar') return { type: 'text' };
  const grammar = isObject(format['grammar']) ? format['grammar'] : format;
  const syntax = grammar['syntax'] === 'regex' ? 'regex' : 'lark';
  return { type: 'grammar', syntax, definition: expectText(grammar['definition'], `${param}.definition`) };
}

/** What the other protocols call the tools of the provider; the others have one name everywhere. */
const SERVER_TYPES: readonly (readonly [RegExp, string])[] = [
  [/^web_search/, 'web_search'],
  [/^code_interpreter$/, 'code_execution'],
  [/^computer/, 'computer'],
];

function serverTool(wireType: string, { type: _, ...config }: JsonObject): CanonicalTool {
  const type = SERVER_TYPES.find(([pattern]) => pattern.test(wireType))?.[1] ?? wireType;
  return {
    name: textOf(config['name']) || textOf(config['server_label']) || wireType,
    kind: wireType === 'mcp' ? 'mcp' : 'server',
    server: { type, wire_type: wireType, config, origin: PROTOCOL },
  };
}
