import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChatAccumulator } from '../packages/core/src/accumulate/index.ts';
import { openaiChatWithCompletion } from '../packages/core/src/engine/index.ts';
import { type AccumulatedMessage, DeltaFold, LimitError, PROTOCOLS, ToolCallAssembler } from '../packages/core/src/index.ts';
import { assemble, bytesOf, validate } from './run.ts';

const frames = (...payloads: unknown[]): Uint8Array =>
  bytesOf(payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join(''));
const raw = (...payloads: string[]): Uint8Array => bytesOf(payloads.map((payload) => `data: ${payload}\n\n`).join(''));

/** Keys as JSON.parse leaves them: own properties named like parts of every object. */
const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'];
const INDEXES = [
  '-1',
  '1.5',
  '1000000000',
  '"1e9"',
  '"NaN"',
  'null',
  '1e400',
  '"__proto__"',
  '9007199254740993',
  '[]',
  '{}',
  'true',
];

const before = Object.getOwnPropertyNames(Object.prototype).toSorted();
const untouched = (): void => {
  expect(Object.getOwnPropertyNames(Object.prototype).toSorted()).toEqual(before);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
};

const chat = PROTOCOLS['openai-chat'];

describe.each(KEYS)('the key %s', (key) => {
  const evil = `{"${key}":{"polluted":1}}`;
  const rows: [string, string][] = [
    ['in a chunk', `{"id":"a","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"${key}":{"polluted":1}}`],
    ['in a delta', `{"id":"a","choices":[{"index":0,"delta":{"content":"x","${key}":{"polluted":1}},"finish_reason":"stop"}]}`],
    [
      'in a call',
      `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"},"${key}":{"polluted":1}}]},"finish_reason":"stop"}]}`,
    ],
    [
      'as a call id',
      `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"${key}","function":{"name":"${key}","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
    ],
    [
      'in object arguments',
      `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":${evil}}}]},"finish_reason":"stop"}]}`,
    ],
    [
      'in usage',
      `{"id":"a","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"${key}":{"polluted":1}}}`,
    ],
  ];

  test.each(rows)('%s is treated as data', (_, payload) => {
    const result = assemble(chat, [raw(payload)]);
    untouched();
    expect(result.complete).toBe(true);
    expect(JSON.stringify(result)).toContain(key);
  });

  test('is treated as data by DeltaFold', () => {
    const fold = new DeltaFold<Record<string, unknown>>();
    fold.push(JSON.parse(evil));
    fold.push(JSON.parse(evil));
    untouched();
    expect(Object.hasOwn(fold.value ?? {}, key)).toBe(true);
  });
});

// A list of that length, or a loop up to it, would outlast the test's own limit.
describe.each(INDEXES)('the index %s', (index) => {
  const call = (body: string): string => `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":${index},${body}}]}}]}`;
  const stream = raw(
    call('"id":"c1","function":{"name":"f","arguments":"{\\"a\\""}'),
    call('"function":{"arguments":":1}"}'),
    '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
    '[DONE]',
  );

  test('gives a complete call', () => {
    const result = assemble(chat, [stream]);
    expect(result.tool_calls).toEqual([{ id: 'c1', name: 'f', arguments: '{"a":1}', type: 'function' }]);
    validate(chat, [stream]);
  });

  test('of a choice costs no memory', () => {
    const result = assemble(chat, [
      raw(`{"id":"a","choices":[{"index":${index},"delta":{"content":"x"},"finish_reason":"stop"}]}`),
    ]);
    expect(result.text).toBe('x');
  });
});

describe('limits cause an error, never a silent loss', () => {
  const TOO_DEEP = { code: 'too_large', message: 'an event is nested more than 256 levels deep' };
  const manyCalls = (count: number): unknown[] =>
    Array.from({ length: count }, (_, i) => ({ index: i, id: `c${i}`, function: { name: 'f', arguments: '{}' } }));

  test('calls', () => {
    expect(() => new ToolCallAssembler({ maxCalls: 10 }).push(manyCalls(11))).toThrow(LimitError);
    const result = assemble(chat, [frames({ id: 'a', choices: [{ index: 0, delta: { tool_calls: manyCalls(5000) } }] })]);
    expect(result.error).toMatchObject({ code: 'too_large', canonical: 'PAYLOAD_TOO_LARGE' });
  });

  test('argument text', () => {
    const calls = new ToolCallAssembler({ maxCharacters: 10 });
    expect(() => calls.push([{ index: 0, function: { name: 'f', arguments: 'x'.repeat(11) } }])).toThrow(LimitError);
  });

  test.each(['annotations', 'images', 'reasoning_details', 'audio', 'unknown'])('%s nested 100,000 deep', (field) => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const delta = `{"content":"x","${field}":[{"a":${deep}}]}`;
    const body = raw(`{"id":"a","choices":[{"index":0,"delta":${delta},"finish_reason":"stop"}]}`);
    for (const protocol of [chat, openaiChatWithCompletion]) expect(assemble(protocol, [body]).error).toMatchObject(TOO_DEEP);
  });

  test.each(['content', 'reasoning_details'])('%s of thoughts nested 20,000 deep', (field) => {
    const deep = `${'{"type":"thinking","thinking":['.repeat(20_000)}${']}'.repeat(20_000)}`;
    const body = raw(`{"id":"a","choices":[{"index":0,"delta":{"${field}":[${deep}]},"finish_reason":"stop"}]}`);
    expect(assemble(openaiChatWithCompletion, [body]).error).toMatchObject(TOO_DEEP);
  });

  test.each(['annotations', 'images', 'tool_calls'])('300,000 %s in one delta', (field) => {
    const body = raw(
      `{"id":"a","choices":[{"index":0,"delta":{"content":"x","${field}":[${'{},'.repeat(299_999)}{}]},"finish_reason":"stop"}]}`,
    );
    const result = assemble(openaiChatWithCompletion, [body]);
    expect(result.text).toBe('x');
  });

  test('depth', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const result = assemble(chat, [
      raw(`{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":${deep}}}]}}]}`),
    ]);
    expect(result.error?.code).toBe('too_large');
  });
});

/** Any JSON, with the words of the protocols among its keys and values, so that the decoders' branches are reached. */
const WORDS = [
  ...[
    'choices',
    'delta',
    'content',
    'tool_calls',
    'index',
    'id',
    'function',
    'name',
    'arguments',
    'finish_reason',
    'usage',
    'message',
    'error',
    'role',
    'object',
  ],
  ...[
    'type',
    'content_block',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_start',
    'message_delta',
    'message_stop',
    'text_delta',
    'text',
  ],
  ...[
    'input_json_delta',
    'partial_json',
    'thinking',
    'signature',
    'tool_use',
    'response',
    'item',
    'output',
    'output_index',
    'response.created',
    'response.completed',
  ],
  ...[
    'response.output_item.added',
    'response.output_text.delta',
    'function_call',
    'call_id',
    'candidates',
    'parts',
    'functionCall',
    'args',
    'partialArgs',
    'jsonPath',
  ],
  ...['finishReason', 'usageMetadata', 'stop', 'STOP', 'end_turn', '__proto__', 'constructor', ''],
];
const word = fc.constantFrom(...WORDS);
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof(word, fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null)),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(word, tie('json'), { maxKeys: 6 }),
  ),
}));

/** What holds of every result: a caller may rely on it without knowing the stream. */
function expectSound({
  complete,
  error,
  finish_reason: finish,
  tool_calls: calls,
  invalid_arguments: invalid,
}: AccumulatedMessage): void {
  if (complete && error === null) expect(finish, 'an end without a finish reason').not.toBeNull();
  if (!complete && error === null) expect(finish, 'a finish reason without an end').toBeNull();
  for (const [i, { id, name, arguments: text, type }] of calls.entries()) {
    expect(id, 'an id for every call').not.toBe('');
    if (!invalid.includes(i)) expect(name, 'a name for every call that may be run').not.toBe('');
    if (!invalid.includes(i) && type === 'function') expect(() => JSON.parse(text), text).not.toThrow();
  }
  expect(new Set(calls.map(({ id }) => id)).size, 'ids tell calls apart').toBe(calls.length);
}

describe.each(Object.values(PROTOCOLS))('$id', (protocol) => {
  test('never throws on any payloads, and stays a canonical stream', () => {
    fc.assert(
      fc.property(fc.array(fc.dictionary(word, json, { maxKeys: 8 }), { maxLength: 6 }), (payloads) => {
        const body = frames(...payloads);
        expect(() => validate(protocol, [body])).not.toThrow();
        const result = assemble(protocol, [body]);
        expectSound(result);
      }),
      { numRuns: 2000 },
    );
    untouched();
  });

  test('never throws on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(() => validate(protocol, [bytes])).not.toThrow();
      }),
      { numRuns: 500 },
    );
  });
});

test('ChatAccumulator accepts any input', () => {
  fc.assert(
    fc.property(fc.array(json, { maxLength: 6 }), (chunks) => {
      const accumulator = new ChatAccumulator();
      accumulator.pushAll(chunks);
      expect(accumulator.finish().object).toBe('chat.completion');
    }),
    { numRuns: 2000 },
  );
  untouched();
});
