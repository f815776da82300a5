import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { AccumulatedMessage } from '@sluice/core';
import type { Fetch } from '@sluice/core/fetch';
import { jsonSchema, type LanguageModel, streamText, type ToolSet, tool } from 'ai';
import type { Heard } from '../../../test/doctor/sdk-readers.ts';
import type { FrameworkReader, HeardCalls } from '../../../test/frameworks.ts';
import { repairedFetch } from '../src/index.ts';

const BASE = 'http://llm.example/v1';

/** Tools by the names that a response calls. */
export function createTools(names: readonly string[]): ToolSet {
  const anyInput = tool({ inputSchema: jsonSchema({ type: 'object' }) });
  // The types of the AI SDK do not fit each other under exactOptionalPropertyTypes.
  return Object.fromEntries(names.map((name) => [name, anyInput])) as ToolSet;
}

/** What a user of `streamText` gets; rejects when it reports an error. */
async function hear(model: LanguageModel, { tool_calls: expected }: AccumulatedMessage): Promise<HeardCalls> {
  const tools = createTools(expected.map(({ name }) => name));
  const result = streamText({ model, prompt: 'hi', tools, maxRetries: 0, onError: () => undefined });
  const heard: Heard = { text: '', calls: [] };
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') heard.text += part.text;
    if (part.type === 'tool-call' && !part.providerExecuted) heard.calls.push({ name: part.toolName, input: part.input });
  }
  const calls = await result.toolCalls;
  return { ...heard, ids: calls.map(({ toolCallId }) => toolCallId) };
}

type ModelFactory = (fetch: Fetch) => LanguageModel;

const reader = (client: string, protocol: FrameworkReader['protocol'], create: ModelFactory): FrameworkReader => ({
  client,
  protocol,
  read: (fetch, message) => hear(create(fetch), message),
  repaired: repairedFetch,
});

const settings = (fetch: Fetch): { fetch: Fetch; apiKey: string; baseURL: string } => ({ fetch, apiKey: 'none', baseURL: BASE });

/** `streamText` with the providers of the four protocols. */
export const READERS: readonly FrameworkReader[] = [
  reader('openai-compatible', 'openai-chat', (fetch) =>
    createOpenAICompatible({ ...settings(fetch), name: 'test' }).chatModel('m-1'),
  ),
  reader('openai (chat)', 'openai-chat', (fetch) => createOpenAI(settings(fetch)).chat('m-1')),
  reader('openai (responses)', 'openai-responses', (fetch) => createOpenAI(settings(fetch)).responses('m-1')),
  reader('anthropic', 'anthropic-messages', (fetch) => createAnthropic(settings(fetch))('claude-sonnet-4-5')),
  reader('google', 'gemini', (fetch) => createGoogleGenerativeAI(settings(fetch))('m-1')),
];
