import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import { describe, expect, test } from 'vitest';
import { CODECS, convertResponseToStream } from '../../packages/core/src/engine/index.ts';
import {
  accumulate,
  type CanonicalStreamEvent,
  createAccumulator,
  type ProtocolId,
  readEvents,
  type StreamSource,
} from '../../packages/core/src/index.ts';
import { OPENAI_SDKS } from './openai.ts';

/** A message with everything that the SDKs rebuild themselves: reasoning, text with non-ASCII characters, two calls, usage. */
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-5',
  content: [
    { type: 'thinking', thinking: 'Two cities, so two calls.', signature: 'c2ln' },
    { type: 'text', text: 'Ich frage für „Köln“ und 東京 nach. 🙂' },
    { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Köln', unit: 'C' } },
    { type: 'tool_use', id: 'toolu_2', name: 'weather', input: { city: '東京', days: [1, 2, 3] } },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: { input_tokens: 31, output_tokens: 57 },
};

const bodyOf = (protocol: ProtocolId): Uint8Array =>
  convertResponseToStream(MESSAGE, { from: CODECS['anthropic-messages'], to: CODECS[protocol], now: () => 1_700_000_000 }).body;

/** A fetch that answers every request with the stream of a protocol, in pieces that split characters and frames. */
const answerWith = (protocol: ProtocolId) => async (): Promise<Response> => {
  const body = bodyOf(protocol);
  const pieces = Array.from({ length: Math.ceil(body.length / 37) }, (_, i) => body.subarray(i * 37, (i + 1) * 37));
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
};

const options = (protocol: ProtocolId) => ({
  apiKey: 'k',
  baseURL: 'http://127.0.0.1:1/v1',
  fetch: answerWith(protocol),
  maxRetries: 0,
});
const ask = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] };

const genai = (GoogleGenAI: typeof GoogleGenAI1 | typeof GoogleGenAI2) => async (): Promise<AsyncIterable<object>> => {
  const real = globalThis.fetch;
  globalThis.fetch = answerWith('gemini');
  try {
    const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: 'http://127.0.0.1:1' } });
    return await client.models.generateContentStream({ model: 'm', contents: 'Hi' });
  } finally {
    globalThis.fetch = real;
  }
};

const SOURCES: { sdk: string; protocol: ProtocolId; open: () => Promise<AsyncIterable<object>> }[] = [
  ...OPENAI_SDKS.flatMap(({ major, OpenAI }) => [
    {
      sdk: `${major} chat.completions.create`,
      protocol: 'openai-chat' as const,
      open: async () => new OpenAI(options('openai-chat')).chat.completions.create({ ...ask, stream: true }),
    },
    {
      sdk: `${major} chat.completions.stream`,
      protocol: 'openai-chat' as const,
      open: async () => new OpenAI(options('openai-chat')).chat.completions.stream(ask),
    },
    {
      sdk: `${major} responses.create`,
      protocol: 'openai-responses' as const,
      open: async () => new OpenAI(options('openai-responses')).responses.create({ model: 'm', input: 'Hi', stream: true }),
    },
    {
      sdk: `${major} responses.stream`,
      protocol: 'openai-responses' as const,
      open: async () => new OpenAI(options('openai-responses')).responses.stream({ model: 'm', input: 'Hi' }),
    },
  ]),
  {
    sdk: '@anthropic-ai/sdk messages.create',
    protocol: 'anthropic-messages',
    open: async () => new Anthropic(options('anthropic-messages')).messages.create({ ...ask, max_tokens: 9, stream: true }),
  },
  {
    sdk: '@anthropic-ai/sdk messages.stream',
    protocol: 'anthropic-messages',
    open: async () => new Anthropic(options('anthropic-messages')).messages.stream({ ...ask, max_tokens: 9 }),
  },
  { sdk: '@google/genai 1 generateContentStream', protocol: 'gemini', open: genai(GoogleGenAI1) },
  { sdk: '@google/genai 2 generateContentStream', protocol: 'gemini', open: genai(GoogleGenAI2) },
];

const read = async (source: StreamSource, protocol: ProtocolId) => {
  const { diagnostics, ...message } = await accumulate(source, { protocol });
  expect(diagnostics).toEqual([]);
  expect(message).toMatchObject({ complete: true, error: null });
  return message;
};

const collect = async (events: AsyncIterable<CanonicalStreamEvent>): Promise<CanonicalStreamEvent[]> => {
  const found: CanonicalStreamEvent[] = [];
  for await (const event of events) found.push(event);
  return found;
};

describe.each(SOURCES)('the stream of $sdk', ({ protocol, open }) => {
  test('accumulates to the same message as its bytes', async () => {
    expect(await read(await open(), protocol)).toEqual(await read(bodyOf(protocol), protocol));
  });

  test('is recognised without its name', async () => {
    expect(await accumulate(await open())).toMatchObject({ protocol, finish_reason: 'tool_calls' });
  });

  test('has the same events as its bytes', async () => {
    const events = await collect(readEvents(await open(), { protocol }));
    expect(events).toEqual(await collect(readEvents(bodyOf(protocol), { protocol })));
  });

  test('can be pushed into an accumulator', async () => {
    const accumulator = createAccumulator({ protocol });
    for await (const chunk of await open()) accumulator.push(chunk);
    const { diagnostics: _, ...message } = accumulator.finish();
    expect(message).toEqual(await read(bodyOf(protocol), protocol));
  });
});
