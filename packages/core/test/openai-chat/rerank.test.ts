import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CanonicalRerankRequest, CanonicalRerankResponse } from '../../src/canonical/request.ts';
import type { Target, WireRequest } from '../../src/codec/protocol.ts';
import { rerankRequest, rerankResponse } from '../../src/protocols/openai-chat/models.ts';
import { bareContext, paramOf } from './bare-context.ts';

const wire = (body: unknown, path = '/v1/rerank'): WireRequest => ({ method: 'POST', path, headers: {}, body });
const target: Target = {
  provider: { id: 'p', protocol: 'openai-chat', base_url: 'https://h' },
  model: 'upstream',
  stream: false,
};
const question = { model: 'm', query: 'q', documents: ['a', 'b', 'c'] };

describe('request', () => {
  const REQUESTS: [name: string, body: Record<string, unknown>, canonical: CanonicalRerankRequest][] = [
    ['#4 the least', question, question],
    ['Jina', { ...question, top_n: 2, return_documents: false }, { ...question, top_n: 2, return_documents: false }],
    [
      'Cohere v1',
      { ...question, rank_fields: ['t'], max_chunks_per_doc: 10 },
      { ...question, rank_fields: ['t'], max_chunks_per_doc: 10 },
    ],
    ['Cohere v2', { ...question, max_tokens_per_doc: 4096 }, { ...question, max_tokens_per_doc: 4096 }],
    ['objects', { ...question, documents: [{ text: 'a', n: 1 }, 'b'] }, { ...question, documents: [{ text: 'a', n: 1 }, 'b'] }],
    [
      'fields of vendors',
      { ...question, truncation: true },
      { ...question, extensions: { 'openai-chat': { truncation: true } } },
    ],
  ];
  test.each(REQUESTS)('%s', (_, body, canonical) => {
    expect(rerankRequest.decode(wire(body), bareContext())).toEqual(canonical);
    expect(rerankRequest.encode(canonical, bareContext())).toMatchObject({ method: 'POST', path: '/v1/rerank' });
    expect(rerankRequest.encode(canonical, bareContext()).body).toEqual(body);
  });

  test("the upstream's name of the model", () => {
    expect(rerankRequest.encode(question, bareContext({ target })).body).toEqual({ ...question, model: 'upstream' });
  });

  const WRONG: [name: string, body: unknown, param: string][] = [
    ['no body', [], 'body'],
    ['no model', { ...question, model: undefined }, 'model'],
    ['no query', { ...question, query: null }, 'query'],
    ['no documents', { ...question, documents: undefined }, 'documents'],
    ['an empty list', { ...question, documents: [] }, 'documents'],
    ['a number as a document', { ...question, documents: ['a', 5] }, 'documents[1]'],
    ['top_n 0', { ...question, top_n: 0 }, 'top_n'],
    ['half a document', { ...question, top_n: 1.5 }, 'top_n'],
    ['return_documents as text', { ...question, return_documents: 'yes' }, 'return_documents'],
    ['rank_fields as text', { ...question, rank_fields: 'a' }, 'rank_fields'],
    ['a rank field that is no text', { ...question, rank_fields: ['a', 1] }, 'rank_fields[1]'],
  ];
  test.each(WRONG)('refuses %s', (_, body, param) =>
    expect(paramOf(() => rerankRequest.decode(wire(body), bareContext()))).toBe(param),
  );
});

const results = [
  { index: 2, relevance_score: 0.9 },
  { index: 0, relevance_score: 0.1 },
];
const shown = [
  { index: 2, relevance_score: 0.9, document: { text: 'c' } },
  { index: 0, relevance_score: 0.1, document: { text: 'a' } },
];
const BODIES: [name: string, body: unknown, canonical: CanonicalRerankResponse][] = [
  [
    '#4 Jina',
    { model: 'jina', object: 'list', usage: { total_tokens: 15 }, results: shown },
    {
      model: 'jina',
      results: shown,
      usage: { input_tokens: 15 },
      extensions: { 'openai-chat': { object: 'list', usage: { total_tokens: 15 } } },
    },
  ],
  [
    '#4 Cohere v2',
    { id: 'r1', results, meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } } },
    {
      id: 'r1',
      results,
      usage: { search_units: 1 },
      extensions: { 'openai-chat': { meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } } } },
    },
  ],
  [
    'Cohere with tokens',
    { id: 'r1', results, meta: { billed_units: { search_units: 1 }, tokens: { input_tokens: 7 } } },
    {
      id: 'r1',
      results,
      usage: { input_tokens: 7, search_units: 1 },
      extensions: { 'openai-chat': { meta: { billed_units: { search_units: 1 }, tokens: { input_tokens: 7 } } } },
    },
  ],
  [
    'OpenRouter counts both in usage',
    { id: 'g', model: 'm', results, usage: { search_units: 1, total_tokens: 150 }, provider: 'Cohere' },
    {
      id: 'g',
      model: 'm',
      results,
      usage: { input_tokens: 150, search_units: 1 },
      extensions: { 'openai-chat': { usage: { search_units: 1, total_tokens: 150 }, provider: 'Cohere' } },
    },
  ],
  ['nothing counted', { results: [] }, { results: [] }],
];

describe('response', () => {
  test.each(BODIES)('decode: %s', (_, body, canonical) => {
    const context = bareContext();
    expect(rerankResponse.decode(body, context)).toEqual(canonical);
    expect(context.notes).toEqual([]);
  });
  test.each(BODIES)('identity: %s', (_, body) => {
    expect(rerankResponse.encode(rerankResponse.decode(body, bareContext()), bareContext())).toEqual(body);
  });

  const DIALECTS: [name: string, body: unknown, found: CanonicalRerankResponse['results']][] = [
    ['Voyage: data', { object: 'list', data: results }, results],
    [
      'text-embeddings-inference: a bare list, score, text',
      [{ index: 1, score: 0.5, text: 'b' }],
      [{ index: 1, relevance_score: 0.5, document: { text: 'b' } }],
    ],
    [
      'a document as text',
      { results: [{ index: 0, relevance_score: 1, document: 'a' }] },
      [{ index: 0, relevance_score: 1, document: { text: 'a' } }],
    ],
    [
      'a document as an object',
      { results: [{ index: 0, relevance_score: 1, document: { t: 1 } }] },
      [{ index: 0, relevance_score: 1, document: { t: 1 } }],
    ],
    ['no document', { results: [{ index: 0, relevance_score: 1, document: null }] }, [{ index: 0, relevance_score: 1 }]],
  ];
  test.each(DIALECTS)('%s', (_, body, found) => expect(rerankResponse.decode(body, bareContext()).results).toEqual(found));

  test('#4 best first', () => {
    const context = bareContext();
    expect(rerankResponse.decode({ results: results.toReversed() }, context).results).toEqual(results);
    expect(context.notes).toMatchObject([{ code: 'REPAIRED', feature: 'rerank.order' }]);
  });

  test('equal scores keep their order', () => {
    const equal = [0, 1, 2].map((index) => ({ index, relevance_score: 0.5 }));
    expect(rerankResponse.decode({ results: equal }, bareContext()).results.map(({ index }) => index)).toEqual([0, 1, 2]);
  });

  test('counts of another protocol go to both places', () => {
    expect(rerankResponse.encode({ results, usage: { input_tokens: 3, search_units: 2 } }, bareContext())).toEqual({
      results,
      usage: { total_tokens: 3 },
      meta: { billed_units: { search_units: 2 } },
    });
  });

  test('documents that the client asked for are its own, when the server returns none', () => {
    const rerank: CanonicalRerankRequest = { ...question, documents: ['a', { t: 1 }, 'c'], return_documents: true };
    expect(rerankResponse.encode({ results: [...results, { index: 1, relevance_score: 0 }] }, bareContext({ rerank }))).toEqual({
      results: [...shown, { index: 1, relevance_score: 0, document: { t: 1 } }],
    });
  });

  test('the response has the requested model name', () => {
    expect(rerankResponse.encode({ model: 'up', results: [] }, bareContext({ rerank: question }))).toEqual({
      model: 'm',
      results: [],
    });
  });

  test('an unknown field of a result is noted', () => {
    const context = bareContext();
    rerankResponse.decode({ results: [{ index: 0, relevance_score: 1, embedding: [1] }] }, context);
    expect(context.notes).toMatchObject([{ code: 'DROPPED', feature: 'rerank.result' }]);
  });

  const WRONG: [name: string, body: unknown, param: string][] = [
    ['nothing', null, 'UPSTREAM_ERROR'],
    ['no results', {}, 'results'],
    ['no index', { results: [{ relevance_score: 1 }] }, 'results[0].index'],
    ['a negative index', { results: [{ index: -1, relevance_score: 1 }] }, 'results[0].index'],
    ['no score', { results: [{ index: 0 }] }, 'results[0].relevance_score'],
    ['#4 an index outside the documents', { results: [{ index: 3, relevance_score: 1 }] }, 'results[0].index'],
    ['an error with status 200', { error: { message: 'no' } }, 'UPSTREAM_ERROR'],
  ];
  test.each(WRONG)('refuses %s', (_, body, param) => {
    expect(paramOf(() => rerankResponse.decode(body, bareContext({ rerank: question })))).toBe(param);
  });
});

test('hostile: any JSON is read or refused, and what was read can be written', () => {
  const result = fc.record({ index: fc.jsonValue(), relevance_score: fc.jsonValue(), document: fc.jsonValue() });
  const body = fc.oneof(
    fc.jsonValue(),
    fc.record({
      query: fc.jsonValue(),
      documents: fc.jsonValue(),
      results: fc.array(result),
      usage: fc.jsonValue(),
      meta: fc.jsonValue(),
    }),
  );
  fc.assert(
    fc.property(body, (value) => {
      expect(() =>
        paramOf(() => rerankRequest.encode(rerankRequest.decode(wire(value), bareContext()), bareContext())),
      ).not.toThrow();
      expect(() =>
        paramOf(() => rerankResponse.encode(rerankResponse.decode(value, bareContext({ rerank: question })), bareContext())),
      ).not.toThrow();
    }),
  );
});
