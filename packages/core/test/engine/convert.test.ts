import { describe, expect, test } from 'vitest';
import { locate } from '../../src/canonical/source.ts';
import { NoteList } from '../../src/engine/context.ts';
import {
  buildTokenEstimate,
  convertModels,
  convertRerankRequest,
  convertResponseToStream,
  convertStreamToResponse,
  decodeRequest,
  estimateTokens,
} from '../../src/engine/index.ts';
import { reportProtocolOnlyFields, SourceBody } from '../../src/engine/request.ts';
import {
  CodecError,
  convertError,
  convertRequest,
  convertResponse,
  createStreamConverter,
  type Policy,
} from '../../src/index.ts';
import { CODECS } from '../../src/protocols/index.ts';
import { bareContext } from '../openai-chat/bare-context.ts';

const HI = { role: 'user', content: 'hi' };
const ask = (over: object = {}) => ({
  model: 'gpt-5',
  messages: [{ role: 'user', content: 'hi' }],
  max_completion_tokens: 99,
  ...over,
});

const errorOf = (run: () => unknown): CodecError['error'] => {
  try {
    run();
  } catch (error) {
    if (error instanceof CodecError) return error.error;
    throw error;
  }
  throw new Error('nothing was thrown');
};

describe('notes point into the source', () => {
  test.each([
    ['/parameters/max_tokens', '/max_completion_tokens'],
    ['/parameters/top_k', '/top_k'],
    ['/output_format/json_schema', '/response_format/json_schema'],
    ['/outputs', '/outputs'],
    ['', ''],
  ])('%s of the canonical request is %s of chat', (path, pointer) =>
    expect(locate(path, decodeRequest(ask(), { from: CODECS['openai-chat'] }))).toBe(pointer),
  );

  test('of the root, of a message, of a tool', () => {
    const { notes } = convertRequest(
      ask({
        seed: 7,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'x', colour: 'red' }] }],
        house: 1,
        tools: [{ type: 'function', function: { name: 'f', odd: true } }],
      }),
      { from: 'openai-chat', to: 'anthropic' },
    );
    const paths = notes.filter(({ code }) => code === 'DROPPED').map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining(['/seed', '/house', '/messages/0/content/0/colour', '/tools/0/function/odd']));
  });

  test('each is noted once', () => {
    const list = new NoteList();
    const note = { code: 'DROPPED', path: '/a', feature: 'f', message: 'm' } as const;
    for (const each of [note, note, { ...note, path: '/b' }]) list.add(each);
    expect(list.list).toHaveLength(2);
  });

  test('fields of strangers are data', () => {
    const body = JSON.parse('{"model":"m","messages":[{"role":"user","content":"x"}],"__proto__":{"a":1},"a/b~c":1}');
    const { notes } = convertRequest(body, { from: 'openai-chat', to: 'gemini' });
    expect(notes.map(({ path }) => path)).toEqual(['/__proto__', '/a~1b~0c']);
  });

  test('what the canonical request says too is not unknown', () => {
    const body = ask({ metadata: { a: 'b' }, safety_identifier: 'u', prompt_cache_retention: '24h', enable_thinking: true });
    const context = bareContext();
    const codec = CODECS['openai-chat'];
    reportProtocolOnlyFields(decodeRequest(body, { from: codec }), new SourceBody(body, codec), codec, context);
    expect(context.notes).toEqual([]);
  });
});

test.each<[name: string, from: 'openai-chat' | 'openai-responses', body: object, paths: string[]]>([
  [
    'a system message, kept on its first block',
    'openai-chat',
    ask({ messages: [{ role: 'system', content: 'Be brief.', mood: 1 }, HI] }),
    ['/messages/0/mood'],
  ],
  [
    'reasoning under two names',
    'openai-chat',
    ask({ messages: [HI, { role: 'assistant', content: 'a', reasoning: 'r', reasoning_content: 'r' }, HI] }),
    ['/messages/1/reasoning'],
  ],
  [
    'a namespace, kept on its first tool',
    'openai-responses',
    {
      model: 'm',
      input: 'hi',
      tools: [{ type: 'namespace', name: 'n', icon: 'i', tools: [{ type: 'function', name: 'f', parameters: {} }] }],
    },
    ['/tools/0/icon'],
  ],
  [
    'an item of the assistant, kept on its parts',
    'openai-responses',
    {
      model: 'm',
      input: [
        {
          type: 'message',
          role: 'assistant',
          phase: 'commentary',
          mood: 1,
          content: ['a', 'b'].map((text) => ({ type: 'output_text', text })),
        },
        { role: 'user', content: 'hi' },
      ],
    },
    ['/input/0/phase', '/input/0/mood'],
  ],
  [
    'an instruction, kept on its first part',
    'openai-responses',
    {
      model: 'm',
      input: [
        { role: 'developer', mood: 1, content: [{ type: 'input_text', text: 'x' }] },
        { role: 'user', content: 'hi' },
      ],
    },
    ['/input/0/mood'],
  ],
])('notes point to fields of %s', (_, from, body, paths) => {
  const { notes } = convertRequest(body, { from, to: 'gemini' });
  expect(notes.filter(({ feature }) => feature.startsWith('unknown.')).map(({ path }) => path)).toEqual(paths);
});

describe('strict', () => {
  const convert =
    (strict: Policy['strict'], body = ask({ seed: 7, house: 1 })) =>
    () =>
      convertRequest(body, { from: 'openai-chat', to: 'anthropic', policy: { ...(strict !== undefined && { strict }) } });

  test.each([
    ['in everything', true, '/house'],
    ['in one feature', ['parameters.seed'], '/seed'],
    ['in fields nobody knows', ['unknown.house'], '/house'],
  ])('%s', (_, strict, param) =>
    expect(errorOf(convert(strict))).toMatchObject({ code: 'INCOMPATIBLE_FEATURE', http_status: 400, param }),
  );

  test('not in others', () => expect(convert(['parameters.top_k'])).not.toThrow());
});

describe('the model', () => {
  test.each([
    ['of the body', { body: ask(), options: {}, model: 'gpt-5' }],
    ['of the option', { body: ask(), options: { model: 'claude' }, model: 'claude' }],
    ['of the option where the body has none', { body: ask({ model: undefined }), options: { model: 'claude' }, model: 'claude' }],
  ])('%s', (_, { body, options, model }) =>
    expect(convertRequest(body, { from: 'openai-chat', to: 'anthropic', ...options }).body).toMatchObject({ model }),
  );

  test('of Gemini is in the path, both ways', () => {
    const { path, body } = convertRequest(ask(), { from: 'openai-chat', to: 'gemini', model: 'gemini-3-pro', stream: true });
    expect(path).toMatch(/models\/gemini-3-pro:streamGenerateContent\?alt=sse$/);
    expect(convertRequest(body, { from: 'gemini', to: 'openai-chat', path }).body).toMatchObject({
      model: 'gemini-3-pro',
      stream: true,
    });
  });

  test('in the answer is the one that was asked for, or the one that is said', () => {
    const answer = {
      id: 'a',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [{ type: 'text', text: 'x' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const { request } = convertRequest(ask(), { from: 'openai-chat', to: 'anthropic' });
    const models = [{}, { request }, { request, model: 'm' }, { model: 'm' }].map(
      (options) => convertResponse(answer, { from: 'anthropic', to: 'openai-chat', ...options }).body,
    );
    expect(models).toMatchObject([{ model: 'claude' }, { model: 'gpt-5' }, { model: 'm' }, { model: 'm' }]);
  });
});

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (pieces: Iterable<Uint8Array>) => new TextDecoder().decode(Buffer.concat([...pieces]));
const STREAM = `${chunk({ role: 'assistant', content: 'so ' })}${chunk({ content: 'it is' })}${chunk({}, 'stop')}data: [DONE]\n\n`;

describe('streams', () => {
  test('flow: what has come goes on at once', () => {
    const converter = createStreamConverter({ from: 'openai-chat', to: 'anthropic' });
    expect(textOf(converter.push(bytes(chunk({ content: 'so ' }))))).toContain('"text":"so "');
    expect(textOf(converter.push(bytes(chunk({ content: 'it is' }))))).toContain('"text":"it is"');
  });

  test('a tap keeps the whole message, and only if it is wanted', () => {
    for (const tap of [true, false]) {
      const converter = createStreamConverter({ from: 'openai-chat', to: 'gemini', tap });
      void [...converter.push(bytes(STREAM)), ...converter.end()];
      expect(converter.result?.message.content).toEqual(tap ? [{ type: 'text', text: 'so it is' }] : undefined);
    }
  });

  test.each(['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'] as const)('ends in an error of %s', (to) => {
    for (const end of ['end', 'fail'] as const) {
      const converter = createStreamConverter({ from: 'openai-chat', to });
      const begun = textOf(converter.push(bytes(chunk({ content: 'so' }))));
      const rest = textOf(end === 'end' ? converter.end() : converter.fail('the line went dead'));
      expect(begun).toContain('so');
      expect(rest).toMatch(end === 'end' ? /error/i : /the line went dead/);
      expect(rest).not.toMatch(/^data: \[DONE\]/m);
      expect(converter.error?.code).toBe(end === 'end' ? 'STREAM_TRUNCATED' : 'UPSTREAM_ERROR');
      expect([...converter.end(), ...converter.fail('again'), ...converter.push(bytes(STREAM))]).toEqual([]);
    }
  });

  test('a loss that strict refuses ends the stream, and is told', () => {
    const audio = chunk({ audio: { id: 'a', data: 'AAAA' } });
    const options = { from: 'openai-chat', to: 'anthropic' } as const;
    const lenient = createStreamConverter(options);
    void [...lenient.push(bytes(audio + STREAM)), ...lenient.end()];
    expect(lenient.notes).toMatchObject([{ code: 'DROPPED', feature: 'content.audio' }]);
    const strict = createStreamConverter({ ...options, policy: { strict: true } });
    expect(textOf([...strict.push(bytes(audio + STREAM)), ...strict.end()])).toMatch(/event: error\n[^\n]*\n\n$/);
    expect(strict.error).toMatchObject({ code: 'INCOMPATIBLE_FEATURE' });
  });

  test('of Gemini as one JSON list', () => {
    const read = (source: string) => {
      const converter = createStreamConverter({ from: 'openai-chat', to: 'gemini', framing: 'json-array' });
      return JSON.parse(textOf([...converter.push(bytes(source)), ...converter.end()]));
    };
    expect(read(STREAM)).toMatchObject([{ candidates: [{ content: { parts: [{ text: 'so ' }] } }] }, {}, {}]);
    expect(read(chunk({ content: 'so' })).at(-1)).toMatchObject({ error: {} });
    expect(read('')).toMatchObject([{ error: {} }]);
  });

  test('what the source did wrong is named', () => {
    const converter = createStreamConverter({ from: 'openai-chat', to: 'openai-chat' });
    void [...converter.push(bytes(`data: {oops\n\n${STREAM}`)), ...converter.end()];
    expect(converter.diagnostics).toMatchObject([{ rule: 'sse/malformed-json' }]);
  });
});

describe('whole and streamed', () => {
  test('collected and replayed', () => {
    const { body } = convertStreamToResponse([bytes(STREAM)], { from: CODECS['openai-chat'], to: CODECS['anthropic-messages'] });
    expect(body).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'so it is' }] });
    const stream = new TextDecoder().decode(
      convertResponseToStream(body, { from: CODECS['anthropic-messages'], to: CODECS['openai-chat'] }).body,
    );
    expect(stream).toMatch(/"content":"so it is"[\s\S]*"finish_reason":"stop"[\s\S]*\[DONE\]/);
  });

  test('a stream that fails or ends early is no answer', () => {
    const collect = (text: string) => () =>
      convertStreamToResponse([bytes(text)], { from: CODECS['openai-chat'], to: CODECS.gemini });
    expect(errorOf(collect(chunk({ content: 'so' })))).toMatchObject({ code: 'STREAM_TRUNCATED' });
    expect(errorOf(collect('data: {"error":{"message":"no"}}\n\n'))).toMatchObject({ message: 'no' });
  });
});

describe('errors', () => {
  test.each([
    [
      'P127: overloaded, to a chat client',
      'anthropic',
      'openai-chat',
      529,
      { type: 'error', error: { type: 'overloaded_error', message: 'x' } },
      503,
    ],
    ['P127: overloaded, to an Anthropic client', 'openai-chat', 'anthropic', 503, { error: { message: 'x' } }, 529],
    ['rate limit', 'gemini', 'responses', 429, { error: { code: 429, message: 'x', status: 'RESOURCE_EXHAUSTED' } }, 429],
    ['a page', 'openai-chat', 'gemini', 502, '<html><body>x</body></html>', 502, 'HTML page'],
  ] as const)('%s', (_, from, to, status, body, expected, message: string = '"x"') => {
    const reply = convertError({ status, headers: { 'retry-after': '2' }, body }, { from, to });
    expect(reply.status).toBe(expected);
    expect(JSON.stringify(reply.body)).toContain(message);
    expect(reply.error.retry_after_ms).toBe(2000);
  });
});

describe('other interfaces', () => {
  test('models', () => {
    const list = { object: 'list', data: [{ id: 'm', object: 'model', created: 1, owned_by: 'o' }] };
    expect(convertModels(list, { from: CODECS['openai-chat'], to: CODECS['anthropic-messages'] }).body).toMatchObject({
      data: [{ id: 'm', type: 'model' }],
    });
  });

  test('one that the target does not have', () => {
    const rank = () =>
      convertRerankRequest({ model: 'm', query: 'q', documents: ['d'] }, { from: CODECS['openai-chat'], to: CODECS.gemini });
    expect(errorOf(rank)).toEqual({ code: 'UNSUPPORTED_INTERFACE', message: 'gemini has no rerank interface', http_status: 404 });
  });

  test('P129: tokens are estimated if the upstream does not count them', () => {
    const body = { model: 'm', system: 'Be brief.', messages: [{ role: 'user', content: 'x'.repeat(400) }] };
    const answer = buildTokenEstimate(
      { method: 'POST', path: '/v1/messages/count_tokens', headers: {}, body },
      CODECS['anthropic-messages'],
    );
    expect(answer).toEqual({ input_tokens: expect.any(Number) });
    expect(estimateTokens(decodeRequest({ ...body, max_tokens: 1 }, { from: CODECS['anthropic-messages'] }))).toEqual({
      input_tokens: 107,
      estimated: true,
    });
  });

  test.each([
    ['English', 'The quick brown fox jumps over the lazy dog. '.repeat(10), 100, 130],
    ['Japanese', '吾輩は猫である。'.repeat(10), 40, 80],
  ])('an estimate of %s is near', (_, text, least, most) => {
    const { input_tokens: count } = estimateTokens({
      model: 'm',
      parameters: {},
      messages: [{ role: 'user', content: [{ type: 'text', text }] }],
    });
    expect(count).toBeGreaterThan(least);
    expect(count).toBeLessThan(most);
  });
});

test('a name that is no protocol', () => {
  // @ts-expect-error: what JavaScript may say
  expect(() => convertRequest(ask(), { from: 'openai', to: 'toString' })).toThrow(
    'unknown protocol "toString"; known: openai-chat,',
  );
});
