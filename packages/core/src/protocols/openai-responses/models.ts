import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalModel, CanonicalModelList } from '../../canonical/interfaces.ts';
import { badAnswer, expectAnswer } from '../shared/answer-body.ts';
import { type CodecContext, drop, type WireCodec } from '../shared/codec.ts';
import { countOf, textOf, unknownFields } from '../shared/read.ts';
import { decodeErrorBody } from './errors-decode.ts';
import { fieldsOf, keep } from './kept.ts';

/** `GET /models`: the list of OpenAI, whichever of its protocols is spoken. */
export const models: WireCodec<unknown, CanonicalModelList> = { decode: decodeModels, encode: encodeModels };

/** `GET /models/{model}`. */
export const modelInfo: WireCodec<unknown, CanonicalModel> = { decode: decodeModelInfo, encode: encodeModel };

const LIST_FIELDS: ReadonlySet<string> = new Set(['object', 'data', 'models', 'has_more']);
const MODEL_FIELDS: ReadonlySet<string> = new Set(['id', 'object', 'created', 'owned_by', 'context_window', 'max_output_tokens']);

function decodeModels(wire: unknown, context: CodecContext): CanonicalModelList {
  const body = Array.isArray(wire) ? { data: wire } : answerOf(wire);
  // Codex says `models`.
  const entries = body['data'] ?? body['models'];
  if (!Array.isArray(entries)) throw badAnswer('data', 'must be a list of models');
  const found = entries.flatMap((entry, i): CanonicalModel[] => {
    const model = decodeModel(entry);
    if (!model) drop(context, { path: `/data/${i}`, feature: 'models.entry', message: 'a model without an id' });
    return model ? [model] : [];
  });
  return {
    models: found,
    ...(typeof body['has_more'] === 'boolean' && { has_more: body['has_more'] }),
    ...keep(unknownFields(body, LIST_FIELDS)),
  };
}

function decodeModelInfo(wire: unknown): CanonicalModel {
  const model = decodeModel(answerOf(wire));
  if (!model) throw badAnswer('id', 'must be the name of the model');
  return model;
}

const answerOf = (wire: unknown): JsonObject =>
  expectAnswer(wire, ({ error, detail }) => Boolean(error) || detail !== undefined, decodeErrorBody);

/** Undefined when the entry names no model. Whatever else it says stays with it. */
function decodeModel(entry: unknown): CanonicalModel | undefined {
  if (!isObject(entry)) return undefined;
  const id = textOf(entry['id']) || textOf(entry['slug']) || textOf(entry['name']);
  if (id === '') return undefined;
  const created = countOf(entry['created']);
  const input = countOf(entry['context_window']);
  const output = countOf(entry['max_output_tokens']);
  return {
    id,
    name: textOf(entry['display_name']) || textOf(entry['name']) || id,
    ...(created !== undefined && { created }),
    ...(textOf(entry['owned_by']) && { owned_by: textOf(entry['owned_by']) }),
    ...(textOf(entry['description']) && { description: textOf(entry['description']) }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...keep(unknownFields(entry, MODEL_FIELDS)),
  };
}

function encodeModels(list: CanonicalModelList, context: CodecContext): JsonObject {
  if (list.has_more || list.next_page !== undefined)
    drop(context, { path: '/has_more', feature: 'models.next_page', message: 'OpenAI lists all models at once' });
  return { ...fieldsOf(list), object: 'list', data: list.models.map(encodeModel) };
}

function encodeModel(model: CanonicalModel): JsonObject {
  const { id, name, created, owned_by: owner, description, max_input_tokens: input, max_output_tokens: output } = model;
  const kept = fieldsOf(model);
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
