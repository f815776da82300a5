import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bodyOf, encodeMessages, messagesContext, readStream } from '../../../../test/sdk/anthropic.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { ProtocolId, SignedBlob } from '../../src/canonical/protocol.ts';
import { type BlockEvent, BlockSerializer } from '../../src/codec/block-serializer.ts';
import { MessagesGrammar } from '../../src/protocols/anthropic-messages/grammar.ts';

const protocol = fc.constantFrom<ProtocolId>('openai-chat', 'anthropic-messages', 'openai-responses', 'gemini');
const text = fc.oneof(fc.constantFrom('', ' ', '{', '}', '{"a":1}', '__proto__', '\ud800'), fc.string({ maxLength: 6 }));
const signature: fc.Arbitrary<SignedBlob> = fc.record({
  origin: protocol,
  form: fc.constantFrom('signature' as const, 'redacted' as const, 'encrypted' as const, 'thought_signature' as const),
  value: fc.string({ minLength: 1, maxLength: 4 }),
});
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 3 });

const block: fc.Arbitrary<ContentBlock> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text }),
  fc.record({ type: fc.constant('text' as const), text, signature }),
  fc.record({ type: fc.constant('thinking' as const), thinking: text }),
  fc.record({ type: fc.constant('thinking' as const), thinking: text, signature }),
  fc.record({
    type: fc.constant('tool_use' as const),
    id: fc.constantFrom('a', 'b'),
    name: fc.constantFrom('f', 'g'),
    input: fc.constant({}),
    kind: fc.constantFrom('function' as const, 'custom' as const, 'server' as const, 'mcp' as const),
  }),
  fc.record({
    type: fc.constant('tool_result' as const),
    tool_use_id: fc.constant('a'),
    content: text,
    kind: fc.constant('server' as const),
  }),
  fc.record({ type: fc.constant('image' as const), source: fc.constant({ data: 'AA', media_type: 'image/png' }) }),
  fc.record({ type: fc.constant('audio' as const), source: fc.constant({}) }),
  fc.record({ type: fc.constant('file' as const), source: fc.constant({ text: 'a' }) }),
  fc.record({ type: fc.constant('opaque' as const), origin: protocol, raw: fc.constant({ type: 'compaction' }) }),
);

const delta: fc.Arbitrary<BlockDelta> = fc.oneof(
  fc.record({ type: fc.constant('text_delta' as const), text }),
  fc.record({ type: fc.constant('thinking_delta' as const), thinking: text }),
  fc.record({ type: fc.constant('input_json_delta' as const), partial_json: text }),
  fc.record({ type: fc.constant('input_text_delta' as const), text }),
  fc.record({ type: fc.constant('signature_delta' as const), signature }),
  fc.record({ type: fc.constant('audio_delta' as const), transcript: text }),
  fc.record({ type: fc.constant('opaque_delta' as const), raw: fc.constant({ content: 'x' }) }),
);

const index = fc.nat({ max: 3 });
const choice = fc.constantFrom(0, 0, 0, 1);
const stop_reason = fc.constantFrom(
  null,
  'end_turn' as const,
  'tool_use' as const,
  'max_tokens' as const,
  'refusal' as const,
  'error' as const,
);

const event: fc.Arbitrary<CanonicalStreamEvent> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('content_block_start' as const), index, choice, content_block: block }) },
  { weight: 8, arbitrary: fc.record({ type: fc.constant('content_block_delta' as const), index, choice, delta }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('content_block_stop' as const), index, choice }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('message_start' as const), message: fc.record({ id: text, model: text }) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('message_delta' as const), choice, delta: fc.record({ stop_reason }) }) },
  { weight: 1, arbitrary: fc.constant({ type: 'ping' as const }) },
  { weight: 1, arbitrary: fc.constant({ type: 'message_stop' as const }) },
);

/** No test fails by chance: the seed is fixed. */
const RUNS = { seed: 7, numRuns: 1000 };

test('any sequence of events, however broken, becomes a stream that keeps the grammar', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), optional(protocol), (events, source) => {
      const context = messagesContext(source ? { source } : {});
      expect(() => MessagesGrammar.check(encodeMessages(events, context))).not.toThrow();
    }),
    RUNS,
  );
});

test('and one that ends well is read by the SDK, unless the arguments of a call are no JSON', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 25 }), async (events) => {
      const whole: CanonicalStreamEvent[] = [
        { type: 'message_start', message: { id: 'm', model: 'm' } },
        ...events.filter(({ type }) => type.startsWith('content_block')),
        { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
        { type: 'message_stop' },
      ];
      const frames = encodeMessages(whole, messagesContext({ source: 'gemini' }));
      const calls = frames.filter(({ data }) => data.includes('input_json_delta'));
      if (calls.length === 0) expect((await readStream(bodyOf(frames))).stop_reason).toBe('end_turn');
    }),
    { seed: 7, numRuns: 300 },
  );
});

const places = fc.array(fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 2 })), { maxLength: 60 });

/** Events of several blocks in any order: what each number does to its block. */
function blockEvents(moves: readonly (readonly [number, number])[]): BlockEvent[] {
  const state = new Map<number, 'open' | 'stopped'>();
  const events: BlockEvent[] = [];
  for (const [at, move] of moves) {
    const before = state.get(at);
    if (before === undefined) {
      events.push({ type: 'content_block_start', index: at, content_block: { type: 'text', text: '' } });
      state.set(at, 'open');
    } else if (before === 'open' && move === 0) {
      events.push({ type: 'content_block_stop', index: at });
      state.set(at, 'stopped');
    } else if (before === 'open')
      events.push({ type: 'content_block_delta', index: at, delta: { type: 'text_delta', text: String(events.length) } });
  }
  return events;
}

test('the serializer loses nothing, repeats nothing, keeps the order of the blocks and of what each holds', () => {
  fc.assert(
    fc.property(places, (moves) => {
      const events = blockEvents(moves);
      const out: BlockEvent[] = [];
      const serializer = new BlockSerializer((emitted) => out.push(emitted));
      for (const item of events) serializer.push(item);
      serializer.end();
      const opened = events.filter(({ type }) => type === 'content_block_start').map(({ index: at }) => at);
      const runs = out.map(({ index: at }) => at).filter((at, i, all) => at !== all[i - 1]);
      expect(runs).toEqual(opened);
      const stops = events.filter(({ type }) => type === 'content_block_stop').length;
      expect(out).toHaveLength(events.length + opened.length - stops);
      for (const at of opened)
        expect(out.filter((item) => item.index === at && item.type === 'content_block_delta')).toEqual(
          events.filter((item) => item.index === at && item.type === 'content_block_delta'),
        );
    }),
    RUNS,
  );
});

test('the first open block is never held back', () => {
  fc.assert(
    fc.property(places, (moves) => {
      const open: number[] = [];
      let emitted: BlockEvent[] = [];
      const serializer = new BlockSerializer((item) => emitted.push(item));
      for (const item of blockEvents(moves)) {
        emitted = [];
        if (item.type === 'content_block_start') open.push(item.index);
        serializer.push(item);
        if (item.index === open[0]) expect(emitted[0]).toBe(item);
        while (open[0] !== undefined && emitted.some(({ type, index: at }) => type === 'content_block_stop' && at === open[0]))
          open.shift();
      }
    }),
    RUNS,
  );
});
