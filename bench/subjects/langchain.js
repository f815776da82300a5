import { AIMessageChunk } from '@langchain/core/messages';
import { concat } from '@langchain/core/utils/stream';
import { ChatOpenAI } from '@langchain/openai';

function resultOf(message) {
  const calls = message?.tool_calls ?? [];
  return { text: message?.content ?? '', args: calls.map((call) => JSON.stringify(call.args)) };
}

/** `concat` of message chunks, as its documentation tells users to accumulate. */
export function accumulate({ chunks }) {
  return () => {
    let whole;
    for (const chunk of chunks) {
      const delta = chunk.choices[0]?.delta;
      if (delta) whole = whole === undefined ? toMessage(delta) : concat(whole, toMessage(delta));
    }
    return resultOf(whole);
  };
}

function toMessage({ content, tool_calls: entries = [] }) {
  const toChunk = ({ index, id, function: body }) => ({
    type: 'tool_call_chunk',
    index,
    id,
    name: body.name,
    args: body.arguments,
  });
  return new AIMessageChunk({ content: content ?? '', tool_call_chunks: entries.map(toChunk) });
}

export function endToEnd({ response }) {
  const model = new ChatOpenAI({
    model: 'gpt-4o-mini',
    apiKey: 'none',
    maxRetries: 0,
    configuration: { baseURL: 'http://in-process.invalid/v1', fetch: async () => response() },
  });
  return async () => {
    let whole;
    for await (const chunk of await model.stream('hi')) whole = whole === undefined ? chunk : concat(whole, chunk);
    return resultOf(whole);
  };
}
