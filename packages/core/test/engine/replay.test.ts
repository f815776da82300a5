import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { protocolOf } from '../../../../test/run.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { CanonicalResponse } from '../../src/canonical/message.ts';
import { StreamValidator } from '../../src/canonical/validator.ts';
import { EventReader } from '../../src/engine/reader.ts';
import { replay } from '../../src/engine/whole.ts';

function accumulate(events: Iterable<CanonicalStreamEvent>): ReturnType<MessageAccumulator['finish']> {
  const accumulator = new MessageAccumulator();
  const validator = new StreamValidator();
  for (const event of events) for (const valid of validator.push(event)) accumulator.push(valid);
  validator.end();
  return accumulator.finish();
}

function read(protocol: string, bytes: Uint8Array): CanonicalResponse {
  const reader = new EventReader({ protocol: protocolOf(protocol) });
  return accumulate([...reader.push(bytes), ...reader.end()]).message;
}

/** Events carry arguments as text, so that after them there is one; and only strings that are there. */
const normal = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, node) => {
    if (node?.type === 'tool_use' && typeof node.input_raw !== 'string' && Object.keys(node.input).length > 0)
      return { ...node, input_raw: typeof node.input === 'string' ? node.input : JSON.stringify(node.input) };
    return node;
  });

describe('a replayed message is the message', () => {
  const recordings = readManifest().filter(({ status }) => status < 400);
  test.each(recordings)('$file', ({ protocol, file }) => {
    const message = read(protocol, readRecording(file));
    expect(normal(accumulate(replay(message)).message)).toEqual(normal(message));
  });

  test.each(readCases())('$id', ({ protocol, raw }) => {
    const message = read(protocol, new TextEncoder().encode(raw));
    expect(normal(accumulate(replay(message)).message)).toEqual(normal(message));
  });
});

test('a message that ended early is replayed as one that ends early', () => {
  const message: CanonicalResponse = { id: 'r', model: 'm', content: [{ type: 'text', text: 'so' }], stop_reason: null };
  expect([...replay(message)].at(-1)).toMatchObject({ type: 'error', error: { code: 'STREAM_TRUNCATED' } });
  expect(accumulate(replay(message))).toEqual({ message, complete: false, error: null });
});

test('a message that failed is replayed as one that fails', () => {
  const error = { code: 'OVERLOADED', message: 'later' } as const;
  const message: CanonicalResponse = { id: 'r', model: 'm', content: [], stop_reason: null, error };
  expect(accumulate(replay(message))).toMatchObject({ message, error });
});
