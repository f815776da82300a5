import { describe, expect, test } from 'vitest';
import { assemble, bytesOf, splitEvery } from '../../../../test/run.ts';
import { convertResponse } from '../../src/engine/response.ts';
import { convertStreamToResponse } from '../../src/engine/whole.ts';
import type { CanonicalUsage } from '../../src/index.ts';
import { anthropicMessagesCodec } from '../../src/protocols/anthropic-messages/codec.ts';
import { geminiCodec } from '../../src/protocols/gemini/codec.ts';
import { openaiChatCodec } from '../../src/protocols/openai-chat/codec.ts';
import { openaiChat } from '../../src/protocols/openai-chat/index.ts';
import { peekUsage } from '../../src/protocols/openai-chat/response.ts';
import { openaiResponsesCodec } from '../../src/protocols/openai-responses/codec.ts';

type Json = Record<string, unknown>;

interface Row {
  name: string;
  provider?: string;
  model?: string;
  usage: Json;
  want: Omit<CanonicalUsage, 'extensions'>;
}

const details = (reasoning_tokens: number): Json => ({ completion_tokens_details: { reasoning_tokens } });

const ROWS: Row[] = [
  {
    name: 'the Vercel gateway adds reasoning of Gemini to completion_tokens',
    provider: 'vercel-gateway',
    model: 'google/gemini-2.5-flash',
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, ...details(40) },
    want: { input_tokens: 10, output_tokens: 45, reasoning_tokens: 40 },
  },
  {
    name: 'an additive provider adds reasoning also where it is less than completion_tokens',
    provider: 'vercel-gateway',
    model: 'google/gemini-2.5-flash',
    usage: { prompt_tokens: 10, completion_tokens: 50, total_tokens: 60, ...details(40) },
    want: { input_tokens: 10, output_tokens: 90, reasoning_tokens: 40 },
  },
  {
    name: 'an additive provider whose total shows the reasoning is not added up twice',
    provider: 'xai',
    model: 'grok-4',
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 55, ...details(40) },
    want: { input_tokens: 10, output_tokens: 45, reasoning_tokens: 40 },
  },
  {
    name: 'OpenRouter includes reasoning in completion_tokens, even where it reports more',
    provider: 'openrouter',
    model: 'z-ai/glm-4.6',
    usage: { prompt_tokens: 229, completion_tokens: 168, total_tokens: 397, ...details(173) },
    want: { input_tokens: 229, output_tokens: 168, reasoning_tokens: 168 },
  },
  {
    name: 'the profile of OpenRouter overrules the total',
    provider: 'openrouter',
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 22, ...details(4) },
    want: { input_tokens: 10, output_tokens: 5, reasoning_tokens: 4 },
  },
  {
    name: 'without a profile the total adds reasoning',
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 55, ...details(40) },
    want: { input_tokens: 10, output_tokens: 45, reasoning_tokens: 40 },
  },
  {
    name: 'without a profile and with a total that leaves it out, the reported counts stay and are uncertain',
    usage: { prompt_tokens: 4894, completion_tokens: 16, total_tokens: 4910, ...details(19) },
    want: { input_tokens: 4894, output_tokens: 16, reasoning_tokens: 19, uncertain: true },
  },
  {
    name: 'without a profile and without a total, the reported counts stay and are uncertain',
    usage: { prompt_tokens: 10, completion_tokens: 16, reasoning_tokens: 19 },
    want: { input_tokens: 10, output_tokens: 16, reasoning_tokens: 19, uncertain: true },
  },
  {
    name: 'reasoning within completion_tokens is certain',
    usage: { prompt_tokens: 10, completion_tokens: 16, total_tokens: 26, ...details(16) },
    want: { input_tokens: 10, output_tokens: 16, reasoning_tokens: 16 },
  },
  {
    name: 'more cached than prompt tokens (Azure Grok) are reduced to these when the total leaves them out',
    usage: { prompt_tokens: 293, completion_tokens: 58, total_tokens: 351, prompt_tokens_details: { cached_tokens: 387 } },
    want: { input_tokens: 293, output_tokens: 58, cache_read_tokens: 293, uncertain: true },
  },
  {
    name: 'Mistral: num_cached_tokens are reduced as well',
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, num_cached_tokens: 64 },
    want: { input_tokens: 10, output_tokens: 5, cache_read_tokens: 10, uncertain: true },
  },
  {
    name: 'without a total, more cached than prompt tokens are counted beside them',
    usage: { prompt_tokens: 7, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 161 } },
    want: { input_tokens: 168, output_tokens: 8, cache_read_tokens: 161, uncertain: true },
  },
  {
    name: 'cached tokens that the total counts beside the prompt are no output',
    usage: { prompt_tokens: 29, completion_tokens: 6, total_tokens: 192, prompt_tokens_details: { cached_tokens: 157 } },
    want: { input_tokens: 186, output_tokens: 6, cache_read_tokens: 157, uncertain: true },
  },
  {
    name: 'Moonshot: cached_tokens at the top level',
    usage: { prompt_tokens: 19, completion_tokens: 13, total_tokens: 32, cached_tokens: 7 },
    want: { input_tokens: 19, output_tokens: 13, cache_read_tokens: 7 },
  },
  {
    name: 'GigaChat: precached_prompt_tokens',
    usage: { prompt_tokens: 18, completion_tokens: 68, total_tokens: 86, precached_prompt_tokens: 4 },
    want: { input_tokens: 18, output_tokens: 68, cache_read_tokens: 4 },
  },
  {
    name: 'LiteLLM: cache creation in the details and at the top level',
    usage: {
      prompt_tokens: 130,
      completion_tokens: 25,
      total_tokens: 155,
      prompt_tokens_details: {
        cached_tokens: 20,
        cache_creation_tokens: 10,
      },
      cache_creation_input_tokens: 10,
      cache_read_input_tokens: 20,
    },
    want: {
      input_tokens: 130,
      output_tokens: 25,
      cache_read_tokens: 20,
      cache_creation_tokens: 10,
    },
  },
  {
    name: 'a zero in one spelling does not hide the count in another',
    usage: {
      prompt_tokens: 130,
      completion_tokens: 25,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      cache_creation_input_tokens: 10,
      cache_read_input_tokens: 20,
    },
    want: { input_tokens: 130, output_tokens: 25, cache_read_tokens: 20, cache_creation_tokens: 10 },
  },
  {
    name: 'new-api: cached_creation_tokens',
    usage: {
      prompt_tokens: 130,
      completion_tokens: 25,
      prompt_tokens_details: { cached_tokens: 20, cached_creation_tokens: 10 },
    },
    want: {
      input_tokens: 130,
      output_tokens: 25,
      cache_read_tokens: 20,
      cache_creation_tokens: 10,
    },
  },
  {
    name: "Anthropic's own fields leave out what was cached",
    usage: { input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 20, cache_creation_input_tokens: 10 },
    want: { input_tokens: 35, output_tokens: 7, cache_read_tokens: 20, cache_creation_tokens: 10 },
  },
  {
    name: 'input_tokens and output_tokens alone are the whole counts',
    usage: { input_tokens: 13, output_tokens: 8, total_tokens: 21, input_tokens_details: { cached_tokens: 5 } },
    want: { input_tokens: 13, output_tokens: 8, cache_read_tokens: 5 },
  },
];

const MESSAGE = { role: 'assistant', content: 'Hi' };
const HEAD = { id: 'c1', object: 'chat.completion', created: 1, model: 'm' };
const bodyWith = (usage: Json): Json => ({
  ...HEAD,
  choices: [{ index: 0, message: MESSAGE, finish_reason: 'stop' }],
  usage,
});
const frame = (chunk: Json): string => `data: ${JSON.stringify({ ...chunk, object: 'chat.completion.chunk' })}\n\n`;
const streamWith = (usage: Json): Uint8Array => {
  const said = frame({ ...HEAD, choices: [{ index: 0, delta: MESSAGE, finish_reason: null }] });
  const finished = frame({ ...HEAD, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  return bytesOf(`${said}${finished}${frame({ ...HEAD, choices: [], usage })}data: [DONE]\n\n`);
};

const CODECS = [openaiChatCodec, anthropicMessagesCodec, openaiResponsesCodec, geminiCodec];

describe.each(ROWS)('$name', ({ provider, model = '', usage, want }) => {
  const request = { model, messages: [], parameters: {} };
  const options = { from: openaiChatCodec, to: openaiChatCodec, provider, request };

  test('in a whole body', () => {
    const { extensions, ...found } = convertResponse(bodyWith(usage), options).response.usage ?? { extensions: {} };
    expect(found).toEqual(want);
    expect(extensions?.['openai-chat']).toEqual(usage);
  });

  test('in a stream', () => {
    const { extensions: _, ...found } = convertStreamToResponse([streamWith(usage)], options).response.usage ?? {};
    expect(found).toEqual(want);
  });

  test('at a glance', () => {
    const { extensions: _, ...found } =
      peekUsage(bodyWith(usage), openaiChatCodec.profileFor(provider ?? '', model))?.usage ?? {};
    expect(found).toEqual(want);
  });

  test.each(CODECS)('written as $id the counts are not negative and nothing says uncertain', (to) => {
    const { body } = convertResponse(bodyWith(usage), { ...options, to });
    const { usage: written, usageMetadata } = body as { usage?: Json; usageMetadata?: Json };
    const text = JSON.stringify(written ?? usageMetadata);
    expect(text).not.toContain('uncertain');
    expect(text).not.toContain(':-');
    const again = to.response.decode(body, { ...CONTEXT, profile: to.profileFor('') }).usage;
    expect(again?.input_tokens).toBe(want.input_tokens);
    expect(again?.output_tokens).toBe(want.output_tokens);
    expect(again?.cache_read_tokens ?? 0).toBe(want.cache_read_tokens ?? 0);
  });
});

const CONTEXT = { report: () => undefined, note: () => undefined, now: () => 0, newId: (prefix: string) => prefix, policy: {} };

test.each(ROWS.filter(({ provider }) => provider === undefined))('accumulate(), byte by byte: $name', ({ usage, want }) => {
  expect(assemble(openaiChat, splitEvery(streamWith(usage), 1)).usage).toEqual(want);
});

test('a zero never replaces a count of an earlier chunk', () => {
  const chunks = [
    { usage: { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 4 } } },
    { usage: { prompt_tokens: 0, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 0 } } },
  ];
  const text = chunks.map(({ usage }) => `data: ${JSON.stringify({ ...HEAD, choices: [], usage })}\n\n`).join('');
  const found = assemble(openaiChat, [bytesOf(text), streamWith({ total_tokens: 0 })]);
  expect(found.wire_usage).toMatchObject({
    prompt_tokens: 10,
    completion_tokens: 7,
    prompt_tokens_details: { cached_tokens: 4 },
  });
});
