import { describe, expect, test } from 'vitest';
import { createStreamConverter } from '../../src/engine/stream.ts';
import type { ProtocolId, SseFrame } from '../../src/index.ts';
import { GRAMMARS, GrammarError } from '../../src/internal.ts';
import { CODECS } from '../../src/protocols/index.ts';
import { createSseDecoder } from '../../src/sse/index.ts';

const SOURCE = [
  { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} } },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hel' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'lo' } },
  { type: 'content_block_stop', index: 1 },
  { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'call_1', name: 'f', input: {} } },
  { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"a":1}' } },
  { type: 'content_block_stop', index: 2 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { input_tokens: 3, output_tokens: 5 } },
  { type: 'message_stop' },
];

const BROKEN = [...SOURCE.slice(0, 7), { type: 'error', error: { type: 'overloaded_error', message: 'later' } }];

/** A stream as the encoder of a protocol writes it, with the places of its frames. */
function written(protocol: ProtocolId, events: readonly { type: string }[]): SseFrame[] {
  const converter = createStreamConverter({ from: CODECS['anthropic-messages'], to: CODECS[protocol], now: () => 1_700_000_000 });
  const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  const decoder = createSseDecoder();
  const pieces = [...converter.push(new TextEncoder().encode(body)), ...converter.end()];
  return [...pieces.flatMap((piece) => [...decoder.push(piece)]), ...decoder.end()];
}

function judge(protocol: ProtocolId, frames: readonly SseFrame[]): string {
  const grammar = GRAMMARS[protocol]();
  try {
    for (const frame of frames) grammar.push(frame);
    return grammar.end();
  } catch (error) {
    // Whatever a stranger sends, this is the only thing that a grammar throws.
    if (error instanceof GrammarError) return `refused: ${error.message}`;
    throw error;
  }
}

const IDS = Object.keys(GRAMMARS) as ProtocolId[]; // the keys of a record closed by its type

const OUTCOMES = {
  'openai-chat': ['done', 'error'],
  'anthropic-messages': ['stopped', 'error'],
  'openai-responses': ['completed', 'failed'],
  gemini: ['done', 'error'],
} satisfies Record<ProtocolId, [string, string]>;

/** Every value inside of a payload, in turn, put to something else; undefined leaves it out. */
function* damaged(value: unknown, to: unknown): Generator<unknown> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const put = (other: unknown): unknown =>
      Array.isArray(value) ? value.map((one, at) => (String(at) === key ? other : one)) : { ...value, [key]: other };
    yield put(to);
    for (const other of damaged(inner, to)) yield put(other);
  }
}

describe.each(IDS)('%s', (protocol) => {
  const whole = written(protocol, SOURCE);
  const failed = written(protocol, BROKEN);

  test('says how a stream ended, in the words of the protocol', () => {
    expect([judge(protocol, whole), judge(protocol, failed)]).toEqual(OUTCOMES[protocol]);
  });

  test.each([
    ['without a frame', () => []],
    ['that breaks off', () => whole.slice(0, -1)],
    ['with something after the end', () => [...whole, ...whole.slice(-1)]],
    ['with something after the error', () => [...failed, ...whole.slice(-1)]],
    ['with an id', () => whole.map((frame) => ({ ...frame, id: '1' }))],
    ['with a payload that is no JSON', () => [{ ...whole[0], data: '{oops' }, ...whole.slice(1)]],
    ['with a payload that is no object', () => [{ ...whole[0], data: '[]' }, ...whole.slice(1)]],
    ['in the wrong order', () => whole.toReversed()],
  ])('refuses a stream %s', (_, frames) => {
    expect(judge(protocol, frames())).toMatch(/^refused: /);
  });

  test.each<unknown>([undefined, null, 0, -1, '', 'x', [], {}, [null], { type: 'x' }, { toString: 1, valueOf: 1 }])(
    'a value that is %j is accepted or refused, by name',
    (to) => {
      const outcomes = [whole, failed].flatMap((frames) =>
        frames.flatMap((frame, at) => {
          if (frame.data === '[DONE]') return [];
          return [...damaged(JSON.parse(frame.data), to)].map((payload) =>
            judge(protocol, frames.with(at, { ...frame, data: JSON.stringify(payload) })),
          );
        }),
      );
      expect(outcomes.length).toBeGreaterThan(50);
      expect(outcomes.filter((outcome) => outcome.startsWith('refused')).length).toBeGreaterThan(outcomes.length / 4);
    },
  );
});
