import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { type CodecContext, drop, type WireRequest } from '../shared/codec.ts';
import { expectBoolean, expectName, expectObject, expectShallow, optional } from '../shared/expect.ts';
import { objectOf, unknownFields } from '../shared/read.ts';
import { keep } from './fields.ts';
import { modelOf } from './interface.ts';
import { decodeMessages, expectMessages } from './messages-decode.ts';
import { decodeOptions } from './options.ts';
import { decodeOutputFormat } from './output-format.ts';
import { decodeParameters } from './parameters.ts';
import { placesIn } from './pointers.ts';
import { decodeThinking, keptThinking, THINKING_FIELDS } from './thinking.ts';
import { decodeToolChoice } from './tool-choice.ts';
import { decodeTools } from './tools.ts';

/** A request as it came in; on Azure the path names the model. */
export function decodeRequest(wire: WireRequest, context: CodecContext): CanonicalRequest {
  return decodeRequestBody(wire.body, context, modelOf(wire.path));
}

/** `model`: where the body does not name it, or names it in vain. */
export function decodeRequestBody(wire: unknown, context: CodecContext, model?: string): CanonicalRequest {
  const body = expectObject(wire, 'body');
  const list = expectMessages(body['messages']);
  expectShallow(body);
  const { system, messages } = decodeMessages(list, context);
  const tools = decodeTools(body, context);
  const choice = decodeToolChoice(body);
  const { format, rest } = decodeOutputFormat(body['response_format']);
  const thinking = decodeThinking(body, context);
  const parallel = optional(body['parallel_tool_calls'], 'parallel_tool_calls', expectBoolean);
  tellDeprecated(body, context);
  const request: CanonicalRequest = {
    model: model ?? expectName(body['model'], 'model'),
    ...(system.length > 0 && { system }),
    messages,
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    parameters: decodeParameters(body),
    ...(format && { output_format: format }),
    ...(parallel !== undefined && { parallel_tool_use: parallel }),
    ...(thinking && { thinking }),
    ...decodeStreaming(body),
    ...decodeOptions(body, context),
    ...keep({ ...keptFields(body), ...keptThinking(body), ...(rest && { response_format: rest }) }),
  };
  return at('', request, context, placesIn(body));
}

/** Fields that have a place of their own. Everything else goes back as it came, the options too (options.ts). */
const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'web_search_options',
  'max_completion_tokens',
  'max_tokens',
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'stop',
  'seed',
  'n',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'response_format',
  'stream',
  'stream_options',
  ...THINKING_FIELDS,
]);

const STREAM_FIELDS = new Set(['include_usage', 'include_obfuscation']);

/** Together counts its logprobs: a number is a field of its own. */
function keptFields(body: JsonObject): JsonObject {
  const stream = unknownFields(objectOf(body['stream_options']), STREAM_FIELDS);
  return {
    ...unknownFields(body, MAPPED),
    ...(typeof body['logprobs'] === 'number' && { logprobs: body['logprobs'] }),
    ...(stream && { stream_options: stream }),
  };
}

function decodeStreaming(body: JsonObject): Pick<CanonicalRequest, 'stream' | 'stream_options'> {
  const stream = optional(body['stream'], 'stream', expectBoolean);
  const { include_usage: usage, include_obfuscation: padding } = objectOf(
    optional(body['stream_options'], 'stream_options', expectObject),
  );
  const options = {
    ...(typeof usage === 'boolean' && { include_usage: usage }),
    ...(typeof padding === 'boolean' && { include_obfuscation: padding }),
  };
  return { ...(stream !== undefined && { stream }), ...(Object.keys(options).length > 0 && { stream_options: options }) };
}

/** The old names count only where the new ones are absent. */
function tellDeprecated(body: JsonObject, context: CodecContext): void {
  const pairs = [
    ['functions', 'tools'],
    ['function_call', 'tool_choice'],
    ['max_tokens', 'max_completion_tokens'],
  ] as const;
  for (const [old, name] of pairs)
    if (isGiven(body[old]) && isGiven(body[name]) && body[old] !== body[name])
      drop(context, { path: `/${old}`, feature: old, message: `${name} is there too, and counts` });
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;
