import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OPENAI_SDKS } from '../../../../test/sdk/openai.ts';
import type { CanonicalEmbeddingRequest, CanonicalEmbeddingResponse } from '../../src/canonical/request.ts';
import type { Target, WireRequest } from '../../src/codec/protocol.ts';
import { packFloats, unpackFloats } from '../../src/codec/requests.ts';
import { embeddingRequest, embeddingResponse, MAX_INPUTS } from '../../src/protocols/openai-chat/models.ts';
import { bareContext, paramOf } from './bare-context.ts';

const wire = (body: unknown, path = '/v1/embeddings'): WireRequest => ({ method: 'POST', path, headers: {}, body });
const target: Target = {
  provider: { id: 'p', protocol: 'openai-chat', base_url: 'https://h' },
  model: 'upstream',
  stream: false,
};

const REQUESTS: [name: string, body: Record<string, unknown>, canonical: CanonicalEmbeddingRequest][] = [
  ['seed 7.2 one text', { model: 'm', input: 'a' }, { model: 'm', input: ['a'], single: true }],
  ['texts', { model: 'm', input: ['a', 'b'] }, { model: 'm', input: ['a', 'b'] }],
  ['a list of one text is no single text', { model: 'm', input: ['a'] }, { model: 'm', input: ['a'] }],
  ['tokens', { model: 'm', input: [1, 2] }, { model: 'm', input: [[1, 2]], single: true }],
  ['lists of tokens', { model: 'm', input: [[1], [2, 3]] }, { model: 'm', input: [[1], [2, 3]] }],
  ['a list of one list of tokens', { model: 'm', input: [[1, 2]] }, { model: 'm', input: [[1, 2]] }],
  [
    'seed 7.2 encoding_format',
    { model: 'm', input: 'a', encoding_format: 'base64' },
    { model: 'm', input: ['a'], single: true, encoding_format: 'base64' },
  ],
  [
    'seed 7.2 dimensions',
    { model: 'm', input: 'a', dimensions: 256 },
    { model: 'm', input: ['a'], single: true, dimensions: 256 },
  ],
  ['user', { model: 'm', input: 'a', user: 'u' }, { model: 'm', input: ['a'], single: true, user_id: 'u' }],
  [
    'fields of vendors',
    { model: 'm', input: 'a', input_type: 'query', task: 'retrieval.query' },
    { model: 'm', input: ['a'], single: true, extensions: { 'openai-chat': { input_type: 'query', task: 'retrieval.query' } } },
  ],
  [
    'a format of vendors',
    { model: 'm', input: 'a', encoding_format: 'int8' },
    { model: 'm', input: ['a'], single: true, extensions: { 'openai-chat': { encoding_format: 'int8' } } },
  ],
];

describe('request', () => {
  test.each(REQUESTS)('%s', (_, body, canonical) => {
    expect(embeddingRequest.decode(wire(body), bareContext())).toEqual(canonical);
    expect(embeddingRequest.encode(canonical, bareContext())).toMatchObject({ method: 'POST', path: '/v1/embeddings', body });
    expect(embeddingRequest.encode(canonical, bareContext()).body).toEqual(body);
  });

  test('null is absent', () => {
    const body = { model: 'm', input: 'a', encoding_format: null, dimensions: null, user: null };
    expect(embeddingRequest.decode(wire(body), bareContext())).toEqual({ model: 'm', input: ['a'], single: true });
  });

  test('Azure has the model in the path', () => {
    const { model } = embeddingRequest.decode(
      wire({ model: 'x', input: 'a' }, '/openai/deployments/ada/embeddings'),
      bareContext(),
    );
    expect(model).toBe('ada');
  });

  test("seed 7.2: the upstream's name of the model", () => {
    expect(embeddingRequest.encode({ model: 'm', input: ['a'] }, bareContext({ target })).body).toEqual({
      model: 'upstream',
      input: ['a'],
    });
  });

  test('what Gemini has and chat has not is told', () => {
    const context = bareContext();
    embeddingRequest.encode({ model: 'm', input: ['a'], task_type: 'RETRIEVAL_QUERY', title: 't' }, context);
    expect(context.notes.map(({ code, feature }) => `${code} ${feature}`)).toEqual([
      'DROPPED embeddings.task_type',
      'DROPPED embeddings.title',
    ]);
  });

  const many = (count: number): string[] => Array.from({ length: count }, () => 'a');
  const WRONG: [name: string, body: unknown, param: string][] = [
    ['no body', null, 'body'],
    ['no model', { input: 'a' }, 'model'],
    ['a number for a model', { model: 1, input: 'a' }, 'model'],
    ['no input', { model: 'm' }, 'input'],
    ['an empty list', { model: 'm', input: [] }, 'input'],
    ['an object', { model: 'm', input: {} }, 'input'],
    ['a mixed list', { model: 'm', input: ['a', 1] }, 'input[1]'],
    ['a text among tokens', { model: 'm', input: [1, 'a'] }, 'input[1]'],
    ['no integer', { model: 'm', input: [[1, 0.5]] }, 'input[0][1]'],
    ['a negative token', { model: 'm', input: [-1] }, 'input[0]'],
    ['an empty list of tokens', { model: 'm', input: ['a', []] }, 'input[1]'],
    ['too many inputs', { model: 'm', input: many(MAX_INPUTS + 1) }, 'input'],
    ['dimensions 0', { model: 'm', input: 'a', dimensions: 0 }, 'dimensions'],
    ['dimensions as text', { model: 'm', input: 'a', dimensions: '256' }, 'dimensions'],
    ['a user that is no text', { model: 'm', input: 'a', user: 5 }, 'user'],
  ];
  test.each(WRONG)('refuses %s', (_, body, param) =>
    expect(paramOf(() => embeddingRequest.decode(wire(body), bareContext()))).toBe(param),
  );
  test(`${MAX_INPUTS} inputs are allowed`, () => {
    expect(embeddingRequest.decode(wire({ model: 'm', input: many(MAX_INPUTS) }), bareContext()).input).toHaveLength(MAX_INPUTS);
  });
});

const VECTOR = [0.5, -2, 0];
const PACKED = 'AAAAPwAAAMAAAAAA';
const answer = (embedding: unknown, over: object = {}) => ({
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding }],
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 5, total_tokens: 5 },
  ...over,
});
const canonical = (embedding: number[] | string): CanonicalEmbeddingResponse => ({
  model: 'up',
  data: [{ index: 0, embedding }],
  usage: { input_tokens: 5 },
});

describe('response', () => {
  test('seed 7.2', () => {
    expect(embeddingResponse.decode(answer(VECTOR), bareContext())).toEqual({
      model: 'text-embedding-3-small',
      data: [{ index: 0, embedding: VECTOR }],
      usage: { input_tokens: 5 },
      extensions: { 'openai-chat': { usage: { prompt_tokens: 5, total_tokens: 5 } } },
    });
  });

  test.each([
    ['floats', answer(VECTOR)],
    ['base64', answer(PACKED)],
    [
      'costs and ids of vendors',
      answer(VECTOR, { id: 'e1', created: 7, usage: { prompt_tokens: 5, total_tokens: 9, cost: 0.1 } }),
    ],
    ['several', answer(VECTOR, { data: [0, 1, 2].map((index) => ({ object: 'embedding', index, embedding: [index] })) })],
  ])('identity: %s', (_, body) =>
    expect(embeddingResponse.encode(embeddingResponse.decode(body, bareContext()), bareContext())).toEqual(body),
  );

  type Format = CanonicalEmbeddingRequest['encoding_format'];
  const FORMATS: [name: string, has: number[] | string, asked: Format, gets: number[] | string][] = [
    ['#77 P126 floats for a client that asked for base64', VECTOR, 'base64', PACKED],
    ['#77 base64 for a client that asked for floats', PACKED, 'float', VECTOR],
    ['#77 base64 for a client that asked for nothing', PACKED, undefined, VECTOR],
    ['#77 base64 as asked', PACKED, 'base64', PACKED],
    ['#77 floats as asked', VECTOR, 'float', VECTOR],
  ];
  test.each(FORMATS)('%s', (_, has, asked, gets) => {
    const embedding: CanonicalEmbeddingRequest = { model: 'alias', input: ['a'], ...(asked && { encoding_format: asked }) };
    expect(embeddingResponse.encode(canonical(has), bareContext({ embedding }))).toEqual({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: gets }],
      model: 'alias',
      usage: { prompt_tokens: 5, total_tokens: 5 },
    });
  });

  test('a format of vendors is left alone', () => {
    const embedding = embeddingRequest.decode(wire({ model: 'm', input: 'a', encoding_format: 'int8' }), bareContext());
    expect(embeddingResponse.encode(canonical('AAA='), bareContext({ embedding }))).toMatchObject({
      data: [{ embedding: 'AAA=' }],
    });
  });

  test('#77 no usage (Gemini): the field is required, so it is 0', () => {
    const encoded = embeddingResponse.encode({ model: 'm', data: [] }, bareContext());
    expect(encoded).toMatchObject({ usage: { prompt_tokens: 0, total_tokens: 0 } });
  });

  test('an index that is missing is the place', () => {
    const { data } = embeddingResponse.decode({ data: [{ embedding: [1] }, { embedding: [2] }] }, bareContext());
    expect(data.map(({ index }) => index)).toEqual([0, 1]);
  });

  test('an unknown field of an embedding is noted once', () => {
    const context = bareContext();
    embeddingResponse.decode(
      {
        data: [
          { embedding: [1], x: 1 },
          { embedding: [2], x: 2 },
        ],
      },
      context,
    );
    expect(context.notes).toMatchObject([{ code: 'DROPPED', feature: 'embeddings.entry' }]);
  });

  const WRONG: [name: string, body: unknown, param: string][] = [
    ['nothing', undefined, 'UPSTREAM_ERROR'],
    ['no list', {}, 'data'],
    ['no embedding', { data: [{}] }, 'data[0].embedding'],
    ['null among the numbers', { data: [{ embedding: [1] }, { embedding: [1, null] }] }, 'data[1].embedding'],
    ['an error with status 200', { error: 'overloaded' }, 'UPSTREAM_ERROR'],
  ];
  test.each(WRONG)('refuses %s', (_, body, param) =>
    expect(paramOf(() => embeddingResponse.decode(body, bareContext()))).toBe(param),
  );

  test.each(['?', 'AAA', 'AAAA', 'AADAfw=='])('refuses %s as floats', (text) => {
    const run = () => embeddingResponse.encode(canonical(text), bareContext({ embedding: { model: 'm', input: ['a'] } }));
    expect(paramOf(run)).toBe('data[0].embedding');
  });
});

describe('packFloats and unpackFloats', () => {
  test('as node does it', () => {
    fc.assert(
      fc.property(fc.float32Array({ noNaN: true }), (floats) => {
        const packed = packFloats([...floats]);
        expect(packed).toBe(Buffer.from(floats.buffer, floats.byteOffset, floats.byteLength).toString('base64'));
        expect(unpackFloats(packed)).toEqual([...floats]);
        expect(unpackFloats(packed.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''))).toEqual([...floats]);
      }),
    );
  });

  test('any other text is refused', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const floats = unpackFloats(text);
        if (floats?.every((float) => !Number.isNaN(float)))
          expect(packFloats(floats).replaceAll('=', '')).toHaveLength(text.replace(/=+$/, '').length);
      }),
    );
  });
});

test.each(OPENAI_SDKS)('$name, which asks for base64 by itself, reads the floats', async ({ OpenAI }) => {
  const client = new OpenAI({
    apiKey: 'k',
    baseURL: 'http://h/v1',
    fetch: async (_url, init) => {
      const embedding = embeddingRequest.decode(wire(JSON.parse(String(init?.body))), bareContext());
      return Response.json(embeddingResponse.encode(canonical(VECTOR), bareContext({ embedding })));
    },
  });
  const read = await client.embeddings.create({ model: 'alias', input: 'a' });
  expect(Array.from(read.data[0]?.embedding ?? [])).toEqual(VECTOR);
  const floats = await client.embeddings.create({ model: 'alias', input: 'a', encoding_format: 'float' });
  expect(floats.data[0]?.embedding).toEqual(VECTOR);
  expect(floats.usage).toEqual({ prompt_tokens: 5, total_tokens: 5 });
});

test('hostile: any JSON is read or refused, and what was read can be written', () => {
  const body = fc.oneof(
    fc.jsonValue(),
    fc.record({ model: fc.jsonValue(), input: fc.jsonValue(), data: fc.array(fc.jsonValue()) }),
  );
  fc.assert(
    fc.property(body, (value) => {
      expect(() =>
        paramOf(() => embeddingRequest.encode(embeddingRequest.decode(wire(value), bareContext()), bareContext())),
      ).not.toThrow();
      expect(() =>
        paramOf(() => embeddingResponse.encode(embeddingResponse.decode(value, bareContext()), bareContext())),
      ).not.toThrow();
    }),
  );
});
