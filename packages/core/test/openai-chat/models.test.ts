import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OPENAI_SDKS } from '../../../../test/sdk/openai.ts';
import type { CanonicalModel } from '../../src/canonical/request.ts';
import { modelInfo, models } from '../../src/protocols/openai-chat/models.ts';
import { bareContext, paramOf } from './bare-context.ts';

const gpt = { id: 'gpt-4o', object: 'model', created: 1_715_367_049, owned_by: 'system' };
const router = {
  id: 'openai/gpt-4o',
  object: 'model',
  created: 1,
  owned_by: 'x',
  name: 'OpenAI: GPT-4o',
  context_length: 128_000,
  pricing: { prompt: '1' },
};
const vllm = {
  id: 'opt',
  object: 'model',
  created: 2,
  owned_by: 'vllm',
  root: '/m',
  max_model_len: 2048,
  permission: [{ id: 'p' }],
};
const groq = {
  id: 'llama',
  object: 'model',
  created: 3,
  owned_by: 'Meta',
  active: true,
  context_window: 131_072,
  max_completion_tokens: 32_768,
};
const retired = { id: 'gpt-4', object: 'model', created: 4, owned_by: 'openai', shutdown_date: '2027-01-01' };

const kept = (fields: Record<string, unknown>) => ({ extensions: { 'openai-chat': fields } });

const ENTRIES: [name: string, wire: unknown, canonical: CanonicalModel][] = [
  [
    'seed 7.1: id, name = id, created, owned_by',
    gpt,
    { id: 'gpt-4o', name: 'gpt-4o', created: 1_715_367_049, owned_by: 'system' },
  ],
  [
    'OpenRouter: name and context_length',
    router,
    {
      id: 'openai/gpt-4o',
      name: 'OpenAI: GPT-4o',
      created: 1,
      owned_by: 'x',
      max_input_tokens: 128_000,
      ...kept({ name: 'OpenAI: GPT-4o', context_length: 128_000, pricing: { prompt: '1' } }),
    },
  ],
  ['a bare name', 'llama3:8b', { id: 'llama3:8b', name: 'llama3:8b' }],
  [
    'Ollama: model and name',
    { name: 'llama3', model: 'llama3:8b', size: 1 },
    { id: 'llama3:8b', name: 'llama3', ...kept({ name: 'llama3', model: 'llama3:8b', size: 1 }) },
  ],
  ['#76 created as a text is no number', { id: 'm', created: '2026-01-01' }, { id: 'm', name: 'm' }],
  ['null says nothing', { id: 'm', created: null, owned_by: null, shutdown_date: null }, { id: 'm', name: 'm' }],
];

describe('one model', () => {
  test.each(ENTRIES)('decode: %s', (_, wire, canonical) => {
    expect(models.decode({ object: 'list', data: [wire] }, bareContext()).models).toEqual([canonical]);
  });

  const ENCODED: [name: string, canonical: CanonicalModel, wire: unknown][] = [
    ['seed 7.1, #76: created 0, owned_by unknown', { id: 'm' }, { id: 'm', object: 'model', created: 0, owned_by: 'unknown' }],
    ['created 0 is a value', { id: 'm', created: 0, owned_by: '' }, { id: 'm', object: 'model', created: 0, owned_by: '' }],
    [
      'a model of another protocol',
      {
        id: 'claude',
        name: 'Claude',
        description: 'd',
        max_input_tokens: 200_000,
        max_output_tokens: 64_000,
        extensions: { gemini: { version: '1' } },
      },
      {
        id: 'claude',
        object: 'model',
        created: 0,
        owned_by: 'unknown',
        name: 'Claude',
        description: 'd',
        context_length: 200_000,
        max_output_tokens: 64_000,
      },
    ],
    [
      'mapped keys win',
      { id: 'm', name: 'new', ...kept({ id: 'x', object: 'y', name: 'old' }) },
      { id: 'm', object: 'model', created: 0, owned_by: 'unknown', name: 'new' },
    ],
    [
      'an edited limit keeps its name',
      { id: 'm', max_input_tokens: 5, ...kept({ max_model_len: 9 }) },
      { id: 'm', object: 'model', created: 0, owned_by: 'unknown', max_model_len: 5 },
    ],
  ];
  test.each(ENCODED)('encode: %s', (_, canonical, wire) => expect(modelInfo.encode(canonical, bareContext())).toEqual(wire));

  test.each([gpt, router, vllm, groq, retired])('identity: $id', (wire) => {
    expect(modelInfo.encode(modelInfo.decode(wire, bareContext()), bareContext())).toEqual(wire);
  });

  test('seed 7.1: wrapped like a list', () => expect(modelInfo.decode({ data: gpt }, bareContext()).id).toBe('gpt-4o'));
});

describe('the list', () => {
  const LISTS: [name: string, wire: unknown, ids: string[]][] = [
    ['object and data', { object: 'list', data: [gpt, vllm] }, ['gpt-4o', 'opt']],
    ['no object', { data: [gpt] }, ['gpt-4o']],
    ['Together: a bare array', [gpt, vllm], ['gpt-4o', 'opt']],
    ['Ollama, Codex: models', { models: [gpt] }, ['gpt-4o']],
    ['llama.cpp: both', { models: [{ name: 'x' }], object: 'list', data: [gpt] }, ['gpt-4o']],
    ['names', { data: ['a', 'b'] }, ['a', 'b']],
    ['empty', { object: 'list', data: [] }, []],
  ];
  test.each(LISTS)('decode: %s', (_, wire, ids) => {
    const context = bareContext();
    expect(models.decode(wire, context).models.map(({ id }) => id)).toEqual(ids);
    expect(context.notes).toEqual([]);
  });

  test('identity', () => {
    const wire = { object: 'list', data: [gpt, router, vllm, groq, retired] };
    expect(models.encode(models.decode(wire, bareContext()), bareContext())).toEqual(wire);
  });

  test('losses are noted', () => {
    const context = bareContext();
    models.decode({ data: [gpt, {}, 7, null], first_id: 'a', has_more: true }, context);
    expect(context.notes.map(({ path, feature }) => `${path} ${feature}`)).toEqual([
      '/data/1 models.entry',
      '/data/2 models.entry',
      '/data/3 models.entry',
    ]);
    const strict = bareContext({ policy: { strict: true } });
    expect(paramOf(() => models.decode({ data: [{}] }, strict))).toBe('/data/0');
  });

  test('pages of other protocols end here, and that is told', () => {
    const context = bareContext();
    expect(models.encode({ models: [{ id: 'm' }], has_more: true, next_page: 'p' }, context)).toMatchObject({ object: 'list' });
    expect(context.notes).toMatchObject([{ code: 'DROPPED', feature: 'models.next_page' }]);
  });

  const WRONG: [name: string, wire: unknown, param: string][] = [
    ['nothing', null, 'UPSTREAM_ERROR'],
    ['a page', '<html><body>Bad gateway</body></html>', 'UPSTREAM_ERROR'],
    ['no list', {}, 'data'],
    ['an object for a list', { data: {} }, 'data'],
    ['an error with status 200', { error: { message: 'no', type: 'server_error' } }, 'UPSTREAM_ERROR'],
    ['an error of FastAPI', { detail: 'Not authenticated' }, 'UPSTREAM_ERROR'],
  ];
  test.each(WRONG)('refuses %s', (_, wire, param) => expect(paramOf(() => models.decode(wire, bareContext()))).toBe(param));
  test('refuses a model without an id', () =>
    expect(paramOf(() => modelInfo.decode({ object: 'model' }, bareContext()))).toBe('id'));
});

test.each(OPENAI_SDKS)('$name reads the list and the model', async ({ OpenAI }) => {
  const list = models.encode({ models: [{ id: 'a' }, { id: 'org/b', created: 5, owned_by: 'o' }] }, bareContext());
  const one = modelInfo.encode({ id: 'org/b' }, bareContext());
  const client = new OpenAI({
    apiKey: 'k',
    baseURL: 'http://h/v1',
    fetch: async (url) => Response.json(String(url).endsWith('/models') ? list : one),
  });
  expect((await client.models.list()).data.map(({ id, created, owned_by }) => [id, created, owned_by])).toEqual([
    ['a', 0, 'unknown'],
    ['org/b', 5, 'o'],
  ]);
  expect((await client.models.retrieve('org/b')).id).toBe('org/b');
});

describe('hostile', () => {
  test('any JSON is read or refused, and what was read can be written', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.record({ data: fc.array(fc.jsonValue()) })), (wire) => {
        expect(() => paramOf(() => models.encode(models.decode(wire, bareContext()), bareContext()))).not.toThrow();
        expect(() => paramOf(() => modelInfo.encode(modelInfo.decode(wire, bareContext()), bareContext()))).not.toThrow();
      }),
    );
  });

  test('nesting 1,000 deep and 10,001 entries are read', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 1000; i++) deep = [deep];
    const wire = { data: Array.from({ length: 10_001 }, (_, i) => ({ id: `m${i}`, deep })) };
    expect(models.decode(wire, bareContext()).models).toHaveLength(10_001);
  });

  test('__proto__ is data', () => {
    const wire = JSON.parse('{"id":"m","object":"model","created":1,"owned_by":"o","__proto__":{"polluted":1}}');
    const encoded = modelInfo.encode(modelInfo.decode(wire, bareContext()), bareContext());
    expect(JSON.stringify(encoded)).toContain('"__proto__":{"polluted":1}');
    expect(Object.getPrototypeOf(encoded)).toBe(Object.prototype);
  });
});
