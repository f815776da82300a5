/** The adapter for the AI SDK with its next major: `fetch` and middleware, over a stream with an index that is a string. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { repairedFetch, repairMiddleware } from '@sluice/ai-sdk';
import { jsonSchema, streamText, tool, wrapLanguageModel } from 'ai';
import data from './data.mjs';

const broken = data.streams['openai-chat'].replaceAll('"tool_calls":[{"index":1,', '"tool_calls":[{"index":"1",');
const send = async () => new Response(broken, { headers: { 'content-type': 'text/event-stream' } });

async function read(fetch, middleware) {
  const provider = createOpenAICompatible({ name: 'test', apiKey: 'none', baseURL: 'http://llm.example/v1', fetch });
  const plain = provider.chatModel('m-1');
  const model = middleware ? wrapLanguageModel({ model: plain, middleware }) : plain;
  const anyInput = tool({ inputSchema: jsonSchema({ type: 'object' }) });
  const result = streamText({
    model,
    prompt: 'hi',
    tools: { get_weather: anyInput, get_time: anyInput },
    maxRetries: 0,
    onError: () => undefined,
  });
  try {
    return JSON.stringify((await result.toolCalls).map(({ toolName, input }) => [toolName, input]));
  } catch (error) {
    return `throws: ${error}`;
  }
}

const EXPECTED = JSON.stringify([
  ['get_weather', { city: 'Paris' }],
  ['get_time', { zone: 'CET' }],
]);

const failures = [];
const without = await read(send);
if (without === EXPECTED) failures.push('the stream is read correctly without the repair');
for (const [name, middleware] of [
  ['fetch', undefined],
  ['fetch and middleware', repairMiddleware()],
]) {
  const found = await read(repairedFetch({ fetch: send }), middleware);
  if (found !== EXPECTED) failures.push(`${name}: ${found}`);
}
console.log(JSON.stringify({ counts: { checks: 3 }, failures }));
