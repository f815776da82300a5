import { describe, expect, test } from 'vitest';
import { CODECS, decodeRequest } from '../packages/core/src/engine/index.ts';
import { convertResponse } from '../packages/core/src/engine/response.ts';
import { type CodecError, convertRequest, type ProtocolId } from '../packages/core/src/index.ts';
import { findInexactNumber } from '../packages/core/src/json/literals.ts';
import { assemble, convert } from '../packages/lab/src/prove/wire.ts';

type Json = Record<string, unknown>;

const call = (id: string, text: string, name = 'f'): Json => ({ id, type: 'function', function: { name, arguments: text } });

const answer = (...calls: Json[]): Json => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: calls }, finish_reason: 'tool_calls' }],
});

const stream = (...calls: Json[]): Uint8Array[] => {
  const chunk = (delta: Json, finish: string | null): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const entries = calls.map((entry, index) => ({ index, ...entry }));
  return [new TextEncoder().encode(`${chunk({ tool_calls: entries }, null)}${chunk({}, 'tool_calls')}data: [DONE]\n\n`)];
};

const toClient = (to: ProtocolId, body: Json, strict = false) =>
  convertResponse(body, { from: CODECS['openai-chat'], to: CODECS[to], model: 'm', ...(strict && { policy: { strict: true } }) });

describe('call ids for Anthropic clients', () => {
  const ids = ['functions.Bash:0', 'functions:Bash.0', 'ok_id-1', 'ü'];
  const calls = ids.map((id) => call(id, '{}'));
  const idsIn = (content: unknown): string[] => (content as Json[]).map(({ id }) => String(id));
  const { body, notes } = toClient('anthropic-messages', answer(...calls));
  const whole = idsIn((body as Json)['content']);

  test('match ^[a-zA-Z0-9_-]+$, stay distinct, and valid ones are unchanged', () => {
    for (const id of whole) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(new Set(whole).size).toBe(ids.length);
    expect(whole[2]).toBe('ok_id-1');
    expect(whole[0]).toMatch(/^functions_.*Bash_.*0/);
  });

  /** The ids of a call and its result in the request in which an Anthropic client sends the call back. */
  function sendBack(id: string): unknown[] {
    const use = { type: 'tool_use', id, name: 'f', input: {} };
    const result = { type: 'tool_result', tool_use_id: id, content: 'ok' };
    const messages = [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: [use] },
      { role: 'user', content: [result] },
    ];
    const body = { model: 'm', max_tokens: 9, messages };
    return decodeRequest(body, { from: CODECS['anthropic-messages'] }).messages.flatMap(({ content }) =>
      content.flatMap((block) =>
        block.type === 'tool_use' ? [block.id] : block.type === 'tool_result' ? [block.tool_use_id] : [],
      ),
    );
  }

  test.each([...ids, 'a.b--cv0', 'a--cv0', 'a_002eb--cv0', 'x--cv1--y', '--cv0', '\ud800', '_002e', 'call:🙂'])(
    '%s comes back as the server wrote it',
    (id) => {
      const [sent = ''] = idsIn((toClient('anthropic-messages', answer(call(id, '{}'))).body as Json)['content']);
      expect(sent).toMatch(/^[a-zA-Z0-9_-]+$/);
      expect(sendBack(sent)).toEqual([id, id]);
    },
  );

  test.each(['toolu_01A', 'functions_Bash_0_0ffa7886', 'abc--cv0', 'a_b--cv0', 'A_002E--cv0', 'a_0062--cv0'])(
    '%s of a client, which only looks escaped, stays',
    (id) => {
      expect(sendBack(id)).toEqual([id, id]);
    },
  );

  test('a chat server gets its own id', () => {
    const [id = ''] = whole;
    const messages = [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'ok' }] },
    ];
    const options = { from: CODECS['anthropic-messages'], to: CODECS['openai-chat'] };
    const { body } = convertRequest({ model: 'm', max_tokens: 9, messages }, options);
    expect(body).toMatchObject({
      messages: [{ tool_calls: [{ id: 'functions.Bash:0' }] }, { tool_call_id: 'functions.Bash:0' }],
    });
  });

  test('long ids stay bounded and distinct', () => {
    const long = ['ü'.repeat(10_000), `${'ü'.repeat(9999)}x`];
    const sent = idsIn((toClient('anthropic-messages', answer(...long.map((id) => call(id, '{}')))).body as Json)['content']);
    expect(new Set(sent).size).toBe(2);
    for (const id of sent) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  });

  test('a server of the same protocol gets its own ids', () => {
    const body = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'tool_use', id: 'functions.Bash:0', name: 'f', input: {} }],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const codec = CODECS['anthropic-messages'];
    expect(idsIn((convertResponse(body, { from: codec, to: codec }).body as Json)['content'])).toEqual(['functions.Bash:0']);
  });

  test('are the same in a stream, with a note for each change', () => {
    const told: string[] = [];
    const out = convert('openai-chat', 'anthropic-messages', stream(...calls), ({ code, feature }) =>
      told.push(`${code} ${feature}`),
    );
    expect(assemble('anthropic-messages', out).tool_calls.map(({ id }) => id)).toEqual(whole);
    const renamed = (list: readonly string[]): number => list.filter((one) => one === 'RENAMED content.tool_use.id').length;
    expect([renamed(told), renamed(notes.map(({ code, feature }) => `${code} ${feature}`))]).toEqual([3, 3]);
  });
});

describe('numbers in arguments', () => {
  test.each<[string, string | undefined]>([
    ['{"a":1234567890123456789}', '1234567890123456789'],
    ['{"a":[-1234567890123456789]}', '-1234567890123456789'],
    ['{"a":1e400}', '1e400'],
    ['{"a":5e-400}', '5e-400'],
    ['{"a":0.12345678901234567890}', '0.12345678901234567890'],
    ['{"a":9007199254740993}', '9007199254740993'],
    ['{"a":9007199254740992}', undefined],
    ['{"a":1e3,"b":1E+2,"c":-0.0,"d":1.50,"e":100000000000000000000}', undefined],
    ['{"a":0.1,"b":1.7976931348623157e308,"c":5e-324}', undefined],
    ['{"a":"1234567890123456789 \\" 1e400"}', undefined],
    ['{}', undefined],
  ])('%s: %s is not exact', (text, expected) => {
    expect(findInexactNumber(text)).toBe(expected);
  });

  // In quadratic time, or with a regular expression for strings, these outlast the test or throw.
  test.each([
    ['zeros in a number', `{"a":1${'0'.repeat(1_000_000)}1}`, true],
    ['many strings', `{"a":[${'"\\"",'.repeat(300_000)}1e400]}`, true],
    ['a string of 30 MB', `{"a":"${'x'.repeat(30_000_000)}","b":12345678901234567890}`, true],
    ['exact numbers', `[${'1234567890.12345,'.repeat(100_000)}1]`, false],
  ])('%s are scanned once', (_, text, isFound) => {
    expect(findInexactNumber(text) !== undefined).toBe(isFound);
  });

  const TEXT = '{"n":1234567890123456789,\n"m":1e400}';

  test.each(['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'] as const)(
    'a stream to %s keeps the digits',
    (to) => {
      const out = Buffer.concat(convert('openai-chat', to, stream(call('a', TEXT)))).toString();
      expect(out).toContain('1234567890123456789');
      expect(out).toContain('1e400');
    },
  );

  test.each(['openai-chat', 'openai-responses'] as const)('a whole response to %s keeps the text', (to) => {
    const { body, notes } = toClient(to, answer(call('a', TEXT)), true);
    expect(JSON.stringify(body)).toContain('1234567890123456789');
    expect(notes.filter(({ feature }) => feature === 'tool_use.input.precision')).toEqual([]);
  });

  const history = (text: string): Json => ({
    model: 'm',
    max_completion_tokens: 99,
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [call('a', text)] },
      { role: 'tool', tool_call_id: 'a', content: 'ok' },
    ],
  });
  const MODELS = { 'anthropic-messages': 'claude-opus-5', gemini: 'gemini-3-pro' } as const;

  describe.each(['anthropic-messages', 'gemini'] as const)('a body for %s', (to) => {
    const ask = (text: string, strict: boolean) =>
      convertRequest(history(text), {
        from: 'openai-chat',
        to,
        model: MODELS[to],
        ...(strict && { policy: { strict: ['tool_use.input.precision'] } }),
      });

    test.each<
      [string, (text: string, strict: boolean) => { notes: readonly { code: string; feature: string; message: string }[] }]
    >([
      ['an answer', (text, strict) => toClient(to, answer(call('a', text)), strict)],
      ['a history', ask],
    ])('%s: the change is noted, and strict mode rejects it', (_, run) => {
      const found = run(TEXT, false).notes.filter(({ feature }) => feature === 'tool_use.input.precision');
      expect(found).toMatchObject([{ code: 'DROPPED', message: expect.stringContaining('1234567890123456789') }]);
      expect(run('{"n":12}', true).notes.filter(({ feature }) => feature === 'tool_use.input.precision')).toEqual([]);
      expect(() => run(TEXT, true)).toThrow(expect.objectContaining({ name: 'CodecError' }) as CodecError);
    });
  });
});

describe('numbers in arguments that are JSON values', () => {
  const ARGS = '{"id":12345678901234567890,"list":[{"e":1e400}],"x":0.1}';
  const OPENAI = ['openai-chat', 'openai-responses'] as const;
  const VALUES = ['anthropic-messages', 'gemini'] as const;

  const anthropic = `{"id":"m","type":"message","role":"assistant","model":"c","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2},"content":[{"type":"tool_use","id":"t","name":"f","input":${ARGS}}]}`;
  const gemini = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":${ARGS}}}]},"finishReason":"STOP","index":0}]}`;
  const chat = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":${ARGS}}}]}}]}`;
  const WHOLE: [ProtocolId, string][] = [
    ['anthropic-messages', anthropic],
    ['gemini', gemini],
    ['openai-chat', chat],
  ];

  const read = (from: ProtocolId, to: ProtocolId, text: string, strict = false) =>
    convertResponse(JSON.parse(text), { from: CODECS[from], to: CODECS[to], model: 'm', text, policy: { strict } });

  test.each(WHOLE.flatMap(([from, text]) => OPENAI.map((to) => [from, to, text] as const)))(
    'a whole response of %s to %s keeps their text',
    (from, to, text) => {
      const { body, notes } = read(from, to, text);
      expect(JSON.stringify(body)).toContain(JSON.stringify(ARGS));
      expect(notes.filter(({ feature }) => feature === 'tool_use.input.precision')).toEqual([]);
    },
  );

  test.each(WHOLE.flatMap(([from, text]) => VALUES.map((to) => [from, to, text] as const)))(
    'a whole response of %s to %s notes the change, and strict mode rejects it',
    (from, to, text) => {
      const found = read(from, to, text).notes.filter(({ feature }) => feature === 'tool_use.input.precision');
      expect(found).toMatchObject([{ code: 'DROPPED', message: expect.stringContaining('12345678901234567890') }]);
      expect(() => read(from, to, text, true)).toThrow('loses precision');
    },
  );

  const start = `event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":${ARGS}}}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`;
  const STREAMS: [ProtocolId, string][] = [
    ['gemini', `data: ${gemini}\r\n\r\n`],
    ['anthropic-messages', start],
    [
      'openai-chat',
      `data: ${chat.replace('"message":', '"delta":').replace('chat.completion', 'chat.completion.chunk')}\n\ndata: [DONE]\n\n`,
    ],
    ['openai-chat', `data: ${chat}\n\n`],
  ];

  test.each(
    STREAMS.flatMap(([from, text]) => [...OPENAI, ...VALUES].filter((to) => to !== from).map((to) => [from, to, text] as const)),
  )('a stream of %s to %s keeps their text', (from, to, text) => {
    const out = Buffer.concat(convert(from, to, [new TextEncoder().encode(text)])).toString();
    expect(out).toContain('12345678901234567890');
    expect(out).toContain('1e400');
  });

  test.each(OPENAI)('the history of an Anthropic client keeps its text for %s', (to) => {
    const text = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":${ARGS}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}]}`;
    const { body } = convertRequest(JSON.parse(text), { from: 'anthropic-messages', to, model: 'm', text });
    expect(JSON.stringify(body)).toContain(JSON.stringify(ARGS));
  });

  test('results of Gemini clients keep theirs', () => {
    const text = `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":${ARGS}}}]}]}`;
    const { body } = convertRequest(JSON.parse(text), { from: 'gemini', to: 'openai-chat', model: 'm', text });
    expect(JSON.stringify(body)).toContain('12345678901234567890');
  });

  test('equal values of different numbers stay distinct', () => {
    const ids = ['12345678901234567890', '12345678901234567891'];
    const parts = ids.map((id) => `{"functionCall":{"name":"f","args":{"id":${id}}}}`).join();
    const text = `{"candidates":[{"content":{"role":"model","parts":[${parts}]},"finishReason":"STOP"}]}`;
    const { body } = read('gemini', 'openai-chat', text);
    for (const id of ids) expect(JSON.stringify(body)).toContain(id);
  });

  test('text that does not belong to the body is not used', () => {
    const other = anthropic.replace('12345678901234567890', '99345678901234567890');
    const { body } = convertResponse(JSON.parse(anthropic), {
      from: CODECS['anthropic-messages'],
      to: CODECS['openai-chat'],
      text: other,
    });
    expect(JSON.stringify(body)).not.toContain('99345678901234567890');
    expect(JSON.stringify(body)).toContain('12345678901234567000');
  });

  test.each([
    ['a name twice', '{"a":{"id":12345678901234567890},"a":{"id":1}}', '{\\"a\\":{\\"id\\":1}}'],
    ['__proto__', '{"__proto__":{"id":12345678901234567890}}', '12345678901234567890'],
    ['escaped names', '{"\\u0061":12345678901234567890}', '12345678901234567890'],
  ])('%s', (_, args, expected) => {
    expect(JSON.stringify(read('anthropic-messages', 'openai-chat', anthropic.replace(ARGS, args)).body)).toContain(expected);
  });

  test('long arguments are searched once', () => {
    const args = `{"ids":[${'12345678901234567890,'.repeat(100_000)}1],"deep":${'['.repeat(200)}${']'.repeat(200)}}`;
    const parts = Array.from({ length: 20 }, () => `{"functionCall":{"name":"f","args":${args}}}`).join();
    const text = `{"candidates":[{"content":{"role":"model","parts":[${parts}]},"finishReason":"STOP"}]}`;
    const { body } = read('gemini', 'openai-chat', text);
    expect(JSON.stringify(body)).toContain('12345678901234567890,1]');
  });
});

describe('media in the results of parallel calls', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } };
  const result = (id: string): Json => ({ type: 'tool_result', tool_use_id: id, content: [image] });
  const use = (id: string, name: string): Json => ({ type: 'tool_use', id, name, input: {} });
  const body = (...pairs: [string, string][]): Json => ({
    model: 'm',
    max_tokens: 9000,
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: pairs.map(([id, name]) => use(id, name)) },
      { role: 'user', content: pairs.map(([id]) => result(id)) },
    ],
  });
  const send = (model: string, source: Json) => convertRequest(source, { from: 'anthropic-messages', to: 'gemini', model });
  const partsOf = ({ body: sent }: { body: unknown }): Json[] =>
    (sent as { contents: { parts: Json[] }[] }).contents.at(-1)?.parts ?? [];
  const media = ({ notes }: { notes: readonly { feature: string }[] }): number =>
    notes.filter(({ feature }) => feature === 'tool_result.media').length;

  test('before Gemini 3, each follows a text that names its call, with a note', () => {
    const sent = send('gemini-2.5-pro', body(['a', 'chart'], ['b', 'map']));
    const [, , first, , second] = partsOf(sent);
    expect([first, second]).toEqual([{ text: 'Media of the result of chart (a):' }, { text: 'Media of the result of map (b):' }]);
    expect(media(sent)).toBe(2);
  });

  test.each([
    ['of a single call need no label', 'gemini-2.5-pro', body(['a', 'chart']), 2],
    ['stand in the results of Gemini 3', 'gemini-3-pro', body(['a', 'chart'], ['b', 'map']), 2],
  ])('%s', (_, model, source, count) => {
    const sent = send(model, source);
    expect(partsOf(sent)).toHaveLength(count);
    expect(media(sent)).toBe(0);
  });
});

describe('a call without a name', () => {
  const nameless = { id: 'a', type: 'function', function: { arguments: '{"x":1}' } };

  test.each([
    ['anthropic-messages', { tool_calls: [{ name: 'tool_0' }], invalid_arguments: [0] }],
    ['openai-responses', { tool_calls: [{ name: 'tool_0' }], invalid_arguments: [0] }],
    ['gemini', { tool_calls: [] }],
  ] as const)('cannot be run by a client of %s', (to, expected) => {
    const told: string[] = [];
    const out = convert('openai-chat', to, stream(nameless), ({ feature }) => told.push(feature));
    expect(assemble(to, out)).toMatchObject(expected);
    if (to !== 'openai-responses') expect(told.some((feature) => feature.includes('tool_use'))).toBe(true);
  });

  test('is noted for chat, which cannot express it', () => {
    const told: string[] = [];
    convert('openai-chat', 'openai-chat', stream(nameless), ({ code, feature }) => told.push(`${code} ${feature}`));
    expect(told).toContain('APPROXIMATED content.tool_use');
  });
});
