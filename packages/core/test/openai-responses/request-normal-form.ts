import { isObject, type JsonObject } from '../../src/json/json.ts';

/** A difference that Responses to canonical to Responses may make. `apply` makes it in a copy of the source. */
export interface Normalisation {
  name: string;
  reason: string;
  apply(body: JsonObject): void;
}

const itemsOf = (body: JsonObject): JsonObject[] => (Array.isArray(body['input']) ? body['input'].filter(isObject) : []);
const messagesOf = (body: JsonObject): JsonObject[] => itemsOf(body).filter(({ type }) => type === 'message');
const partsOf = (item: JsonObject, name = 'content'): JsonObject[] =>
  Array.isArray(item[name]) ? (item[name] as unknown[]).filter(isObject) : [];
const toolsOf = (body: JsonObject): JsonObject[] => (Array.isArray(body['tools']) ? body['tools'].filter(isObject) : []);

function dropNulls(object: JsonObject): void {
  for (const key of Object.keys(object)) if (object[key] === null) delete object[key];
}

export const NORMALISATIONS: readonly Normalisation[] = [
  {
    name: 'the input is a list',
    reason: 'content is always written as an array',
    apply(body) {
      if (typeof body['input'] === 'string') body['input'] = [{ role: 'user', content: body['input'] }];
    },
  },
  {
    name: 'null is absence',
    reason: 'a field that is null says nothing',
    apply(body) {
      dropNulls(body);
      for (const item of itemsOf(body)) {
        dropNulls(item);
        for (const part of partsOf(item)) dropNulls(part);
      }
      for (const tool of toolsOf(body)) dropNulls(tool);
    },
  },
  {
    name: 'a message says that it is one',
    reason: 'the short form of the API is only for typing',
    apply(body) {
      for (const item of itemsOf(body)) if (item['role'] !== undefined) item['type'] ??= 'message';
    },
  },
  {
    name: 'content is a list',
    reason: 'P39: the assistant says output_text, everyone else input_text',
    apply(body) {
      for (const item of messagesOf(body)) {
        const type = item['role'] === 'assistant' ? 'output_text' : 'input_text';
        if (typeof item['content'] === 'string')
          item['content'] = item['content'] === '' ? [] : [{ type, text: item['content'] }];
      }
    },
  },
  {
    name: 'what is empty says nothing',
    reason: 'docs/canonical.md, blocks: decoders make no empty blocks',
    apply(body) {
      if (body['instructions'] === '') delete body['instructions'];
      for (const item of itemsOf(body)) {
        if (item['type'] === 'reasoning' && partsOf(item).length === 0) delete item['content'];
        for (const part of partsOf(item))
          if (Array.isArray(part['logprobs']) && part['logprobs'].length === 0) delete part['logprobs'];
      }
    },
  },
  {
    name: 'what the assistant said has annotations, and a status when it has an id',
    reason: 'the official types require both',
    apply(body) {
      for (const item of messagesOf(body)) {
        if (item['role'] !== 'assistant') continue;
        if (item['id'] !== undefined) item['status'] ??= 'completed';
        for (const part of partsOf(item)) if (part['type'] === 'output_text') part['annotations'] ??= [];
      }
    },
  },
  {
    name: 'an image has a detail',
    reason: 'required by the type, auto by default',
    apply(body) {
      for (const item of itemsOf(body))
        for (const part of [...partsOf(item), ...partsOf(item, 'output')])
          if (part['type'] === 'input_image') part['detail'] ??= 'auto';
    },
  },
  {
    name: 'at least 16 tokens',
    reason: 'P67: the API refuses less',
    apply(body) {
      if (typeof body['max_output_tokens'] === 'number') body['max_output_tokens'] = Math.max(16, body['max_output_tokens']);
    },
  },
  {
    name: 'ids of items have their prefix',
    reason: 'P23: others are refused, and left out',
    apply(body) {
      const prefixes: JsonObject = { message: 'msg_', reasoning: 'rs_', function_call: 'fc_', custom_tool_call: 'ctc_' };
      for (const item of itemsOf(body)) {
        const prefix = prefixes[String(item['type'])];
        if (typeof prefix === 'string' && typeof item['id'] === 'string' && !item['id'].startsWith(prefix)) delete item['id'];
      }
    },
  },
  {
    name: 'a function is flat',
    reason: 'chat nests it; the API of Responses does not',
    apply(body) {
      const flat = (tool: JsonObject): JsonObject => {
        const { function: nested, ...rest } = tool;
        return isObject(nested) ? { ...nested, ...rest } : tool;
      };
      if (Array.isArray(body['tools'])) body['tools'] = toolsOf(body).map(flat);
    },
  },
];
