import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import type { CodecContext, HeaderBag, WireRequest } from '../shared/codec.ts';
import { expectBoolean, expectName, expectObject, expectShallow, optional } from '../shared/expect.ts';
import { listOf, objectOf, unknownFields } from '../shared/read.ts';
import { keep } from './fields.ts';
import { modelOf } from './interface.ts';
import { decodeConversation } from './messages-decode.ts';
import { decodeOptions, keptOptions } from './options.ts';
import { decodeOutputFormat, keptFormat } from './output-format.ts';
import { decodeParameters } from './parameters.ts';
import { PLACES } from './pointers.ts';
import { decodeThinking, keptThinking } from './thinking.ts';
import { decodeToolChoice, keptToolChoice } from './tool-choice.ts';
import { decodeConversationTools, decodeTools } from './tools.ts';

/** The headers that belong to the request: what they switch on stands in the body. */
export const REQUEST_HEADERS = ['anthropic-beta', 'anthropic-version'] as const;

/** A request as it came in; Bedrock and Vertex name the model in the path. */
export function decodeRequest(wire: WireRequest, context: CodecContext): CanonicalRequest {
  return decodeRequestBody(wire.body, context, wire.headers, modelOf(wire.path));
}

function decodeRequestBody(wire: unknown, context: CodecContext, headers: HeaderBag = {}, model?: string): CanonicalRequest {
  const body = expectObject(wire, 'body');
  expectShallow(body);
  const { system, messages } = decodeConversation(body, context);
  const declared = decodeTools(body['tools'], context);
  const tools = [...declared, ...decodeConversationTools(listOf(body['messages']), declared, context)];
  const format = decodeOutputFormat(body, context);
  const thinking = decodeThinking(body, context);
  const stream = optional(body['stream'], 'stream', expectBoolean);
  const request: CanonicalRequest = {
    model: model ?? expectName(body['model'], 'model'),
    messages,
    parameters: decodeParameters(body),
  };
  if (system.length > 0) request.system = system;
  if (tools.length > 0) request.tools = tools;
  if (format) request.output_format = format;
  if (thinking) request.thinking = thinking;
  if (stream !== undefined) request.stream = stream;
  const kept = keep({ ...keptFields(body), ...keptHeaders(headers) });
  Object.assign(request, decodeToolChoice(body['tool_choice']), decodeOptions(body), kept);
  return at('', request, context, PLACES);
}

/** Fields that have a place of their own. Everything else goes back as it came: betas are fields that nobody knows yet. */
const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'max_tokens',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'thinking',
  'output_config',
  'output_format',
  'metadata',
  'service_tier',
  'cache_control',
  'stream',
]);

const CONFIG_FIELDS: ReadonlySet<string> = new Set(['effort', 'format']);

function keptFields(body: JsonObject): JsonObject {
  return {
    ...unknownFields(body, MAPPED),
    ...keptThinking(body),
    ...keptConfig(body),
    ...keptOptions(body),
    ...keptToolChoice(body['tool_choice']),
  };
}

/** An effort alone is kept, so that it comes back alone. */
function keptConfig(body: JsonObject): JsonObject {
  const config = objectOf(body['output_config']);
  const { effort } = config;
  const isAlone = !body['thinking'] && effort !== undefined && effort !== null;
  const { current: format, old } = keptFormat(body);
  const kept = { ...unknownFields(config, CONFIG_FIELDS), ...(isAlone && { effort }), ...(format !== undefined && { format }) };
  return { ...(Object.keys(kept).length > 0 && { output_config: kept }), ...(old && { output_format: old }) };
}

function keptHeaders(headers: HeaderBag): JsonObject {
  const kept: JsonObject = {};
  for (const name of REQUEST_HEADERS) if (headers[name]) kept[name] = headers[name];
  return kept;
}
