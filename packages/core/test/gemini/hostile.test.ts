import fc from 'fast-check';
import { expect, test } from 'vitest';
import { gemini } from '../../src/protocols/gemini/index.ts';
import { run, sse } from './run.ts';

/** Words of the wire in places where they do not belong, and of JavaScript where nobody expects them. */
const KEYS = [
  ...[
    'candidates',
    'content',
    'parts',
    'text',
    'thought',
    'thoughtSignature',
    'functionCall',
    'functionResponse',
    'name',
    'id',
    'args',
    'index',
  ],
  ...[
    'partialArgs',
    'willContinue',
    'jsonPath',
    'stringValue',
    'numberValue',
    'finishReason',
    'usageMetadata',
    'promptTokenCount',
    'responseId',
  ],
  ...[
    'promptFeedback',
    'blockReason',
    'inlineData',
    'mimeType',
    'data',
    'groundingMetadata',
    'groundingSupports',
    'segment',
    'endIndex',
    'error',
  ],
  ...['finish_reason', 'inline_data', 'response', 'output', 'code', 'status', 'logprobsResult', 'chosenCandidates'],
  ...['__proto__', 'constructor', 'toString', 'valueOf', 'toJSON', 'length'],
];
const key = fc.constantFrom(...KEYS);
const leaf = fc.oneof(
  fc.constantFrom(
    null,
    true,
    false,
    0,
    1,
    -1,
    1e9,
    1.5,
    '',
    'STOP',
    'f',
    '\ud83d',
    '\ude00',
    '$.a[0]',
    '$.__proto__.x',
    '$.constructor.prototype.x',
  ),
  fc.string(),
  fc.double(),
);
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    leaf,
    fc.array(tie('json'), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie('json')), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
  ),
}));

const call = fc.record(
  {
    name: fc.oneof(fc.constantFrom('f', 'g', ''), json),
    id: fc.oneof(fc.constantFrom('x', 'y', ''), json),
    args: json,
    willContinue: fc.boolean(),
    partialArgs: fc.array(fc.record({ jsonPath: leaf, stringValue: leaf, willContinue: fc.boolean() }, { requiredKeys: [] }), {
      maxLength: 3,
    }),
  },
  { requiredKeys: [] },
);
const part = fc.oneof(
  json,
  fc.record({ text: fc.oneof(fc.string(), leaf), thought: leaf, thoughtSignature: leaf }, { requiredKeys: [] }),
  fc.record({ functionCall: call, thoughtSignature: leaf, thought: fc.boolean() }, { requiredKeys: ['functionCall'] }),
  fc.record({
    functionResponse: fc.record({ name: fc.constantFrom('f', 'g'), id: leaf, response: json }, { requiredKeys: ['name'] }),
  }),
);
const payload = fc.oneof(
  json,
  fc.record(
    {
      candidates: fc.array(
        fc.record(
          {
            index: fc.oneof(fc.constantFrom(0, 1), leaf),
            content: fc.record({ parts: fc.array(part, { maxLength: 4 }) }),
            finishReason: leaf,
            groundingMetadata: json,
          },
          { requiredKeys: ['content'] },
        ),
        { maxLength: 3 },
      ),
      usageMetadata: json,
      promptFeedback: json,
    },
    { requiredKeys: ['candidates'] },
  ),
);

test('no JSON makes the decoder throw, break a rule of the stream, or touch a prototype', () => {
  fc.assert(
    fc.property(fc.array(payload, { maxLength: 6 }), (payloads) => {
      // JSON.parse gives own `__proto__` keys, as a wire would.
      const result = run(sse(...payloads));
      gemini.extras(result.message);
      for (const block of result.message.content) if (block.type === 'tool_use') gemini.callFields(block);
      for (const value of payloads) gemini.recognises(JSON.parse(JSON.stringify({ value })), undefined);
      expect(Object.keys(Object.prototype)).toEqual([]);
      const ids = result.message.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));
      expect(new Set(ids).size).toBe(ids.length);
    }),
    { numRuns: 1500 },
  );
});

const deep = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const wrap = (inner: string): string => `data: {"candidates":[{"content":{"parts":[${inner}]},"finishReason":"STOP"}]}\n\n`;

test.each([
  ['arguments', wrap(`{"functionCall":{"name":"f","args":${deep(100_000)}}}`)],
  ['an unknown part', wrap(deep(100_000))],
  ['an unknown field', `data: {"candidates":[{"x":${deep(100_000)},"finishReason":"STOP"}],"y":${deep(100_000)}}\n\n`],
  ['a result', wrap(`{"functionResponse":{"name":"f","response":${deep(100_000)}}}`)],
  ['an error', `data: {"error":[${deep(100_000)}]}\n\n`],
])('deep nesting in %s', (_, body) => {
  const { complete, error, calls } = run(body);
  expect(complete || error !== null).toBe(true);
  for (const call of calls) expect(() => JSON.parse(call.arguments)).toThrow();
});

// What grew with the square of its length would outlast the test's own limit.
test('a long stream is read to its end', () => {
  const decoder = gemini.streamDecoder({ report: () => {}, note: () => {} });
  const push = (...parts: unknown[]): void =>
    void decoder.push({ data: JSON.stringify({ candidates: [{ content: { parts } }] }) });
  for (let n = 0; n < 100_000; n++) push({ text: 'x' }, { text: 'y', thought: true });
  for (let n = 0; n < 4000; n++)
    push({ functionCall: { name: `f${n % 7}`, args: { n } } }, { functionResponse: { name: `f${n % 7}`, response: {} } });
  decoder.push({ data: '{"candidates":[{"finishReason":"STOP"}]}' });
  expect([...decoder.end()].at(-1)).toEqual({ type: 'message_stop' });
});
