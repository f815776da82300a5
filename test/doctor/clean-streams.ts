import type { CanonicalStreamEvent, ProtocolId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { createContext } from '../../packages/core/src/engine/context.ts';
import { PLAIN_FRAMING, type WireStream } from '../../packages/lab/src/mutate/index.ts';

export const PROTOCOL_IDS: ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const USAGE = { input_tokens: 20, output_tokens: 30 };

const start: CanonicalStreamEvent = { type: 'message_start', message: { id: 'answer_1', model: 'm-1', created: 1_700_000_000 } };

const ending = (stop: 'end_turn' | 'tool_use'): CanonicalStreamEvent[] => [
  { type: 'message_delta', delta: { stop_reason: stop }, usage: USAGE },
  { type: 'message_stop' },
];

const text = (index: number, ...pieces: string[]): CanonicalStreamEvent[] => [
  { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
  ...pieces.map(
    (piece): CanonicalStreamEvent => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: piece } }),
  ),
  { type: 'content_block_stop', index },
];

const FORMS = {
  'openai-chat': 'signature',
  'anthropic-messages': 'signature',
  'openai-responses': 'encrypted',
  gemini: 'thought_signature',
} as const satisfies Record<ProtocolId, string>;

const thinking = (index: number, protocol: ProtocolId): CanonicalStreamEvent[] => [
  { type: 'content_block_start', index, content_block: { type: 'thinking', thinking: '' } },
  { type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking: 'First ' } },
  { type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking: 'this.' } },
  {
    type: 'content_block_delta',
    index,
    delta: { type: 'signature_delta', signature: { origin: protocol, form: FORMS[protocol], value: 'c2lnbmF0dXJlLW9mLXRoaXM=' } },
  },
  { type: 'content_block_stop', index },
];

const call = (index: number, id: string, name: string, ...pieces: string[]): CanonicalStreamEvent[] => [
  { type: 'content_block_start', index, content_block: { type: 'tool_use', id, name, input: {} } },
  ...pieces.map(
    (piece): CanonicalStreamEvent => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'input_json_delta', partial_json: piece },
    }),
  ),
  { type: 'content_block_stop', index },
];

/** Answers of every kind: text alone, one call, two calls after text, a call without arguments, thinking. */
const answers = (protocol: ProtocolId): CanonicalStreamEvent[][] => [
  [start, ...text(0, 'Hello', ', ', 'world.'), ...ending('end_turn')],
  [start, ...call(0, 'call_1', 'get_weather', '{"city":', '"Paris"', '}'), ...ending('tool_use')],
  [
    start,
    ...text(0, 'Let me ', 'look.'),
    ...call(1, 'call_1', 'get_weather', '{"city":', '"Paris"', '}'),
    ...call(2, 'call_2', 'get_time', '{"zone":', '"CET"', '}'),
    ...ending('tool_use'),
  ],
  [start, ...call(0, 'call_1', 'get_time', '{}'), ...ending('tool_use')],
  [start, ...thinking(0, protocol), ...text(1, 'Hello', ', ', 'world.'), ...ending('end_turn')],
];

/** The same answers as each protocol says them, without a violation. */
export function cleanStreams(protocol: ProtocolId): WireStream[] {
  const codec = CODECS[protocol];
  return answers(protocol).map((events) => {
    const encoder = codec.streamEncoder(
      createContext({ note: () => undefined, profile: { ...codec.profileFor(''), reasoning_field: 'reasoning_content' } }),
    );
    const frames = [...events.flatMap((event) => [...encoder.push(event)]), ...encoder.end()];
    return { protocol, frames, framing: PLAIN_FRAMING };
  });
}
