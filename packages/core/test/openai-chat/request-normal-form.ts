import { deriveId } from '../../src/accumulate/argument-text.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';

/** A difference that chat to canonical to chat may make. `apply` makes it in a copy of the source. */
export interface Normalisation {
  name: string;
  reason: string;
  apply(body: JsonObject): void;
}

const messagesOf = (body: JsonObject): JsonObject[] => (Array.isArray(body['messages']) ? body['messages'].filter(isObject) : []);
const partsOf = (message: JsonObject): JsonObject[] =>
  Array.isArray(message['content']) ? message['content'].filter(isObject) : [];
const callsOf = (message: JsonObject): JsonObject[] =>
  Array.isArray(message['tool_calls']) ? message['tool_calls'].filter(isObject) : [];
const isPlain = (part: JsonObject): boolean => part['type'] === 'text' && Object.keys(part).length === 2;

function dropNulls(object: JsonObject, keep: readonly string[] = []): void {
  for (const key of Object.keys(object)) if (object[key] === null && !keep.includes(key)) delete object[key];
}

export const NORMALISATIONS: readonly Normalisation[] = [
  {
    name: 'null is absence',
    reason: '#21: a field that is null says nothing',
    apply(body) {
      dropNulls(body);
      for (const message of messagesOf(body)) {
        dropNulls(message, ['content']);
        for (const part of partsOf(message)) dropNulls(part);
      }
    },
  },
  {
    name: 'model of the path',
    reason: 'Azure and hosted endpoints name the model in the path; the body says it afterwards',
    apply(body) {
      body['model'] ??= 'model-of-the-path';
    },
  },
  {
    name: 'one plain text part is a string',
    reason: 'a single plain text block is written as a string',
    apply(body) {
      for (const message of messagesOf(body)) {
        const parts = partsOf(message);
        if (parts.length > 0 && parts.every(isPlain) && (parts.length === 1 || message['role'] === 'assistant'))
          message['content'] = parts.map(({ text }) => text).join('');
      }
    },
  },
  {
    name: 'nothing said beside calls is null',
    reason: 'without text: null beside tool_calls, "" otherwise',
    apply(body) {
      for (const message of messagesOf(body)) {
        if (message['role'] !== 'assistant') continue;
        const { content } = message;
        const isEmpty =
          content === undefined || content === null || content === '' || (Array.isArray(content) && content.length === 0);
        if (isEmpty) message['content'] = callsOf(message).length > 0 ? null : '';
      }
    },
  },
  {
    name: 'stop is a list',
    reason: 'canonical stop_sequences is one (docs/seed-004.md, 4.1)',
    apply(body) {
      if (typeof body['stop'] === 'string') body['stop'] = [body['stop']];
    },
  },
  {
    name: 'usage is always asked for',
    reason: '#31, P96: a stream without it has no usage; the answer hides it from who did not ask',
    apply(body) {
      if (body['stream'] === true) body['stream_options'] = { ...(body['stream_options'] as object), include_usage: true };
      else delete body['stream_options'];
    },
  },
  {
    name: '"any" is "required"',
    reason: 'Mistral knows both words',
    apply(body) {
      if (body['tool_choice'] === 'any') body['tool_choice'] = 'required';
    },
  },
  {
    name: 'functions are tools',
    reason: 'the deprecated fields are never written',
    apply(body) {
      if (Array.isArray(body['functions'])) body['tools'] = body['functions'].map((f) => ({ type: 'function', function: f }));
      if (body['function_call'] !== undefined) body['tool_choice'] = body['function_call'];
      delete body['functions'];
      delete body['function_call'];
    },
  },
  {
    name: 'no choice without tools',
    reason: '#34: the API refuses tool_choice and parallel_tool_calls without tools',
    apply(body) {
      if (Array.isArray(body['tools']) && body['tools'].length > 0) return;
      delete body['tools'];
      delete body['tool_choice'];
      delete body['parallel_tool_calls'];
    },
  },
  {
    name: 'a tool has a type',
    reason: 'the API asks for it',
    apply(body) {
      for (const tool of Array.isArray(body['tools']) ? body['tools'] : []) tool.type ??= 'function';
    },
  },
  {
    name: 'an image is an object',
    reason: 'only Mistral takes the URL alone',
    apply(body) {
      for (const message of messagesOf(body))
        for (const part of partsOf(message))
          if (typeof part['image_url'] === 'string') part['image_url'] = { url: part['image_url'] };
    },
  },
  {
    name: 'a schema has a name',
    reason: '#36: the API asks for it',
    apply(body) {
      const format = body['response_format'];
      if (isObject(format) && isObject(format['json_schema'])) format['json_schema']['name'] ??= 'response';
    },
  },
  {
    name: 'one limit',
    reason: 'max_completion_tokens wins over its deprecated name (docs/seed-004.md, 4.1); the API refuses both',
    apply(body) {
      if (body['max_completion_tokens'] !== undefined) delete body['max_tokens'];
    },
  },
  {
    name: 'calls have ids and results name them',
    reason: 'docs/canonical.md, blocks: an id is never empty; the API requires both',
    apply(body) {
      const open: unknown[] = [];
      messagesOf(body).forEach((message, i) => {
        callsOf(message).forEach((call, k) => {
          call['id'] ??= deriveId('call_', `messages[${i}].tool_calls[${k}]`, String((call['function'] as JsonObject)['name']));
          open.push(call['id']);
        });
        if (message['role'] === 'tool') message['tool_call_id'] ??= open.shift();
      });
    },
  },
];
