import Anthropic from '@anthropic-ai/sdk';
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';

const params = { model: 'claude-x', max_tokens: 1024, messages: [{ role: 'user', content: 'hi' }] };

async function readResult(runner) {
  const { content } = await runner.finalMessage();
  const textBlocks = content.filter((block) => block.type === 'text');
  const calls = content.filter((block) => block.type === 'tool_use');
  return { text: textBlocks.map((block) => block.text).join(''), args: calls.map((call) => JSON.stringify(call.input)) };
}

/** The helper behind `messages.stream()`, given its own events as objects. */
export function accumulate({ anthropicEvents }) {
  const data = { controller: new AbortController(), [Symbol.asyncIterator]: () => iterate(anthropicEvents) };
  const messages = { create: () => ({ withResponse: async () => ({ response: new Response(''), data }) }) };
  return () => readResult(MessageStream.createMessage(messages, params));
}

/** The helper grows what the start events hold, in place: it gets its own, or the second run would go on with those of the first. */
async function* iterate(events) {
  for (const event of events) yield event.type.endsWith('_start') ? structuredClone(event) : event;
}

export function endToEnd({ anthropicResponse }) {
  const client = new Anthropic({
    apiKey: 'none',
    baseURL: 'http://in-process.invalid',
    fetch: async () => anthropicResponse(),
  });
  return () => readResult(client.messages.stream(params));
}
