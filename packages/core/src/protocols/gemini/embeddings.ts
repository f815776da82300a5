import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalEmbeddingRequest, CanonicalEmbeddingResponse } from '../../canonical/interfaces.ts';
import { at } from '../../canonical/source.ts';
import { locatedContext } from '../../passes/located.ts';
import { badAnswer } from '../shared/answer-body.ts';
import { type CodecContext, drop, incompatible, invalid, missing, type WireCodec, type WireRequest } from '../shared/codec.ts';
import { expectCount, expectList, expectObject, expectText, optional } from '../shared/expect.ts';
import { unpackFloats } from '../shared/floats.ts';
import { countOf, listOf, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { eachForeign } from '../shared/unsaid.ts';
import { answerOf } from './answer.ts';
import { modelOf, pathOf, resourceOf } from './interface.ts';
import { fieldsOf, keep } from './kept.ts';
import { camelKeys, camelObject } from './wire.ts';

/** `POST …:embedContent` and `…:batchEmbedContents`, the question and the answer. */
export const embeddingRequest: WireCodec<WireRequest, CanonicalEmbeddingRequest> = {
  decode: decodeRequest,
  encode: encodeRequest,
};
export const embeddingResponse: WireCodec<unknown, CanonicalEmbeddingResponse> = {
  decode: decodeResponse,
  encode: encodeResponse,
};

/** The API's own bound on a batch is lower; a list this long is a mistake. */
const MAX_INPUTS = 2048;

const EMBED_FIELDS: ReadonlySet<string> = new Set(['model', 'content', 'taskType', 'title', 'outputDimensionality']);

/** What one entry says beside its text. */
type Settings = Pick<CanonicalEmbeddingRequest, 'dimensions' | 'task_type' | 'title'>;

function decodeRequest({ path, body: wire }: WireRequest, context: CodecContext): CanonicalEmbeddingRequest {
  const body = camelKeys(expectObject(wire, 'body'));
  const list = optional(body['requests'], 'requests', expectList);
  const entries = list?.map((item, i) => camelKeys(expectObject(item, `requests[${i}]`))) ?? [body];
  if (entries.length === 0) throw invalid('requests', 'must not be empty');
  if (entries.length > MAX_INPUTS) throw invalid('requests', `has ${entries.length} entries, and ${MAX_INPUTS} are allowed`);
  const params = entries.map((_, i) => (list ? `requests[${i}].` : ''));
  const model = modelOf(path) ?? textOf(entries[0]?.['model']).replace(/^models\//, '');
  if (model === '') throw missing('model');
  const [first = body] = entries;
  tellDifferent(entries, context);
  const request: CanonicalEmbeddingRequest = {
    model,
    input: entries.map((entry, i) => textIn(entry['content'], `${params[i]}content`)),
    ...(!list && { single: true }),
    ...settingsOf(first, params[0] ?? ''),
    ...keep(unknownFields(first, EMBED_FIELDS)),
  };
  const place = list ? '/requests/0' : '';
  return at('', request, context, {
    dimensions: `${place}/outputDimensionality`,
    task_type: `${place}/taskType`,
    title: `${place}/title`,
    'extensions/gemini': place,
  });
}

/** Several parts are one text. Images and sound have no canonical form. */
function textIn(value: unknown, param: string): string {
  const content = typeof value === 'string' ? { parts: [{ text: value }] } : camelKeys(expectObject(value, param));
  const parts = isObject(content['parts']) ? [content['parts']] : expectList(content['parts'], `${param}.parts`);
  return parts
    .map((item, i) => {
      const part = camelObject(item);
      if (typeof part['text'] === 'string') return part['text'];
      const message = 'only text can be embedded elsewhere';
      throw incompatible({ path: `${param}.parts[${i}]`, feature: 'embeddings.media', message });
    })
    .join('');
}

function settingsOf(entry: JsonObject, at: string): Settings {
  const dimensions = optional(entry['outputDimensionality'], `${at}outputDimensionality`, expectCount);
  const task = optional(entry['taskType'], `${at}taskType`, expectText);
  const title = optional(entry['title'], `${at}title`, expectText);
  return {
    ...(dimensions !== undefined && { dimensions }),
    ...(task !== undefined && { task_type: task }),
    ...(title !== undefined && { title }),
  };
}

/** The settings of a batch are those of its first entry. */
function tellDifferent(entries: readonly JsonObject[], context: CodecContext): void {
  const [first, ...rest] = entries.map((entry) => JSON.stringify([settingsOf(entry, ''), unknownFields(entry, EMBED_FIELDS)]));
  const at = rest.findIndex((settings) => settings !== first) + 1;
  if (at > 0)
    drop(context, {
      path: `/requests/${at}`,
      feature: 'embeddings.settings',
      message: 'all entries are embedded as the first one',
    });
}

function encodeRequest(request: CanonicalEmbeddingRequest, caller: CodecContext): WireRequest {
  const context = locatedContext(caller, request);
  const { input, single, dimensions, task_type: task, title, user_id: user } = request;
  if (user !== undefined) drop(context, { path: '/user_id', feature: 'user_id', message: 'Gemini is not told who the user is' });
  eachForeign(request, 'gemini', '', (loss) => drop(context, loss));
  const model = context.target?.model ?? request.model;
  const entry = (text: string | number[], i: number): JsonObject => ({
    ...fieldsOf(request),
    content: { parts: [{ text: expectWords(text, i) }] },
    ...(task !== undefined && { taskType: task }),
    ...(title !== undefined && { title }),
    ...(dimensions !== undefined && { outputDimensionality: dimensions }),
  });
  const [first = ''] = input;
  const isOne = single === true && input.length === 1;
  return {
    method: 'POST',
    path: pathOf(model, isOne ? 'embedContent' : 'batchEmbedContents'),
    headers: { 'content-type': 'application/json' },
    body: isOne ? entry(first, 0) : { requests: input.map((text, i) => ({ model: resourceOf(model), ...entry(text, i) })) },
  };
}

function expectWords(text: string | number[], i: number): string {
  if (typeof text === 'string') return text;
  throw incompatible({ path: `/input/${i}`, feature: 'embeddings.tokens', message: 'Gemini embeds texts, not tokens' });
}

const RESPONSE_FIELDS: ReadonlySet<string> = new Set(['embedding', 'embeddings', 'usageMetadata']);

function decodeResponse(wire: unknown, context: CodecContext): CanonicalEmbeddingResponse {
  const body = camelKeys(answerOf(wire));
  const list = isObject(body['embedding']) ? [body['embedding']] : body['embeddings'];
  if (!Array.isArray(list)) throw badAnswer('embeddings', 'must be a list of embeddings');
  const usage = camelObject(body['usageMetadata']);
  const tokens = countOf(usage['promptTokenCount']) ?? countOf(usage['totalTokenCount']);
  return {
    model: context.target?.model ?? context.embedding?.model ?? '',
    data: list.map((entry, index) => ({
      index,
      embedding: vectorOf(entry, index),
      ...keep(unknownFields(objectOf(entry), VECTOR_FIELDS)),
    })),
    ...(tokens !== undefined && { usage: { input_tokens: tokens } }),
    ...keep({ ...unknownFields(body, RESPONSE_FIELDS), ...(Object.keys(usage).length > 0 && { usageMetadata: usage }) }),
  };
}

const VECTOR_FIELDS: ReadonlySet<string> = new Set(['values']);

function vectorOf(entry: unknown, i: number): number[] {
  const values = listOf(objectOf(entry)['values']);
  if (values.length === 0 || !values.every((value) => typeof value === 'number'))
    throw badAnswer(`embeddings[${i}].values`, 'must be numbers');
  return [...values];
}

/** One for one, and a list for a batch. Without a question the number decides. */
function encodeResponse(response: CanonicalEmbeddingResponse, { embedding: question, note }: CodecContext): JsonObject {
  const { data, usage } = response;
  // Nobody asked for them: they are told, and not refused.
  eachForeign(response, 'gemini', '', (loss) => note({ code: 'DROPPED', ...loss }));
  const { usageMetadata: kept, ...rest } = fieldsOf(response);
  const embeddings = data
    .toSorted((a, b) => a.index - b.index)
    .map((item, i) => ({ ...fieldsOf(item), values: floatsOf(item.embedding, i) }));
  const isOne = question ? question.single === true : embeddings.length === 1;
  return {
    ...rest,
    ...(isOne ? { embedding: embeddings[0] } : { embeddings }),
    ...(usage && { usageMetadata: { ...objectOf(kept), promptTokenCount: usage.input_tokens } }),
  };
}

function floatsOf(embedding: number[] | string, i: number): number[] {
  if (typeof embedding !== 'string') return embedding;
  const floats = unpackFloats(embedding);
  if (!floats?.every(Number.isFinite)) throw badAnswer(`data[${i}].embedding`, 'is not base64 of 32-bit floats');
  return floats;
}
