import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { messagesContext, readCount, readModel, readModels } from '../../../../test/sdk/anthropic.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import type { CanonicalModelList } from '../../src/canonical/request.ts';
import { anthropicMessagesCodec } from '../../src/protocols/anthropic-messages/codec.ts';
import { modelInfo, models } from '../../src/protocols/anthropic-messages/models.ts';
import { formatTime, parseTime } from '../../src/protocols/anthropic-messages/outcome.ts';

const OPUS = {
  type: 'model',
  id: 'claude-opus-5',
  display_name: 'Claude Opus 5',
  created_at: '2026-06-01T00:00:00Z',
  max_input_tokens: 1_000_000,
  max_tokens: 128_000,
  capabilities: { batch: { supported: true }, thinking: { supported: true, types: {} } },
  deprecated_at: null,
  lifecycle: 'active',
  line: null,
  retires_at: null,
};
const LIST = {
  data: [OPUS, { ...OPUS, id: 'claude-haiku-5' }],
  has_more: true,
  first_id: 'claude-opus-5',
  last_id: 'claude-haiku-5',
};

const notesOf = (run: (context: ReturnType<typeof messagesContext>) => unknown) => {
  const context = messagesContext();
  const value = run(context);
  return { value, notes: context.notes.map(({ code, feature }) => `${code} ${feature}`) };
};

describe('the list of models', () => {
  test('decode + encode gives back everything', () => {
    const list = models.decode(LIST, messagesContext());
    expect(list).toMatchObject({ has_more: true, next_page: 'claude-haiku-5' });
    expect(list.models[0]).toMatchObject({
      id: 'claude-opus-5',
      name: 'Claude Opus 5',
      created: 1_780_272_000,
      max_input_tokens: 1_000_000,
      max_output_tokens: 128_000,
      capabilities: { batch: true, thinking: true },
    });
    expect(models.encode(list, messagesContext())).toEqual(LIST);
  });

  test('P125 a list of another protocol is one that the SDK reads', async () => {
    const list: CanonicalModelList = { models: [{ id: 'gpt-5', created: 1_767_225_600, owned_by: 'openai' }, { id: 'x' }] };
    const body = models.encode(list, messagesContext());
    expect(await readModels(body)).toMatchObject([
      { id: 'gpt-5', type: 'model', display_name: 'gpt-5', created_at: '2026-01-01T00:00:00Z', max_tokens: null },
      { id: 'x', created_at: '1970-01-01T00:00:00Z' },
    ]);
    expect(body).toMatchObject({ has_more: false, first_id: 'gpt-5', last_id: 'x' });
  });

  test('a token for the next page has no place', () => {
    const { value, notes } = notesOf((context) => models.encode({ models: [{ id: 'a' }], next_page: 'token' }, context));
    expect(value).toMatchObject({ has_more: false });
    expect(notes).toEqual(['DROPPED models.next_page']);
  });

  test('none at all', () => {
    expect(models.encode({ models: [] }, messagesContext())).toEqual({
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    });
  });

  test('an entry without an id is skipped', () => {
    expect(notesOf((context) => models.decode({ data: [{}, OPUS] }, context).models.length)).toEqual({
      value: 1,
      notes: ['DROPPED models.entry'],
    });
  });

  test.each([[{}], ['page'], [{ type: 'error', error: { type: 'api_error', message: 'm' } }]])('%j is an error', (body) => {
    expect(() => models.decode(body, messagesContext())).toThrow(CodecError);
  });
});

test('one model', async () => {
  const model = modelInfo.decode(OPUS, messagesContext());
  const body = modelInfo.encode(model, messagesContext());
  expect(body).toEqual(OPUS);
  expect(await readModel(body)).toMatchObject({ id: 'claude-opus-5' });
  expect(() => modelInfo.decode({}, messagesContext())).toThrow(CodecError);
});

describe('dates', () => {
  test.each([
    ['1970-01-01T00:00:00Z', 0],
    ['2026-01-01T00:00:00Z', 1_767_225_600],
    ['2024-02-29T23:59:59Z', 1_709_251_199],
    ['2024-03-01T01:00:00+01:00', 1_709_251_200],
    ['2025-11-24T00:00:00.123456Z', 1_763_942_400],
    ['1969-12-31T23:59:59Z', -1],
  ])('%s is %d', (text, unix) => {
    expect(parseTime(text)).toBe(unix);
  });

  test.each(['', 'yesterday', '2024-13-01T00:00:00Z', '2024-01-00T00:00:00Z', '2024-01-01'])('%s is none', (text) => {
    expect(parseTime(text)).toBeUndefined();
  });

  test('there and back, as the platform counts', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }), (unix) => {
        expect(formatTime(unix)).toBe(new Date(unix * 1000).toISOString().replace('.000Z', 'Z'));
        expect(parseTime(formatTime(unix))).toBe(unix);
      }),
      { seed: 7, numRuns: 2000 },
    );
  });
});

describe('P129 counts of tokens', () => {
  const codec = anthropicMessagesCodec.countTokens;
  const question = {
    model: 'claude-haiku-4-5',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    system: 'Be brief.',
    tools: [{ name: 'f', input_schema: { type: 'object', properties: {} } }],
    tool_choice: { type: 'auto' },
    thinking: { type: 'adaptive' },
  };

  test('a question goes through unchanged, without what is said about the answer', () => {
    const context = messagesContext({ source: 'anthropic-messages' });
    const wire = {
      method: 'POST',
      path: '/v1/messages/count_tokens',
      headers: {},
      body: { ...question, max_tokens: 5, stream: true },
    };
    const request = codec?.request.decode(wire, context);
    expect(request && codec?.request.encode(request, context)).toEqual({
      method: 'POST',
      path: '/v1/messages/count_tokens',
      headers: { 'content-type': 'application/json' },
      body: question,
    });
    expect(context.notes).toEqual([]);
  });

  test('the count', async () => {
    const body = codec?.response.encode({ input_tokens: 12, estimated: true }, messagesContext());
    expect(await readCount(body)).toBe(12);
    expect(codec?.response.decode({ input_tokens: 12 }, messagesContext())).toEqual({ input_tokens: 12 });
    expect(() => codec?.response.decode({}, messagesContext())).toThrow(CodecError);
  });
});
