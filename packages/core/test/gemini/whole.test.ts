import { describe, expect, test } from 'vitest';
import { geminiContext } from '../../../../test/sdk/gemini.ts';
import { gemini } from '../../src/protocols/gemini/index.ts';
import { decodeResponse } from '../../src/protocols/gemini/response.ts';
import { chunk, run, STOP, sse } from './run.ts';

/** One answer in fragments, and the same as one body, a list, and a list in pieces. */
const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 };
const ROWS = [
  {
    name: 'text',
    fragments: [[{ text: 'Hel' }], [{ text: 'lo' }]],
    whole: [{ text: 'Hello' }],
  },
  {
    name: 'thoughts, a signed text and calls',
    fragments: [
      [{ text: 'hm', thought: true }],
      [{ text: 'ok', thought: true }, { text: 'A' }],
      [{ text: 'B', thoughtSignature: 'S' }],
      [{ functionCall: { name: 'f', args: { a: 1 } } }],
    ],
    whole: [
      { text: 'hmok', thought: true },
      { text: 'AB', thoughtSignature: 'S' },
      { functionCall: { name: 'f', args: { a: 1 } } },
    ],
  },
  {
    name: 'a call that Google ran',
    fragments: [
      [{ functionCall: { name: 'f', args: {} } }],
      [{ functionResponse: { name: 'f', response: { x: 1 } } }],
      [{ text: 'd' }],
      [{ text: 'e' }],
    ],
    whole: [{ functionCall: { name: 'f', args: {} } }, { functionResponse: { name: 'f', response: { x: 1 } } }, { text: 'de' }],
  },
];

test.each(ROWS)('$name', ({ fragments, whole }) => {
  const payloads = fragments.map((parts, at) => ({ ...chunk(parts, at === fragments.length - 1 ? STOP : {}), usageMetadata }));
  const { message } = run(JSON.stringify({ ...chunk(whole, STOP), usageMetadata }, null, 2));
  expect(message.stop_reason).not.toBeNull();
  expect(run(sse(...payloads)).message).toEqual(message);
  expect(run(JSON.stringify(payloads, null, 2)).message).toEqual(message);
  expect(run(`[${payloads.map((payload) => JSON.stringify(payload)).join('\n,\r\n')}]`, 7).message).toEqual(message);
});

describe('a whole response without a finishReason', () => {
  const read = (body: unknown) => decodeResponse(body, geminiContext());
  const call = { functionCall: { name: 'f', args: { a: 1 } } };

  test('is complete', () => {
    expect(read(chunk([{ text: 'a' }]))).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'a' }] });
    expect(read(chunk([call]))).toMatchObject({ stop_reason: 'tool_use', content: [{ name: 'f', input: { a: 1 } }] });
    expect(read(chunk([]))).toMatchObject({ stop_reason: 'end_turn', content: [] });
  });

  test('that reports a block or an error is not complete', () => {
    const blocked = { ...chunk([{ text: 'a' }]), promptFeedback: { blockReason: 'SAFETY' } };
    expect(read(blocked)).toMatchObject({ stop_reason: 'content_filter' });
    expect(() => read({ ...chunk([{ text: 'a' }]), error: { code: 503, message: 'x', status: 'UNAVAILABLE' } })).toThrow('x');
    expect(() => read({ candidates: [], usageMetadata })).toThrow('finishReason');
  });

  test('is a stream that was cut when it comes as a list, or as events', () => {
    expect(() => read([chunk([{ text: 'a' }])])).toThrow('finishReason');
    expect(run(sse(chunk([{ text: 'a' }])))).toMatchObject({ complete: false, rules: ['gemini/finish-missing'] });
  });
});

test.each([
  [true, chunk([{ text: 'a' }])],
  [true, { response: chunk([]) }],
  [true, { promptFeedback: { blockReason: 'SAFETY' } }],
  [true, { usage_metadata: { prompt_token_count: 1 } }],
  [true, { error: { code: 503, message: 'x', status: 'UNAVAILABLE' } }],
  [false, { error: { message: 'x', type: 'server_error', code: 503 } }],
  [false, { type: 'error', error: { type: 'overloaded_error', message: 'x' } }],
  [false, { id: 'x', object: 'chat.completion.chunk', choices: [{ delta: {} }] }],
  [false, { type: 'message_start', message: {} }],
  [false, { type: 'response.created', response: { id: 'resp_1', model: 'm' } }],
  [false, { id: 'resp_1', object: 'response', output: [] }],
  [false, {}],
])('recognises: %s %j', (expected, payload) => {
  expect(gemini.recognises({ ...payload }, undefined)).toBe(expected);
});

test('what must survive', () => {
  const { message } = run(
    sse(
      chunk([{ text: 'x', thought: true, thoughtSignature: 'A' }, { text: 'y' }, { text: '', thoughtSignature: 'B' }]),
      chunk(
        [
          { inlineData: { mimeType: 'image/png', data: 'aa' } },
          { functionCall: { name: 'f', tag: 1 }, thoughtSignature: 'C', note: 2 },
        ],
        STOP,
      ),
    ),
  );
  expect(gemini.extras(message)).toEqual({ part_signatures: ['A', 'B'], images: [{ mimeType: 'image/png', data: 'aa' }] });
  const call = message.content.find((block) => block.type === 'tool_use');
  expect(call && gemini.callFields(call)).toEqual({ thoughtSignature: 'C', note: 2, tag: 1 });
  expect(gemini.extras(run(sse({ promptFeedback: { blockReason: 'OTHER' } })).message)).toEqual({ block_reason: 'OTHER' });
});
