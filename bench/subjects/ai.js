import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { repairedFetch } from '@sluice/ai-sdk';
import { jsonSchema, streamText, tool } from 'ai';

/** Tools by the names that the streams call: fn, fn0, fn1, … */
const anyInput = tool({ description: '', inputSchema: jsonSchema({ type: 'object' }) });
const tools = Object.fromEntries(['fn', ...Array.from({ length: 64 }, (_, i) => `fn${i}`)].map((name) => [name, anyInput]));

async function run(model) {
  const result = streamText({ model, prompt: 'hi', tools, onError: () => {} });
  const [text, calls] = [await result.text, await result.toolCalls];
  return { text, args: calls.map((call) => JSON.stringify(call.input)) };
}

/** streamText over a model that has its parts ready. */
export function accumulate({ chunks }) {
  const parts = buildParts(chunks);
  const model = {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doStream: async () => ({ stream: ReadableStream.from(parts) }),
  };
  return () => run(model);
}

export function endToEnd({ response }) {
  return readWith(async () => response());
}

/** The same with the responses repaired: nothing is wrong with them, so this is the cost of looking. */
export function endToEndRepaired({ response }) {
  return readWith(repairedFetch({ fetch: async () => response() }));
}

function readWith(fetch) {
  const provider = createOpenAICompatible({
    name: 'bench',
    apiKey: 'none',
    baseURL: 'http://in-process.invalid/v1',
    fetch,
  });
  return () => run(provider('bench'));
}

/** The stream as the parts of a LanguageModelV3: the model has to put the calls together itself. */
function buildParts(chunks) {
  const parts = [{ type: 'stream-start', warnings: [] }];
  const calls = new Map();
  let isTextOpen = false;
  for (const delta of chunks.map((chunk) => chunk.choices[0]?.delta ?? {})) {
    if (delta.content) {
      if (!isTextOpen) parts.push({ type: 'text-start', id: '0' });
      isTextOpen = true;
      parts.push({ type: 'text-delta', id: '0', delta: delta.content });
    }
    for (const entry of delta.tool_calls ?? []) {
      if (entry.id) {
        calls.set(entry.index, { id: entry.id, toolName: entry.function.name, input: '' });
        parts.push({ type: 'tool-input-start', id: entry.id, toolName: entry.function.name });
      }
      const call = calls.get(entry.index);
      call.input += entry.function.arguments;
      parts.push({ type: 'tool-input-delta', id: call.id, delta: entry.function.arguments });
    }
  }
  if (isTextOpen) parts.push({ type: 'text-end', id: '0' });
  for (const { id, toolName, input } of calls.values()) {
    parts.push({ type: 'tool-input-end', id }, { type: 'tool-call', toolCallId: id, toolName, input });
  }
  const tokens = { total: 1 };
  parts.push({
    type: 'finish',
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: { inputTokens: tokens, outputTokens: tokens },
  });
  return parts;
}
