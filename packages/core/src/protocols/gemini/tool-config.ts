import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../../canonical/request.ts';
import { approximate, type CodecContext, drop, invalid, refuse } from '../shared/codec.ts';
import { expectList, expectName, expectObject, expectText, optional } from '../shared/expect.ts';
import { objectOf, unknownFields } from '../shared/read.ts';
import { camelKeys, camelObject } from './wire.ts';

/** VALIDATED leaves the choice to the model, like AUTO, and holds it to the schemas; which of the two it was is kept. */
const MODES: Readonly<Record<string, 'auto' | 'none' | 'any'>> = { AUTO: 'auto', NONE: 'none', ANY: 'any', VALIDATED: 'auto' };
const TO_WIRE = { auto: 'AUTO', none: 'NONE', any: 'ANY' } as const;
const VALIDATED = 'VALIDATED';

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
  const mode = word !== undefined && Object.hasOwn(MODES, word) ? MODES[word] : undefined;
  if (word && !mode && !word.endsWith('UNSPECIFIED'))
    throw invalid(`${at}.mode`, `must be one of ${Object.keys(MODES).join(', ')}`);
  const names = optional(calling['allowedFunctionNames'], `${at}.allowedFunctionNames`, expectList)?.map((name, i) =>
    expectName(name, `${at}.allowedFunctionNames[${i}]`),
  );
  const inner = { ...unknownFields(calling, CALLING_FIELDS), ...(word === VALIDATED && { mode: VALIDATED }) };
  const rest = {
    ...unknownFields(camelKeys(config), CONFIG_FIELDS),
    ...(Object.keys(inner).length > 0 && { functionCallingConfig: inner }),
  };
  return { ...(mode && { choice: choiceOf(mode, names ?? []) }), ...(Object.keys(rest).length > 0 && { rest }) };
}

function choiceOf(mode: 'auto' | 'none' | 'any', names: string[]): ToolChoice {
  const [name] = names;
  if (mode === 'any' && names.length === 1 && name !== undefined) return { type: 'tool', name };
  return names.length > 0 ? { type: mode, allowed_tools: names } : { type: mode };
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
    ...(choice && encodeChoice(choice, functions, kept, context)),
  };
  const config = { ...kept, ...(Object.keys(calling).length > 0 && { functionCallingConfig: calling }) };
  return Object.keys(config).length > 0 ? config : undefined;
}

/** Without functions there is nothing to choose from. */
function encodeChoice(
  choice: ToolChoice,
  functions: readonly CanonicalTool[],
  kept: JsonObject,
  context: CodecContext,
): JsonObject {
  if (functions.length === 0) {
    if (choice.type === 'tool' || choice.type === 'any')
      drop(context, { path: '/tool_choice', feature: 'tool_choice', message: 'there are no functions to choose from' });
    return choice.type === 'none' || choice.type === 'auto' ? { mode: TO_WIRE[choice.type] } : {};
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
  const isValidated = choice.type === 'auto' && objectOf(kept['functionCallingConfig'])['mode'] === VALIDATED;
  const names = choice.type === 'any' || isValidated ? choice.allowed_tools : undefined;
  return { mode: isValidated ? VALIDATED : TO_WIRE[choice.type], ...(names && { allowedFunctionNames: names }) };
}

/** Names can only be given to a model that must call: where it may choose, the other functions are not offered. */
export function restrictTools(request: CanonicalRequest, kept: JsonObject, context: CodecContext): readonly CanonicalTool[] {
  const { tools = [], tool_choice: choice } = request;
  if (choice?.type !== 'auto' || !choice.allowed_tools || objectOf(kept['functionCallingConfig'])['mode'] === VALIDATED)
    return tools;
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
