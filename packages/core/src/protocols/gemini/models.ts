import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalModel, CanonicalModelList } from '../../canonical/interfaces.ts';
import { badAnswer } from '../shared/answer-body.ts';
import { type CodecContext, drop, type WireCodec } from '../shared/codec.ts';
import { countOf, textOf, unknownFields } from '../shared/read.ts';
import { answerOf } from './answer.ts';
import { fieldsOf, keep } from './kept.ts';
import { camelKeys, camelObject } from './wire.ts';

/** `GET /v1beta/models`. */
export const models: WireCodec<unknown, CanonicalModelList> = { decode: decodeModels, encode: encodeModels };

/** `GET /v1beta/models/{model}`. */
export const modelInfo: WireCodec<unknown, CanonicalModel> = { decode: decodeModelInfo, encode: encodeModel };

const LIST_FIELDS: ReadonlySet<string> = new Set(['models', 'nextPageToken']);
const MODEL_FIELDS: ReadonlySet<string> = new Set([
  'name',
  'displayName',
  'description',
  'inputTokenLimit',
  'outputTokenLimit',
  'supportedGenerationMethods',
]);

/** Clients filter by these. */
const ACTIONS = ['generateContent', 'streamGenerateContent', 'countTokens'];

function decodeModels(wire: unknown, context: CodecContext): CanonicalModelList {
  const body = camelKeys(answerOf(wire));
  // Vertex lists its own under another name.
  const entries = body['models'] ?? body['publisherModels'] ?? body['tunedModels'] ?? [];
  if (!Array.isArray(entries)) throw badAnswer('models', 'must be a list of models');
  const found: CanonicalModel[] = [];
  entries.forEach((entry, i) => {
    const model = decodeModel(entry);
    if (model) found.push(model);
    else drop(context, { path: `/models/${i}`, feature: 'models.entry', message: 'a model without a name' });
  });
  const next = textOf(body['nextPageToken']);
  return { models: found, ...(next !== '' && { next_page: next, has_more: true }), ...keep(unknownFields(body, LIST_FIELDS)) };
}

function decodeModelInfo(wire: unknown): CanonicalModel {
  const model = decodeModel(answerOf(wire));
  if (!model) throw badAnswer('name', 'must be the name of the model');
  return model;
}

/** Undefined when the entry names no model. Whatever else it says stays with it. */
function decodeModel(entry: unknown): CanonicalModel | undefined {
  if (!isObject(entry)) return undefined;
  const model = camelObject(entry);
  const name = textOf(model['name']);
  if (name === '') return undefined;
  const input = countOf(model['inputTokenLimit']);
  const output = countOf(model['outputTokenLimit']);
  const methods = model['supportedGenerationMethods'] ?? model['supportedActions'];
  return {
    id: name.replace(/^models\//, ''),
    ...(textOf(model['displayName']) && { name: textOf(model['displayName']) }),
    ...(textOf(model['description']) && { description: textOf(model['description']) }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(Array.isArray(methods) && { actions: methods.filter((action) => typeof action === 'string') }),
    ...keep(unknownFields(model, MODEL_FIELDS)),
  };
}

function encodeModels(list: CanonicalModelList): JsonObject {
  const { models: entries, next_page: next } = list;
  return { ...fieldsOf(list), models: entries.map(encodeModel), ...(next !== undefined && { nextPageToken: next }) };
}

function encodeModel(model: CanonicalModel): JsonObject {
  const { id, name, description, max_input_tokens: input, max_output_tokens: output, actions } = model;
  return {
    ...fieldsOf(model),
    name: id.startsWith('tunedModels/') || id.startsWith('models/') ? id : `models/${id}`,
    displayName: name ?? id,
    ...(description !== undefined && { description }),
    ...(input !== undefined && { inputTokenLimit: input }),
    ...(output !== undefined && { outputTokenLimit: output }),
    supportedGenerationMethods: actions ?? ACTIONS,
  };
}
