/** The types of the official SDKs that the ledger decides, by protocol. */
import { fieldsOf } from './fields.js';
import { toGeminiEmbedding, toGeminiModel, toGeminiRequest } from './gemini-wire.js';
import { versionOf } from './modules.js';
import { rootPlace } from './types.js';
import { VOCABULARY } from './vocabulary.js';

/**
 * @typedef {import('./fields.js').Field} Field
 * @typedef {object} Section
 * @property {string} type  declared name
 * @property {string} file  in the package
 * @property {string} [known]  the section that lists the types which are not entered here
 * @property {string} [beyond]  the section whose fields are not told again
 * @property {(fields: Field[]) => Field[]} [toWire]  where the SDK arranges fields in a way of its own
 */

/** Ends the name of a section of fields that no SDK declares. */
export const MET = ' beyond the SDK';
const CHAT = 'resources/chat/completions/completions.d.ts';
const RESPONSES = 'resources/responses/responses.d.ts';
const MESSAGES = 'resources/messages/messages.d.ts';
const BETA = 'resources/beta/messages/messages.d.ts';
const GENAI = 'dist/genai.d.ts';

/** @type {Record<string, { package: string, sections: Record<string, Section> }>} */
const DECLARED = {
  'openai-chat': {
    package: 'openai-7',
    sections: {
      request: { type: 'ChatCompletionCreateParamsBase', file: CHAT },
      response: { type: 'ChatCompletion', file: CHAT },
      stream: { type: 'ChatCompletionChunk', file: CHAT },
      'embedding request': { type: 'EmbeddingCreateParams', file: 'resources/embeddings.d.ts' },
      'embedding response': { type: 'CreateEmbeddingResponse', file: 'resources/embeddings.d.ts' },
      model: { type: 'Model', file: 'resources/models.d.ts' },
    },
  },
  'anthropic-messages': {
    package: '@anthropic-ai/sdk',
    sections: {
      request: { type: 'MessageCreateParamsBase', file: MESSAGES },
      response: { type: 'Message', file: MESSAGES },
      stream: { type: 'RawMessageStreamEvent', file: MESSAGES, known: 'response' },
      'beta request': { type: 'MessageCreateParamsBase', file: BETA, beyond: 'request' },
      'beta response': { type: 'BetaMessage', file: BETA, beyond: 'response' },
      'beta stream': { type: 'BetaRawMessageStreamEvent', file: BETA, known: 'beta response', beyond: 'stream' },
      'count request': { type: 'MessageCountTokensParams', file: MESSAGES, beyond: 'request' },
      'count response': { type: 'MessageTokensCount', file: MESSAGES },
      model: { type: 'ModelInfo', file: 'resources/models.d.ts' },
    },
  },
  'openai-responses': {
    package: 'openai-7',
    sections: {
      request: { type: 'ResponseCreateParamsBase', file: RESPONSES },
      response: { type: 'Response', file: RESPONSES },
      stream: { type: 'ResponseStreamEvent', file: RESPONSES, known: 'response' },
      'count request': { type: 'InputTokenCountParams', file: 'resources/responses/input-tokens.d.ts', beyond: 'request' },
      'count response': { type: 'InputTokenCountResponse', file: 'resources/responses/input-tokens.d.ts' },
    },
  },
  gemini: {
    package: 'google-genai-2',
    sections: {
      request: { type: 'GenerateContentParameters', file: GENAI, toWire: toGeminiRequest },
      response: { type: 'GenerateContentResponse', file: GENAI },
      stream: { type: 'GenerateContentResponse', file: GENAI },
      'embedding request': { type: 'EmbedContentParameters', file: GENAI, toWire: toGeminiEmbedding },
      'embedding response': { type: 'EmbedContentResponse', file: GENAI },
      'count request': { type: 'CountTokensParameters', file: GENAI, toWire: toGeminiRequest, beyond: 'request' },
      'count response': { type: 'CountTokensResponse', file: GENAI },
      model: { type: 'Model', file: GENAI, toWire: toGeminiModel },
    },
  },
};

/** With what stands in recordings only. @type {Record<string, { package: string, sections: Record<string, Section> }>} */
export const SOURCES = Object.fromEntries(
  Object.entries(DECLARED).map(([protocol, source]) => {
    const met = Object.keys(VOCABULARY[protocol] ?? {}).map((section) => [`${section}${MET}`, { type: '', file: '' }]);
    return [protocol, { ...source, sections: { ...source.sections, ...Object.fromEntries(met) } }];
  }),
);

/** @param {string} protocol */
export function packageOf(protocol) {
  const name = SOURCES[protocol]?.package ?? '';
  return { name, version: versionOf(name) };
}

/** @type {Map<string, Field[]>} */
const read = new Map();

/** The fields that a section decides. @param {string} protocol @param {string} section @returns {Field[]} */
export function readFields(protocol, section) {
  const { beyond } = sectionOf(protocol, section);
  const told = new Set(beyond && allFields(protocol, beyond).map(({ path }) => path));
  return allFields(protocol, section).filter(({ path }) => !told.has(path));
}

/** Those told elsewhere too. @param {string} protocol @param {string} section @returns {Field[]} */
function allFields(protocol, section) {
  const key = `${protocol} ${section}`;
  const fields = read.get(key) ?? readSection(protocol, section);
  read.set(key, fields);
  return fields;
}

/** @param {string} protocol @param {string} section @returns {Section} */
function sectionOf(protocol, section) {
  const found = SOURCES[protocol]?.sections[section];
  if (!found) throw new Error(`no section ${protocol} ${section}`);
  return found;
}

/** @param {string} protocol @param {string} section @returns {Field[]} */
function readSection(protocol, section) {
  if (section.endsWith(MET)) return readVocabulary(protocol, section.replace(MET, ''));
  const { type, file, known, toWire = (fields) => fields } = sectionOf(protocol, section);
  const stopAt = new Set(known && allFields(protocol, known).map(({ owner }) => owner));
  return toWire(fieldsOf(rootPlace(`${SOURCES[protocol]?.package}/${file}`, type), { stopAt }));
}

/** @param {string} protocol @param {string} section @returns {Field[]} */
function readVocabulary(protocol, section) {
  const declared = readFields(protocol, section);
  return (VOCABULARY[protocol]?.[section] ?? []).map((entry) => {
    const [path = '', kind = ''] = entry.split(':');
    const cut = path.lastIndexOf('.');
    const parent = path.slice(0, Math.max(cut, 0));
    const sibling = declared.find((field) => field.parent === parent);
    if (!sibling) throw new Error(`${protocol} ${section}: nothing is declared in ${parent}`);
    const steps = [...sibling.steps.slice(0, -1), { name: path.slice(cut + 1), list: false, label: '' }];
    const shapes = [/** @type {const} */ ({ kind: 'met', holds: kind })];
    return { path, parent, owner: sibling.owner, steps, shapes, optional: true, constant: false };
  });
}
