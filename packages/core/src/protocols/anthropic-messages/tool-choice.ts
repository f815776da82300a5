import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../../canonical/request.ts';
import { approximate, type CodecContext, drop, isStrict, refuse } from '../shared/codec.ts';
import { expectBoolean, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { objectOf, textOf, unknownFields } from '../shared/read.ts';
import { unknownChoice } from '../shared/tool-choice.ts';
import { fieldsOf } from './fields.ts';
import { encodeTools } from './tools.ts';

const MODES: Readonly<Record<string, 'auto' | 'none' | 'any'>> = { auto: 'auto', none: 'none', any: 'any' };

/** The choice, and whether several calls may come at once, which is a part of it here. */
export function decodeToolChoice(value: unknown): Pick<CanonicalRequest, 'tool_choice' | 'parallel_tool_use'> {
  const choice = optional(value, 'tool_choice', expectObject);
  if (!choice) return {};
  const isSingle = optional(choice['disable_parallel_tool_use'], 'tool_choice.disable_parallel_tool_use', expectBoolean);
  return { tool_choice: decodeChoice(choice), ...(isSingle !== undefined && { parallel_tool_use: !isSingle }) };
}

function decodeChoice(choice: JsonObject): ToolChoice {
  const type = expectText(choice['type'], 'tool_choice.type');
  if (type === 'tool') return { type, name: expectName(choice['name'], 'tool_choice.name') };
  const mode = Object.hasOwn(MODES, type) ? MODES[type] : undefined;
  return mode ? { type: mode } : unknownChoice(choice, 'anthropic-messages');
}

const FIELDS: ReadonlySet<string> = new Set(['type', 'name', 'disable_parallel_tool_use']);

/** Fields that only this protocol knows; a choice of an unknown type is whole already. */
export function keptToolChoice(value: unknown): JsonObject {
  const choice = objectOf(value);
  const rest =
    choice['type'] === 'tool' || Object.hasOwn(MODES, textOf(choice['type'])) ? unknownFields(choice, FIELDS) : undefined;
  return rest ? { tool_choice: rest } : {};
}

/** All that a request says about tools. Without tools the API refuses to hear about their choice. */
export function encodeToolFields(request: CanonicalRequest, isThinking: boolean, context: CodecContext): JsonObject {
  const { tools = [], tool_choice: choice } = request;
  const encoded = encodeTools(restrict(tools, choice, context));
  if (encoded.length === 0) {
    if (choice && isForcing(choice))
      drop(context, { path: '/tool_choice', feature: 'tool_choice', message: 'there are no tools to choose from' });
    return {};
  }
  return { tools: encoded, ...encodeChoice(request, isThinking, context) };
}

const isForcing = ({ type }: ToolChoice): boolean => type === 'any' || type === 'tool';

/** A choice cannot be limited to some tools; the others are not offered (P61). */
function restrict(
  tools: readonly CanonicalTool[],
  choice: ToolChoice | undefined,
  context: CodecContext,
): readonly CanonicalTool[] {
  const listed = choice && choice.type !== 'tool' ? choice.allowed_tools : undefined;
  if (!listed) return tools;
  const allowed = new Set(listed);
  const kept = tools.filter(({ name }) => allowed.has(name));
  const message = `only the allowed tools are sent, ${kept.length} of ${tools.length}`;
  approximate(context, { path: '/tool_choice', feature: 'tool_choice.allowed_tools', message });
  return kept;
}

function encodeChoice(request: CanonicalRequest, isThinking: boolean, context: CodecContext): JsonObject {
  const { parallel_tool_use: parallel, tool_choice: asked } = request;
  const choice = asked && isThinking && isForcing(asked) ? unforce(asked, context) : asked;
  if (!choice) return parallel === false ? { tool_choice: { type: 'auto', disable_parallel_tool_use: true } } : {};
  const named = choice.type === 'tool' && { name: choice.name };
  const single = parallel !== undefined && choice.type !== 'none' && { disable_parallel_tool_use: !parallel };
  const native = choice.type === 'tool' ? undefined : choice.native;
  if (native) return { tool_choice: { ...objectOf(native.value), ...single } };
  return { tool_choice: { ...objectOf(fieldsOf(request)['tool_choice']), type: choice.type, ...named, ...single } };
}

/** Who thinks cannot be forced (P59): 400 "Thinking may not be enabled when tool_choice forces tool use". */
function unforce(choice: ToolChoice, context: CodecContext): ToolChoice {
  const feature = 'tool_choice';
  const message = `a model that thinks cannot be forced to call a tool; "${choice.type}" is sent as "auto"`;
  if (isStrict(context, feature)) refuse(context, { path: '/tool_choice', feature, message });
  approximate(context, { path: '/tool_choice', feature, message });
  return { type: 'auto' };
}
