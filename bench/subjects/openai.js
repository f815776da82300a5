import { createRepairFetch } from '@sluice/core/fetch';
import OpenAI from 'openai';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';

const params = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hi' }] };

async function readResult(runner) {
  const { message } = (await runner.finalChatCompletion()).choices[0];
  return { text: message.content ?? '', args: (message.tool_calls ?? []).map((call) => call.function.arguments) };
}

/** The helper behind `stream()`, given the chunks as objects: no HTTP, no SSE, no JSON. */
export function accumulate({ chunks }) {
  const source = { controller: new AbortController(), [Symbol.asyncIterator]: () => iterate(chunks) };
  const client = { chat: { completions: { create: async () => source } } };
  return () => readResult(ChatCompletionStream.createChatCompletion(client, params));
}

async function* iterate(chunks) {
  yield* chunks;
}

export function endToEnd({ response }) {
  return readWith(async () => response());
}

/** The same with the responses repaired: nothing is wrong with them, so this is the cost of looking. */
export function endToEndRepaired({ response }) {
  return readWith(createRepairFetch({ fetch: async () => response() }));
}

function readWith(fetch) {
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://in-process.invalid/v1', fetch });
  return () => readResult(client.chat.completions.stream(params));
}
