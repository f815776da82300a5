import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeCarrier, encodeCarrierInId } from '../../src/codec/answers.ts';
import { convertResponseToStream } from '../../src/engine/index.ts';
import { FrameEdge } from '../../src/engine/passthrough.ts';
import { CodecError, createExchange, type ProtocolId, type Provider } from '../../src/index.ts';
import { findJsonStrings, withFields } from '../../src/json/fields.ts';
import { CODECS } from '../../src/protocols/index.ts';

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const PATHS = {
  'openai-chat': '/v1/chat/completions',
  'anthropic-messages': '/v1/messages',
  'openai-responses': '/v1/responses',
  gemini: '/v1beta/models/m:streamGenerateContent?alt=sse',
} as const satisfies Record<ProtocolId, string>;

const QUESTIONS = {
  'openai-chat': { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  'anthropic-messages': { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { model: 'm', input: 'hi' },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
} as const satisfies Record<ProtocolId, object>;

const COMPLETION = {
  id: 'a',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Grüße 😀' }, finish_reason: 'stop' }],
};

const providerOf = (protocol: ProtocolId): Provider => ({ id: 'p', protocol, base_url: 'https://a.example/v1' });

/** An exchange whose stream is passed through. */
function passing(protocol: ProtocolId, body: object = {}) {
  const exchange = createExchange(protocol, protocol, {
    provider: providerOf(protocol),
    model: 'm',
    passthrough: true,
    stream: true,
  });
  exchange.request({ method: 'POST', path: PATHS[protocol], headers: {}, body: { model: 'm', stream: true, ...body } });
  return exchange;
}

const bodyOf = (to: ProtocolId): Uint8Array =>
  convertResponseToStream(COMPLETION, { from: CODECS['openai-chat'], to: CODECS[to] }).body;
const textOf = (pieces: Iterable<Uint8Array>): string => Buffer.concat([...pieces]).toString('utf8');
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe.each(PROTOCOLS)('%s', (protocol) => {
  const body = bodyOf(protocol);

  test('a stream goes through to the byte, wherever it is split', () => {
    for (let at = 0; at <= body.length; at++) {
      const stream = passing(protocol).stream();
      const pieces = [...stream.push(body.subarray(0, at)), ...stream.push(body.subarray(at)), ...stream.end()];
      expect(Buffer.concat(pieces).equals(body)).toBe(true);
    }
  });

  test('a stream that is cut anywhere ends in whole frames and an error', () => {
    // What is left out at the end of a stream may be nothing that counts: its last lines.
    for (let at = 1; at < body.length - 200; at += 3) {
      const stream = passing(protocol).stream();
      const passed = textOf([...stream.push(body.subarray(0, at)), ...stream.end()]);
      for (const frame of passed.trim().split(/\r?\n\r?\n/)) {
        const data = /^data: (.*)$/m.exec(frame)?.[1] ?? frame;
        expect(() => JSON.parse(data), frame).not.toThrow();
      }
      expect(stream.error?.code).toMatch(/STREAM_TRUNCATED|UPSTREAM_ERROR/);
    }
  });

  test('a body that is not a stream is sent as one', () => {
    const codec = CODECS[protocol];
    const whole = JSON.stringify(codec.response.encode(codecAnswer(), context(protocol)));
    for (const text of [whole, ` \r\n\uFEFF${whole}`]) {
      const stream = passing(protocol).stream();
      expect(textOf([...stream.push(bytes(text)), ...stream.end()])).toMatch(/^(event: \S+\n)?data: /);
      expect(stream.result).toMatchObject({ complete: true, message: { content: [{ text: 'hello' }] } });
    }
  });

  test('an event that is not JSON is not forwarded', () => {
    const frames = textOf([body]).split(/(?<=\n\r?\n)/);
    const stream = passing(protocol).stream();
    const passed = textOf([...stream.push(bytes(`${frames[0]}data: {oops\n\n${frames.slice(1).join('')}`)), ...stream.end()]);
    expect(passed.startsWith(frames[0] ?? '')).toBe(true);
    expect(passed).not.toContain('oops');
    expect(passed).toContain('not JSON');
    expect(stream.hasFailed).toBe(true);
  });

  test('an event refused by inspect is not passed on and ends the stream', () => {
    const refusal = { code: 'UPSTREAM_ERROR', message: 'no more of that', http_status: 502 } as const;
    const frames = textOf([body]).split(/(?<=\n\r?\n)/);
    for (const passthrough of [true, false]) {
      const exchange = createExchange(CODECS[protocol], CODECS[protocol], {
        provider: providerOf(protocol),
        model: 'm',
        passthrough,
        stream: true,
      });
      exchange.request({ method: 'POST', path: PATHS[protocol], headers: {}, body: QUESTIONS[protocol] });
      const stream = exchange.stream({ inspect: ({ type }) => (type === 'content_block_delta' ? refusal : undefined) });
      const passed = textOf([...stream.push(bytes(frames.join(''))), ...stream.push(body), ...stream.end()]);
      expect(passed).toContain('no more of that');
      expect(passed).not.toContain('Grüße');
      expect(stream).toMatchObject({ hasFailed: true, error: refusal });
    }
  });

  test('nothing at all is an error', () => {
    for (const text of ['', ' \n']) {
      const stream = passing(protocol).stream();
      expect(textOf([...stream.push(bytes(text)), ...stream.end()])).toContain('error');
      expect(stream.error).toBeDefined();
    }
  });

  test('an event that is too long is the fault of the source', () => {
    const exchange = createExchange(protocol, protocol, {
      provider: providerOf(protocol),
      passthrough: true,
      model: 'm',
      stream: true,
      maxEventBytes: 1000,
      maxLineBytes: 1000,
    });
    exchange.request({ method: 'POST', path: PATHS[protocol], headers: {}, body: {} });
    const stream = exchange.stream();
    const passed = textOf(stream.push(bytes(`data: ${'x'.repeat(2000)}`)));
    expect(passed).toContain('longer than allowed');
    expect(passed).not.toMatch(/request_too_large|xxx/);
  });
});

describe('a missing terminal marker', () => {
  /** How complete streams end. Responses ends with its finish itself, and Gemini with the end of the body. */
  const MARKERS = [
    ['openai-chat', 'data: [DONE]\n\n'],
    ['anthropic-messages', 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
  ] as const;

  /** Passes the bytes on in two pieces. */
  function pass(protocol: ProtocolId, text: string, splitAt = 0, close: 'end' | 'fail' = 'end'): string {
    const stream = passing(protocol).stream();
    const body = bytes(text);
    const pushed = [...stream.push(body.subarray(0, splitAt)), ...stream.push(body.subarray(splitAt))];
    return textOf([...pushed, ...(close === 'end' ? stream.end() : stream.fail('connection reset'))]);
  }

  describe.each(MARKERS)('%s', (protocol, marker) => {
    const whole = textOf([bodyOf(protocol)]);
    const content = whole.slice(0, whole.indexOf(marker));

    test.each(['end', 'fail'] as const)('is added after a finish reason, wherever the marker is cut: %s', (close) => {
      expect(whole.endsWith(marker)).toBe(true);
      for (let length = 0; length <= marker.length; length++) {
        const passed = pass(protocol, content + marker.slice(0, length), content.length, close);
        // A frame that lacks only its blank line gets one, whether its last line has ended or not.
        expect(passed.replace(/\n+$/, '\n\n'), marker.slice(0, length)).toBe(whole);
      }
    });

    test('is added wherever the stream is split', () => {
      for (let at = 0; at <= bytes(content).length; at++) expect(pass(protocol, content, at)).toBe(whole);
    });

    test.each(['\r\n', '\r'])('is added to a stream with other line ends: %j', (lineEnd) => {
      const changed = content.replaceAll('\n', lineEnd);
      expect(pass(protocol, changed)).toBe(changed + marker);
    });

    test('is added behind a comment and behind half a field', () => {
      expect(pass(protocol, `${content}: ping\n\n`)).toBe(`${content}: ping\n\n${marker}`);
      expect(pass(protocol, `${content}da`)).toBe(whole);
    });

    test('is not added twice', () => expect(pass(protocol, whole + marker)).toBe(whole + marker));

    test('is not added to a truncated or failed stream', () => {
      const frames = content.split(/(?<=\n\n)/);
      const begun = frames.slice(0, 2).join('');
      const failed = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n';
      for (const text of [begun, begun + failed, content + failed]) {
        for (const close of ['end', 'fail'] as const) expect(pass(protocol, text, 0, close)).not.toContain(marker);
      }
    });
  });

  test('the marker of another protocol does not replace message_stop', () => {
    const [, [protocol, marker]] = MARKERS;
    const whole = textOf([bodyOf(protocol)]);
    const relayed = whole.replace(marker, 'data: [DONE]\n\n');
    expect(pass(protocol, relayed)).toBe(relayed + marker);
  });

  test.each(['openai-responses', 'gemini'] as const)('nothing is added where the protocol has no such marker: %s', (protocol) => {
    const whole = textOf([bodyOf(protocol)]);
    expect(pass(protocol, whole)).toBe(whole);
  });

  test('a Responses stream without its last event is truncated', () => {
    const whole = textOf([bodyOf('openai-responses')]);
    const passed = pass('openai-responses', whole.slice(0, whole.indexOf('event: response.completed')));
    expect(passed).toContain('response.failed');
    expect(passed).not.toContain('event: response.completed');
  });
});

const codecAnswer = () => ({
  id: 'a',
  model: 'm',
  content: [{ type: 'text' as const, text: 'hello' }],
  stop_reason: 'end_turn' as const,
});
const context = (protocol: ProtocolId) => ({
  report: () => undefined,
  note: () => undefined,
  now: () => 1,
  newId: (prefix: string) => `${prefix}1`,
  profile: CODECS[protocol].profileFor(''),
  policy: {},
});

test('who wants a list gets one, from an encoder', () => {
  const exchange = createExchange('gemini', 'gemini', {
    provider: providerOf('gemini'),
    model: 'm',
    passthrough: true,
    stream: true,
  });
  exchange.request({
    method: 'POST',
    path: '/v1beta/models/m:streamGenerateContent',
    headers: {},
    body: { contents: [{ parts: [{ text: 'hi' }] }] },
  });
  const stream = exchange.stream();
  expect(JSON.parse(textOf([...stream.push(bodyOf('gemini')), ...stream.end()]))).toBeInstanceOf(Array);
});

test('an answer that is an error is one, and what cannot be read is passed on', () => {
  const reply = (body: unknown) => ({ status: 200, headers: {}, body });
  expect(() => passing('openai-chat').response(reply({ error: { message: 'no' } }))).toThrow(CodecError);
  const odd = reply({ odd: true });
  expect(passing('openai-chat').response(odd)).toBe(odd);
});

test('what a client says beside its body is passed on, but for what the operator says', () => {
  const headers = { 'anthropic-version': '2099-01-01', 'anthropic-beta': 'b', authorization: 'Bearer client', cookie: 'c' };
  const ask = (provider: Provider) =>
    createExchange('anthropic', 'anthropic', { provider, passthrough: true }).request({
      method: 'POST',
      path: '/v1/messages',
      headers,
      body: { model: 'm' },
    }).headers;
  const plain = ask({ ...providerOf('anthropic-messages'), api_key: 'key' });
  expect(plain).toMatchObject({ 'anthropic-version': '2099-01-01', 'anthropic-beta': 'b', 'x-api-key': 'key' });
  expect(plain).not.toHaveProperty('cookie');
  expect(plain).not.toHaveProperty('authorization');
  const adapter_config = { headers: { 'Anthropic-Version': 'v' } };
  expect(ask({ ...providerOf('anthropic-messages'), adapter_config })['anthropic-version']).toBe('v');
});

describe('top-level fields in the text of a request', () => {
  test.each([
    ['{"model":"a","n":12345678901234567890,"t":1.0}', '{"model":"b","n":12345678901234567890,"t":1.0}'],
    ['{ "x" : "model", "model" : "a\\"b" }', '{ "x" : "model", "model" : "b" }'],
    [
      '{"y":{"model":"inner"},"l":[{"model":"inner"}],"mod\\u0065l":"a"}',
      '{"y":{"model":"inner"},"l":[{"model":"inner"}],"mod\\u0065l":"b"}',
    ],
    ['{"s":"\\\\","model":"a"}', '{"s":"\\\\","model":"b"}'],
    ['{"s":"\\"model\\":\\"x\\"","model":"a"}', '{"s":"\\"model\\":\\"x\\"","model":"b"}'],
    ['{"model":"a","model":"a"}', undefined],
    ['{"model":"a","mod\\u0065l":"a"}', undefined],
    ['{"model":"a","model":null}', undefined],
    ['{"model":7 ,"x":1}', '{"model":"b" ,"x":1}'],
    ['{"model": [1, {"model": "a"}] }', '{"model": "b" }'],
    ['{}', '{"model":"b"}'],
    [' { } ', ' { "model":"b"} '],
    ['{"x":{}}\n', '{"x":{},"model":"b"}\n'],
  ])('%s has another model', (text, expected) => expect(withFields(text, { model: 'b' })).toBe(expected));

  test.each([
    ['{"stream":true,"model":"a"}', '{"stream":true,"model":"b","stream_options":{"include_usage":true}}'],
    [
      '{"stream_options" : { "include_usage":false , "x":"}" },"model":"a"}',
      '{"stream_options" : {"include_usage":true},"model":"b"}',
    ],
    ['{"stream_options":null,"model":"a"}', '{"stream_options":{"include_usage":true},"model":"b"}'],
    ['{"stream_options":null,"model":"a","stream_options":{}}', undefined],
  ])('%s has another model and other stream options', (text, expected) =>
    expect(withFields(text, { stream_options: { include_usage: true }, model: 'b' })).toBe(expected),
  );

  test('any request reads as before, but for the name', () =>
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.string(),
        fc.string(),
        fc.nat(3),
        (fields, before, after, indent) => {
          const { model: _, ...rest } = fields;
          const entries = Object.entries(rest);
          const body = Object.fromEntries([...entries.slice(0, indent), ['model', before], ...entries.slice(indent)]);
          const renamed = withFields(JSON.stringify(body, null, indent), { model: after });
          expect(renamed).toBe(JSON.stringify({ ...body, model: after }, null, indent));
        },
      ),
    ));
});

describe('strings at a path of a text', () => {
  const PATH = ['requests', '*', 'params', 'model'];
  test.each([
    ['{"requests":[{"params":{"model":"a"}},{"params":{"x":[{"model":1}],"model":"b"}}]}', ['"a"', '"b"']],
    [' { "requests" : [ { "params" : { "model" : "a" } } , { } , [ ] , null , "x" , 1.50 ] , "model" : "c" } ', ['"a"']],
    ['{"requests":[]}', []],
    ['{"requests":{"params":{"model":"a"}}}', []],
    ['{"requests":[{"params":"model"},{"params":{"model":["a"]}},{"params":{"model":null}}]}', []],
    ['{"requests":[{"p\\u0061rams":{"\\u006d\\u006f\\u0064\\u0065\\u006c":"a\\"b"}}]}', ['"a\\"b"']],
    ['{"requests":[{"params":{"model":"a","model":"b"}}]}', undefined],
    ['{"requests":[],"requests":[]}', undefined],
    ['[{"requests":[{"params":{"model":"a"}}]}]', []],
    ['"requests"', []],
    ['7', []],
  ])('%s', (text, expected) => {
    expect(findJsonStrings(text, PATH)?.map(({ start, end }) => text.slice(start, end))).toEqual(expected);
  });

  test('deep and long texts are read in linear time', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    const text = `{"a":${deep},"b":"${'\\\\'.repeat(500_000)}","model":"m"}`;
    expect(findJsonStrings(text, ['model'])).toHaveLength(1);
  });
});

describe('the edge of the last frame', () => {
  test.each([
    ['data: a\n\n', 9],
    ['data: a\n\ndata: b', 9],
    ['data: a\r\n\r\n', 11],
    ['data: a\r\n\r\ndata', 11],
    ['data: a\r\r', 9],
    ['data: a\r\n', 0],
    ['data: a\n', 0],
    ['data: a', 0],
    ['a\n\n\n', 4],
  ])('%j: %i', (text, edge) => {
    expect(new FrameEdge().in(bytes(text))).toBe(edge);
    // Byte by byte, the last edge is at the same place.
    const split = new FrameEdge();
    let last = 0;
    Array.from(bytes(text)).forEach((byte, at) => {
      if (split.in(Uint8Array.of(byte)) === 1) last = at + 1;
    });
    expect(last).toBe(edge);
  });
});

describe('state of another provider does not reach an unknown provider in a request that is passed on', () => {
  const BLOB = { origin: 'gemini', form: 'thought_signature', value: 'secret' } as const;
  const carrier = encodeCarrier(BLOB, 'google', 'self');
  const foreign = encodeCarrier({ origin: 'anthropic-messages', form: 'signature', value: 'secret' }, 'anthropic', 'self');
  const call = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'r' });
  const carrying = encodeCarrierInId('toolu_1', BLOB, 'google', 'self') ?? '';
  const REQUESTS: [name: string, ProtocolId, path: string, body: object][] = [
    [
      'a call id of Anthropic',
      'anthropic-messages',
      '/v1/messages',
      {
        model: 'm',
        max_tokens: 9,
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: [call(carrying)] },
          { role: 'user', content: [result(carrying)] },
        ],
      },
    ],
    [
      'a signature of Anthropic',
      'anthropic-messages',
      '/v1/messages',
      {
        model: 'm',
        max_tokens: 9,
        messages: [
          { role: 'user', content: 'hi' },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'h', signature: carrier },
              { type: 'text', text: 'a' },
            ],
          },
          { role: 'user', content: 'hi' },
        ],
      },
    ],
    [
      'a signature of Gemini',
      'gemini',
      '/v1beta/models/m:generateContent',
      {
        contents: [
          { role: 'user', parts: [{ text: 'hi' }] },
          { role: 'model', parts: [{ text: 'a', thoughtSignature: btoa(foreign) }] },
          { role: 'user', parts: [{ text: 'hi' }] },
        ],
      },
    ],
    [
      'reasoning of Responses',
      'openai-responses',
      '/v1/responses',
      {
        model: 'm',
        input: [
          { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: carrier },
          { role: 'user', content: 'hi' },
        ],
      },
    ],
  ];

  test.each(REQUESTS)('%s', (_, protocol, path, body) => {
    const provider = { id: 'own', protocol, base_url: 'https://own.example.com/v1', api_key: 'k' };
    const exchange = createExchange(CODECS[protocol], CODECS[protocol], { provider, model: 'm' });
    const sent = exchange.request({ method: 'POST', path, headers: {}, body, text: JSON.stringify(body) });
    const written = sent.text ?? JSON.stringify(sent.body);
    for (const secret of ['secret', btoa('secret').replace(/=+$/, ''), btoa(foreign)]) expect(written).not.toContain(secret);
  });
});
