import { describe, expect, test } from 'vitest';
import { CodecError, convertRequest, type ProtocolId } from '../../src/index.ts';

/** The second turn of a client that replays stored items by their id, as the AI SDK does by default. */
const INPUT = [
  { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
  { type: 'item_reference', id: 'rs_1' },
  { type: 'item_reference', id: 'fc_1' },
  { type: 'function_call_output', call_id: 'call_1', output: 'done' },
];
/** The type is optional. */
const UNTYPED = [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }, { id: 'rs_1' }];

function errorOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError) return error.error;
    throw error;
  }
}

const TARGETS: ProtocolId[] = ['openai-chat', 'anthropic-messages', 'gemini'];

describe.each(TARGETS)('a reference to a stored item, towards %s', (to) => {
  test.each([
    ['with its type', INPUT, {}],
    ['without its type', UNTYPED, {}],
    ['under a strict policy', INPUT, { policy: { strict: true } }],
  ])('%s is refused with its place and a hint', (_, input, options) => {
    const refused = errorOf(() => convertRequest({ model: 'm', input }, { from: 'openai-responses', to, ...options }));
    expect(refused).toEqual({
      code: 'INCOMPATIBLE_FEATURE',
      http_status: 400,
      param: '/input/1',
      message: 'item_reference "rs_1" refers to an item stored by another server; set store: false, or send the items themselves',
    });
  });
});

test.each([
  ['with its type', INPUT],
  ['without its type', UNTYPED],
])('a Responses upstream gets references %s as they came', (_, input) => {
  const { body, notes } = convertRequest({ model: 'm', input }, { from: 'openai-responses', to: 'openai-responses' });
  const [first, ...rest] = input;
  expect(body).toMatchObject({ input: [{ type: 'message', ...first }, ...rest] });
  expect(notes).toEqual([]);
});

test.each<[from: ProtocolId, to: ProtocolId, body: Record<string, unknown>, param: string]>([
  ['openai-responses', 'openai-chat', { model: 'm', input: 'hi', previous_response_id: 'resp_1' }, '/previous_response_id'],
  ['openai-responses', 'anthropic-messages', { model: 'm', input: 'hi', conversation: 'conv_1' }, '/conversation'],
  ['gemini', 'openai-chat', { model: 'm', contents: 'hi', cachedContent: 'cachedContents/1' }, '/cachedContent'],
])('%s state is refused by %s with a hint', (from, to, body, param) => {
  const refused = errorOf(() => convertRequest(body, { from, to }));
  expect(refused).toMatchObject({ http_status: 400, param, message: expect.stringMatching(/send the whole conversation/) });
});
