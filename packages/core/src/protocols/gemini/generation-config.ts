import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, RequestParameters } from '../../canonical/request.ts';
import type { Bounds } from '../../passes/rules.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { expectBoolean, expectList, expectNumber, expectText, optional } from '../shared/expect.ts';
import { unknownFields } from '../shared/read.ts';

type NumberName = Exclude<keyof RequestParameters, 'stop_sequences' | 'logprobs' | 'logit_bias' | 'max_tool_calls'>;

const TO_WIRE = {
  max_tokens: 'maxOutputTokens',
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  seed: 'seed',
  n: 'candidateCount',
  // How many beside the chosen one; whether at all is `responseLogprobs`.
  top_logprobs: 'logprobs',
} as const satisfies Record<NumberName, string>;

const NAMES = Object.keys(TO_WIRE) as NumberName[]; // the keys of a closed table

/** What the API takes; a number outside is a 400 there. */
export const BOUNDS: Bounds = {
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  temperature: [0, 2],
  top_p: [0, 1],
  top_k: [0, Number.MAX_SAFE_INTEGER],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
  n: [1, 8],
  top_logprobs: [0, 20],
};

/** Fields that have a place of their own, here and in the files beside. */
const CONFIG_FIELDS: ReadonlySet<string> = new Set([...Object.values(TO_WIRE), 'stopSequences', 'responseLogprobs']);

/** The kept fields of a configuration. An empty list of stop sequences has no canonical form, so it stays here. */
export function keptConfig(config: JsonObject): JsonObject | undefined {
  const { stopSequences: stop } = config;
  const rest = unknownFields(config, CONFIG_FIELDS);
  return Array.isArray(stop) && stop.length === 0 ? { ...rest, stopSequences: stop } : rest;
}

/** proto3 writes int64 as text. */
const expectAmount = (value: unknown, param: string): number =>
  expectNumber(typeof value === 'string' && value.trim() !== '' ? Number(value) : value, param);

export function decodeParameters(config: JsonObject): RequestParameters {
  const parameters: RequestParameters = {};
  for (const name of NAMES) {
    const value = optional(config[TO_WIRE[name]], `generationConfig.${TO_WIRE[name]}`, expectAmount);
    if (value !== undefined) parameters[name] = value;
  }
  const logprobs = optional(config['responseLogprobs'], 'generationConfig.responseLogprobs', expectBoolean);
  const stop = decodeStop(config['stopSequences']);
  return { ...parameters, ...(stop && { stop_sequences: stop }), ...(logprobs !== undefined && { logprobs }) };
}

function decodeStop(value: unknown): string[] | undefined {
  const param = 'generationConfig.stopSequences';
  const stop = optional(value, param, expectList)?.map((item, i) => expectText(item, `${param}[${i}]`));
  return stop && stop.length > 0 ? stop : undefined;
}

export function encodeParameters({ parameters, stream: asked }: CanonicalRequest, context: CodecContext): JsonObject {
  const config: JsonObject = {};
  const stream = context.target?.stream ?? asked;
  for (const name of NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    if (name === 'n' && stream && value > 1) tellOneCandidate(value, context);
    else config[TO_WIRE[name]] = value;
  }
  const { stop_sequences: stop, logprobs, top_logprobs: top, logit_bias: bias, max_tool_calls: calls } = parameters;
  if (stop && stop.length > 0) config['stopSequences'] = stop;
  if (logprobs !== undefined || top !== undefined) config['responseLogprobs'] = logprobs ?? true;
  if (bias) lose('logit_bias', 'Gemini has no logit_bias', context);
  if (calls !== undefined) lose('max_tool_calls', 'Gemini cannot limit the number of calls', context);
  return config;
}

/** The fragments of a stream are all of one candidate. */
function tellOneCandidate(n: number, context: CodecContext): void {
  const message = `${n} answers were asked for; a stream of Gemini has one`;
  context.note({ code: 'CLAMPED', path: '/parameters/n', feature: 'parameters.n', message });
}

const lose = (name: string, message: string, context: CodecContext): void =>
  drop(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
