import { isObject, type JsonObject } from '../../src/json/json.ts';

/** A difference that Anthropic to canonical to Anthropic may make. `apply` makes it in a copy of the source. */
export interface Normalisation {
  name: string;
  reason: string;
  apply(body: JsonObject): void;
}

const listOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);
const messagesOf = (body: JsonObject): JsonObject[] => listOf(body['messages']);

/** Every block of the conversation, those inside of others too; not what the provider's own tools answered. */
function* blocksIn(content: unknown): Iterable<JsonObject> {
  for (const block of listOf(content)) {
    if (String(block['type']).endsWith('_tool_result')) continue;
    yield block;
    yield* blocksIn(block['content']);
    yield* blocksIn(isObject(block['source']) ? block['source']['content'] : undefined);
  }
}

const allBlocks = (body: JsonObject): JsonObject[] => messagesOf(body).flatMap(({ content }) => [...blocksIn(content)]);

export const NORMALISATIONS: readonly Normalisation[] = [
  {
    name: 'model of the path',
    reason: 'Bedrock and Vertex name the model in the path; the body says it afterwards',
    apply(body) {
      body['model'] ??= 'model-of-the-path';
    },
  },
  {
    name: 'content is a list',
    reason: 'content is always written as an array',
    apply(body) {
      for (const message of messagesOf(body))
        if (typeof message['content'] === 'string') message['content'] = [{ type: 'text', text: message['content'] }];
    },
  },
  {
    name: 'one plain instruction is a string',
    reason: 'a string if there is one plain block, else an array',
    apply(body) {
      const [first, ...rest] = listOf(body['system']);
      if (first && rest.length === 0 && Object.keys(first).length === 2) body['system'] = first['text'];
    },
  },
  {
    name: 'empty instructions',
    reason: 'instructions of nothing but white space are refused',
    apply(body) {
      if (body['system'] === '' || (Array.isArray(body['system']) && body['system'].length === 0)) delete body['system'];
    },
  },
  {
    name: 'neighbours are one turn',
    reason: 'P01, P11: user and assistant take turns',
    apply(body) {
      const merged: JsonObject[] = [];
      for (const message of messagesOf(body)) {
        const last = merged.at(-1);
        if (last && last['role'] === message['role'] && message['role'] !== 'system')
          last['content'] = [...listOf(last['content']), ...listOf(message['content'])];
        else merged.push(message);
      }
      body['messages'] = merged;
    },
  },
  {
    name: 'the user speaks first',
    reason: 'P12: a conversation that the assistant begins gets a word of the user before it',
    apply(body) {
      const messages = messagesOf(body);
      if (messages[0]?.['role'] === 'assistant')
        body['messages'] = [{ role: 'user', content: [{ type: 'text', text: '(continued)' }] }, ...messages];
    },
  },
  {
    name: 'a tool says only what is not usual',
    reason: '`custom` is what a tool without a type is, and an empty description says nothing',
    apply(body) {
      for (const tool of listOf(body['tools'])) {
        if (tool['type'] === 'custom') delete tool['type'];
        if (tool['description'] === '') delete tool['description'];
      }
    },
  },
  {
    name: 'direct calls',
    reason: 'the caller of a call is the model, unless it says otherwise',
    apply(body) {
      for (const block of allBlocks(body))
        if (isObject(block['caller']) && block['caller']['type'] === 'direct') delete block['caller'];
    },
  },
];
