import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bodyOf, encodeResponses, responsesContext, SDKS } from '../../../../test/sdk/responses.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { ContentBlock, StopReason } from '../../src/canonical/message.ts';
import type { ProtocolId, SignedBlob } from '../../src/canonical/protocol.ts';
import { ResponsesGrammar } from '../../src/protocols/openai-responses/grammar.ts';

// Events in any order, for any block: far beyond what a decoder may say (S1-S11). Whatever comes, the client reads a legal stream.

const words = fc.constantFrom('', 'a', '\n\n', '{}', '{"x"', ':1}', 'é\u{1f600}', '"', '\u2028');
const id = fc.constantFrom('', 'a', 'b', 'call_1', '__proto__');
const origin = fc.constantFrom<ProtocolId>('openai-chat', 'anthropic-messages', 'openai-responses', 'gemini');
const blob: fc.Arbitrary<SignedBlob> = fc.record({
  origin,
  form: fc.constantFrom<SignedBlob['form']>('signature', 'redacted', 'encrypted', 'thought_signature'),
  value: words,
});
const own = fc.constantFrom(
  {},
  { extensions: { 'openai-responses': { item_id: 'x_1', phase: 'commentary' } } },
  {
    extensions: { 'openai-responses': { item_id: 'x_2', status: 'odd', caller: { type: 'direct' } } },
  },
);
const signed = fc.oneof(
  fc.constant({}),
  blob.map((signature) => ({ signature })),
);

const block: fc.Arbitrary<ContentBlock> = fc.oneof(
  fc
    .tuple(words, fc.boolean(), own, signed)
    .map(([text, refusal, node, sign]): ContentBlock => ({ type: 'text', text, ...(refusal && { refusal }), ...node, ...sign })),
  fc
    .tuple(words, fc.constantFrom<('full' | 'summary' | 'redacted')[]>('full', 'summary', 'redacted'), own, signed)
    .map(([thinking, variant, node, sign]): ContentBlock => ({ type: 'thinking', thinking, variant, ...node, ...sign })),
  fc.tuple(id, fc.constantFrom<('function' | 'custom' | 'server')[]>('function', 'custom', 'server'), words, own, signed).map(
    ([call, kind, input_raw, node, sign]): ContentBlock => ({
      type: 'tool_use',
      id: call,
      name: 'f',
      input: kind === 'custom' ? '' : {},
      kind,
      input_raw,
      ...node,
      ...sign,
    }),
  ),
  fc
    .tuple(origin, fc.constantFrom({ type: 'web_search_call', id: 'ws' }, {}, null, 'x'))
    .map(([from, raw]): ContentBlock => ({ type: 'opaque', origin: from, raw })),
  fc.constant<ContentBlock>({ type: 'image', source: { data: 'A' } }),
  fc.constant<ContentBlock>({ type: 'audio', source: {} }),
);

const delta: fc.Arbitrary<BlockDelta> = fc.oneof(
  words.map((text): BlockDelta => ({ type: 'text_delta', text })),
  words.map((partial_json): BlockDelta => ({ type: 'input_json_delta', partial_json })),
  words.map((text): BlockDelta => ({ type: 'input_text_delta', text })),
  fc
    .tuple(words, fc.constantFrom(undefined, 0, 1, 5))
    .map(([thinking, at]): BlockDelta => ({ type: 'thinking_delta', thinking, ...(at !== undefined && { summary_index: at }) })),
  blob.map((signature): BlockDelta => ({ type: 'signature_delta', signature })),
  origin.map(
    (from): BlockDelta => ({
      type: 'citations_delta',
      citation: { kind: 'url', url: 'u', origin: from, raw: { type: 'url_citation', url: 'u' } },
    }),
  ),
  fc.constant<BlockDelta>({ type: 'opaque_delta', raw: {} }),
  fc.constant<BlockDelta>({ type: 'audio_delta', data: 'A' }),
);

const index = fc.nat({ max: 3 });
const reasons: (StopReason | null)[] = [
  'end_turn',
  'tool_use',
  'max_tokens',
  'refusal',
  'content_filter',
  'pause_turn',
  'error',
  null,
];

const event: fc.Arbitrary<CanonicalStreamEvent> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(index, block)
      .map(([at, content_block]): CanonicalStreamEvent => ({ type: 'content_block_start', index: at, content_block })),
  },
  {
    weight: 12,
    arbitrary: fc
      .tuple(index, delta)
      .map(([at, part]): CanonicalStreamEvent => ({ type: 'content_block_delta', index: at, delta: part })),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(index, fc.option(block, { nil: undefined, freq: 4 })).map(
      ([at, final]): CanonicalStreamEvent => ({
        type: 'content_block_stop',
        index: at,
        ...(final && { content_block: final }),
      }),
    ),
  },
  { weight: 1, arbitrary: fc.constant<CanonicalStreamEvent>({ type: 'message_start', message: { id: 'm', model: 'm' } }) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(...reasons)
      .map((stop_reason): CanonicalStreamEvent => ({ type: 'message_delta', delta: { stop_reason } })),
  },
  { weight: 1, arbitrary: fc.constantFrom<CanonicalStreamEvent[]>({ type: 'message_stop' }, { type: 'ping' }) },
);

const stream = fc.tuple(fc.array(event, { maxLength: 30 }), fc.boolean(), origin).map(([events, isWhole, source]) => ({
  events: isWhole
    ? [...events, { type: 'message_delta', delta: { stop_reason: 'end_turn' } } as const, { type: 'message_stop' } as const]
    : events,
  source,
}));

test('any sequence of events becomes a legal stream', () => {
  fc.assert(
    fc.property(stream, ({ events, source }) => {
      expect(() => ResponsesGrammar.check(encodeResponses(events, responsesContext({ source })))).not.toThrow();
    }),
    { numRuns: 2000 },
  );
});

test('and both SDKs read it, or raise the error that it says', async () => {
  await fc.assert(
    fc.asyncProperty(stream, async ({ events, source }) => {
      const frames = encodeResponses(events, responsesContext({ source }));
      const outcome = ResponsesGrammar.check(frames);
      for (const { stream: read } of SDKS) {
        if (outcome === 'failed') await expect(read(bodyOf(frames))).rejects.toBeDefined();
        else expect((await read(bodyOf(frames))).status).toBe(outcome);
      }
    }),
    { numRuns: 150 },
  );
});
