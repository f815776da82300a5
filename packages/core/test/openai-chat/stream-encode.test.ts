import { describe, expect, test } from 'vitest';
import { bodyOf, chatContext, chunksOf, encodeChat, type Json, SDKS } from '../../../../test/sdk/chat.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { CanonicalUsage, ContentBlock, StopReason } from '../../src/canonical/message.ts';
import type { ProtocolId } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest } from '../../src/canonical/request.ts';
import { decodeCarrier } from '../../src/codec/answers.ts';
import { ChatGrammar } from '../../src/protocols/openai-chat/grammar.ts';
import { encodeStream } from '../../src/protocols/openai-chat/stream-encode.ts';

type Events = CanonicalStreamEvent[];

const start = (message: object = {}): Events => [
  { type: 'message_start', message: { id: 'msg_1', model: 'claude', ...message } },
];
const open = (index: number, content_block: ContentBlock, choice?: number): Events => [
  { type: 'content_block_start', index, content_block, ...(choice !== undefined && { choice }) },
];
const delta = (index: number, value: BlockDelta, choice?: number): Events => [
  { type: 'content_block_delta', index, delta: value, ...(choice !== undefined && { choice }) },
];
const close = (index: number, choice?: number): Events => [
  { type: 'content_block_stop', index, ...(choice !== undefined && { choice }) },
];
const finish = (stop_reason: StopReason, more: object = {}): Events => [
  { type: 'message_delta', delta: { stop_reason }, ...more } as CanonicalStreamEvent,
];
const stop: Events = [{ type: 'message_stop' }];

const TEXT: ContentBlock = { type: 'text', text: '' };
const THINKING: ContentBlock = { type: 'thinking', thinking: '' };
const use = (id: string, name: string, rest: object = {}): ContentBlock => ({ type: 'tool_use', id, name, input: {}, ...rest });
const say = (index: number, ...texts: string[]): Events => [
  ...open(index, TEXT),
  ...texts.flatMap((text) => delta(index, { type: 'text_delta', text })),
  ...close(index),
];
const args = (index: number, partial_json: string): Events => delta(index, { type: 'input_json_delta', partial_json });
const USAGE: CanonicalUsage = { input_tokens: 3, output_tokens: 4 };
const WIRE_USAGE = {
  prompt_tokens: 3,
  completion_tokens: 4,
  total_tokens: 7,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
};

const ROLE = { role: 'assistant', content: '' };
const END = { finish: 'stop' };

/** What a chunk says, in short: its delta, and its finish reason when it has one. */
const brief = ({ choices, usage, error }: Json): unknown => {
  const [choice] = (choices ?? []) as Json[];
  if (!choice) return usage ? { usage } : { error };
  const { index, delta: value, finish_reason, logprobs } = choice;
  return {
    ...(index !== 0 && { index }),
    ...(Object.keys(value as Json).length > 0 && { ...(value as Json) }),
    ...(logprobs !== undefined && { logprobs }),
    ...(finish_reason !== null && { finish: finish_reason }),
  };
};
const header = (index: number, id: string, name: string, rest: object = {}): Json => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' }, ...rest }],
});
const piece = (index: number, text: string): Json => ({ tool_calls: [{ index, function: { arguments: text } }] });

interface Row {
  name: string;
  events: Events;
  chunks: unknown[];
  source?: ProtocolId;
  notes?: string[];
}

const ROWS: Row[] = [
  {
    name: 'P103 the role first, text as it comes',
    events: [...start(), ...say(0, 'a', 'b'), ...finish('end_turn'), ...stop],
    chunks: [ROLE, { content: 'a' }, { content: 'b' }, END],
  },
  {
    name: '#66 #68 #69 P131 two calls, told apart by block: the same id twice',
    events: [
      ...start(),
      ...open(0, use('x', 'f')),
      ...open(1, use('x', 'g')),
      ...args(1, '{"b"'),
      ...args(0, '{"a":1}'),
      ...close(0),
      ...args(1, ':2}'),
      ...close(1),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [
      ROLE,
      header(0, 'x', 'f'),
      header(1, 'x', 'g'),
      piece(1, '{"b"'),
      piece(0, '{"a":1}'),
      piece(1, ':2}'),
      { finish: 'tool_calls' },
    ],
  },
  {
    name: '#67 P42 calls without arguments are announced at once and get {}',
    events: [
      ...start(),
      ...open(0, use('x', 'f')),
      ...close(0),
      ...open(1, use('y', 'g')),
      ...close(1),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [ROLE, header(0, 'x', 'f'), piece(0, '{}'), header(1, 'y', 'g'), piece(1, '{}'), { finish: 'tool_calls' }],
  },
  {
    name: '#67 two open calls without arguments',
    events: [
      ...start(),
      ...open(0, use('x', 'f')),
      ...open(1, use('y', 'g')),
      ...close(0),
      ...close(1),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [ROLE, header(0, 'x', 'f'), header(1, 'y', 'g'), piece(0, '{}'), piece(1, '{}'), { finish: 'tool_calls' }],
  },
  {
    name: 'a call that was cut before its arguments gets no {}',
    events: [...start(), ...open(0, use('x', 'f')), ...close(0), ...finish('max_tokens'), ...stop],
    chunks: [ROLE, header(0, 'x', 'f'), { finish: 'length' }],
  },
  {
    name: '#71 P93 whole calls: the input in the start',
    events: [
      ...start(),
      ...[0, 1, 2].flatMap((i) => [...open(i, use(`c${i}`, 'f', { input: { i } })), ...close(i)]),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [ROLE, ...[0, 1, 2].flatMap((i) => [header(i, `c${i}`, 'f'), piece(i, `{"i":${i}}`)]), { finish: 'tool_calls' }],
  },
  {
    name: 'P46 a custom call',
    events: [
      ...start(),
      ...open(0, use('x', 'q', { kind: 'custom', input: '' })),
      ...delta(0, { type: 'input_text_delta', text: 'SELECT 1' }),
      ...close(0),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [
      ROLE,
      { tool_calls: [{ index: 0, id: 'x', type: 'custom', custom: { name: 'q', input: '' } }] },
      { tool_calls: [{ index: 0, custom: { input: 'SELECT 1' } }] },
      { finish: 'tool_calls' },
    ],
  },
  {
    name: 'P17 text after a call',
    events: [
      ...start(),
      ...open(0, use('x', 'f')),
      ...args(0, '{}'),
      ...close(0),
      ...say(1, 'b'),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [ROLE, header(0, 'x', 'f'), piece(0, '{}'), { content: 'b' }, { finish: 'tool_calls' }],
    notes: ['content.order'],
  },
  {
    name: 'thinking in paragraphs',
    events: [
      ...start(),
      ...open(0, THINKING),
      ...delta(0, { type: 'thinking_delta', thinking: 'A' }),
      ...close(0),
      ...open(1, THINKING),
      ...delta(1, { type: 'thinking_delta', thinking: 'B' }),
      ...delta(1, { type: 'thinking_delta', thinking: 'C' }),
      ...close(1),
      ...finish('end_turn'),
      ...stop,
    ],
    chunks: [ROLE, { reasoning_content: 'A' }, { reasoning_content: '\n\nB' }, { reasoning_content: 'C' }, END],
  },
  {
    name: '#74 P37 a refusal',
    events: [
      ...start(),
      ...open(0, { type: 'text', text: '', refusal: true }),
      ...delta(0, { type: 'text_delta', text: 'No.', refusal: true }),
      ...close(0),
      ...finish('refusal'),
      ...stop,
    ],
    chunks: [ROLE, { refusal: 'No.' }, END],
  },
  {
    name: '#74 P38 a refusal before any text',
    events: [
      ...start(),
      ...finish('refusal', { delta: { stop_reason: 'refusal', stop_details: { explanation: 'Why.' } } }),
      ...stop,
    ],
    chunks: [ROLE, { refusal: 'Why.' }, { finish: 'content_filter' }],
  },
  {
    name: '#74 P41 citations in one list before the finish',
    events: [
      ...start(),
      ...say(0, 'é1'),
      ...open(1, TEXT),
      ...delta(1, { type: 'text_delta', text: 'ab' }),
      ...delta(1, { type: 'citations_delta', citation: { kind: 'url', url: 'u', origin: 'gemini' } }),
      ...delta(1, {
        type: 'citations_delta',
        citation: { kind: 'url', url: 'v', title: 't', start: 1, end: 2, origin: 'gemini' },
      }),
      ...close(1),
      ...finish('end_turn'),
      ...stop,
    ],
    chunks: [
      ROLE,
      { content: 'é1' },
      { content: 'ab' },
      {
        annotations: [
          { type: 'url_citation', url_citation: { url: 'u', title: '', start_index: 2, end_index: 4 } },
          { type: 'url_citation', url_citation: { url: 'v', title: 't', start_index: 3, end_index: 4 } },
        ],
      },
      END,
    ],
  },
  {
    name: 'a citation that chat has not',
    events: [
      ...start(),
      ...open(0, TEXT),
      ...delta(0, { type: 'citations_delta', citation: { kind: 'document', origin: 'anthropic-messages' } }),
      ...close(0),
      ...finish('end_turn'),
      ...stop,
    ],
    chunks: [ROLE, END],
    notes: ['citations'],
  },
  {
    name: '#74 P81 a call that Gemini signs as it begins: the AI SDK looks for the signature in the first chunk of a call',
    source: 'gemini',
    events: [
      ...start(),
      ...open(0, use('x', 'f')),
      ...delta(0, { type: 'signature_delta', signature: { origin: 'gemini', form: 'thought_signature', value: 'S' } }),
      ...args(0, '{}'),
      ...close(0),
      ...open(1, use('y', 'g')),
      ...close(1),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [
      ROLE,
      header(0, 'x', 'f', { extra_content: { google: { thought_signature: 'S' } } }),
      piece(0, '{}'),
      header(1, 'y', 'g'),
      piece(1, '{}'),
      { finish: 'tool_calls' },
    ],
  },
  {
    name: '#74 P81 the signature of a call of Gemini, with the body that the AI SDK asks for',
    events: [
      ...start(),
      ...open(0, use('x', 'f')),
      ...args(0, '{}'),
      ...delta(0, { type: 'signature_delta', signature: { origin: 'gemini', form: 'thought_signature', value: 'S' } }),
      ...close(0),
      ...finish('tool_use'),
      ...stop,
    ],
    chunks: [
      ROLE,
      header(0, 'x', 'f'),
      piece(0, '{}'),
      { tool_calls: [{ index: 0, function: { arguments: '' }, extra_content: { google: { thought_signature: 'S' } } }] },
      { finish: 'tool_calls' },
    ],
  },
  {
    name: 'logprobs beside their text',
    events: [
      ...start(),
      ...open(0, TEXT),
      ...delta(0, { type: 'text_delta', text: 'a', logprobs: [{ token: 'a', logprob: -1, bytes: [97] }] }),
      ...close(0),
      ...finish('end_turn'),
      ...stop,
    ],
    chunks: [
      ROLE,
      { content: 'a', logprobs: { content: [{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }], refusal: null } },
      END,
    ],
  },
  {
    name: 'audio',
    events: [
      ...start(),
      ...open(0, { type: 'audio', source: {}, audio_id: 'au' }),
      ...delta(0, { type: 'audio_delta', data: 'AA' }),
      ...delta(0, { type: 'audio_delta', transcript: 'tr' }),
      ...close(0),
      ...finish('end_turn'),
      ...stop,
    ],
    chunks: [ROLE, { audio: { id: 'au' } }, { audio: { data: 'AA' } }, { audio: { transcript: 'tr' } }, END],
  },
  {
    name: 'images in one list before the finish',
    events: [
      ...start(),
      ...['a', 'b'].flatMap((url, i) => [...open(i, { type: 'image', source: { url } }), ...close(i)]),
      ...finish('end_turn'),
      ...stop,
    ],
    chunks: [ROLE, { images: ['a', 'b'].map((url) => ({ type: 'image_url', image_url: { url } })) }, END],
  },
  {
    name: 'what only the provider understands is dropped',
    events: [
      ...start(),
      ...open(0, use('x', 'web_search', { kind: 'server' })),
      ...args(0, '{"q":1}'),
      ...close(0),
      ...open(1, { type: 'tool_result', tool_use_id: 'x', content: '' }),
      ...close(1),
      ...open(2, { type: 'opaque', origin: 'gemini', raw: {} }),
      ...delta(2, { type: 'opaque_delta', raw: {} }),
      ...close(2),
      ...say(3, 'a'),
      ...finish('end_turn'),
      ...stop,
    ],
    chunks: [ROLE, { content: 'a' }, END],
    notes: ['content.server_tool_use', 'content.tool_result', 'content.opaque'],
  },
  {
    name: '#75 a ping says nothing yet: frames have no comments',
    events: [{ type: 'ping' }, ...start(), { type: 'ping' }, ...say(0, 'a'), ...finish('end_turn'), ...stop],
    chunks: [ROLE, { content: 'a' }, END],
  },
  {
    name: 'P95 #73 usage comes last',
    events: [...start(), ...say(0, 'a'), ...finish('end_turn', { usage: USAGE }), ...stop],
    chunks: [ROLE, { content: 'a' }, END, { usage: WIRE_USAGE }],
  },
  { name: 'pause_turn', events: [...start(), ...finish('pause_turn'), ...stop], chunks: [ROLE, END], notes: ['stop_reason'] },
  {
    name: '#47 n > 1',
    events: [
      ...start(),
      ...say(0, 'a'),
      ...open(0, TEXT, 1),
      ...delta(0, { type: 'text_delta', text: 'b' }, 1),
      ...close(0, 1),
      ...finish('end_turn'),
      ...finish('max_tokens', { choice: 1 }),
      ...stop,
    ],
    chunks: [ROLE, { content: 'a' }, { index: 1, ...ROLE }, { index: 1, content: 'b' }, END, { index: 1, finish: 'length' }],
  },
  {
    name: 'only another choice',
    events: [
      ...start(),
      ...open(0, TEXT, 1),
      ...delta(0, { type: 'text_delta', text: 'b' }, 1),
      ...close(0, 1),
      ...finish('end_turn', { choice: 1 }),
      ...stop,
    ],
    chunks: [ROLE, { index: 1, ...ROLE }, { index: 1, content: 'b' }, { index: 1, ...END }, END],
    notes: ['choices'],
  },
  {
    name: '#72 P105 an error in the middle: no [DONE]',
    events: [
      ...start(),
      ...say(0, 'a'),
      { type: 'error', error: { code: 'OVERLOADED', message: 'Overloaded', http_status: 529 } },
    ],
    chunks: [ROLE, { content: 'a' }, { error: { message: 'Overloaded', type: 'server_error', param: null, code: 'overloaded' } }],
  },
  {
    name: '#72 P106 an error of chat keeps its words',
    events: [
      {
        type: 'error',
        error: {
          code: 'RATE_LIMIT',
          message: 'm',
          upstream: { protocol: 'openai-chat', type: 'tokens', code: 'rate_limit_exceeded', body: { message: 'm', metadata: 1 } },
        },
      },
    ],
    chunks: [{ error: { message: 'm', type: 'tokens', param: null, code: 'rate_limit_exceeded', metadata: 1 } }],
  },
  {
    name: '#72 an early end, after a message_delta without a reason',
    events: [
      ...start(),
      ...say(0, 'a'),
      { type: 'message_delta', delta: { stop_reason: null } },
      { type: 'error', error: { code: 'STREAM_TRUNCATED', message: 'early' } },
    ],
    chunks: [ROLE, { content: 'a' }, { error: { message: 'early', type: 'server_error', param: null, code: 'ECONNRESET' } }],
  },
  {
    name: '#72 a stop that is an error',
    events: [
      ...start(),
      ...finish('error', { delta: { stop_reason: 'error', stop_details: { raw: 'MALFORMED_FUNCTION_CALL' } } }),
      ...stop,
    ],
    chunks: [ROLE, { error: { message: 'MALFORMED_FUNCTION_CALL', type: 'server_error', param: null, code: null } }],
  },
  {
    name: '#72 events that break off',
    events: [...start(), ...open(0, TEXT)],
    chunks: [ROLE, { error: { message: 'the stream ended early', type: 'server_error', param: null, code: 'ECONNRESET' } }],
  },
];

describe.each(ROWS)('$name', ({ events, chunks, source = 'anthropic-messages', notes = [] }) => {
  const context = chatContext({ source });
  const frames = encodeChat(events, context);
  const isError = JSON.stringify(chunks.at(-1)).startsWith('{"error"');

  test('is said so', () => {
    expect(chunksOf(frames).map(brief)).toEqual(chunks);
    expect(frames.at(-1)?.data === '[DONE]').toBe(!isError);
    expect(context.notes.map(({ feature }) => feature)).toEqual(notes);
  });

  test('keeps the grammar', () => {
    expect(ChatGrammar.check(frames)).toBe(isError ? 'error' : 'done');
  });

  test.each(SDKS)('$name reads it', async ({ name, stream }) => {
    const isCustom = JSON.stringify(chunks).includes('"custom"');
    if (isError || (isCustom && name === 'openai 6.49')) return expect(stream(bodyOf(frames))).rejects.toThrow();
    expect((await stream(bodyOf(frames))).choices.length).toBeGreaterThan(0);
  });
});

const request = (stream_options?: CanonicalRequest['stream_options']): CanonicalRequest => ({
  model: 'alias',
  messages: [],
  parameters: {},
  ...(stream_options && { stream_options }),
});

describe.each([
  { name: 'no request', given: {}, wants: true },
  { name: 'a client that asked', given: { request: request({ include_usage: true }) }, wants: true },
  { name: 'a client that did not', given: { request: request({}) }, wants: false },
  { name: 'a client without options', given: { request: request() }, wants: false },
])('#31 #73 P96 usage for $name', ({ given, wants }) => {
  const events = [...start(), ...say(0, 'a'), ...finish('end_turn', { usage: USAGE }), ...stop];
  const frames = encodeChat(events, chatContext(given));

  test(wants ? 'stands in a chunk of its own, null in the others' : 'is hidden', () => {
    expect(ChatGrammar.check(frames, wants)).toBe('done');
    expect(chunksOf(frames).some(({ usage }) => usage)).toBe(wants);
  });
});

test('#70 id, created and model stand on every chunk', () => {
  const frames = encodeChat(
    [...start({ created: 5 }), ...say(0, 'a'), ...finish('end_turn', { usage: USAGE }), ...stop],
    chatContext({ request: request({ include_usage: true }), source: 'gemini' }),
  );
  for (const chunk of chunksOf(frames))
    expect(chunk).toMatchObject({ id: 'chatcmpl-msg_1', object: 'chat.completion.chunk', created: 5, model: 'alias' });
});

test('an id of chat is kept', () => {
  const [chunk] = chunksOf(encodeChat([...start({ id: 'gen-1' }), ...finish('end_turn'), ...stop]));
  expect(chunk).toMatchObject({ id: 'gen-1', created: 1_700_000_000 });
});

test('#74 carriers name their issuer', () => {
  const signature = { origin: 'anthropic-messages', form: 'signature', value: 'S' } as const;
  const target = { provider: { id: 'claude', protocol: 'anthropic-messages', base_url: '' }, model: 'm', stream: true } as const;
  const events = [
    ...start(),
    ...open(0, THINKING),
    ...delta(0, { type: 'thinking_delta', thinking: 'H' }),
    ...close(0),
    ...delta(0, { type: 'signature_delta', signature }),
    ...open(1, { type: 'thinking', thinking: '', variant: 'redacted', signature: { ...signature, form: 'redacted' } }),
    ...close(1),
    ...finish('end_turn'),
    ...stop,
  ];
  const details = chunksOf(encodeChat(events, chatContext({ target }))).flatMap((chunk) => {
    const entry = (brief(chunk) as Json)['reasoning_details'];
    return entry ? (entry as { data: string; index: number }[]) : [];
  });
  expect(details.map(({ data, index }) => ({ index, ...decodeCarrier(data) }))).toEqual([
    { index: 0, blob: { ...signature, provider: 'claude' }, attach: 'self' },
    { index: 1, blob: { ...signature, form: 'redacted', provider: 'claude' }, attach: 'self' },
  ]);
});

test('fields that nobody knows come back on the finish chunk', () => {
  const extensions = {
    'openai-chat': {
      x_groq: { id: 1 },
      finish_reason: 'stop',
      choice: { native_finish_reason: 'STOP' },
      message: { role: 'assistant', channel: 'final' },
    },
  };
  const frames = encodeChat([
    ...start(),
    ...finish('end_turn', { extensions, message: { service_tier: 'default', system_fingerprint: 'fp' } }),
    ...stop,
  ]);
  const chunks = chunksOf(frames);
  expect(chunks[1]).toEqual({
    id: 'msg_1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'claude',
    x_groq: { id: 1 },
    service_tier: 'default',
    system_fingerprint: 'fp',
    choices: [{ index: 0, delta: { channel: 'final' }, native_finish_reason: 'STOP', finish_reason: 'stop' }],
    usage: null,
  });
});

test('a loss that the policy refuses ends the stream with an error', () => {
  const events = [
    ...start(),
    ...open(0, { type: 'opaque', origin: 'gemini', raw: {} }),
    ...close(0),
    ...finish('end_turn'),
    ...stop,
  ];
  const chunks = chunksOf(encodeChat(events, chatContext({ policy: { strict: true } })));
  expect(chunks.at(-1)).toMatchObject({ error: { code: 'unsupported_value' } });
});

test('end is idempotent, and nothing follows the end', () => {
  const encoder = encodeStream(chatContext());
  for (const event of [...start(), ...finish('end_turn'), ...stop]) encoder.push(event);
  expect([...encoder.end(), ...encoder.end(), ...encoder.push({ type: 'message_stop' })]).toEqual([]);
});

test('a call that the source changes after it went out is noted', () => {
  const context = chatContext();
  const late_blocks = [{ index: 0, content_block: use('b', 'f') }];
  encodeChat([...start(), ...open(0, use('a', 'f')), ...close(0), ...finish('tool_use', { late_blocks }), ...stop], context);
  expect(context.notes).toMatchObject([{ code: 'APPROXIMATED', path: '/content/0', feature: 'content.tool_use' }]);
});
