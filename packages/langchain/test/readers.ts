import type { AIMessageChunk } from '@langchain/core/messages';
import { concat } from '@langchain/core/utils/stream';
import { ChatOpenAI } from '@langchain/openai';
import type { Fetch } from '@sluice/core/fetch';
import type { FrameworkReader, HeardCalls } from '../../../test/frameworks.ts';
import { createRepairFetch } from '../src/index.ts';

/** A model whose responses come from `fetch`. */
export const createModel = (fetch: Fetch, useResponsesApi: boolean): ChatOpenAI =>
  new ChatOpenAI({
    model: 'm-1',
    apiKey: 'none',
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: 'http://llm.example/v1', fetch },
  });

/** The chunks of a response. */
export async function readChunks(model: ChatOpenAI): Promise<AIMessageChunk[]> {
  const chunks: AIMessageChunk[] = [];
  for await (const chunk of await model.stream('hi')) chunks.push(chunk);
  return chunks;
}

/** What a user gets who concatenates the chunks as the documentation of LangChain shows. */
function hear(chunks: readonly AIMessageChunk[]): HeardCalls {
  const [first, ...others] = chunks;
  if (!first) return { text: '', calls: [], ids: [] };
  const whole = others.reduce((left, right) => concat(left, right), first);
  const calls = [
    ...(whole.tool_calls ?? []).map(({ name, args, id }) => ({ name, input: args, id })),
    ...(whole.invalid_tool_calls ?? []).map(({ name = '', args, id }) => ({ name, input: args, id })),
  ];
  return { text: whole.text, calls, ids: calls.map(({ id }) => id) };
}

const reader = (client: string, protocol: FrameworkReader['protocol'], useResponsesApi: boolean): FrameworkReader => ({
  client,
  protocol,
  read: async (fetch) => hear(await readChunks(createModel(fetch, useResponsesApi))),
  repaired: createRepairFetch,
});

/** `ChatOpenAI` with both of its protocols. */
export const READERS: readonly FrameworkReader[] = [
  reader('ChatOpenAI', 'openai-chat', false),
  reader('ChatOpenAI (responses)', 'openai-responses', true),
];
