import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, RequestParameters } from '../../canonical/request.ts';
import type { Bounds } from '../../passes/rules.ts';
import { isUsual } from '../../passes/usual.ts';
import { type CodecContext, drop, invalid } from '../shared/codec.ts';
import { expectList, expectNumber, expectText, optional } from '../shared/expect.ts';

export function decodeParameters(body: JsonObject): RequestParameters {
  const stop = optional(body['stop_sequences'], 'stop_sequences', expectList);
  const limit = optional(body['max_tokens'], 'max_tokens', expectLimit);
  return {
    ...(limit !== undefined && { max_tokens: limit }),
    ...numberOf(body, 'temperature'),
    ...numberOf(body, 'top_p'),
    ...numberOf(body, 'top_k'),
    ...(stop && { stop_sequences: stop.map((item, i) => expectText(item, `stop_sequences[${i}]`)) }),
  };
}

function numberOf(body: JsonObject, name: 'temperature' | 'top_p' | 'top_k'): RequestParameters {
  const value = optional(body[name], name, expectNumber);
  return value === undefined ? {} : { [name]: value };
}

/** 0 fills the cache and says nothing. */
function expectLimit(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid(param, 'must be a whole number of tokens');
}

/** Sampling beyond 1 is the others' (P68). */
export const BOUNDS: Bounds = { temperature: [0, 1], top_p: [0, 1] };

/** A long answer that nobody sees coming is cut by proxies on its way. */
const MAX_UNSTREAMED_TOKENS = 32_000;

/** The most tokens of the answer, which has to be said (P65). */
export function limitOf({ parameters, stream: asked }: CanonicalRequest, context: CodecContext): number {
  if (parameters.max_tokens !== undefined) return parameters.max_tokens;
  const stream = context.target?.stream ?? asked ?? false;
  const most = context.profile.max_output_tokens;
  const limit = stream ? most : Math.min(most, MAX_UNSTREAMED_TOKENS);
  const message = `max_tokens is required there; ${limit} is sent`;
  context.note({ code: 'REPAIRED', path: '/parameters/max_tokens', feature: 'parameters.max_tokens', message });
  return limit;
}

/** Parameters that nobody here knows, and how they are called. */
const FOREIGN = {
  frequency_penalty: 'a frequency penalty',
  presence_penalty: 'a presence penalty',
  seed: 'a seed',
  logprobs: 'log probabilities',
  top_logprobs: 'log probabilities',
  logit_bias: 'a bias of tokens',
  max_tool_calls: 'a limit of calls',
} satisfies Partial<Record<keyof RequestParameters, string>>;

export function encodeParameters({ parameters }: CanonicalRequest, isThinking: boolean, context: CodecContext): JsonObject {
  const lose = (name: string, message: string): void =>
    drop(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of Object.keys(FOREIGN) as (keyof typeof FOREIGN)[]) {
    const value = parameters[name];
    if (value !== undefined && !isUsual(name, value)) lose(name, `Anthropic Messages has no word for ${FOREIGN[name]}`);
  }
  if ((parameters.n ?? 1) > 1) lose('n', 'Anthropic Messages answers once');
  return { ...encodeStop(parameters, lose), ...encodeSampling(parameters, isThinking, context, lose) };
}

type Lose = (name: string, message: string) => void;

/** White space alone is refused (P72). */
function encodeStop({ stop_sequences: stop = [] }: RequestParameters, lose: Lose): JsonObject {
  const sent = stop.filter((text) => text.trim() !== '');
  if (sent.length < stop.length) lose('stop_sequences', 'stop sequences of nothing but white space are refused there');
  return sent.length > 0 ? { stop_sequences: sent } : {};
}

const SAMPLING = ['temperature', 'top_p', 'top_k'] as const;

/** Models after Opus 4.6 take none of it; thinking only leaves a temperature of 1 and the upper end of top_p (P68, P69, P70). */
function encodeSampling(parameters: RequestParameters, isThinking: boolean, context: CodecContext, lose: Lose): JsonObject {
  const { profile } = context;
  const sent: JsonObject = {};
  const { temperature, top_p: topP, top_k: topK } = parameters;
  if (profile.rejects_sampling) {
    for (const name of SAMPLING) if (parameters[name] !== undefined) dropSampling(name, parameters[name], context, lose);
    return sent;
  }
  if (temperature !== undefined && isThinking && temperature !== 1) lose('temperature', 'thinking takes no temperature');
  else if (temperature !== undefined) sent['temperature'] = temperature;
  if (topK !== undefined && isThinking) lose('top_k', 'thinking takes no top_k');
  else if (topK !== undefined) sent['top_k'] = topK;
  if (topP === undefined) return sent;
  if (isThinking && topP < LEAST_TOP_P) lose('top_p', `thinking takes a top_p of ${LEAST_TOP_P} and more`);
  else if (profile.temperature_xor_top_p && sent['temperature'] !== undefined)
    lose('top_p', 'this model takes temperature or top_p, not both');
  else sent['top_p'] = topP;
  return sent;
}

const LEAST_TOP_P = 0.95;

/** A default value loses nothing, so that no policy refuses to drop it; it is still told. */
function dropSampling(name: (typeof SAMPLING)[number], value: number, context: CodecContext, lose: Lose): void {
  const message = `${name} is not supported by this Claude model; dropped`;
  if (isUsual(name, value))
    context.note({ code: 'DROPPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  else lose(name, message);
}
