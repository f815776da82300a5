/** Models and token counts of OpenAI Responses. */

import { CodecError } from '../../canonical/notes.ts';
import type {
  CanonicalCountTokensResponse,
  CanonicalModel,
  CanonicalModelList,
  CanonicalRequest,
} from '../../canonical/request.ts';
import { expectResponse, malformedResponse } from '../../codec/answers.ts';
import type { CodecContext, WireCodec, WireRequest } from '../../codec/protocol.ts';
import { textOrEmpty, toCount, unknownFields } from '../../codec/read.ts';
import { noteDropped } from '../../codec/report.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { decodeErrorBody } from './outcome.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeRequestBody } from './request-encode.ts';
import { readExtensions, toExtensions } from './wire.ts';

/** `GET /models`: the same list in both protocols of OpenAI. */
export const models: WireCodec<unknown, CanonicalModelList> = { decode: decodeModels, encode: encodeModels };

const LIST_FIELDS: ReadonlySet<string> = new Set(['object', 'data', 'models', 'has_more']);

function decodeModels(wire: unknown, context: CodecContext): CanonicalModelList {
  const body = Array.isArray(wire) ? { data: wire } : expectBody(wire);
  // Codex has `models`.
  const entries = body['data'] ?? body['models'];
  if (!Array.isArray(entries)) throw malformedResponse('data', 'must be a list of models');
  const found = entries.flatMap((entry, i): CanonicalModel[] => {
    const model = decodeModel(entry);
    if (!model) noteDropped(context, { path: `/data/${i}`, feature: 'models.entry', message: 'a model without an id' });
    return model ? [model] : [];
  });
  return {
    models: found,
    ...(typeof body['has_more'] === 'boolean' && { has_more: body['has_more'] }),
    ...toExtensions(unknownFields(body, LIST_FIELDS)),
  };
}

const expectBody = (wire: unknown): JsonObject =>
  expectResponse(wire, ({ error, detail }) => Boolean(error) || detail !== undefined, decodeErrorBody);

const MODEL_FIELDS: ReadonlySet<string> = new Set(['id', 'object', 'created', 'owned_by', 'context_window', 'max_output_tokens']);

/** Undefined if the entry names no model. Unknown fields become extensions. */
function decodeModel(entry: unknown): CanonicalModel | undefined {
  if (!isObject(entry)) return undefined;
  const id = textOrEmpty(entry['id']) || textOrEmpty(entry['slug']) || textOrEmpty(entry['name']);
  if (id === '') return undefined;
  const created = toCount(entry['created']);
  const input = toCount(entry['context_window']);
  const output = toCount(entry['max_output_tokens']);
  return {
    id,
    name: textOrEmpty(entry['display_name']) || textOrEmpty(entry['name']) || id,
    ...(created !== undefined && { created }),
    ...(textOrEmpty(entry['owned_by']) && { owned_by: textOrEmpty(entry['owned_by']) }),
    ...(textOrEmpty(entry['description']) && { description: textOrEmpty(entry['description']) }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...toExtensions(unknownFields(entry, MODEL_FIELDS)),
  };
}

function encodeModels(list: CanonicalModelList, context: CodecContext): JsonObject {
  if (list.has_more || list.next_page !== undefined)
    noteDropped(context, {
      path: '/has_more',
      feature: 'models.next_page',
      message: 'pagination of models is not supported by OpenAI; dropped',
    });
  return { ...readExtensions(list), object: 'list', data: list.models.map(encodeModel) };
}

function encodeModel(model: CanonicalModel): JsonObject {
  const { id, name, created, owned_by: owner, description, max_input_tokens: input, max_output_tokens: output } = model;
  const kept = readExtensions(model);
  return {
    ...kept,
    id,
    object: 'model',
    created: created ?? 0,
    owned_by: owner ?? 'unknown',
    ...(name !== undefined && (name !== id || Object.hasOwn(kept, 'name')) && { name }),
    ...(description !== undefined && { description }),
    ...(input !== undefined && { context_window: input }),
    ...(output !== undefined && { max_output_tokens: output }),
  };
}

/** `GET /models/{model}`. */
export const modelInfo: WireCodec<unknown, CanonicalModel> = { decode: decodeModelInfo, encode: encodeModel };

function decodeModelInfo(wire: unknown): CanonicalModel {
  const model = decodeModel(expectBody(wire));
  if (!model) throw malformedResponse('id', 'must be a model name');
  return model;
}

// ---- token counts

/** `POST /responses/input_tokens`: the request, without fields that concern only the response. */
export const countRequest: WireCodec<WireRequest, CanonicalRequest> = { decode: decodeRequest, encode: encodeCountRequest };

/** The fields that the endpoint accepts (openai-node, input-tokens.ts). */
const COUNT_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'previous_response_id',
  'conversation',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'text',
  'truncation',
  'personality',
]);

function encodeCountRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const whole = encodeRequestBody(request, context);
  const body = Object.fromEntries(Object.entries(whole).filter(([name]) => COUNT_FIELDS.has(name)));
  return { method: 'POST', path: '/v1/responses/input_tokens', headers: { 'content-type': 'application/json' }, body };
}

/** `POST /responses/input_tokens`: the response. */
export const countResponse: WireCodec<unknown, CanonicalCountTokensResponse> = { decode: decodeCount, encode: encodeCount };

function decodeCount(wire: unknown): CanonicalCountTokensResponse {
  const input_tokens = isObject(wire) ? toCount(wire['input_tokens']) : undefined;
  if (input_tokens === undefined) throw new CodecError(decodeErrorBody(wire));
  return { input_tokens };
}

function encodeCount({ input_tokens }: CanonicalCountTokensResponse): JsonObject {
  return { object: 'response.input_tokens', input_tokens };
}
