import { describe, expect, test } from 'vitest';
import { type Completion, chatContext, type Json, SDKS } from '../../../../test/sdk/chat.ts';
import type { CanonicalResponse, ContentBlock } from '../../src/canonical/message.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import { decodeCarrier } from '../../src/codec/answers.ts';
import { convertResponse } from '../../src/engine/by-name.ts';
import { decodeResponse, encodeResponse, readPlain } from '../../src/protocols/openai-chat/response.ts';

const body = (message: Json, choice: Json = {}, rest: Json = {}): Json => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop', ...choice }],
  ...rest,
});
const call = (id: string, name: string, args: unknown): Json => ({ id, type: 'function', function: { name, arguments: args } });

const decode = (wire: unknown): CanonicalResponse => decodeResponse(wire, chatContext(), readPlain);

const DECODE: { name: string; wire: Json; want: object }[] = [
  {
    name: '#38 thinking, text, refusal, calls: in this order',
    wire: body({ tool_calls: [call('a', 'f', '{}')], refusal: 'R', content: 'T', reasoning_content: 'H' }),
    want: { content: [{ type: 'thinking' }, { text: 'T' }, { text: 'R', refusal: true }, { type: 'tool_use', id: 'a' }] },
  },
  { name: '#39 P94 stop beside calls', wire: body({ tool_calls: [call('a', 'f', '{}')] }), want: { stop_reason: 'tool_use' } },
  {
    name: '#39 length is never promoted',
    wire: body({ tool_calls: [call('a', 'f', '{"a')] }, { finish_reason: 'length' }),
    want: { stop_reason: 'max_tokens', content: [{ input: {}, input_raw: '{"a' }] },
  },
  { name: '#40 reasoning', wire: body({ reasoning: 'H', content: 'T' }), want: { content: [{ thinking: 'H' }, { text: 'T' }] } },
  {
    name: '#40 reasoning_details',
    wire: body({ reasoning_details: [{ type: 'reasoning.text', text: 'H', index: 0 }], content: 'T' }),
    want: { content: [{ thinking: 'H' }, { text: 'T' }] },
  },
  {
    name: 'calls that share an id are as many as the message lists',
    wire: body({ tool_calls: [call('a', 'f', '{}'), call('a', 'g', '{}'), call('a', 'g', '{}')] }),
    want: { content: [{ id: 'a', name: 'f' }, { name: 'g' }, { name: 'g' }] },
  },
  { name: '#42 no usage is no usage', wire: body({ content: 'T' }), want: { stop_reason: 'end_turn' } },
  {
    name: '#43 #44 cached and written tokens are parts of the input',
    wire: body(
      {},
      {},
      {
        usage: {
          prompt_tokens: 9,
          completion_tokens: 2,
          total_tokens: 11,
          prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
        },
      },
    ),
    want: { usage: { input_tokens: 9, output_tokens: 2, cache_read_tokens: 4, cache_creation_tokens: 3 } },
  },
  {
    name: 'P98 reasoning that stands outside',
    wire: body(
      {},
      {},
      {
        usage: {
          prompt_tokens: 10120,
          completion_tokens: 1499,
          total_tokens: 14428,
          completion_tokens_details: { reasoning_tokens: 2809 },
        },
      },
    ),
    want: { usage: { input_tokens: 10120, output_tokens: 4308, reasoning_tokens: 2809 } },
  },
  { name: '#46 P37 a refusal alone', wire: body({ content: null, refusal: 'No.' }), want: { stop_reason: 'refusal' } },
  { name: '#46 a refusal beside text', wire: body({ content: 'T', refusal: 'No.' }), want: { stop_reason: 'end_turn' } },
  {
    name: '#47 annotations, logprobs, audio',
    wire: body(
      {
        content: 'T',
        annotations: [{ type: 'url_citation', url_citation: { url: 'u', title: 't', start_index: 0, end_index: 1 } }],
        audio: { id: 'au', data: 'AA', transcript: 'tr', expires_at: 5 },
      },
      { logprobs: { content: [{ token: 'T', logprob: -1, bytes: [84], top_logprobs: [] }], refusal: null } },
    ),
    want: {
      content: [
        { text: 'T', citations: [{ kind: 'url', url: 'u', start: 0, end: 1 }], logprobs: [{ token: 'T', logprob: -1 }] },
        { type: 'audio', audio_id: 'au', transcript: 'tr', source: { data: 'AA' } },
      ],
    },
  },
  {
    name: '#47 images of OpenRouter',
    wire: body({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] }),
    want: { content: [{ source: { media_type: 'image/png', data: 'AA' } }] },
  },
  { name: 'P42 empty arguments', wire: body({ tool_calls: [call('a', 'f', '')] }), want: { content: [{ input: {} }] } },
  {
    name: 'P45 arguments as an object',
    wire: body({ tool_calls: [call('a', 'f', { a: 1 })] }),
    want: { content: [{ input: { a: 1 } }] },
  },
  {
    name: 'P46 a custom call',
    wire: body({ tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'q', input: 'SELECT 1' } }] }),
    want: { content: [{ kind: 'custom', input: 'SELECT 1' }], stop_reason: 'tool_use' },
  },
  {
    name: 'the deprecated call',
    wire: body({ content: null, function_call: { name: 'f', arguments: '{}' } }, { finish_reason: 'function_call' }),
    want: { content: [{ type: 'tool_use', name: 'f', id: expect.stringMatching(/^call_/) }], stop_reason: 'tool_use' },
  },
  {
    name: 'content parts',
    wire: body({
      content: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B' },
      ],
    }),
    want: { content: [{ text: 'AB' }] },
  },
  {
    name: 'no index, no object, no id',
    wire: { choices: [{ message: { content: 'T' } }] },
    want: { id: expect.stringMatching(/^chatcmpl-/), content: [{ text: 'T' }] },
  },
];

test.each(DECODE)('decode: $name', ({ wire, want }) => {
  expect(decode(wire)).toMatchObject(want);
});

test('#42 decode: usage is absent, not zero', () => {
  expect(decode(body({ content: 'T' })).usage).toBeUndefined();
});

const FAILURES: { name: string; wire: unknown; want: object }[] = [
  {
    name: '#48 no choices',
    wire: body({}, {}, { choices: [] }),
    want: { code: 'UPSTREAM_ERROR', message: 'the response has no choices' },
  },
  { name: '#48 choices of nothing', wire: { choices: [null, 1] }, want: { code: 'UPSTREAM_ERROR' } },
  {
    name: '#48 an error with status 200',
    wire: { error: { message: 'no', code: 'model_not_found' } },
    want: { code: 'NOT_FOUND', message: 'no' },
  },
  {
    name: '#48 an error beside choices',
    wire: body({ content: '' }, {}, { error: { message: 'no', code: 502 } }),
    want: { http_status: 502 },
  },
  {
    name: 'an error in a choice',
    wire: body({ content: 'T' }, { error: { message: 'no', code: 429 } }),
    want: { code: 'RATE_LIMIT' },
  },
  { name: 'null', wire: null, want: { code: 'UPSTREAM_ERROR' } },
  {
    name: 'a list with an error',
    wire: [{ error: { code: 400, message: 'no', status: 'INVALID_ARGUMENT' } }],
    want: { code: 'INVALID_INPUT' },
  },
  {
    name: 'a page',
    wire: '<html><head><title>x</title></head><body><h1>502</h1> Bad</body></html>',
    want: { message: 'the server returned an HTML page' },
  },
  { name: 'FastAPI', wire: { detail: 'no' }, want: { message: 'no' } },
];

test.each(FAILURES)('decode fails: $name', ({ wire, want }) => {
  const error = caught(() => decode(wire));
  expect(error).toMatchObject(want);
});

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    if (error instanceof CodecError) return error.error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

const PROTO = '{"__proto__":{"a":1},"choices":[{"__proto__":{"a":1},"message":{"__proto__":{"a":1},"content":"T"}}]}';

const HOSTILE: Record<string, string> = {
  'nesting of 1,000': `{"choices":[{"message":{"content":"T","x":${deep(1_000)}}}]}`,
  'nesting of 100,000': `{"choices":[{"message":{"content":"T","x":${deep(100_000)}}}]}`,
  'keys named __proto__': PROTO,
  'wrong types everywhere':
    '{"id":1,"created":"x","model":[],"usage":[],"choices":[{"index":"a","message":{"content":{},"tool_calls":[1,null,{"function":7}],"annotations":[1],"images":[2],"audio":3,"reasoning_details":[4]},"logprobs":{"content":[5,{"token":6}]},"finish_reason":{}}]}',
};

/** Anything else than a refusal is a bug, and is thrown. */
function outcomeOf(read: () => unknown): 'written' | 'refused' {
  try {
    read();
    return 'written';
  } catch (error) {
    if (error instanceof CodecError) return 'refused';
    throw error;
  }
}

test.each(Object.entries(HOSTILE))('hostile: %s', (_, text) => {
  const wire: unknown = JSON.parse(text);
  const context = chatContext();
  const read = (): unknown => encodeResponse(decodeResponse(wire, context), context);
  expect(outcomeOf(read)).toMatch(/^(written|refused)$/);
});

test('hostile: __proto__ is data', () => {
  const context = chatContext();
  const wire = encodeResponse(decodeResponse(JSON.parse(PROTO), context), context);
  expect(JSON.stringify(wire).split('"__proto__":{"a":1}')).toHaveLength(4);
  expect(({} as Json)['a']).toBeUndefined();
});

const response = (content: ContentBlock[], rest: Partial<CanonicalResponse> = {}): CanonicalResponse => ({
  id: 'msg_1',
  model: 'claude',
  content,
  stop_reason: 'end_turn',
  ...rest,
});
const text = (value: string, rest: object = {}): ContentBlock => ({ type: 'text', text: value, ...rest });
const use = (id: string, input: Json, rest: object = {}): ContentBlock => ({ type: 'tool_use', id, name: 'f', input, ...rest });

const FOREIGN: { name: string; given: CanonicalResponse; message?: object; choice?: object; whole?: object; notes?: string[] }[] =
  [
    {
      name: '#41 every required field',
      given: response([text('T')]),
      whole: { id: 'chatcmpl-msg_1', object: 'chat.completion', created: 1_700_000_000, model: 'claude' },
      choice: { index: 0, logprobs: null, finish_reason: 'stop' },
      message: { role: 'assistant', content: 'T', refusal: null },
    },
    { name: 'an id that is odd', given: response([text('T')], { id: 'a/b c' }), whole: { id: 'chatcmpl-a_b_c' } },
    {
      name: 'P17 interleaved text and calls',
      given: response([text('A'), use('1', {}), text('B'), use('2', {})], { stop_reason: 'tool_use' }),
      message: { content: 'AB', tool_calls: [{ id: '1' }, { id: '2' }] },
      notes: ['content.order'],
    },
    {
      name: 'content is null beside calls',
      given: response([use('1', { a: 1 })], { stop_reason: 'tool_use' }),
      message: { content: null, tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] },
      choice: { finish_reason: 'tool_calls' },
    },
    {
      name: 'P42 a call without arguments',
      given: response([use('1', {})], { stop_reason: 'tool_use' }),
      message: { tool_calls: [{ function: { arguments: '{}' } }] },
    },
    {
      name: 'a cut call stays cut',
      given: response([use('1', {}, { input_raw: '{"a' })], { stop_reason: 'max_tokens' }),
      message: { tool_calls: [{ function: { arguments: '{"a' } }] },
      choice: { finish_reason: 'length' },
    },
    {
      name: 'the text of the arguments goes verbatim',
      given: response([use('1', { a: 1 }, { input_raw: '{ "a": 1.0 }' })]),
      message: { tool_calls: [{ function: { arguments: '{ "a": 1.0 }' } }] },
    },
    {
      name: 'P46 a custom call is not quoted',
      given: response([{ type: 'tool_use', id: '1', name: 'q', input: 'SELECT 1', kind: 'custom' }]),
      message: { tool_calls: [{ type: 'custom', custom: { name: 'q', input: 'SELECT 1' } }] },
    },
    {
      name: 'a call of the provider is dropped',
      given: response([use('1', {}, { kind: 'server' }), text('T')]),
      message: { content: 'T' },
      notes: ['content.server_tool_use'],
    },
    {
      name: '#46 P37 a refusal with text',
      given: response([text('No.', { refusal: true })], { stop_reason: 'refusal' }),
      message: { content: null, refusal: 'No.' },
      choice: { finish_reason: 'stop' },
    },
    {
      name: '#46 P38 a refusal before any text',
      given: response([], { stop_reason: 'refusal', stop_details: { category: 'cyber', explanation: 'Why.' } }),
      message: { content: null, refusal: 'Why.' },
      choice: { finish_reason: 'content_filter' },
    },
    {
      name: '#46 a refusal that broke off a text',
      given: response([text('T')], { stop_reason: 'refusal', stop_details: { explanation: 'Why.' } }),
      message: { content: 'T', refusal: 'Why.' },
      choice: { finish_reason: 'stop' },
    },
    {
      name: '#46 a refusal that says nothing',
      given: response([text('T')], { stop_reason: 'refusal' }),
      message: { content: 'T', refusal: null },
      choice: { finish_reason: 'content_filter' },
    },
    {
      name: 'content_filter',
      given: response([], { stop_reason: 'content_filter' }),
      message: { content: '' },
      choice: { finish_reason: 'content_filter' },
    },
    { name: 'stop_sequence', given: response([text('T')], { stop_reason: 'stop_sequence' }), choice: { finish_reason: 'stop' } },
    {
      name: 'context_window',
      given: response([text('T')], { stop_reason: 'context_window' }),
      choice: { finish_reason: 'length' },
    },
    {
      name: 'pause_turn',
      given: response([text('T')], { stop_reason: 'pause_turn' }),
      choice: { finish_reason: 'stop' },
      notes: ['stop_reason'],
    },
    {
      name: 'blocks of thinking are paragraphs',
      given: response([
        { type: 'thinking', thinking: 'A' },
        { type: 'thinking', thinking: 'B' },
        { type: 'thinking', thinking: '', variant: 'redacted' },
        text('T'),
      ]),
      message: { reasoning_content: 'A\n\nB' },
    },
    {
      name: '#47 P41 offsets count the characters of the whole text',
      given: response([text('é1'), text('ab', { citations: [{ kind: 'url', url: 'u', start: 1, end: 2, origin: 'gemini' }] })]),
      message: { annotations: [{ type: 'url_citation', url_citation: { url: 'u', title: '', start_index: 3, end_index: 4 } }] },
    },
    {
      name: 'a citation of a document is dropped',
      given: response([text('T', { citations: [{ kind: 'document', origin: 'anthropic-messages' }] })]),
      notes: ['citations'],
    },
    {
      name: '#47 an image',
      given: response([{ type: 'image', source: { data: 'AA', media_type: 'image/png' } }]),
      message: { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] },
    },
    {
      name: 'the file of an image is dropped',
      given: response([{ type: 'image', source: { file_id: 'f' } }]),
      notes: ['content.image'],
    },
    {
      name: '#47 audio',
      given: response([{ type: 'audio', source: { data: 'AA' }, transcript: 'tr' }]),
      message: { content: null, audio: { id: 'audio_1', data: 'AA', transcript: 'tr', expires_at: 0 } },
    },
    {
      name: '#47 logprobs',
      given: response([text('T', { logprobs: [{ token: 'T', logprob: -1 }] })]),
      choice: { logprobs: { content: [{ token: 'T', logprob: -1, bytes: null, top_logprobs: [] }], refusal: null } },
    },
    {
      name: 'a block of another protocol with words for it',
      given: response([{ type: 'opaque', origin: 'gemini', raw: {}, text: 'S' }]),
      message: { content: 'S' },
    },
    {
      name: 'a block of another protocol',
      given: response([{ type: 'opaque', origin: 'gemini', raw: {} }]),
      notes: ['content.opaque'],
    },
    {
      name: 'P81 the signature of a call of Gemini',
      given: response([use('1', {}, { signature: { origin: 'gemini', form: 'thought_signature', value: 'S' } })]),
      message: { tool_calls: [{ extra_content: { google: { thought_signature: 'S' } } }] },
    },
    {
      name: 'the tiers of others',
      given: response([text('T')], { service_tier: 'standard' }),
      whole: { service_tier: 'default' },
    },
    { name: 'a tier that chat has not', given: response([text('T')], { service_tier: 'batch' }), notes: ['service_tier'] },
    {
      name: '#44 #45 usage, the example of docs/canonical.md',
      given: response([text('T')], {
        usage: { input_tokens: 120, output_tokens: 30, cache_read_tokens: 90, cache_creation_tokens: 20 },
      }),
      whole: {
        usage: {
          prompt_tokens: 120,
          completion_tokens: 30,
          total_tokens: 150,
          prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 0 },
        },
      },
    },
    {
      name: 'P98 usage of Gemini',
      given: response([], { usage: { input_tokens: 29, output_tokens: 819, reasoning_tokens: 804 } }),
      whole: { usage: { completion_tokens: 819, total_tokens: 848, completion_tokens_details: { reasoning_tokens: 804 } } },
    },
    {
      name: 'usage is never negative',
      given: response([], { usage: { input_tokens: -1, output_tokens: 2, cache_read_tokens: 5 } }),
      whole: { usage: { prompt_tokens: 0, total_tokens: 2, prompt_tokens_details: { cached_tokens: 0 } } },
    },
  ];

describe.each(FOREIGN)('encode: $name', ({ given, message = {}, choice = {}, whole = {}, notes = [] }) => {
  const context = chatContext({ source: 'anthropic-messages' });
  const wire = encodeResponse(given, context);

  test('as chat says it', () => {
    expect(wire).toMatchObject({ ...whole, choices: [{ ...choice, message }] });
    expect(context.notes.map(({ feature }) => feature)).toEqual(notes);
  });

  test.each(SDKS)('$name takes it', async ({ create }) => {
    const read = await create(200, { 'content-type': 'application/json' }, JSON.stringify(wire));
    expect(read.choices[0]).toMatchObject({ ...choice, message });
  });
});

test('#42 encode: no usage is no usage', () => {
  expect(encodeResponse(response([]), chatContext())).not.toHaveProperty('usage');
});

test('#47 encode: every choice', () => {
  const choices = [0, 1].map((index) => ({ index, content: [text(`T${index}`)], stop_reason: 'end_turn' as const }));
  const wire = encodeResponse(response([text('T0')], { choices }), chatContext());
  expect(wire['choices']).toMatchObject([
    { index: 0, message: { content: 'T0' } },
    { index: 1, message: { content: 'T1' } },
  ]);
});

test('encode: the model is the requested one', () => {
  const request = { model: 'alias', messages: [], parameters: {} };
  expect(encodeResponse(response([]), chatContext({ request }))['model']).toBe('alias');
});

test('#74 P83 encode: signatures of others travel in carriers that name their issuer', () => {
  const signature = { origin: 'anthropic-messages', form: 'signature', value: 'sig+/=é' } as const;
  const target = { provider: { id: 'a.b', protocol: 'anthropic-messages', base_url: '' }, model: 'm', stream: false } as const;
  const content: ContentBlock[] = [
    { type: 'thinking', thinking: 'H', signature },
    text('T', { signature: { origin: 'gemini', provider: 'g', form: 'thought_signature', value: 'S' } }),
  ];
  const wire = encodeResponse(response(content), chatContext({ target })) as unknown as Completion;
  const details = wire.choices.flatMap(({ message }) => message['reasoning_details'] as { data: string; index: number }[]);
  expect(details).toMatchObject([{ type: 'reasoning.encrypted', index: 0 }, { index: 1 }]);
  expect(details.map(({ data }) => decodeCarrier(data))).toEqual([
    { blob: { ...signature, provider: 'a.b' }, attach: 'self' },
    { blob: { origin: 'gemini', provider: 'g', form: 'thought_signature', value: 'S' }, attach: 'next' },
  ]);
});

test.each([
  'cv1',
  'cv1.a.b.signature.self.QQ',
  'cv1.gemini.p.form.self.QQ',
  'cv1.gemini.p.signature.none.QQ',
  'cv1.gemini.p.signature.self.*',
  'gAAAA',
])('no carrier: %s', (value) => {
  expect(decodeCarrier(value)).toBeUndefined();
});

test.each([
  { name: 'an early end', given: response([text('T')], { stop_reason: null }), code: 'STREAM_TRUNCATED' },
  {
    name: 'a generation that broke off',
    given: response([], { stop_reason: 'error', stop_details: { raw: 'MALFORMED' } }),
    code: 'UPSTREAM_ERROR',
  },
  {
    name: 'a failed response',
    given: response([], { stop_reason: 'error', error: { code: 'RATE_LIMIT', message: 'm' } }),
    code: 'RATE_LIMIT',
  },
])('encode fails: $name', ({ given, code }) => {
  expect(caught(() => encodeResponse(given, chatContext()))).toMatchObject({ code });
});

test('encode: a client without reasoning gets none, and strict refuses', () => {
  const given = response([{ type: 'thinking', thinking: 'H' }, text('T')]);
  const profile = { ...chatContext().profile, reasoning_field: 'none' as const };
  const context = chatContext({ profile });
  expect(JSON.stringify(encodeResponse(given, context))).not.toContain('"H"');
  expect(context.notes).toMatchObject([{ code: 'DROPPED', feature: 'content.thinking' }]);
  expect(caught(() => encodeResponse(given, chatContext({ profile, policy: { strict: true } })))).toMatchObject({
    code: 'INCOMPATIBLE_FEATURE',
  });
});

describe('system_fingerprint, which strict clients require', () => {
  const message = { type: 'message', role: 'assistant', id: 'msg_1', model: 'm', content: [{ type: 'text', text: 'T' }] };
  const finished = { ...message, stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 1 } };

  test('is null in a response of another protocol', () => {
    const converted = convertResponse(finished, { from: 'anthropic-messages', to: 'openai-chat' }).body;
    expect(converted).toHaveProperty('system_fingerprint', null);
  });

  test('is absent where the chat server sent none', () => {
    expect(encodeResponse(decode(body({ content: 'T' })), chatContext())).not.toHaveProperty('system_fingerprint');
  });
});
