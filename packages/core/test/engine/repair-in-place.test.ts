import { describe, expect, test } from 'vitest';
import { CODECS, createExchange } from '../../src/engine/index.ts';
import type { Note, ProtocolId } from '../../src/index.ts';
import { repairInPlace } from '../../src/internal.ts';

const PATHS = {
  'openai-chat': '/v1/chat/completions',
  'anthropic-messages': '/v1/messages',
  'openai-responses': '/v1/responses',
  gemini: '/v1beta/models/asked:streamGenerateContent?alt=sse',
} as const satisfies Record<ProtocolId, string>;

const MESSAGES = [{ role: 'user', content: 'hello' }];

const BODIES = {
  'openai-chat': { model: 'asked', messages: MESSAGES, stream: true, stream_options: { include_usage: true } },
  'anthropic-messages': { model: 'asked', max_tokens: 10, messages: MESSAGES, stream: true },
  'openai-responses': { model: 'asked', input: 'hello', stream: true, temperature: 0.5 },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] },
} as const satisfies Record<ProtocolId, object>;

interface Options {
  model?: string;
  body?: object;
  envelope?: Record<string, unknown>;
}

function open(protocol: ProtocolId, { model = 'asked', body = BODIES[protocol], envelope }: Options = {}) {
  const codec = CODECS[protocol];
  const provider = { id: 'own', protocol, base_url: 'http://localhost/v1' };
  const exchange = createExchange(codec, codec, { provider, model, repair: repairInPlace, ...(envelope && { envelope }) });
  exchange.request({ method: 'POST', path: PATHS[protocol], headers: {}, body });
  return exchange;
}

interface Read {
  text: string;
  notes: Note[];
  usage: unknown;
}

function pass(protocol: ProtocolId, raw: string, options: Options = {}, size = raw.length): Read {
  const exchange = open(protocol, options);
  const stream = exchange.stream();
  const bytes = new TextEncoder().encode(raw);
  let text = '';
  const decoder = new TextDecoder();
  const add = (pieces: Iterable<Uint8Array>): void => {
    for (const piece of pieces) text += decoder.decode(piece, { stream: true });
  };
  for (let at = 0; at < bytes.length; at += size) add(stream.push(bytes.subarray(at, at + size)));
  add(stream.end());
  return { text, notes: exchange.notes, usage: exchange.usage };
}

const chunk = (delta: object, more: object = {}, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'up-1',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  })}\n\n`;

const DONE = 'data: [DONE]\n\n';

const CHAT = [
  ': wait\n\n',
  chunk({ role: 'assistant', content: '' }, { system_fingerprint: 'fp', new_field: [1.0, 'ü'] }),
  chunk({ content: 'Hi' }),
  chunk({ content: ' there' }),
  chunk({}, {}, 'stop'),
];

const USAGE = chunk({}, { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });

const event = (type: string, fields: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

const ANTHROPIC = [
  event('message_start', {
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'up-1',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  }),
  event('ping', {}),
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
  event('content_block_stop', { index: 0 }),
  event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } }),
];

const STOP = event('message_stop', {});

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  model: 'up-1',
  output: [],
  parallel_tool_calls: false,
  temperature: 0.7,
  tool_choice: 'auto',
  tools: [],
  top_p: 0.9,
  presence_penalty: 0.1,
};

const SEARCH = { type: 'web_search_call', id: 'ws_1', status: 'in_progress', action: { type: 'search', query: 'x' } };

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
};

/** A stream whose responses have these fields, too; without those that are undefined. */
function responses(fields: object = {}): string[] {
  const made = { ...RESPONSE, ...fields };
  const done = { ...SEARCH, status: 'completed' };
  let sequence_number = 0;
  const write = (type: string, more: object): string => event(type, { sequence_number: sequence_number++, ...more });
  return [
    write('response.created', { response: made }),
    write('response.in_progress', { response: made }),
    write('response.output_item.added', { output_index: 0, item: SEARCH }),
    write('response.web_search_call.searching', { output_index: 0, item_id: 'ws_1' }),
    write('response.output_item.done', { output_index: 0, item: done }),
    write('response.output_item.added', { output_index: 1, item: { ...MESSAGE, status: 'in_progress', content: [] } }),
    write('response.content_part.added', {
      item_id: 'msg_1',
      output_index: 1,
      content_index: 0,
      part: { type: 'output_text', text: '', annotations: [] },
    }),
    write('response.output_text.delta', { item_id: 'msg_1', output_index: 1, content_index: 0, delta: 'Hi', obfuscation: 'xx' }),
    write('response.output_text.done', { item_id: 'msg_1', output_index: 1, content_index: 0, text: 'Hi' }),
    write('response.content_part.done', { item_id: 'msg_1', output_index: 1, content_index: 0, part: MESSAGE.content[0] }),
    write('response.output_item.done', { output_index: 1, item: MESSAGE }),
    write('response.completed', {
      response: {
        ...made,
        status: 'completed',
        output: [done, MESSAGE],
        usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
      },
    }),
  ];
}

const GEMINI = [
  'data: {"candidates": [{"content": {"parts": [{"text": "Hi"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 3},"modelVersion": "up-1"}\r\n\r\n',
  'data: {"candidates": [{"content": {"parts": [{"text": " there"}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 3,"candidatesTokenCount": 2,"totalTokenCount": 5},"modelVersion": "up-1"}\r\n\r\n',
];

const STREAMS: readonly (readonly [ProtocolId, string])[] = [
  ['openai-chat', [...CHAT, USAGE, DONE].join('')],
  ['anthropic-messages', [...ANTHROPIC, STOP].join('')],
  ['openai-responses', responses().join('')],
  ['gemini', GEMINI.join('')],
];

describe.each(STREAMS)('a stream of %s that conforms', (protocol, raw) => {
  test.each([raw.length, 1, 7, 400])('stays as it came, in reads of %i bytes; its usage is known', (size) => {
    const { text, notes, usage } = pass(protocol, raw, {}, size);
    expect(text).toBe(raw);
    expect(notes).toEqual([]);
    expect(usage).toMatchObject({ input_tokens: 3, output_tokens: 2 });
  });

  test('has the name by which the client knows the model, and is the same otherwise', () => {
    const { text } = pass(protocol, raw, { model: 'up-1' });
    expect(text).not.toBe(raw);
    expect(text).toBe(raw.replaceAll('"up-1"', '"asked"'));
  });

  test('keeps the name of the model that the upstream chose itself', () => {
    expect(pass(protocol, raw, { model: 'asked' }).text).toContain('"up-1"');
  });

  test('every frame arrives with the read that completes it, up to what may still be a violation', () => {
    const stream = open(protocol).stream();
    const frames = raw.split(/(?<=\n\r?\n)/);
    const early = frames.slice(0, -1).filter((frame) => [...stream.push(new TextEncoder().encode(frame))].length > 0);
    // Single frames wait for the next one: the end of the message, and the start of a block without content.
    expect(early.length).toBeGreaterThan(frames.length / 3);
  });
});

describe('chat streams', () => {
  const body = { model: 'asked', messages: MESSAGES, stream: true };

  test('usage that only the gateway requested is dropped', () => {
    expect(pass('openai-chat', [...CHAT, USAGE, DONE].join(''), { body }).text).toBe([...CHAT, DONE].join(''));
  });

  test('usage beside the last choice stays', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const raw = [...CHAT.slice(0, -1), chunk({}, { usage }, 'stop'), DONE].join('');
    expect(pass('openai-chat', raw, { body }).text).toBe(raw);
  });

  test('a missing [DONE] is added to what came', () => {
    expect(pass('openai-chat', CHAT.join('')).text).toBe([...CHAT, DONE].join(''));
  });

  test('an event without its blank line is completed', () => {
    expect(pass('openai-chat', [...CHAT, DONE.trimEnd()].join('')).text).toBe([...CHAT, DONE].join(''));
  });

  test('what comes before a violation stays as it came', () => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: { a: 1 } } };
    const raw = [...CHAT.slice(0, 3), chunk({ tool_calls: [call] }), chunk({}, {}, 'tool_calls'), DONE].join('');
    const { text } = pass('openai-chat', raw, { model: 'up-1' });
    const kept = CHAT.slice(0, 3).join('').replaceAll('"up-1"', '"asked"');
    expect(text.startsWith(kept)).toBe(true);
    expect(text).toContain('{\\"a\\":1}');
    expect(text).not.toContain('up-1');
  });

  test('an error in another form than the standard is written in it', () => {
    const { text } = pass('openai-chat', [...CHAT.slice(0, 3), 'data: {"error":"out of memory"}\n\n'].join(''));
    expect(text.startsWith(CHAT.slice(0, 3).join(''))).toBe(true);
    expect(text).toContain('"message":"out of memory"');
  });

  test('an error in the standard form stays', () => {
    const error = 'data: {"error": {"message": "out of memory", "type": "server_error", "code": 7}}\n\n';
    expect(pass('openai-chat', [...CHAT.slice(0, 3), error].join('')).text).toBe([...CHAT.slice(0, 3), error].join(''));
  });
});

describe('Anthropic streams', () => {
  test('a missing message_stop is added to what came', () => {
    expect(pass('anthropic-messages', ANTHROPIC.join('')).text).toBe(
      `${ANTHROPIC.join('')}event: message_stop\ndata: {"type":"message_stop"}\n\n`,
    );
  });

  test('an unknown event stays', () => {
    const raw = [...ANTHROPIC.slice(0, 2), event('news', { a: 1 }), ...ANTHROPIC.slice(2), STOP].join('');
    expect(pass('anthropic-messages', raw).text).toBe(raw);
  });
});

describe('Responses streams', () => {
  const responsesIn = (text: string): Record<string, unknown>[] =>
    [...text.matchAll(/^data: (.*)$/gm)].flatMap(([, data = '']) => {
      const { response } = JSON.parse(data) as { response?: Record<string, unknown> };
      return response ? [response] : [];
    });

  test('required fields that are missing are added; fields that were sent are not replaced', () => {
    const raw = responses({ tools: undefined, top_p: undefined }).join('');
    const { text, notes } = pass('openai-responses', raw);
    const found = responsesIn(text);
    expect(found).toHaveLength(3);
    for (const response of found)
      expect(response).toMatchObject({ tools: [], top_p: 1, temperature: 0.7, presence_penalty: 0.1, frequency_penalty: 0 });
    for (const response of found) expect(response).toHaveProperty('completed_at');
    // Until a response ends, its usage is null.
    expect(found.map(({ usage: counted }) => counted)).toEqual([null, null, found.at(-1)?.['usage']]);
    expect(found.at(-1)?.['usage']).toMatchObject({ input_tokens: expect.any(Number) });
    expect(notes).toMatchObject([{ code: 'REPAIRED', feature: 'response.fields' }]);
    const without = (body: string): string[] => body.split('\n').filter((line) => !line.includes('"response":{'));
    expect(without(text)).toEqual(without(raw));
  });

  test('a reasoning item that is written again keeps its status', () => {
    const item = { type: 'reasoning', id: 'rs_1', status: 'completed', summary: [{ type: 'summary_text', text: 'Well.' }] };
    const place = { item_id: 'rs_1', output_index: 0, summary_index: 0 };
    // Without the events that end a part, so that it is written again.
    const raw = [
      event('response.created', { sequence_number: 0, response: RESPONSE }),
      event('response.output_item.added', {
        sequence_number: 1,
        output_index: 0,
        item: { ...item, status: 'in_progress', summary: [] },
      }),
      event('response.reasoning_summary_text.delta', { sequence_number: 2, ...place, delta: 'Well.' }),
      event('response.output_item.done', { sequence_number: 3, output_index: 0, item }),
      event('response.completed', { sequence_number: 4, response: { ...RESPONSE, status: 'completed', output: [item] } }),
    ].join('');
    const { text } = pass('openai-responses', raw);
    expect(text).toContain('response.reasoning_summary_part.added');
    const done = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Record<string, unknown>);
    expect(done.find(({ type }) => type === 'response.output_item.done')).toMatchObject({ item: { status: 'completed' } });
    expect(responsesIn(text).at(-1)).toMatchObject({ output: [{ type: 'reasoning', status: 'completed' }] });
  });

  test('a missing field that the request has set is what it was set to', () => {
    const raw = responses({ tools: undefined, temperature: undefined }).join('');
    for (const response of responsesIn(pass('openai-responses', raw).text)) expect(response['temperature']).toBe(0.5);
  });

  test('fields of the exchange replace those of the upstream, and nothing else changes', () => {
    const raw = responses({ previous_response_id: null }).join('');
    const { text } = pass('openai-responses', raw, { envelope: { previous_response_id: 'resp_0' } });
    expect(text).toBe(raw.replaceAll('"previous_response_id":null', '"previous_response_id":"resp_0"'));
  });
});

describe('whole responses', () => {
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const message = { role: 'assistant', content: 'Hi' };
  const body = {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'up-1',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  };
  const text = JSON.stringify(body, undefined, 1).replace('"created": 1', '"created": 1.0');
  const request = { model: 'asked', messages: MESSAGES };

  const answer = (options: Options, sent = text) => {
    const exchange = open('openai-chat', { body: request, ...options });
    const reply = exchange.response({ status: 200, headers: {}, body: JSON.parse(sent), text: sent });
    return { ...reply, exchange };
  };

  test('one that conforms stays as it came', () => {
    const reply = answer({});
    expect(reply.text).toBe(text);
    expect(reply.body).toEqual(body);
    expect(reply.exchange.usage).toMatchObject({ input_tokens: 3, output_tokens: 2 });
  });

  test('it has the name by which the client knows the model', () => {
    const reply = answer({ model: 'up-1' });
    expect(reply.text).toBe(text.replace('"up-1"', '"asked"'));
    expect(reply.body).toEqual({ ...body, model: 'asked' });
  });

  test('a call in the deprecated form stays as it came', () => {
    const call = { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } };
    const legacy = JSON.stringify(
      { ...body, choices: [{ index: 0, message: call, finish_reason: 'function_call' }] },
      undefined,
      1,
    );
    expect(answer({}, legacy).text).toBe(legacy);
  });

  test('required fields that it lacks are added', () => {
    const { id: _id, created: _created, ...bare } = body;
    const reply = answer({}, JSON.stringify(bare));
    expect(reply.body).toEqual({ ...bare, id: expect.any(String), created: 0 });
    expect(reply.text?.startsWith(JSON.stringify(bare).slice(0, -1))).toBe(true);
  });

  test('one that violates the protocol is written again', () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: { a: 1 } } };
    const wrong = {
      ...body,
      choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: [call] }, finish_reason: 'tool_calls' }],
    };
    const reply = answer({}, JSON.stringify(wrong));
    expect(reply.text).toBeUndefined();
    expect(JSON.stringify(reply.body)).toContain('"{\\"a\\":1}"');
  });

  test('an error with status 200 is thrown', () => {
    const error = JSON.stringify({ error: { message: 'no', type: 'server_error' } });
    expect(() => answer({}, error)).toThrow('no');
  });

  test('without a text, the body is the one that was given', () => {
    const reply = open('openai-chat', { body: request }).response({ status: 200, headers: {}, body });
    expect(reply.body).toBe(body);
  });
});

describe('what strict clients reject is written again', () => {
  test.each([
    ['without an id', (text: string) => text.replace('"id":"msg_1",', '')],
    ['with a blank id', (text: string) => text.replace('"id":"msg_1"', '"id":""')],
  ])('an item of Responses that is added %s', (_, damage) => {
    const frames = responses();
    const at = frames.findIndex((frame) => frame.includes('output_item.added') && frame.includes('"id":"msg_1"'));
    const raw = frames.map((frame, i) => (i === at ? damage(frame) : frame)).join('');
    expect(raw).not.toBe(frames.join(''));
    const { text } = pass('openai-responses', raw);
    const added = text.split('\n').filter((line) => line.includes('"response.output_item.added"') && line.includes('"message"'));
    expect(added).toEqual([expect.stringMatching(/"id":"msg_\w+"/)]);
  });

  test.each([
    ['an object', { a: 1 }, true],
    ['a text', '{"a":1}', false],
  ])('a call of Anthropic whose input is %s', (_, input, isKept) => {
    const body = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'asked',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input }],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const text = JSON.stringify(body);
    const reply = open('anthropic-messages').response({ status: 200, headers: {}, body, text });
    expect(reply.text === text).toBe(isKept);
    expect(reply.body).toMatchObject({ content: [{ type: 'tool_use', input: { a: 1 } }] });
  });
});
