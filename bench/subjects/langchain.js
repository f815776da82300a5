import { AIMessageChunk } from '@langchain/core/messages';
import { concat } from '@langchain/core/utils/stream';
import { ChatOpenAI } from '@langchain/openai';
import { ChunkConcat, concatChunks, createRepairFetch } from '@sluice/langchain';

function readResult(message) {
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
    return readResult(whole);
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

/** The same by the linear concat of the adapter. */
export function accumulateLinear({ chunks }) {
  return () => {
    const whole = new ChunkConcat();
    for (const chunk of chunks) {
      const delta = chunk.choices[0]?.delta;
      if (delta) whole.push(toMessage(delta));
    }
    return readResult(whole.end());
  };
}

const createModel = (fetch) =>
  new ChatOpenAI({
    model: 'gpt-4o-mini',
    apiKey: 'none',
    maxRetries: 0,
    configuration: { baseURL: 'http://in-process.invalid/v1', fetch },
  });

/** With the responses repaired and the linear concat of the adapter. */
export function endToEndRepaired({ response }) {
  const model = createModel(createRepairFetch({ fetch: async () => response() }));
  return async () => readResult(await concatChunks(await model.stream('hi')));
}

export function endToEnd({ response }) {
  const model = createModel(async () => response());
  return async () => {
    let whole;
    for await (const chunk of await model.stream('hi')) whole = whole === undefined ? chunk : concat(whole, chunk);
    return readResult(whole);
  };
}
