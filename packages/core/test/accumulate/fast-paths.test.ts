import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { ChatAccumulator } from '../../src/accumulate/chat.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';
import { createSseDecoder } from '../../src/sse/decode.ts';

interface Stream {
  name: string;
  chunks: JsonObject[];
}

function readChunks(bytes: Uint8Array): JsonObject[] {
  const decoder = createSseDecoder();
  const chunks: JsonObject[] = [];
  for (const { data } of [...decoder.push(bytes), ...decoder.end()]) {
    try {
      const chunk: unknown = JSON.parse(data);
      if (isObject(chunk)) chunks.push(chunk);
    } catch {
      // Not JSON: `[DONE]`, or a broken chunk.
    }
  }
  return chunks;
}

const streams: Stream[] = [
  ...readCases()
    .filter(({ protocol }) => protocol === 'openai-chat')
    .map(({ id, raw }) => ({ name: id, chunks: readChunks(Buffer.from(raw)) })),
  ...readManifest()
    .filter(({ protocol, stream }) => protocol === 'openai-chat' && stream)
    .map(({ file }) => ({ name: file, chunks: readChunks(readRecording(file)) })),
];

const accumulate = (chunks: readonly JsonObject[]): unknown => {
  // Fields around the delta are sampled on the fast path unless all are wanted.
  const accumulator = new ChatAccumulator({ everyField: true });
  accumulator.pushAll(chunks);
  return accumulator.finish();
};

/** Adds a field without a value that the fast path does not count. */
const withField = (object: unknown, name: string, value: unknown): unknown =>
  isObject(object) && !Object.hasOwn(object, name) ? { ...object, [name]: value } : object;

const mapChoices = (chunk: JsonObject, change: (choice: JsonObject) => JsonObject): JsonObject =>
  Array.isArray(chunk['choices'])
    ? { ...chunk, choices: chunk['choices'].map((choice: unknown) => (isObject(choice) ? change(choice) : choice)) }
    : chunk;

const mapDeltas = (chunk: JsonObject, change: (delta: JsonObject) => unknown): JsonObject =>
  mapChoices(chunk, (choice) => (isObject(choice['delta']) ? { ...choice, delta: change(choice['delta']) } : choice));

const SLOW: Record<string, (chunk: JsonObject) => JsonObject> = {
  'ChatChoice.continue': (chunk) => mapDeltas(chunk, (delta) => withField(delta, 'refusal', null)),
  'CallTracker.continue': (chunk) =>
    mapDeltas(chunk, (delta) =>
      Array.isArray(delta['tool_calls'])
        ? { ...delta, tool_calls: delta['tool_calls'].map((entry: unknown) => withField(entry, 'id', null)) }
        : delta,
    ),
  'ChunkFields.look': (chunk) => withField(chunk, 'obfuscation', '') as JsonObject, // an object stays one
};

describe.each(Object.entries(SLOW))('%s', (_, slow) => {
  test('gives the same message as the slow path, for every case and recording', () => {
    expect(streams.length).toBeGreaterThan(20);
    for (const { name, chunks } of streams) expect(accumulate(chunks), name).toEqual(accumulate(chunks.map(slow)));
  });
});
