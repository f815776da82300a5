import { streamText } from 'ai';
import { expect, test } from 'vitest';
import { serve } from '../../../test/frameworks.ts';
import { createSluice } from '../src/provider.ts';
import { createTools } from './readers.ts';

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const called = (name: string): object => ({
  tool_calls: [{ index: 0, id: '', type: 'function', function: { name, arguments: '{}' } }],
});

test('createSluice repairs what the AI SDK reads, and reports it', async () => {
  const body = [
    chunk({ role: 'assistant' }),
    chunk(called('add')),
    chunk(called('sub')),
    chunk({}, 'tool_calls'),
    'data: [DONE]\n\n',
  ];
  const found: string[] = [];
  const provider = createSluice({
    baseURL: 'http://llm.example/v1',
    fetch: serve(body.map((text) => new TextEncoder().encode(text))),
    repair: { onFinding: ({ rule }) => found.push(rule) },
  });
  const { toolCalls } = streamText({ model: provider('m'), prompt: 'hi', tools: createTools(['add', 'sub']) });
  expect((await toolCalls).map(({ toolName }) => toolName)).toEqual(['add', 'sub']);
  expect(new Set((await toolCalls).map(({ toolCallId }) => toolCallId)).size).toBe(2);
  expect(provider('m').provider).toBe('sluice.chat');
  expect(found).not.toEqual([]);
});
