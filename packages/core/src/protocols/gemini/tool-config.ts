import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice, ToolMode } from '../../canonical/request.ts';
import { approximate, type CodecContext, drop, refuse } from '../shared/codec.ts';
import { expectList, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { unknownFields } from '../shared/read.ts';
import { unknownChoice } from '../shared/tool-choice.ts';
import { camelKeys, camelObject } from './wire.ts';

/** VALIDATED leaves the choice to the model, like AUTO, and holds it to the schemas. */
const MODES: Readonly<Record<string, ToolMode>> = {
  AUTO: { type: 'auto' },
  NONE: { type: 'none' },
  ANY: { type: 'any' },
  VALIDATED: { type: 'auto', validated: true },
};
const TO_WIRE = { auto: 'AUTO', none: 'NONE', any: 'ANY' } as const;

interface Decoded {
  choice?: ToolChoice;
  /** What of `toolConfig` is not mapped. */
  rest?: JsonObject;
}

const CONFIG_FIELDS: ReadonlySet<string> = new Set(['functionCallingConfig']);
const CALLING_FIELDS: ReadonlySet<string> = new Set(['mode', 'allowedFunctionNames']);

export function decodeToolConfig(value: unknown): Decoded {
  const config = optional(value, 'toolConfig', expectObject);
  if (!config) return {};
  const at = 'toolConfig.functionCallingConfig';
  const calling = camelKeys(optional(camelKeys(config)['functionCallingConfig'], at, expectObject) ?? {});
  const word = optional(calling['mode'], `${at}.mode`, expectText)?.toUpperCase();
  const names = optional(calling['allowedFunctionNames'], `${at}.allowedFunctionNames`, expectList)?.map((name, i) =>
    expectName(name, `${at}.allowedFunctionNames[${i}]`),
  );
  const inner = unknownFields(calling, CALLING_FIELDS);
  const rest = { ...unknownFields(camelKeys(config), CONFIG_FIELDS), ...(inner && { functionCallingConfig: inner }) };
  const choice = word && !word.endsWith('UNSPECIFIED') ? choiceOf(word, names ?? []) : undefined;
  return { ...(choice && { choice }), ...(Object.keys(rest).length > 0 && { rest }) };
}

function choiceOf(word: string, names: string[]): ToolChoice {
  const mode = (Object.hasOwn(MODES, word) && MODES[word]) || unknownChoice(word, 'gemini');
  const [name] = names;
  if (mode.type === 'any' && names.length === 1 && name !== undefined) return { type: 'tool', name };
  return names.length > 0 ? { ...mode, allowed_tools: names } : mode;
}

/** `kept`: what the client itself said in this protocol. `tools`: those that are sent. */
export function encodeToolConfig(
  { tool_choice: choice, parallel_tool_use: parallel }: CanonicalRequest,
  tools: readonly CanonicalTool[],
  kept: JsonObject,
  context: CodecContext,
): JsonObject | undefined {
  const functions = tools.filter(({ server }) => !server);
  if (parallel === false && functions.length > 0)
    drop(context, {
      path: '/parallel_tool_use',
      feature: 'parallel_tool_use',
      message: 'Gemini cannot be kept from calling in parallel',
    });
  const calling = {
    ...camelObject(kept['functionCallingConfig']),
    ...(choice && encodeChoice(choice, functions, context)),
  };
  const config = { ...kept, ...(Object.keys(calling).length > 0 && { functionCallingConfig: calling }) };
  return Object.keys(config).length > 0 ? config : undefined;
}

/** Without functions there is nothing to choose from. */
function encodeChoice(choice: ToolChoice, functions: readonly CanonicalTool[], context: CodecContext): JsonObject {
  if (functions.length === 0) {
    if (choice.type === 'tool' || choice.type === 'any')
      drop(context, { path: '/tool_choice', feature: 'tool_choice', message: 'there are no functions to choose from' });
    return choice.type === 'none' || choice.type === 'auto' ? { mode: encodeMode(choice) } : {};
  }
  if (choice.type === 'tool') {
    if (!functions.some(({ name }) => name === choice.name))
      refuse(context, {
        path: '/tool_choice',
        feature: 'tool_choice',
        message: `${choice.name} must be called, but there is no such function`,
      });
    return { mode: 'ANY', allowedFunctionNames: [choice.name] };
  }
  const names = takesNames(choice) ? choice.allowed_tools : undefined;
  return { mode: encodeMode(choice), ...(names && { allowedFunctionNames: names }) };
}

const encodeMode = ({ type, validated, native }: ToolMode): unknown =>
  native ? native.value : validated ? 'VALIDATED' : TO_WIRE[type];

/** AUTO takes no names; which of the modes to come do is the client's to know. */
const takesNames = ({ type, validated, native }: ToolMode): boolean =>
  type === 'any' || validated === true || native !== undefined;

/** Names can only be given to a model that must call: where it may choose, the other functions are not offered. */
export function restrictTools(request: CanonicalRequest, context: CodecContext): readonly CanonicalTool[] {
  const { tools = [], tool_choice: choice } = request;
  if (choice?.type !== 'auto' || !choice.allowed_tools || takesNames(choice)) return tools;
  const allowed = new Set(choice.allowed_tools);
  const left = tools.filter(({ name, server }) => server || allowed.has(name));
  if (left.length < tools.length)
    approximate(context, {
      path: '/tool_choice',
      feature: 'tool_choice.allowed_tools',
      message: `only the allowed tools are sent, ${left.length} of ${tools.length}`,
    });
  return left;
}
