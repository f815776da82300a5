import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IS_NIGHT } from '../../../../test/night.ts';
import { pipe } from '../../src/canonical/stage.ts';
import { StreamValidator } from '../../src/canonical/validator.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { anthropicMessages } from '../../src/protocols/anthropic-messages/index.ts';
import { args, close, delta, finish, open, start, stop, text, thinking, tool } from './wire.ts';

const anything = fc.jsonValue({ maxDepth: 3 });
const index = fc.oneof(fc.integer({ min: -1, max: 3 }), fc.constantFrom('0', '__proto__', null, undefined, 1e300));
const words = fc.constantFrom('', 'a', 'ab', '{', '{}', '{"a":1}', '\ud83d', '__proto__');
const block = fc.oneof(
  words.map((word) => text(word)),
  fc.tuple(words, words).map(([value, signature]) => thinking(value, signature)),
  fc.tuple(fc.oneof(words, anything), fc.oneof(words, anything), anything).map(([id, name, input]) => tool(id, name, input)),
  fc.record({
    type: fc.constantFrom('redacted_thinking', 'server_tool_use', 'mcp_tool_use', 'x_tool_result', 'compaction', 'constructor'),
    content: anything,
  }),
  anything,
);
const piece = fc.oneof(
  fc.record({
    type: fc.constantFrom('text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta', 'citations_delta', 'x_delta'),
    text: words,
    thinking: words,
    signature: words,
    partial_json: fc.oneof(words, anything),
    citation: anything,
  }),
  anything,
);
const payload = fc.oneof(
  fc.tuple(index, block).map(([at, value]) => open(at, value)),
  fc.tuple(index, piece).map(([at, value]) => delta(at, value)),
  fc.tuple(index, piece).map(([at, value]) => delta(at, value)),
  index.map(close),
  anything.map((value) => finish(value)),
  fc.record({
    type: fc.constantFrom('message_start', 'message_delta', 'message_stop', 'error', 'message', 'x'),
    message: anything,
    delta: anything,
    usage: anything,
    error: anything,
    content: anything,
  }),
  fc.dictionary(words, anything),
);

function decode(payloads: readonly unknown[]): number {
  const decoder = pipe(anthropicMessages.streamDecoder({ report: () => {}, note: () => {} }), new StreamValidator());
  let events = 0;
  for (const value of payloads) for (const _ of decoder.push({ data: JSON.stringify(value), event: 'x' })) events++;
  for (const _ of decoder.end()) events++;
  return events;
}

test('arbitrary payloads never throw, never break a rule of the stream, never touch a prototype', () => {
  const keys = () => Object.getOwnPropertyNames(Object.prototype).join();
  const before = keys();
  fc.assert(
    fc.property(fc.boolean(), fc.array(payload, { maxLength: 24 }), (isBegun, payloads) => {
      expect(decode(isBegun ? [start(), ...payloads] : payloads)).toBeGreaterThan(0);
    }),
    { numRuns: 3000 },
  );
  expect(keys()).toBe(before);
});

const deep = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

test('limits end in an error event', () => {
  const many: JsonObject[] = [start()];
  for (let i = 0; i < 5000; i++) many.push(open(i, tool(`t${i}`, 'f')), close(i));
  const decoder = anthropicMessages.streamDecoder({ report: () => {}, note: () => {} });
  const events = many.flatMap((value) => [...decoder.push({ data: JSON.stringify(value) })]);
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { code: 'PAYLOAD_TOO_LARGE' } });
});

test('an input nested too deeply is an error event', () => {
  const decoder = anthropicMessages.streamDecoder({ report: () => {}, note: () => {} });
  const data = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":${deep(100_000)}}}`;
  expect([...decoder.push({ data })].at(-1)).toMatchObject({ type: 'error', error: { code: 'PAYLOAD_TOO_LARGE' } });
});

const BLOCKS = IS_NIGHT ? 100_000 : 30_000;

test('thinking within thinking, over and over, costs linear time', () => {
  const decoder = anthropicMessages.streamDecoder({ report: () => {}, note: () => {} });
  const push = (value: JsonObject): void => void decoder.push({ data: JSON.stringify(value), event: String(value['type']) });
  push(start());
  for (let i = 0; i < BLOCKS; i++) push(open(i, thinking()));
  for (let i = 0; i < BLOCKS; i++) push(delta(i, { type: 'thinking_delta', thinking: 'x' }));
  push(finish('end_turn'));
  const stops = [...decoder.push({ data: JSON.stringify(stop), event: 'message_stop' })];
  expect(stops.filter(({ type }) => type === 'content_block_stop')).toHaveLength(BLOCKS);
});

test('a long stream costs linear time', () => {
  const decoder = anthropicMessages.streamDecoder({ report: () => {}, note: () => {} });
  const long = 'ab'.repeat(100_000);
  const push = (value: JsonObject): void => void decoder.push({ data: JSON.stringify(value), event: String(value['type']) });
  push(start());
  push(open(0, text(long)));
  for (const letter of long) push(delta(0, { type: 'text_delta', text: letter }));
  push(close(0));
  push(open(1, tool('t', 'f')));
  for (let i = 0; i < 100_000; i++) push(args(1, i === 0 ? '[0' : ',1'));
  push(stop);
  expect([...decoder.end()]).toEqual([]);
});
