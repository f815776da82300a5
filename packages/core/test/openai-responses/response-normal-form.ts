import type { Json } from '../../../../test/sdk/responses.ts';
import { isDerivedId } from '../../src/protocols/openai-responses/endpoints.ts';

/** What decode + encode changes of a recorded response, and why. `apply` makes the change in a copy of the source. */
export interface Normalisation {
  name: string;
  reason: string;
  apply(response: Json): void;
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);
const objectOf = (value: unknown): Json => (isObject(value) ? value : {});
const itemsOf = (response: Json, type?: string): Json[] =>
  objects(response['output']).filter((item) => type === undefined || item['type'] === type);

function dropNulls(object: Json): void {
  for (const key of Object.keys(object)) if (object[key] === null) delete object[key];
}

/** Items that are read; all others go as they came. */
const READ = new Set<unknown>(['message', 'reasoning', 'function_call', 'custom_tool_call']);

/** What the official type requires, or the page of the protocol wants written: the defaults where the source left them out. */
const DEFAULTS: Json = {
  background: false,
  metadata: {},
  parallel_tool_calls: true,
  reasoning: { effort: null, summary: null },
  store: false,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  truncation: 'disabled',
};

export const NORMALISATIONS: readonly Normalisation[] = [
  {
    name: 'null is absence',
    reason: 'a field that is null says nothing; the ones that the official type requires are written all the same',
    apply(response) {
      dropNulls(response);
      for (const item of itemsOf(response)) {
        if (READ.has(item['type'])) dropNulls(item);
        for (const part of objects(item['content'])) dropNulls(part);
      }
    },
  },
  {
    name: 'defaults',
    reason: 'fields that the SDK requires are always written',
    apply(response) {
      for (const [name, value] of Object.entries(DEFAULTS)) response[name] ??= value;
      for (const message of itemsOf(response, 'message')) {
        for (const part of objects(message['content'])) {
          if (part['type'] !== 'output_text') continue;
          part['logprobs'] ??= [];
          part['annotations'] ??= [];
        }
      }
    },
  },
  {
    name: 'output_text',
    reason: 'the SDK computes it',
    apply(response) {
      delete response['output_text'];
    },
  },
  {
    name: 'usage',
    reason: 'docs/canonical.md, usage: required details, the total is the sum, a part is at most the whole',
    apply(response) {
      const { usage } = response;
      if (!isObject(usage)) return;
      const input = objectOf(usage['input_tokens_details']);
      const output = objectOf(usage['output_tokens_details']);
      usage['input_tokens_details'] = { cached_tokens: 0, cache_write_tokens: 0, ...input };
      usage['output_tokens_details'] = { reasoning_tokens: 0, ...output };
      usage['total_tokens'] = Number(usage['input_tokens']) + Number(usage['output_tokens']);
    },
  },
  {
    name: 'empty reasoning',
    reason: 'docs/canonical.md, blocks: decoders make no empty blocks',
    apply(response) {
      for (const item of itemsOf(response, 'reasoning')) if (objects(item['content']).length === 0) delete item['content'];
    },
  },
  {
    name: 'empty messages',
    reason: 'docs/canonical.md, blocks: an empty text is no block',
    apply(response) {
      for (const message of itemsOf(response, 'message'))
        message['content'] = objects(message['content']).filter(({ text }) => text !== '');
      response['output'] = itemsOf(response).filter(({ type, content }) => type !== 'message' || objects(content).length > 0);
    },
  },
  {
    name: 'one id for one item',
    reason: 'clients refuse two items with the same id; the second gets a derived one',
    apply(response) {
      const seen = new Set<unknown>();
      for (const item of itemsOf(response)) {
        if (seen.has(item['id'])) delete item['id'];
        seen.add(item['id']);
      }
    },
  },
  {
    name: 'status of items',
    reason: 'an item that is done is completed, or incomplete when the response is',
    apply(response) {
      for (const item of itemsOf(response))
        if (READ.has(item['type']) && item['type'] !== 'reasoning')
          item['status'] = item['status'] === 'incomplete' ? 'incomplete' : 'completed';
    },
  },
];

const applied = new Set<Normalisation>();
export const isSilent = (normalisation: Normalisation): boolean => !applied.has(normalisation);

export function normalForm(source: Json): Json {
  const response = JSON.parse(JSON.stringify(source)) as Json; // -0 is 0
  for (const normalisation of NORMALISATIONS) {
    const before = JSON.stringify(response);
    normalisation.apply(response);
    if (JSON.stringify(response) !== before) applied.add(normalisation);
  }
  return response;
}

/** What was written, without the nulls and the ids that it has to have. */
export function settled(response: Json): Json {
  const copy = JSON.parse(JSON.stringify(response)) as Json;
  dropNulls(copy);
  for (const item of itemsOf(copy)) if (isDerivedId(item['id'])) delete item['id'];
  return copy;
}
