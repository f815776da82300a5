import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../../canonical/request.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { expectList, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { objectOf } from '../shared/read.ts';
import { unknownChoice } from '../shared/tool-choice.ts';
import { encodeTools } from './tools.ts';

/** Mistral says "any". */
const MODES: Readonly<Record<string, 'auto' | 'none' | 'any'>> = { auto: 'auto', none: 'none', required: 'any', any: 'any' };
const TO_WIRE: Record<'auto' | 'none' | 'any', string> = { auto: 'auto', none: 'none', any: 'required' };

const modeOf = (word: unknown): 'auto' | 'none' | 'any' | undefined =>
  typeof word === 'string' && Object.hasOwn(MODES, word) ? MODES[word] : undefined;

/** `function_call` is what the choice was called before; it counts only where there is no new one. */
export function decodeToolChoice(body: JsonObject): ToolChoice | undefined {
  const { tool_choice: choice, function_call: legacy } = body;
  if (choice !== undefined && choice !== null) return decodeChoice(choice, 'tool_choice');
  if (legacy === undefined || legacy === null) return undefined;
  return isObject(legacy)
    ? { type: 'tool', name: expectName(legacy['name'], 'function_call.name') }
    : decodeChoice(legacy, 'function_call');
}

function decodeChoice(choice: unknown, at: string): ToolChoice {
  const mode = modeOf(choice);
  if (mode) return { type: mode };
  if (typeof choice === 'string') return unknownChoice(choice, 'openai-chat');
  const body = expectObject(choice, at);
  const type = expectText(body['type'] ?? (isObject(body['function']) ? 'function' : undefined), `${at}.type`);
  if (type === 'function' || type === 'custom') return { type: 'tool', name: nameIn(body, type, at) };
  if (type === 'allowed_tools') return decodeAllowed(body, at);
  // In the words of Anthropic, which some servers take too.
  if (type === 'tool') return decodeNamed(body, at);
  const named = modeOf(type);
  return named ? { type: named } : unknownChoice(choice, 'openai-chat');
}

/** Without a name, any tool will do. */
function decodeNamed({ name }: JsonObject, at: string): ToolChoice {
  return name === undefined || name === null ? { type: 'any' } : { type: 'tool', name: expectName(name, `${at}.name`) };
}

/** Nested as chat has it, or flat as in Responses. */
function nameIn(body: JsonObject, type: string, at: string): string {
  const nested = objectOf(body[type])['name'];
  return expectName(nested ?? body['name'], `${at}.${type}.name`);
}

function decodeAllowed(body: JsonObject, at: string): ToolChoice {
  const inner = optional(body['allowed_tools'], `${at}.allowed_tools`, expectObject) ?? body;
  const where = inner === body ? at : `${at}.allowed_tools`;
  const names = expectList(inner['tools'], `${where}.tools`).map((item, i) => {
    const tool = expectObject(item, `${where}.tools[${i}]`);
    return nameIn(tool, tool['type'] === 'custom' ? 'custom' : 'function', `${where}.tools[${i}]`);
  });
  return { type: modeOf(inner['mode']) === 'any' ? 'any' : 'auto', allowed_tools: names };
}

/** All that a request says about tools. Without tools the API refuses to hear about their choice. */
export function encodeToolFields(request: CanonicalRequest, context: CodecContext): JsonObject {
  const { tools = [], tool_choice: choice, parallel_tool_use: parallel } = request;
  const encoded = encodeTools(restrict(tools, choice, context), context);
  const search = encoded.search && { web_search_options: encoded.search };
  if (encoded.tools.length === 0) {
    if (choice && isForcing(choice) && !search)
      drop(context, { path: '/tool_choice', feature: 'tool_choice', message: 'there are no tools to choose from' });
    return { ...search };
  }
  return {
    tools: encoded.tools,
    ...(choice && encodeChoice(choice, tools, context)),
    ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    ...search,
  };
}

const isForcing = ({ type }: ToolChoice): boolean => type === 'any' || type === 'tool';

/** Where a choice cannot be limited to some tools, the others are not offered. */
function restrict(
  tools: readonly CanonicalTool[],
  choice: ToolChoice | undefined,
  context: CodecContext,
): readonly CanonicalTool[] {
  const listed = choice && choice.type !== 'tool' ? choice.allowed_tools : undefined;
  if (!listed || context.profile.allowed_tools) return tools;
  const allowed = new Set(listed);
  const kept = tools.filter(({ name }) => allowed.has(name));
  const message = `only the allowed tools are sent, ${kept.length} of ${tools.length}`;
  context.note({ code: 'APPROXIMATED', path: '/tool_choice', feature: 'tool_choice.allowed_tools', message });
  return kept;
}

function encodeChoice(choice: ToolChoice, tools: readonly CanonicalTool[], context: CodecContext): JsonObject {
  const custom = new Set(tools.filter(({ kind }) => kind === 'custom').map(({ name }) => name));
  const entry = (name: string): JsonObject =>
    custom.has(name) ? { type: 'custom', custom: { name } } : { type: 'function', function: { name } };
  if (choice.type === 'tool') return { tool_choice: entry(choice.name) };
  if (choice.native) return { tool_choice: choice.native.value };
  if (!choice.allowed_tools || !context.profile.allowed_tools) return { tool_choice: TO_WIRE[choice.type] };
  const mode = choice.type === 'any' ? 'required' : 'auto';
  return { tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools: choice.allowed_tools.map(entry) } } };
}
