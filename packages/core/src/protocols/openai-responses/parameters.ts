import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, RequestParameters } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import type { Bounds } from '../../passes/rules.ts';
import { isUsual } from '../../passes/usual.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { expectNumber, optional } from '../shared/expect.ts';

/** What the API takes; a number outside is a 400 there (P67: at least 16 tokens). */
export const BOUNDS: Bounds = {
  max_tokens: [16, Number.MAX_SAFE_INTEGER],
  temperature: [0, 2],
  top_p: [0, 1],
  top_logprobs: [0, 20],
};

type NumberName = 'max_tokens' | 'temperature' | 'top_p' | 'top_logprobs' | 'max_tool_calls';

const WIRE_NAMES: Record<NumberName, string> = {
  max_tokens: 'max_output_tokens',
  temperature: 'temperature',
  top_p: 'top_p',
  top_logprobs: 'top_logprobs',
  max_tool_calls: 'max_tool_calls',
};
const NAMES = Object.keys(WIRE_NAMES) as NumberName[]; // the keys of a closed table

export const PARAMETER_FIELDS: readonly string[] = Object.values(WIRE_NAMES);

/** The entry of `include` that asks for log probabilities. */
export const LOGPROBS = 'message.output_text.logprobs';

/** null is absence, 0 is a value. */
export function decodeParameters(body: JsonObject, include: readonly string[], context: CodecContext): RequestParameters {
  const parameters: RequestParameters = {};
  for (const name of NAMES) {
    const value = optional(body[WIRE_NAMES[name]], WIRE_NAMES[name], expectNumber);
    if (value !== undefined) parameters[name] = value;
  }
  if (parameters.top_logprobs || include.includes(LOGPROBS)) parameters.logprobs = true;
  return at('', parameters, context, {
    max_tokens: '/max_output_tokens',
    logprobs: include.includes(LOGPROBS) ? '/include' : '/top_logprobs',
  });
}

/** What the API has no field for. */
const UNKNOWN = [
  'top_k',
  'frequency_penalty',
  'presence_penalty',
  'stop_sequences',
  'seed',
  'logit_bias',
] as const satisfies (keyof RequestParameters)[];

/** Reasoning models refuse these, unless they are told not to reason. */
const SAMPLING: ReadonlySet<NumberName> = new Set<NumberName>(['temperature', 'top_p']);

export function encodeParameters({ parameters }: CanonicalRequest, isSampling: boolean, context: CodecContext): JsonObject {
  const body: JsonObject = {};
  const lose = (name: string, message: string): void =>
    drop(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    if (!SAMPLING.has(name) || isSampling) body[WIRE_NAMES[name]] = value;
    else if (!isUsual(name, value)) lose(name, `this model takes no ${name}`);
  }
  for (const name of UNKNOWN)
    if (parameters[name] !== undefined && !isUsual(name, parameters[name]))
      lose(name, `OpenAI Responses has no ${name.replaceAll('_', ' ')}`);
  if (parameters.n !== undefined && parameters.n > 1) lose('n', 'OpenAI Responses gives one answer');
  return body;
}
