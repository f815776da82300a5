import { describe, expect, test } from 'vitest';
import { assemble, bytesOf, splitEvery, validate } from '../../../../test/run.ts';
import { normalizeChoice } from '../../src/accumulate/chat-delta.ts';
import { ChatAccumulator, createAccumulator } from '../../src/accumulate/index.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import type { Codec } from '../../src/codec/protocol.ts';
import { convertResponse } from '../../src/engine/response.ts';
import { createStreamConverter } from '../../src/engine/stream.ts';
import { convertStreamToResponse } from '../../src/engine/whole.ts';
import { type AccumulatedMessage, PROTOCOLS } from '../../src/index.ts';
import { anthropicMessagesCodec } from '../../src/protocols/anthropic-messages/codec.ts';
import { geminiCodec } from '../../src/protocols/gemini/codec.ts';
import { openaiChatCodec } from '../../src/protocols/openai-chat/codec.ts';
import { openaiResponsesCodec } from '../../src/protocols/openai-responses/codec.ts';

type Json = Record<string, unknown>;

// Responses in forms that no official document has, or that were read wrong: each as a stream and as a whole body, converted to all protocols.

const CODECS = [openaiChatCodec, anthropicMessagesCodec, openaiResponsesCodec, geminiCodec] as const;
const ALL = Object.values(PROTOCOLS);

interface Row {
  name: string;
  from: Codec;
  /** Payloads of the stream. */
  stream?: Json[];
  body?: Json;
  want: Partial<AccumulatedMessage>;
  /** The same for a client of that protocol, where it differs. */
  as?: Partial<Record<string, Partial<AccumulatedMessage>>>;
}

const HEAD = { id: 'r1', object: 'chat.completion.chunk', created: 5, model: 'm' };
const chat = (choice: Json): Json => ({ ...HEAD, choices: [{ index: 0, finish_reason: null, ...choice }] });
const deltas = (...contents: string[]): Json[] => [
  ...contents.map((content) => chat({ delta: { content } })),
  chat({ delta: {}, finish_reason: 'stop' }),
];
const whole = (choice: Json): Json => ({ ...HEAD, object: 'chat.completion', choices: [{ index: 0, ...choice }] });

const messageStart = {
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'c', content: [] },
};
const anthropicText = (text: string, delta: Json): Json[] => [
  messageStart,
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta, usage: { output_tokens: 3 } },
  { type: 'message_stop' },
];
const anthropicBody = (text: string, fields: Json): Json => ({
  ...messageStart.message,
  content: [{ type: 'text', text }],
  usage: { input_tokens: 1, output_tokens: 3 },
  ...fields,
});

const CLOUDFLARE = { name: 'Ada', age: 36 };
const AZURE_FOUND = { role: 'tool', content: '{"citations":[],"intent":"x"}' };

const ROWS: Row[] = [
  {
    name: 'content that is a JSON object (Cloudflare) is text: its JSON',
    from: openaiChatCodec,
    stream: [chat({ delta: { role: 'assistant', content: CLOUDFLARE } }), chat({ delta: {}, finish_reason: 'stop' })],
    body: whole({ message: { role: 'assistant', content: CLOUDFLARE }, finish_reason: 'stop' }),
    want: { text: JSON.stringify(CLOUDFLARE), finish_reason: 'stop' },
  },
  {
    name: 'content that is a JSON object with a type of its own is text, too',
    from: openaiChatCodec,
    body: whole({ message: { role: 'assistant', content: { type: 'circle', text: 'x' } }, finish_reason: 'stop' }),
    want: { text: '{"type":"circle","text":"x"}' },
  },
  {
    name: 'Azure on your data: messages in place of a delta',
    from: openaiChatCodec,
    stream: [
      chat({ messages: [{ index: 0, delta: AZURE_FOUND, end_turn: false }] }),
      chat({ messages: [{ index: 1, delta: { role: 'assistant' }, end_turn: false }] }),
      chat({ messages: [{ index: 1, delta: { content: 'Hello' }, end_turn: false }] }),
      chat({ messages: [{ index: 1, delta: { content: ' there' }, end_turn: false }] }),
      chat({ messages: [{ index: 1, delta: { content: '[DONE]' }, end_turn: true }] }),
    ],
    body: whole({
      messages: [
        { index: 0, ...AZURE_FOUND, end_turn: false },
        { index: 1, role: 'assistant', content: 'Hello there', end_turn: true },
      ],
    }),
    want: { text: 'Hello there', finish_reason: 'stop' },
  },
  {
    name: 'every delta repeats all the text so far',
    from: openaiChatCodec,
    stream: deltas('Hel', 'Hello', 'Hello wor', 'Hello world, h', 'Hello world, how are you?', 'Hello world, how are you?'),
    want: { text: 'Hello world, how are you?', finish_reason: 'stop' },
  },
  {
    name: 'three short deltas repeat all the text so far',
    from: openaiChatCodec,
    stream: deltas('It', 'It is', 'It is 4.'),
    want: { text: 'It is 4.' },
  },
  {
    name: 'snapshots before a call',
    from: openaiChatCodec,
    stream: [
      ...deltas('I', 'I look', 'I look it up').slice(0, 3),
      chat({ delta: { tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] } }),
      chat({ delta: {}, finish_reason: 'tool_calls' }),
    ],
    want: { text: 'I look it up', finish_reason: 'tool_calls' },
  },
  {
    name: 'a text that repeats itself is no snapshot',
    from: openaiChatCodec,
    stream: deltas('ha', 'haha', 'hahaha', 'hahahaha, stop!'),
    want: { text: 'hahahahahahahahahaha, stop!' },
  },
  {
    name: 'lines of one character are no snapshot',
    from: openaiChatCodec,
    stream: deltas('----', '-----', '------', '-------- the end'),
    want: { text: '----------------------- the end' },
  },
  {
    name: 'two deltas of which one begins like the other are pieces',
    from: openaiChatCodec,
    stream: deltas('Hi', 'Hi! How are you?'),
    want: { text: 'HiHi! How are you?' },
  },
  {
    name: 'pieces after a doubtful beginning are pieces',
    from: openaiChatCodec,
    stream: deltas('a', 'ab', 'abracadabra', ' and', ' and so on'),
    want: { text: 'aababracadabra and and so on' },
  },
  {
    name: 'deltas with log probabilities are pieces',
    from: openaiChatCodec,
    stream: ['He', 'Hello', 'Hello world and all']
      .map((content) => chat({ delta: { content }, logprobs: { content: [{ token: content, logprob: 0 }] } }))
      .concat(chat({ delta: {}, finish_reason: 'stop' })),
    want: { text: 'HeHelloHello world and all' },
  },
  {
    name: 'finish_details in place of finish_reason',
    from: openaiChatCodec,
    stream: [chat({ delta: { content: 'Hello' } }), chat({ delta: {}, finish_details: { type: 'max_tokens' } })],
    body: whole({ message: { role: 'assistant', content: 'Hello' }, finish_details: { type: 'max_tokens' } }),
    want: { text: 'Hello', finish_reason: 'length' },
  },
  {
    name: 'finish_details beside the last text',
    from: openaiChatCodec,
    stream: [
      chat({ delta: { content: 'Hel' } }),
      chat({ delta: { content: 'lo' }, finish_details: { type: 'stop', stop: '<|x|>' } }),
    ],
    want: { text: 'Hello', finish_reason: 'stop' },
  },
  {
    name: 'a refusal of Anthropic with partial text is no plain finish',
    from: anthropicMessagesCodec,
    stream: anthropicText('To make', { stop_reason: 'refusal', stop_sequence: null }),
    body: anthropicBody('To make', { stop_reason: 'refusal' }),
    want: { text: 'To make', finish_reason: 'content_filter' },
  },
  {
    name: 'id and model of response.completed count when response.created is missing',
    from: openaiResponsesCodec,
    stream: [
      { type: 'response.output_text.delta', item_id: 'i1', output_index: 0, content_index: 0, delta: 'Hi' },
      {
        type: 'response.completed',
        response: {
          id: 'resp_9',
          object: 'response',
          created_at: 7,
          model: 'gpt-x',
          status: 'completed',
          output: [{ type: 'message', id: 'i1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }],
        },
      },
    ],
    want: { text: 'Hi', finish_reason: 'stop' },
  },
  {
    name: 'text before a malformed call of Gemini is kept',
    from: geminiCodec,
    body: {
      candidates: [
        { content: { role: 'model', parts: [{ text: 'Let me see.' }] }, finishReason: 'MALFORMED_FUNCTION_CALL', index: 0 },
      ],
      responseId: 'r',
      modelVersion: 'g',
    },
    want: { text: 'Let me see.', finish_reason: 'error' },
    as: {
      'openai-chat': { text: 'Let me see.', finish_reason: 'length' },
      'anthropic-messages': { text: 'Let me see.', finish_reason: 'length' },
      'openai-responses': { text: 'Let me see.', finish_reason: 'length' },
    },
  },
  {
    name: 'the obfuscation of a chunk is not a field of the message',
    from: openaiChatCodec,
    stream: deltas('Hi', ' you').map((chunk) => ({ ...chunk, obfuscation: 'aB3' })),
    want: { text: 'Hi you' },
  },
];

const frame = (payload: Json): string =>
  `${typeof payload['type'] === 'string' ? `event: ${payload['type']}\n` : ''}data: ${JSON.stringify(payload)}\n\n`;

const framed = (from: Codec, payloads: readonly Json[]): Uint8Array =>
  bytesOf([...payloads.map(frame), from.id === 'openai-chat' ? 'data: [DONE]\n\n' : ''].join(''));

const streamed = ROWS.flatMap(({ stream, ...row }) => (stream ? [{ ...row, bytes: framed(row.from, stream) }] : []));
const bodies = ROWS.flatMap(({ body, ...row }) => (body ? [{ ...row, body }] : []));

describe.each(streamed)('$name', ({ from, bytes, want, as = {} }) => {
  test('in a stream', () => {
    expect(assemble(from, [bytes])).toMatchObject(want);
    expect(validate(from, [bytes])).toBeGreaterThan(0);
  });

  test('byte by byte', () => {
    expect(assemble(from, splitEvery(bytes, 1))).toEqual(assemble(from, [bytes]));
  });

  test('without a label', () => {
    expect(assemble(ALL, [bytes]).protocol).toBe(from.id);
  });

  test.each(CODECS)('as a stream of $id', (to) => {
    const converter = createStreamConverter({ from, to });
    const written = splitEvery(bytes, 40).flatMap((piece) => [...converter.push(piece)]);
    written.push(...converter.end());
    expect(assemble(to, written)).toMatchObject(as[to.id] ?? want);
  });

  test.each(CODECS)('as a body of $id', (to) => {
    const { body } = convertStreamToResponse([bytes], { from, to });
    expect(assemble(to, [bytesOf(JSON.stringify(body))])).toMatchObject(as[to.id] ?? want);
  });
});

describe.each(bodies)('$name', ({ from, body, want, as = {} }) => {
  test('in a whole body', () => {
    expect(assemble(from, [bytesOf(JSON.stringify(body))])).toMatchObject(want);
  });

  test.each(CODECS)('as a body of $id', (to) => {
    const converted = convertResponse(body, { from, to });
    expect(assemble(to, [bytesOf(JSON.stringify(converted.body))])).toMatchObject(as[to.id] ?? want);
  });
});

describe('the chat accumulator gives the same result', () => {
  const rows = ROWS.filter(({ from }) => from === openaiChatCodec);

  test.each(rows.flatMap(({ stream, ...row }) => (stream ? [{ ...row, stream }] : [])))('$name', ({ stream, want }) => {
    let accumulator = createAccumulator();
    for (const chunk of stream) {
      accumulator.push(chunk);
      // As if another process went on with the saved state.
      accumulator = ChatAccumulator.fromJSON(JSON.parse(JSON.stringify(accumulator)));
    }
    expect(accumulator.text).toBe(want.text);
    const { choices, ...envelope } = accumulator.finish();
    expect(choices[0]?.message.content).toBe(want.text);
    expect(JSON.stringify(envelope)).not.toContain('obfuscation');
  });

  test.each(rows.flatMap(({ body, ...row }) => (body ? [{ ...row, body }] : [])))('$name, in a body', ({ body, want }) => {
    const accumulator = createAccumulator();
    accumulator.push(body);
    expect(accumulator.text).toBe(want.text);
  });
});

describe('a response that nothing could be read from is an error that names what was seen', () => {
  const finished = chat({ result: { text: 'x' }, finish_reason: 'stop' });
  test.each([
    {
      name: 'choices in another form',
      bytes: framed(openaiChatCodec, [chat({ result: { text: 'x' } }), finished]),
      seen: 'result',
    },
    { name: 'another kind of payload', bytes: framed(openaiChatCodec, [{ output: 'x', took: 3 }]), seen: 'output' },
    {
      name: 'named events of another protocol',
      bytes: bytesOf('event: response.message.delta\ndata: {"messages":[{"role":"assistant","content":[{"text":"x"}]}]}\n\n'),
      seen: 'response.message.delta',
    },
  ])('$name', ({ bytes, seen }) => {
    const { error, finish_reason: finish } = assemble(openaiChatCodec, [bytes]);
    expect(error).toMatchObject({ canonical: 'UPSTREAM_ERROR', code: 'not_a_stream' });
    expect(error?.message).toContain(seen);
    expect(finish).toBeNull();
    expect(() => convertStreamToResponse([bytes], { from: openaiChatCodec, to: anthropicMessagesCodec })).toThrow(seen);
  });

  test('a whole body', () => {
    const body = whole({ result: 'x', finish_reason: 'stop' });
    expect(() => convertResponse(body, { from: openaiChatCodec, to: geminiCodec })).toThrow(CodecError);
    expect(() => convertResponse(body, { from: openaiChatCodec, to: geminiCodec })).toThrow('result');
  });

  test.each([
    { name: 'a role and a finish', stream: [chat({ delta: { role: 'assistant' } }), chat({ delta: {}, finish_reason: 'stop' })] },
    { name: 'an empty text', stream: [chat({ delta: { content: '' } }), chat({ delta: {}, finish_reason: 'stop' })] },
    { name: 'only a finish', stream: [chat({ finish_reason: 'stop' })] },
    {
      name: 'a finish with unknown fields beside an empty delta',
      stream: [chat({ delta: {}, matched_stop: 1, finish_reason: 'stop' })],
    },
  ])('but $name is an empty message', ({ stream }) => {
    expect(assemble(openaiChatCodec, [framed(openaiChatCodec, stream)])).toMatchObject({
      error: null,
      text: '',
      finish_reason: 'stop',
    });
  });

  test('GigaChat v2 is not taken for Responses', () => {
    const bytes = bytesOf(
      'event: response.message.delta\ndata: {"model":"GigaChat-2","messages":[{"content":[{"text":"x"}]}]}\n\n',
    );
    expect(assemble(ALL, [bytes]).protocol).not.toBe('openai-responses');
  });
});

test('text before a broken connection is an error, in a body as in a stream', () => {
  const body = whole({ message: { role: 'assistant', content: 'Let me' }, finish_reason: 'network_error' });
  for (const to of CODECS) expect(() => convertResponse(body, { from: openaiChatCodec, to })).toThrow('aborted the generation');
});

test('a body that was filtered has no message, and is not an error', () => {
  const body = whole({ finish_reason: 'content_filter', content_filter_results: { hate: { filtered: true } } });
  const { response } = convertResponse(body, { from: openaiChatCodec, to: openaiChatCodec });
  expect(response).toMatchObject({ content: [], stop_reason: 'content_filter' });
});

test('what was found by Azure on your data is kept as context', () => {
  const [row] = ROWS.filter(({ name }) => name.startsWith('Azure'));
  const { message } = assemble(openaiChatCodec, [framed(openaiChatCodec, row?.stream ?? [])]);
  expect(message.extensions?.['openai-chat']?.['message']).toMatchObject({ context: { messages: [AZURE_FOUND] } });
});

test('id, model and time of response.completed reach the message', () => {
  const row = ROWS.find(({ name }) => name.includes('response.created is missing'));
  const { message } = assemble(openaiResponsesCodec, [framed(openaiResponsesCodec, row?.stream ?? [])]);
  expect(message).toMatchObject({ id: 'resp_9', model: 'gpt-x', created: 7 });
});

describe('LiteLLM: thinking_blocks keep their signature', () => {
  const block = (thinking: string, signature?: string): Json => ({
    reasoning_content: thinking,
    thinking_blocks: [{ type: 'thinking', thinking, ...(signature !== undefined && { signature }) }],
  });
  const stream = framed(openaiChatCodec, [
    chat({ delta: { role: 'assistant', ...block('Let me ') } }),
    chat({ delta: block('think') }),
    chat({ delta: block('', 'sig-1') }),
    ...deltas('Hi'),
  ]);
  const body = whole({ message: { role: 'assistant', content: 'Hi', ...block('Let me think', 'sig-1') }, finish_reason: 'stop' });
  const blocks = [{ type: 'thinking', thinking: 'Let me think', signature: 'sig-1' }];
  const thinking = {
    type: 'thinking',
    thinking: 'Let me think',
    signature: { origin: 'openai-chat', form: 'signature', value: 'sig-1' },
  };

  test.each([
    ['in a stream', [stream]],
    ['byte by byte', splitEvery(stream, 1)],
    ['in a body', [bytesOf(JSON.stringify(body))]],
  ])('%s', (_, bytes) => {
    const { message, extras } = assemble(openaiChatCodec, bytes);
    expect(message.content[0]).toMatchObject(thinking);
    expect(extras['thinking_blocks']).toEqual(blocks);
  });

  test('in the chat accumulator', () => {
    const accumulator = createAccumulator();
    accumulator.push(body);
    expect(accumulator.finish().choices[0]?.message['thinking_blocks']).toEqual(blocks);
  });

  test('two blocks stay two', () => {
    const two = framed(openaiChatCodec, [
      chat({ delta: block('a') }),
      chat({ delta: block('', 's1') }),
      chat({ delta: block('b') }),
      chat({ delta: block('', 's2') }),
      ...deltas('Hi'),
    ]);
    expect(assemble(openaiChatCodec, [two]).extras['thinking_blocks']).toEqual([
      { type: 'thinking', thinking: 'a', signature: 's1' },
      { type: 'thinking', thinking: 'b', signature: 's2' },
    ]);
  });

  test('for a chat client they go on as they came, once', () => {
    const { body: written } = convertResponse(body, { from: openaiChatCodec, to: openaiChatCodec });
    const { choices } = written as { choices: { message: Json }[] };
    expect(choices[0]?.message).toMatchObject({ thinking_blocks: blocks, reasoning_content: 'Let me think' });
    expect(choices[0]?.message).not.toHaveProperty('reasoning_details');
  });

  test('for an Anthropic client the signature is carried', () => {
    const { body: written } = convertResponse(body, { from: openaiChatCodec, to: anthropicMessagesCodec, provider: 'litellm' });
    const { content } = written as { content: Json[] };
    expect(content[0]).toMatchObject({ type: 'thinking', thinking: 'Let me think' });
    expect(content[0]?.['signature']).toMatch(/^cv1\.openai-chat\.litellm\.signature\.self\./);
  });
});

test.each([
  ['in the delta', '{"messages":[{"index":0,"delta":{"__proto__":{"content":"forged"},"role":"assistant"}}]}'],
  ['in the message', '{"messages":[{"index":0,"__proto__":{"content":"forged"},"role":"assistant"}]}'],
])('a field called __proto__ %s of Azure is data', (_, json) => {
  const { delta } = normalizeChoice(JSON.parse(json));
  expect(Object.getPrototypeOf(delta)).toBe(Object.prototype);
  expect(Object.keys(delta ?? {})).toContain('__proto__');
});
