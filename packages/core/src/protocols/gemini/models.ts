/** Token counts, embeddings and models, in both directions. */

import type {
  CanonicalCountTokensResponse,
  CanonicalEmbeddingRequest,
  CanonicalEmbeddingResponse,
  CanonicalModel,
  CanonicalModelList,
  CanonicalRequest,
} from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import { malformedResponse } from '../../codec/answers.ts';
import { eachForeignField } from '../../codec/extensions.ts';
import type { CodecContext, WireCodec, WireRequest } from '../../codec/protocol.ts';
import {
  expectCount,
  expectList,
  expectObject,
  expectText,
  listOrEmpty,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toCount,
  unknownFields,
} from '../../codec/read.ts';
import { incompatible, invalid, missing, noteDropped } from '../../codec/report.ts';
import { unpackFloats } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { locateContext } from '../../passes/prepare.ts';
import { buildPath, buildResourceName, readModel } from './endpoints.ts';
import { decodeRequestBody } from './request-decode.ts';
import { encodeRequestBody } from './request-encode.ts';
import { expectBody } from './response.ts';
import { readExtensions, toCamelKeys, toCamelObject, toExtensions } from './wire.ts';

/** The request of `POST …:countTokens`. */
export const countRequest: WireCodec<WireRequest, CanonicalRequest> = { decode: decodeCount, encode: encodeCount };

/** The response of `POST …:countTokens`. */
export const countResponse: WireCodec<unknown, CanonicalCountTokensResponse> = { decode: decodeTotal, encode: encodeTotal };

/** The request of `POST …:embedContent` and `…:batchEmbedContents`. */
export const embeddingRequest: WireCodec<WireRequest, CanonicalEmbeddingRequest> = {
  decode: decodeRequest,
  encode: encodeRequest,
};

/** The response of `POST …:embedContent` and `…:batchEmbedContents`. */
export const embeddingResponse: WireCodec<unknown, CanonicalEmbeddingResponse> = {
  decode: decodeResponse,
  encode: encodeResponse,
};

/** `GET /v1beta/models`. */
export const models: WireCodec<unknown, CanonicalModelList> = { decode: decodeModels, encode: encodeModels };

/** `GET /v1beta/models/{model}`. */
export const modelInfo: WireCodec<unknown, CanonicalModel> = { decode: decodeModelInfo, encode: encodeModel };

/** The body has only contents, or a whole request. */
function decodeCount({ path, body: wire }: WireRequest, context: CodecContext): CanonicalRequest {
  const body = toCamelKeys(expectObject(wire, 'body'));
  const { generateContentRequest: whole } = body;
  const request = whole === undefined || whole === null ? body : expectObject(whole, 'generateContentRequest');
  return decodeRequestBody(request, context, { model: readModel(path) });
}

function decodeTotal(wire: unknown): CanonicalCountTokensResponse {
  const { totalTokens, cachedContentTokenCount: cached } = toCamelKeys(expectBody(wire));
  const total = readCount(totalTokens);
  if (total === undefined) throw malformedResponse('totalTokens', 'must be a number');
  return { input_tokens: total, ...(cached !== undefined && { cached_tokens: readCount(cached) ?? 0 }) };
}

/** proto3 leaves out a 0. */
const readCount = (value: unknown): number | undefined => {
  const count = Number(value ?? 0);
  return Number.isSafeInteger(count) && count >= 0 ? count : undefined;
};

/** Google's own limit for a batch is lower; a longer list is a mistake. */
const MAX_INPUTS = 2048;

const EMBED_FIELDS: ReadonlySet<string> = new Set(['model', 'content', 'taskType', 'title', 'outputDimensionality']);

function decodeRequest({ path, body: wire }: WireRequest, context: CodecContext): CanonicalEmbeddingRequest {
  const body = toCamelKeys(expectObject(wire, 'body'));
  const list = optional(body['requests'], 'requests', expectList);
  const entries = list?.map((item, i) => toCamelKeys(expectObject(item, `requests[${i}]`))) ?? [body];
  if (entries.length === 0) throw invalid('requests', 'must not be empty');
  if (entries.length > MAX_INPUTS) throw invalid('requests', `has ${entries.length} entries; the limit is ${MAX_INPUTS}`);
  const params = entries.map((_, i) => (list ? `requests[${i}].` : ''));
  const model = readModel(path) ?? textOrEmpty(entries[0]?.['model']).replace(/^models\//, '');
  if (model === '') throw missing('model');
  const [first = body] = entries;
  noteDifferences(entries, context);
  const request: CanonicalEmbeddingRequest = {
    model,
    input: entries.map((entry, i) => joinParts(entry['content'], `${params[i]}content`)),
    ...(!list && { single: true }),
    ...decodeSettings(first, params[0] ?? ''),
    ...toExtensions(unknownFields(first, EMBED_FIELDS)),
  };
  const place = list ? '/requests/0' : '';
  return withSource('', request, context, {
    dimensions: `${place}/outputDimensionality`,
    task_type: `${place}/taskType`,
    title: `${place}/title`,
    'extensions/gemini': place,
  });
}

/** The settings of a batch are those of its first entry. */
function noteDifferences(entries: readonly JsonObject[], context: CodecContext): void {
  const [first, ...rest] = entries.map((entry) =>
    JSON.stringify([decodeSettings(entry, ''), unknownFields(entry, EMBED_FIELDS)]),
  );
  const at = rest.findIndex((settings) => settings !== first) + 1;
  if (at > 0)
    noteDropped(context, {
      path: `/requests/${at}`,
      feature: 'embeddings.settings',
      message: 'different settings per entry are not supported by the target; the settings of the first entry are used',
    });
}

/** Several parts form one text. Images and audio cannot be embedded by other providers. */
function joinParts(value: unknown, param: string): string {
  const content = typeof value === 'string' ? { parts: [{ text: value }] } : toCamelKeys(expectObject(value, param));
  const parts = isObject(content['parts']) ? [content['parts']] : expectList(content['parts'], `${param}.parts`);
  return parts
    .map((item, i) => {
      const part = toCamelObject(item);
      if (typeof part['text'] === 'string') return part['text'];
      const message = 'only text can be embedded by the target';
      throw incompatible({ path: `${param}.parts[${i}]`, feature: 'embeddings.media', message });
    })
    .join('');
}

/** The settings of one entry. */
type Settings = Pick<CanonicalEmbeddingRequest, 'dimensions' | 'task_type' | 'title'>;

function decodeSettings(entry: JsonObject, at: string): Settings {
  const dimensions = optional(entry['outputDimensionality'], `${at}outputDimensionality`, expectCount);
  const task = optional(entry['taskType'], `${at}taskType`, expectText);
  const title = optional(entry['title'], `${at}title`, expectText);
  return {
    ...(dimensions !== undefined && { dimensions }),
    ...(task !== undefined && { task_type: task }),
    ...(title !== undefined && { title }),
  };
}

const VECTOR_FIELDS: ReadonlySet<string> = new Set(['values']);

const RESPONSE_FIELDS: ReadonlySet<string> = new Set(['embedding', 'embeddings', 'usageMetadata']);

function decodeResponse(wire: unknown, context: CodecContext): CanonicalEmbeddingResponse {
  const body = toCamelKeys(expectBody(wire));
  const list = isObject(body['embedding']) ? [body['embedding']] : body['embeddings'];
  if (!Array.isArray(list)) throw malformedResponse('embeddings', 'must be a list of embeddings');
  const usage = toCamelObject(body['usageMetadata']);
  const tokens = toCount(usage['promptTokenCount']) ?? toCount(usage['totalTokenCount']);
  return {
    model: context.target?.model ?? context.embedding?.model ?? '',
    data: list.map((entry, index) => ({
      index,
      embedding: readVector(entry, index),
      ...toExtensions(unknownFields(objectOrEmpty(entry), VECTOR_FIELDS)),
    })),
    ...(tokens !== undefined && { usage: { input_tokens: tokens } }),
    ...toExtensions({ ...unknownFields(body, RESPONSE_FIELDS), ...(Object.keys(usage).length > 0 && { usageMetadata: usage }) }),
  };
}

function readVector(entry: unknown, i: number): number[] {
  const values = listOrEmpty(objectOrEmpty(entry)['values']);
  if (values.length === 0 || !values.every((value) => typeof value === 'number'))
    throw malformedResponse(`embeddings[${i}].values`, 'must be numbers');
  return [...values];
}

const LIST_FIELDS: ReadonlySet<string> = new Set(['models', 'nextPageToken']);

function decodeModels(wire: unknown, context: CodecContext): CanonicalModelList {
  const body = toCamelKeys(expectBody(wire));
  // Vertex lists models under another name.
  const entries = body['models'] ?? body['publisherModels'] ?? body['tunedModels'] ?? [];
  if (!Array.isArray(entries)) throw malformedResponse('models', 'must be a list of models');
  const found: CanonicalModel[] = [];
  entries.forEach((entry, i) => {
    const model = decodeModel(entry);
    if (model) found.push(model);
    else noteDropped(context, { path: `/models/${i}`, feature: 'models.entry', message: 'a model without a name' });
  });
  const next = textOrEmpty(body['nextPageToken']);
  return {
    models: found,
    ...(next !== '' && { next_page: next, has_more: true }),
    ...toExtensions(unknownFields(body, LIST_FIELDS)),
  };
}

function decodeModelInfo(wire: unknown): CanonicalModel {
  const model = decodeModel(expectBody(wire));
  if (!model) throw malformedResponse('name', 'must be a model name');
  return model;
}

const MODEL_FIELDS: ReadonlySet<string> = new Set([
  'name',
  'displayName',
  'description',
  'inputTokenLimit',
  'outputTokenLimit',
  'supportedGenerationMethods',
]);

/** Returns undefined if the entry has no name. Unknown fields are kept as extensions. */
function decodeModel(entry: unknown): CanonicalModel | undefined {
  if (!isObject(entry)) return undefined;
  const model = toCamelObject(entry);
  const name = textOrEmpty(model['name']);
  if (name === '') return undefined;
  const input = toCount(model['inputTokenLimit']);
  const output = toCount(model['outputTokenLimit']);
  const methods = model['supportedGenerationMethods'] ?? model['supportedActions'];
  return {
    id: name.replace(/^models\//, ''),
    ...(textOrEmpty(model['displayName']) && { name: textOrEmpty(model['displayName']) }),
    ...(textOrEmpty(model['description']) && { description: textOrEmpty(model['description']) }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(Array.isArray(methods) && { actions: methods.filter((action) => typeof action === 'string') }),
    ...toExtensions(unknownFields(model, MODEL_FIELDS)),
  };
}

/** System prompt and tools are counted only in a whole request, which repeats the model. */
function encodeCount(request: CanonicalRequest, context: CodecContext): WireRequest {
  const model = context.target?.model ?? request.model;
  const body = encodeRequestBody(request, context);
  const isPlain = Object.keys(body).join() === 'contents';
  return {
    method: 'POST',
    path: buildPath(model, 'countTokens'),
    headers: { 'content-type': 'application/json' },
    body: isPlain ? body : { generateContentRequest: { model: buildResourceName(model), ...body } },
  };
}

function encodeTotal({ input_tokens: total, cached_tokens: cached }: CanonicalCountTokensResponse): JsonObject {
  return { totalTokens: total, ...(cached !== undefined && { cachedContentTokenCount: cached }) };
}

function encodeRequest(request: CanonicalEmbeddingRequest, caller: CodecContext): WireRequest {
  const context = locateContext(caller, request);
  const { input, single, dimensions, task_type: task, title, user_id: user } = request;
  if (user !== undefined)
    noteDropped(context, { path: '/user_id', feature: 'user_id', message: 'user id is not supported by Gemini; dropped' });
  eachForeignField(request, 'gemini', '', (loss) => noteDropped(context, loss));
  const model = context.target?.model ?? request.model;
  const entry = (text: string | number[], i: number): JsonObject => ({
    ...readExtensions(request),
    content: { parts: [{ text: expectInput(text, i) }] },
    ...(task !== undefined && { taskType: task }),
    ...(title !== undefined && { title }),
    ...(dimensions !== undefined && { outputDimensionality: dimensions }),
  });
  const [first = ''] = input;
  const isOne = single === true && input.length === 1;
  return {
    method: 'POST',
    path: buildPath(model, isOne ? 'embedContent' : 'batchEmbedContents'),
    headers: { 'content-type': 'application/json' },
    body: isOne
      ? entry(first, 0)
      : { requests: input.map((text, i) => ({ model: buildResourceName(model), ...entry(text, i) })) },
  };
}

function expectInput(text: string | number[], i: number): string {
  if (typeof text === 'string') return text;
  throw incompatible({
    path: `/input/${i}`,
    feature: 'embeddings.tokens',
    message: 'token input is not supported by Gemini; send text',
  });
}

/** A single embedding for a single input, a list for a batch. Without a known request the number decides. */
function encodeResponse(response: CanonicalEmbeddingResponse, { embedding: request, note }: CodecContext): JsonObject {
  const { data, usage } = response;
  // The client did not request these fields, so a strict policy allows dropping them.
  eachForeignField(response, 'gemini', '', (loss) => note({ code: 'DROPPED', ...loss }));
  const { usageMetadata: original, ...rest } = readExtensions(response);
  const embeddings = data
    .toSorted((a, b) => a.index - b.index)
    .map((item, i) => ({ ...readExtensions(item), values: decodeFloats(item.embedding, i) }));
  const isOne = request ? request.single === true : embeddings.length === 1;
  return {
    ...rest,
    ...(isOne ? { embedding: embeddings[0] } : { embeddings }),
    ...(usage && { usageMetadata: { ...objectOrEmpty(original), promptTokenCount: usage.input_tokens } }),
  };
}

function decodeFloats(embedding: number[] | string, i: number): number[] {
  if (typeof embedding !== 'string') return embedding;
  const floats = unpackFloats(embedding);
  if (!floats?.every(Number.isFinite)) throw malformedResponse(`data[${i}].embedding`, 'must be base64 of 32-bit floats');
  return floats;
}

function encodeModels(list: CanonicalModelList): JsonObject {
  const { models: entries, next_page: next } = list;
  return { ...readExtensions(list), models: entries.map(encodeModel), ...(next !== undefined && { nextPageToken: next }) };
}

/** Default methods of a model; clients filter by them. */
const ACTIONS = ['generateContent', 'streamGenerateContent', 'countTokens'];

function encodeModel(model: CanonicalModel): JsonObject {
  const { id, name, description, max_input_tokens: input, max_output_tokens: output, actions } = model;
  return {
    ...readExtensions(model),
    name: id.startsWith('tunedModels/') || id.startsWith('models/') ? id : `models/${id}`,
    displayName: name ?? id,
    ...(description !== undefined && { description }),
    ...(input !== undefined && { inputTokenLimit: input }),
    ...(output !== undefined && { outputTokenLimit: output }),
    supportedGenerationMethods: actions ?? ACTIONS,
  };
}
