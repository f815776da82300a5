import OpenAI from 'openai';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';

const params = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hi' }] };

async function resultOf(runner) {
  const { message } = (await runner.finalChatCompletion()).choices[0];
  return { text: message.content ?? '', args: (message.tool_calls ?? []).map((call) => call.function.arguments) };
}

/** The helper behind `stream()`, given the chunks as objects: no HTTP, no SSE, no JSON. */
export function accumulate({ chunks }) {
  const source = { controller: new AbortController(), [Symbol.asyncIterator]: () => iterate(chunks) };
  const client = { chat: { completions: { create: async () => source } } };
  return () => resultOf(ChatCompletionStream.createChatCompletion(client, params));
}

async function* iterate(chunks) {
  yield* chunks;
}

export function endToEnd({ response }) {
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://in-process.invalid/v1', fetch: async () => response() });
  return () => resultOf(client.chat.completions.stream(params));
}
