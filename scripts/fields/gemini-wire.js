/** The Google SDK arranges requests in a way of its own: `config` holds what the wire has in the body and in `generationConfig`. */
import { pathOf } from './fields.js';

/**
 * @typedef {import('./fields.js').Field} Field
 * @typedef {import('./fields.js').Step} Step
 */

/** What the SDK takes out of `config` into the body. */
const BODY = new Set([
  'serviceTier',
  'systemInstruction',
  'safetySettings',
  'tools',
  'toolConfig',
  'labels',
  'cachedContent',
  'modelArmorConfig',
  'continuationToken',
  'generationOutputConfig',
  'store',
  'generationConfig',
]);

/** What it keeps to itself. */
const OPTIONS = new Set(['httpOptions', 'automaticFunctionCalling', 'automaticContinuation']);

/** @type {Record<string, string>} */
const RENAMED = { generationOutputConfig: 'outputConfig', modelSelectionConfig: 'modelConfig' };

/** @type {Step} */
const GENERATION_CONFIG = {
  name: 'generationConfig',
  list: false,
  label: '',
  shape: { kind: 'object', name: 'GenerationConfig', properties: [] },
};

/** @type {Step} */
const ROOT = { name: '', list: false, label: '', shape: { kind: 'object', name: 'GenerateContentRequest', properties: [] } };

/** @param {Field[]} fields @returns {Field[]} */
export const toGeminiRequest = (fields) => rearranged(fields, placeOf, ROOT);

/** Embeddings are asked for in a list of requests. @param {Field[]} fields @returns {Field[]} */
export const toGeminiEmbedding = (fields) => rearranged(fields, embeddingPlaceOf, ROOT);

/** @param {Field[]} fields @param {(steps: readonly Step[]) => Step[] | undefined} place @param {Step} root */
function rearranged(fields, place, root) {
  return fields.filter(isOnWire).flatMap((field) => {
    const steps = place(field.steps.slice(1));
    if (!steps) return [];
    const at = [root, ...steps];
    return [{ ...field, path: pathOf(at), parent: pathOf(at.slice(0, -1)), owner: at.at(-2)?.shape?.name ?? '', steps: at }];
  });
}

/** A content may be given as a text or a part: the SDK makes it one. @param {Field} field */
function isOnWire({ steps }) {
  const names = steps.map(({ name }) => name);
  const i = names.findIndex((name) => name === 'contents' || name === 'systemInstruction');
  if (i < 0 || i === steps.length - 1) return true;
  const { shape, list } = /** @type {Step} */ (steps[i]);
  return shape?.name === 'Content' && list === (names[i] === 'contents');
}

/** @param {readonly Step[]} steps @returns {Step[] | undefined} */
function placeOf([first, second, ...rest]) {
  if (first?.name === 'model') return undefined;
  if (first?.name !== 'config') return unlabelled([/** @type {Step} */ (first), ...(second ? [second, ...rest] : [])]);
  if (!second) return undefined;
  if (OPTIONS.has(second.name)) return [first, second, ...rest];
  const renamed = { ...second, name: RENAMED[second.name] ?? second.name };
  return BODY.has(second.name) ? unlabelled([renamed, ...rest]) : [GENERATION_CONFIG, renamed, ...rest];
}

/** @param {readonly Step[]} steps @returns {Step[] | undefined} */
function embeddingPlaceOf([first, second, ...rest]) {
  if (first?.name === 'model') return [REQUESTS, first];
  if (first?.name === 'contents')
    return [REQUESTS, { ...first, name: 'content', list: false, label: '' }, ...(second ? [second, ...rest] : [])];
  if (first?.name !== 'config' || !second) return undefined;
  return OPTIONS.has(second.name) ? [first, second, ...rest] : [REQUESTS, second, ...rest];
}

/** @type {Step} */
const REQUESTS = {
  name: 'requests',
  list: true,
  label: '',
  shape: { kind: 'object', name: 'EmbedContentRequest', properties: [] },
};

/** The labels of what is left of a union tell nothing. @param {Step[]} steps */
const unlabelled = ([first, ...rest]) => [{ .../** @type {Step} */ (first), label: '' }, ...rest];

/** The wire calls the methods of a model so. @param {Field[]} fields @returns {Field[]} */
export const toGeminiModel = (fields) =>
  fields.map((field) => {
    if (field.path !== 'supportedActions') return field;
    const name = 'supportedGenerationMethods';
    return { ...field, path: name, steps: [...field.steps.slice(0, -1), { name, list: false, label: '' }] };
  });
