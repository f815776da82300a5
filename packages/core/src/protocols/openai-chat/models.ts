/** Models, embeddings and rerank of OpenAI Chat. */

import type { Note } from '../../canonical/notes.ts';
import type {
  CanonicalEmbeddingRequest,
  CanonicalEmbeddingResponse,
  CanonicalModel,
  CanonicalModelList,
  CanonicalRerankRequest,
  CanonicalRerankResponse,
} from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import { malformedResponse } from '../../codec/answers.ts';
import { eachForeignField } from '../../codec/extensions.ts';
import type { CodecContext, WireCodec, WireRequest } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectCount,
  expectList,
  expectName,
  expectObject,
  expectText,
  isIndex,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toCount,
  unknownFields,
} from '../../codec/read.ts';
import { invalid, missing, noteDropped } from '../../codec/report.ts';
import { packFloats, unpackFloats } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { locateContext } from '../../passes/prepare.ts';
import { readModelFromPath } from './endpoints.ts';
import { expectBody } from './response.ts';

/** `GET /models`. */
export const models: WireCodec<unknown, CanonicalModelList> = { decode: decodeModels, encode: encodeModels };

const LIST_FIELDS: ReadonlySet<string> = new Set(['object', 'data', 'models', 'has_more']);

function decodeModels(wire: unknown, context: CodecContext): CanonicalModelList {
  // Together sends the bare list.
  const body = Array.isArray(wire) ? { data: wire } : expectBody(wire);
  // Ollama and Codex have `models`, llama.cpp has both.
  const key = Array.isArray(body['data']) ? 'data' : 'models';
  const entries = body[key];
  if (!Array.isArray(entries)) throw malformedResponse('data', 'must be a list of models');
  const unknown = unknownFields(body, LIST_FIELDS);
  const found: CanonicalModel[] = [];
  entries.forEach((entry, i) => {
    const model = decodeModel(entry);
    if (model) found.push(model);
    else noteDropped(context, { path: `/${key}/${i}`, feature: 'models.entry', message: 'a model without an id' });
  });
  return {
    models: found,
    ...(typeof body['has_more'] === 'boolean' && { has_more: body['has_more'] }),
    ...(unknown && { extensions: { 'openai-chat': unknown } }),
  };
}

/** Fields for the context size: OpenRouter, Groq, Mistral, vLLM. */
const INPUT_LIMITS = ['context_length', 'context_window', 'max_context_length', 'max_model_len'];

const OUTPUT_LIMITS = ['max_output_tokens', 'max_completion_tokens'];

const MODEL_FIELDS: ReadonlySet<string> = new Set(['id', 'object', 'created', 'owned_by']);

/** Undefined if the entry names no model. Unknown fields become extensions. */
function decodeModel(entry: unknown): CanonicalModel | undefined {
  if (typeof entry === 'string') return entry === '' ? undefined : { id: entry, name: entry };
  if (!isObject(entry)) return undefined;
  const id = textOrEmpty(entry['id']) || textOrEmpty(entry['model']) || textOrEmpty(entry['name']);
  if (id === '') return undefined;
  const created = toCount(entry['created']);
  const input = readLimit(entry, INPUT_LIMITS);
  const output = readLimit(entry, OUTPUT_LIMITS);
  const extensions = unknownFields(entry, MODEL_FIELDS);
  return {
    id,
    name: textOrEmpty(entry['name']) || id,
    ...(created !== undefined && { created }),
    ...(textOrEmpty(entry['owned_by']) && { owned_by: textOrEmpty(entry['owned_by']) }),
    ...(textOrEmpty(entry['description']) && { description: textOrEmpty(entry['description']) }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(extensions && { extensions: { 'openai-chat': extensions } }),
  };
}

const readLimit = (entry: JsonObject, names: readonly string[]): number | undefined =>
  names.map((name) => toCount(entry[name])).find((value) => value !== undefined);

function encodeModels({ models, has_more, next_page, extensions }: CanonicalModelList, context: CodecContext): JsonObject {
  if (has_more || next_page !== undefined)
    noteDropped(context, {
      path: '/has_more',
      feature: 'models.next_page',
      message: 'pagination of models is not supported by OpenAI Chat; dropped',
    });
  return { ...extensions?.['openai-chat'], object: 'list', data: models.map(encodeModel) };
}

function encodeModel(model: CanonicalModel): JsonObject {
  const { id, name, created, owned_by, description, max_input_tokens, max_output_tokens, extensions } = model;
  const kept = extensions?.['openai-chat'] ?? {};
  return {
    ...kept,
    id,
    object: 'model',
    created: created ?? 0,
    owned_by: owned_by ?? 'unknown',
    ...(name !== undefined && (name !== id || Object.hasOwn(kept, 'name')) && { name }),
    ...(description !== undefined && { description }),
    ...(max_input_tokens !== undefined && { [findLimitName(kept, INPUT_LIMITS)]: max_input_tokens }),
    ...(max_output_tokens !== undefined && { [findLimitName(kept, OUTPUT_LIMITS)]: max_output_tokens }),
  };
}

/** The field in which the limit came, otherwise the first, which most clients read. */
const findLimitName = (kept: JsonObject, names: readonly string[]): string =>
  names.find((name) => toCount(kept[name]) !== undefined) ?? names[0] ?? '';

/** `GET /models/{model}`. */
export const modelInfo: WireCodec<unknown, CanonicalModel> = { decode: decodeModelInfo, encode: encodeModel };

function decodeModelInfo(wire: unknown): CanonicalModel {
  const body = expectBody(wire);
  // Some servers wrap the model as they wrap the list.
  const model = decodeModel(isObject(body['data']) ? body['data'] : body);
  if (!model) throw malformedResponse('id', 'must be a model name');
  return model;
}

// ---- embeddings

/** `POST /embeddings`: the request. */
export const embeddingRequest: WireCodec<WireRequest, CanonicalEmbeddingRequest> = {
  decode: decodeEmbeddingRequest,
  encode: encodeEmbeddingRequest,
};

const EMBEDDING_REQUEST_FIELDS: ReadonlySet<string> = new Set(['model', 'input', 'encoding_format', 'dimensions', 'user']);

function decodeEmbeddingRequest({ path, body: wire }: WireRequest, context: CodecContext): CanonicalEmbeddingRequest {
  const body = expectObject(wire, 'body');
  const format = body['encoding_format'];
  const isKnownFormat = format === 'float' || format === 'base64';
  const dimensions = optional(body['dimensions'], 'dimensions', expectCount);
  const user = optional(body['user'], 'user', expectText);
  const unknown = unknownFields(body, EMBEDDING_REQUEST_FIELDS);
  // Formats of other vendors (int8, binary) are kept as an extension.
  const kept = isKnownFormat || format === undefined || format === null ? unknown : { ...unknown, encoding_format: format };
  const request: CanonicalEmbeddingRequest = {
    model: readModelFromPath(path) ?? expectName(body['model'], 'model'),
    ...decodeInput(body['input']),
    ...(isKnownFormat && { encoding_format: format }),
    ...(dimensions !== undefined && { dimensions }),
    ...(user !== undefined && { user_id: user }),
    ...(kept && { extensions: { 'openai-chat': kept } }),
  };
  return withSource('', request, context, { user_id: '/user', 'extensions/openai-chat': '' });
}

/** Text, a list of texts, tokens or a list of token lists: always decoded to a list; `single` marks one input. */
function decodeInput(input: unknown): { input: (string | number[])[]; single?: boolean } {
  if (typeof input === 'string') return { input: [input], single: true };
  if (input === undefined || input === null) throw missing('input');
  if (!Array.isArray(input) || input.length === 0)
    throw invalid('input', 'must be a string, a list of tokens, or a non-empty list of these');
  if (typeof input[0] === 'number') return { input: [expectTokens(input, 'input')], single: true };
  if (input.length > MAX_INPUTS) throw invalid('input', `has ${input.length} entries; the limit is ${MAX_INPUTS}`);
  return { input: input.map((entry: unknown, i) => (typeof entry === 'string' ? entry : expectTokens(entry, `input[${i}]`))) };
}

function expectTokens(value: unknown, param: string): number[] {
  if (!Array.isArray(value) || value.length === 0) throw invalid(param, 'must be a string or a list of tokens');
  const wrong = value.findIndex((token) => !isIndex(token));
  if (wrong >= 0) throw invalid(`${param}[${wrong}]`, 'must be a token (an integer)');
  return value;
}

/** The limit of the API for a list of inputs. */
export const MAX_INPUTS = 2048;

function encodeEmbeddingRequest(request: CanonicalEmbeddingRequest, caller: CodecContext): WireRequest {
  const context = locateContext(caller, request);
  const { model, input, single, encoding_format, dimensions, user_id, task_type, title, extensions } = request;
  if (task_type !== undefined)
    noteDropped(context, {
      path: '/task_type',
      feature: 'embeddings.task_type',
      message: 'task_type is not supported by OpenAI; dropped',
    });
  if (title !== undefined)
    noteDropped(context, { path: '/title', feature: 'embeddings.title', message: 'title is not supported by OpenAI; dropped' });
  eachForeignField(request, 'openai-chat', '', (loss) => noteDropped(context, loss));
  const body = {
    ...extensions?.['openai-chat'],
    model: context.target?.model ?? model,
    input: single && input.length === 1 ? input[0] : input,
    ...(encoding_format && { encoding_format }),
    ...(dimensions !== undefined && { dimensions }),
    ...(user_id !== undefined && { user: user_id }),
  };
  return { method: 'POST', path: '/v1/embeddings', headers: { 'content-type': 'application/json' }, body };
}

/** `POST /embeddings`: the response. */
export const embeddingResponse: WireCodec<unknown, CanonicalEmbeddingResponse> = {
  decode: decodeEmbeddingResponse,
  encode: encodeEmbeddingResponse,
};

const EMBEDDING_RESPONSE_FIELDS: ReadonlySet<string> = new Set(['object', 'data', 'model', 'usage']);

function decodeEmbeddingResponse(wire: unknown, context: CodecContext): CanonicalEmbeddingResponse {
  const body = expectBody(wire);
  if (!Array.isArray(body['data'])) throw malformedResponse('data', 'must be a list of embeddings');
  const usage = objectOrEmpty(body['usage']);
  const tokens = toCount(usage['prompt_tokens']) ?? toCount(usage['total_tokens']);
  // Costs and other counts of vendors are kept as extensions.
  const kept = { ...unknownFields(body, EMBEDDING_RESPONSE_FIELDS), ...(Object.keys(usage).length > 0 && { usage }) };
  return {
    model: textOrEmpty(body['model']) || (context.target?.model ?? ''),
    data: decodeEntries(body['data'], context),
    ...(tokens !== undefined && { usage: { input_tokens: tokens } }),
    ...(Object.keys(kept).length > 0 && { extensions: { 'openai-chat': kept } }),
  };
}

const ENTRY_FIELDS: ReadonlySet<string> = new Set(['object', 'index', 'embedding']);

function decodeEntries(entries: readonly unknown[], context: CodecContext): CanonicalEmbeddingResponse['data'] {
  let lost: string | undefined;
  const data = entries.map((entry, i) => {
    const { index, embedding } = objectOrEmpty(entry);
    if (typeof embedding !== 'string' && !isVector(embedding))
      throw malformedResponse(`data[${i}].embedding`, 'must be numbers or base64');
    lost ??= Object.keys(unknownFields(objectOrEmpty(entry), ENTRY_FIELDS) ?? {})[0];
    return { index: isIndex(index) ? index : i, embedding };
  });
  if (lost !== undefined)
    noteDropped(context, {
      path: '/data',
      feature: 'embeddings.entry',
      message: `unknown field "${lost}" of an embedding; dropped`,
    });
  return data;
}

const isVector = (value: unknown): value is number[] => Array.isArray(value) && value.every((item) => typeof item === 'number');

function encodeEmbeddingResponse(response: CanonicalEmbeddingResponse, context: CodecContext): JsonObject {
  const { model, data, usage, extensions } = response;
  noteForeign(response, context);
  const kept = extensions?.['openai-chat'] ?? {};
  const { embedding: request } = context;
  const format = request && findFormat(request);
  const counted = objectOrEmpty(kept['usage']);
  const tokens = usage?.input_tokens ?? 0;
  return {
    ...kept,
    object: 'list',
    data: data.map(({ index, embedding }, i) => ({ object: 'embedding', index, embedding: convertFormat(embedding, format, i) })),
    model: request?.model ?? model,
    usage: { ...counted, prompt_tokens: tokens, total_tokens: Math.max(tokens, toCount(counted['total_tokens']) ?? 0) },
  };
}

/**
 * Notes foreign extensions without rejecting them, because the client did not request them; one note per kind of entry.
 */
function noteForeign(response: CanonicalEmbeddingResponse, { note }: CodecContext): void {
  const noteLoss = (loss: Omit<Note, 'code'>): void => note({ code: 'DROPPED', ...loss });
  eachForeignField(response, 'openai-chat', '', noteLoss);
  const at = response.data.findIndex(({ extensions }) => extensions);
  const entry = response.data[at];
  if (entry) eachForeignField(entry, 'openai-chat', `/data/${at}`, noteLoss);
}

/** The format that the client expects; undefined for one that only its server supports. */
function findFormat({ encoding_format: format, extensions }: CanonicalEmbeddingRequest): 'float' | 'base64' | undefined {
  const own = extensions?.['openai-chat']?.['encoding_format'];
  return format ?? (own === undefined ? 'float' : undefined);
}

/** The official client requests base64 by default, and some servers respond with floats anyway. */
function convertFormat(embedding: number[] | string, format: 'float' | 'base64' | undefined, i: number): number[] | string {
  if (format === 'base64' && typeof embedding !== 'string') return packFloats(embedding);
  if (format !== 'float' || typeof embedding !== 'string') return embedding;
  const floats = unpackFloats(embedding);
  if (!floats?.every(Number.isFinite)) throw malformedResponse(`data[${i}].embedding`, 'must be base64 of 32-bit floats');
  return floats;
}

// ---- rerank

/**
 * `POST /rerank`: the request. Not an endpoint of OpenAI: compatible servers follow Jina (`usage.total_tokens`) or
 * Cohere (`meta.billed_units.search_units`).
 */
export const rerankRequest: WireCodec<WireRequest, CanonicalRerankRequest> = {
  decode: decodeRerankRequest,
  encode: encodeRerankRequest,
};

const COUNTS = ['top_n', 'max_chunks_per_doc', 'max_tokens_per_doc'] as const;

const RERANK_REQUEST_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'query',
  'documents',
  'return_documents',
  'rank_fields',
  ...COUNTS,
]);

function decodeRerankRequest({ path, body: wire }: WireRequest): CanonicalRerankRequest {
  const body = expectObject(wire, 'body');
  const documents = expectList(body['documents'], 'documents');
  if (documents.length === 0) throw invalid('documents', 'must not be empty');
  const returned = optional(body['return_documents'], 'return_documents', expectBoolean);
  const fields = optional(body['rank_fields'], 'rank_fields', expectList);
  const unknown = unknownFields(body, RERANK_REQUEST_FIELDS);
  return {
    model: readModelFromPath(path) ?? expectName(body['model'], 'model'),
    query: expectText(body['query'], 'query'),
    documents: documents.map(decodeDocument),
    ...decodeCounts(body),
    ...(returned !== undefined && { return_documents: returned }),
    ...(fields && { rank_fields: fields.map((field, i) => expectText(field, `rank_fields[${i}]`)) }),
    ...(unknown && { extensions: { 'openai-chat': unknown } }),
  };
}

type Document = CanonicalRerankRequest['documents'][number];

function decodeDocument(document: unknown, i: number): Document {
  if (typeof document === 'string' || isObject(document)) return document;
  throw invalid(`documents[${i}]`, 'must be a string or an object');
}

function decodeCounts(body: JsonObject): Pick<CanonicalRerankRequest, (typeof COUNTS)[number]> {
  const counts: Pick<CanonicalRerankRequest, (typeof COUNTS)[number]> = {};
  for (const name of COUNTS) {
    const count = optional(body[name], name, expectCount);
    if (count !== undefined) counts[name] = count;
  }
  return counts;
}

function encodeRerankRequest({ extensions, model, ...request }: CanonicalRerankRequest, { target }: CodecContext): WireRequest {
  const body = { ...extensions?.['openai-chat'], model: target?.model ?? model, ...request };
  return { method: 'POST', path: '/v1/rerank', headers: { 'content-type': 'application/json' }, body };
}

/** `POST /rerank`: the response. */
export const rerankResponse: WireCodec<unknown, CanonicalRerankResponse> = {
  decode: decodeRerankResponse,
  encode: encodeRerankResponse,
};

const RERANK_RESPONSE_FIELDS: ReadonlySet<string> = new Set(['id', 'model', 'results', 'data', 'usage', 'meta']);

function decodeRerankResponse(wire: unknown, context: CodecContext): CanonicalRerankResponse {
  // text-embeddings-inference sends the bare list, Voyage calls it `data`.
  const body = Array.isArray(wire) ? { results: wire } : expectBody(wire);
  const results = body['results'] ?? body['data'];
  if (!Array.isArray(results)) throw malformedResponse('results', 'must be a list of results');
  const usage = decodeUsage(objectOrEmpty(body['usage']), objectOrEmpty(body['meta']));
  // Other counts are kept as extensions, and show whether the response has the form of Jina or of Cohere.
  const counted = {
    ...(isObject(body['usage']) && { usage: body['usage'] }),
    ...(isObject(body['meta']) && { meta: body['meta'] }),
  };
  const kept = { ...unknownFields(body, RERANK_RESPONSE_FIELDS), ...counted };
  return {
    ...(textOrEmpty(body['id']) && { id: textOrEmpty(body['id']) }),
    ...(textOrEmpty(body['model']) && { model: textOrEmpty(body['model']) }),
    results: sortResults(decodeResults(results, context), context),
    ...(usage && { usage }),
    ...(Object.keys(kept).length > 0 && { extensions: { 'openai-chat': kept } }),
  };
}

function decodeUsage(usage: JsonObject, meta: JsonObject): CanonicalRerankResponse['usage'] {
  const tokens =
    toCount(usage['total_tokens']) ?? toCount(usage['prompt_tokens']) ?? toCount(objectOrEmpty(meta['tokens'])['input_tokens']);
  const units = toCount(objectOrEmpty(meta['billed_units'])['search_units']) ?? toCount(usage['search_units']);
  if (tokens === undefined && units === undefined) return undefined;
  return { ...(tokens !== undefined && { input_tokens: tokens }), ...(units !== undefined && { search_units: units }) };
}

type Result = CanonicalRerankResponse['results'][number];

/** Sorts the results by score, best first, as every client expects. */
function sortResults(results: Result[], { note }: CodecContext): Result[] {
  const isSorted = results.every(
    ({ relevance_score }, i) => relevance_score <= (results[i - 1]?.relevance_score ?? relevance_score),
  );
  if (isSorted) return results;
  note({
    code: 'REPAIRED',
    path: '/results',
    feature: 'rerank.order',
    message: 'the results were not sorted by score; sorted',
  });
  return results.toSorted((a, b) => b.relevance_score - a.relevance_score);
}

const RESULT_FIELDS: ReadonlySet<string> = new Set(['index', 'relevance_score', 'score', 'document', 'text', 'object']);

function decodeResults(results: readonly unknown[], context: CodecContext): Result[] {
  const documents = context.rerank?.documents.length ?? Number.POSITIVE_INFINITY;
  let lost: string | undefined;
  const found = results.map((result, i) => {
    const { index, relevance_score, score, document, text } = objectOrEmpty(result);
    const value = relevance_score ?? score;
    if (!isIndex(index)) throw malformedResponse(`results[${i}].index`, 'must be the index of a document');
    if (typeof value !== 'number') throw malformedResponse(`results[${i}].relevance_score`, 'must be a number');
    if (index >= documents)
      throw malformedResponse(`results[${i}].index`, `is ${index}, but the request has ${documents} documents`);
    lost ??= Object.keys(unknownFields(objectOrEmpty(result), RESULT_FIELDS) ?? {})[0];
    const shown = decodeReturned(document ?? text);
    return { index, relevance_score: value, ...(shown && { document: shown }) };
  });
  if (lost !== undefined)
    noteDropped(context, { path: '/results', feature: 'rerank.result', message: `unknown field "${lost}" of a result; dropped` });
  return found;
}

const decodeReturned = (document: unknown): Result['document'] =>
  typeof document === 'string' ? { text: document } : isObject(document) ? document : undefined;

function encodeRerankResponse(response: CanonicalRerankResponse, { rerank: request }: CodecContext): JsonObject {
  const { id, model, results, usage: { input_tokens: tokens, search_units: units } = {}, extensions } = response;
  const kept = extensions?.['openai-chat'] ?? {};
  const usage = objectOrEmpty(kept['usage']);
  const meta = objectOrEmpty(kept['meta']);
  // A count goes back to the field where it came from; one of another protocol to the usual field.
  const inMeta = kept['meta'] !== undefined && kept['usage'] === undefined;
  const billed = units !== undefined && usage['search_units'] === undefined;
  return {
    ...kept,
    ...(id !== undefined && { id }),
    ...(model !== undefined && { model: request?.model ?? model }),
    results: results.map((result) => encodeResult(result, request)),
    ...(tokens !== undefined && !inMeta && { usage: { ...usage, total_tokens: tokens } }),
    ...(billed && { meta: { ...meta, billed_units: { ...objectOrEmpty(meta['billed_units']), search_units: units } } }),
  };
}

/** Cohere's v2 does not return documents; a client that requests them gets those of its request. */
function encodeResult({ index, relevance_score, document }: Result, request: CanonicalRerankRequest | undefined): JsonObject {
  const requested = request?.return_documents ? request.documents[index] : undefined;
  const shown = document ?? (typeof requested === 'string' ? { text: requested } : requested);
  return { index, relevance_score, ...(shown && { document: shown }) };
}
