import { describe, expect, test } from 'vitest';
import type { ProtocolId } from '../packages/core/src/index.ts';
import { assemble, convert } from '../packages/lab/src/prove/wire.ts';

type Json = Record<string, unknown>;

const PROTOCOLS: ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const bytes = (text: string): Uint8Array[] => [new TextEncoder().encode(text)];

const sse = (...payloads: Json[]): Uint8Array[] =>
  bytes(payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join(''));

const chunk = (choices: Json[], more: Json = {}): Json => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_780_000_000,
  model: 'm',
  choices,
  ...more,
});

describe('several choices of which choice 1 opens first', () => {
  const stream = [
    ...sse(
      chunk([{ index: 1, delta: { role: 'assistant', content: 'b' } }]),
      chunk([{ index: 0, delta: { role: 'assistant', content: 'a' } }]),
      chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
      chunk([{ index: 1, delta: {}, finish_reason: 'length' }]),
      chunk([], { system_fingerprint: 'fp', usage: { prompt_tokens: 104, completion_tokens: 98, total_tokens: 202 } }),
    ),
    ...bytes('data: [DONE]\n\n'),
  ];

  test.each(PROTOCOLS)('%s clients get the first choice and the usage', (to) => {
    const features: string[] = [];
    const out = convert('openai-chat', to, stream, ({ feature }) => features.push(feature));
    const { text, finish_reason, usage } = assemble(to, out);
    expect({ text, finish_reason }).toEqual({ text: 'a', finish_reason: 'stop' });
    expect(usage).toMatchObject({ input_tokens: 104, output_tokens: 98 });
    expect(features).not.toContain('usage');
  });

  test('what belongs to the whole message stays', () => {
    const { message } = assemble('openai-chat', stream);
    expect(message).toMatchObject({ system_fingerprint: 'fp', usage: { input_tokens: 104 } });
  });
});

describe('content beside an audio transcript of the same text', () => {
  const message = (transcript: string): Json => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_780_000_000,
    model: 'm',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Hello there.',
          audio: { id: 'audio_1', data: 'AAAA', transcript, expires_at: 1_780_000_999 },
        },
        finish_reason: 'stop',
      },
    ],
  });
  const read = (out: Uint8Array[]): string => assemble('anthropic-messages', out).text;

  test('a whole response has the text once', () => {
    const out = convert('openai-chat', 'anthropic-messages', bytes(JSON.stringify(message('Hello there.'))));
    expect(read(out)).toBe('Hello there.');
  });

  test.each([
    ['the same words', ['Hello ', 'there.'], 'Hello there.'],
    ['other words', ['Hello ', 'you.'], 'Hello there.Hello you.'],
    ['the beginning', ['Hello '], 'Hello there.Hello '],
    ['more words', ['Hello there.', ' Bye.'], 'Hello there.Hello there. Bye.'],
  ])('a stream with %s', (_, pieces, text) => {
    const stream = sse(
      chunk([{ index: 0, delta: { role: 'assistant', content: 'Hello there.' } }]),
      ...pieces.map((transcript) => chunk([{ index: 0, delta: { audio: { id: 'audio_1', transcript } } }])),
      chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
    );
    expect(read(convert('openai-chat', 'anthropic-messages', [...stream, ...bytes('data: [DONE]\n\n')]))).toBe(text);
  });
});

describe('more cached than input tokens', () => {
  const responses = (total?: number): Json => ({
    id: 'resp_1',
    object: 'response',
    created_at: 7,
    model: 'm',
    status: 'completed',
    output: [],
    usage: {
      input_tokens: 293,
      input_tokens_details: { cached_tokens: 387 },
      output_tokens: 58,
      output_tokens_details: { reasoning_tokens: 0 },
      ...(total !== undefined && { total_tokens: total }),
    },
  });
  const gemini = (total?: number): Json => ({
    candidates: [{ content: { role: 'model', parts: [{ text: 'a' }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: 293,
      candidatesTokenCount: 58,
      cachedContentTokenCount: 387,
      ...(total !== undefined && { totalTokenCount: total }),
    },
    modelVersion: 'gemini',
    responseId: 'r',
  });

  test.each<[ProtocolId, (total?: number) => Json]>([
    ['openai-responses', responses],
    ['gemini', gemini],
  ])('%s: the total decides whether they are counted', (protocol, build) => {
    const read = (total?: number) => assemble(protocol, bytes(JSON.stringify(build(total)))).usage;
    const reduced = { input_tokens: 293, output_tokens: 58, cache_read_tokens: 293, uncertain: true };
    const added = { input_tokens: 680, output_tokens: 58, cache_read_tokens: 387, uncertain: true };
    expect(read(351)).toMatchObject(reduced);
    expect(read(738)).toMatchObject(added);
    expect(read()).toMatchObject(added);
  });
});
