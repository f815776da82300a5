import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalModel, CanonicalModelList } from '../../canonical/interfaces.ts';
import { badAnswer } from '../shared/answer-body.ts';
import { type CodecContext, drop, type WireCodec } from '../shared/codec.ts';
import { countOf, textOf, unknownFields } from '../shared/read.ts';
import { answerOf } from './answer.ts';

/** `GET /models`. */
export const models: WireCodec<unknown, CanonicalModelList> = { decode: decodeModels, encode: encodeModels };

/** `GET /models/{model}`. */
export const modelInfo: WireCodec<unknown, CanonicalModel> = { decode: decodeModelInfo, encode: encodeModel };

const LIST_FIELDS: ReadonlySet<string> = new Set(['object', 'data', 'models', 'has_more']);
const MODEL_FIELDS: ReadonlySet<string> = new Set(['id', 'object', 'created', 'owned_by']);

/** What servers call the size of the context: OpenRouter, Groq, Mistral, vLLM. */
const INPUT_LIMITS = ['context_length', 'context_window', 'max_context_length', 'max_model_len'];
const OUTPUT_LIMITS = ['max_output_tokens', 'max_completion_tokens'];

function decodeModels(wire: unknown, context: CodecContext): CanonicalModelList {
  // Together answers with the bare list.
  const body = Array.isArray(wire) ? { data: wire } : answerOf(wire);
  // Ollama and Codex say `models`, llama.cpp says both.
  const key = Array.isArray(body['data']) ? 'data' : 'models';
  const entries = body[key];
  if (!Array.isArray(entries)) throw badAnswer('data', 'must be a list of models');
  const unknown = unknownFields(body, LIST_FIELDS);
  const found: CanonicalModel[] = [];
  entries.forEach((entry, i) => {
    const model = decodeModel(entry);
    if (model) found.push(model);
    else drop(context, { path: `/${key}/${i}`, feature: 'models.entry', message: 'a model without an id' });
  });
  return {
    models: found,
    ...(typeof body['has_more'] === 'boolean' && { has_more: body['has_more'] }),
    ...(unknown && { extensions: { 'openai-chat': unknown } }),
  };
}

function decodeModelInfo(wire: unknown): CanonicalModel {
  const body = answerOf(wire);
  // Some wrap the one model as they wrap the list.
  const model = decodeModel(isObject(body['data']) ? body['data'] : body);
  if (!model) throw badAnswer('id', 'must be the name of the model');
  return model;
}

/** Undefined when the entry names no model. Whatever else it says stays with it. */
function decodeModel(entry: unknown): CanonicalModel | undefined {
  if (typeof entry === 'string') return entry === '' ? undefined : { id: entry, name: entry };
  if (!isObject(entry)) return undefined;
  const id = textOf(entry['id']) || textOf(entry['model']) || textOf(entry['name']);
  if (id === '') return undefined;
  const created = countOf(entry['created']);
  const input = limitOf(entry, INPUT_LIMITS);
  const output = limitOf(entry, OUTPUT_LIMITS);
  const extensions = unknownFields(entry, MODEL_FIELDS);
  return {
    id,
    name: textOf(entry['name']) || id,
    ...(created !== undefined && { created }),
    ...(textOf(entry['owned_by']) && { owned_by: textOf(entry['owned_by']) }),
    ...(textOf(entry['description']) && { description: textOf(entry['description']) }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(extensions && { extensions: { 'openai-chat': extensions } }),
  };
}

function encodeModels({ models, has_more, next_page, extensions }: CanonicalModelList, context: CodecContext): JsonObject {
  if (has_more || next_page !== undefined)
    drop(context, { path: '/has_more', feature: 'models.next_page', message: 'OpenAI Chat lists all models at once' });
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
    ...(max_input_tokens !== undefined && { [nameOf(kept, INPUT_LIMITS)]: max_input_tokens }),
    ...(max_output_tokens !== undefined && { [nameOf(kept, OUTPUT_LIMITS)]: max_output_tokens }),
  };
}

const limitOf = (entry: JsonObject, names: readonly string[]): number | undefined =>
  names.map((name) => countOf(entry[name])).find((value) => value !== undefined);

/** The name under which the limit came, else the first, which most clients know. */
const nameOf = (kept: JsonObject, names: readonly string[]): string =>
  names.find((name) => countOf(kept[name]) !== undefined) ?? names[0] ?? '';
