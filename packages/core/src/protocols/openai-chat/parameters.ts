import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, RequestParameters } from '../../canonical/request.ts';
import { placesOf } from '../../canonical/source.ts';
import type { Bounds } from '../../passes/rules.ts';
import { isUsual } from '../../passes/usual.ts';
import { type CodecContext, drop, invalid } from '../shared/codec.ts';
import { expectBoolean, expectNumber, expectObject, expectText, optional } from '../shared/expect.ts';
import type { ProviderProfile } from '../shared/profile.ts';
import { limitFieldOf } from './profiles.ts';

type NumberName = 'temperature' | 'top_p' | 'top_k' | 'frequency_penalty' | 'presence_penalty' | 'seed' | 'n' | 'top_logprobs';

/** Numbers that have one name in both languages; `sampling` ones are refused by models that reason. */
const NUMBERS: Record<NumberName, 'sampling' | 'other'> = {
  temperature: 'sampling',
  top_p: 'sampling',
  frequency_penalty: 'sampling',
  presence_penalty: 'sampling',
  // Not OpenAI's: goes back to those who sent it.
  top_k: 'other',
  seed: 'other',
  n: 'other',
  top_logprobs: 'other',
};

const NAMES = Object.keys(NUMBERS) as NumberName[]; // the keys of a closed table

/** What the API takes; a number outside is a 400 there. */
export const BOUNDS: Bounds = {
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  temperature: [0, 2],
  top_p: [0, 1],
  top_k: [0, Number.MAX_SAFE_INTEGER],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
  n: [1, 128],
  top_logprobs: [0, 20],
};

/** null is absence, 0 is a value. The new name of the limit wins over the old one. */
export function decodeParameters(body: JsonObject): RequestParameters {
  const parameters: RequestParameters = {};
  for (const name of NAMES) {
    const value = optional(body[name], name, expectNumber);
    if (value !== undefined) parameters[name] = value;
  }
  const max = optional(body['max_completion_tokens'], 'max_completion_tokens', expectNumber);
  const oldMax = optional(body['max_tokens'], 'max_tokens', expectNumber);
  const limit = max ?? oldMax;
  const stop = decodeStop(body['stop']);
  const bias = optional(body['logit_bias'], 'logit_bias', expectBias);
  return {
    ...parameters,
    ...(limit !== undefined && { max_tokens: limit }),
    ...(stop && { stop_sequences: stop }),
    ...(typeof body['logprobs'] !== 'number' && decodeLogprobs(body['logprobs'])),
    ...(bias && { logit_bias: bias }),
  };
}

function decodeLogprobs(value: unknown): Pick<RequestParameters, 'logprobs'> {
  const logprobs = optional(value, 'logprobs', expectBoolean);
  return logprobs === undefined ? {} : { logprobs };
}

function decodeStop(stop: unknown): string[] | undefined {
  if (stop === undefined || stop === null) return undefined;
  if (typeof stop === 'string') return [stop];
  if (!Array.isArray(stop)) throw invalid('stop', 'must be a string or a list of strings');
  return stop.length > 0 ? stop.map((item, i) => expectText(item, `stop[${i}]`)) : undefined;
}

function expectBias(value: unknown, param: string): Record<string, number> {
  const bias = expectObject(value, param);
  return Object.fromEntries(Object.entries(bias).map(([token, weight]) => [token, expectNumber(weight, `${param}.${token}`)]));
}

/** `isSampling`: whether the model may be told how to sample. `sent`: what the client itself sent in this protocol. */
export function encodeParameters(
  request: CanonicalRequest,
  isSampling: boolean,
  sent: JsonObject,
  context: CodecContext,
): JsonObject {
  const { profile, target: { model } = request } = context;
  const { parameters } = request;
  const body: JsonObject = {};
  const lose = (name: string, message: string): void =>
    drop(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    if (name === 'top_k' && sent['top_k'] === undefined) lose(name, 'OpenAI Chat has no top_k');
    else if (NUMBERS[name] === 'other' || isSampling) body[name] = value;
    else if (!isUsual(name, value)) lose(name, `this model takes no ${name}`);
  }
  const { max_tokens: max, stop_sequences: stop, logprobs, logit_bias: bias, max_tool_calls: calls } = parameters;
  if (max !== undefined) body[profile.max_tokens_field ?? sentLimit(request, context) ?? limitFieldOf(model)] = max;
  if (stop && stop.length > 0) {
    if (profile.supports_stop) body['stop'] = stop;
    else lose('stop_sequences', 'this model takes no stop sequences');
  }
  if (logprobs !== undefined) body['logprobs'] = logprobs;
  if (bias) body['logit_bias'] = bias;
  if (calls !== undefined) lose('max_tool_calls', 'OpenAI Chat cannot limit the number of calls');
  return body;
}

/** The name under which a chat client sent its limit of tokens; undefined for other clients. */
function sentLimit(request: CanonicalRequest, { source }: CodecContext): ProviderProfile['max_tokens_field'] {
  if (source !== 'openai-chat') return undefined;
  return placesOf(request)['parameters/max_tokens'] === '/max_tokens' ? 'max_tokens' : 'max_completion_tokens';
}
