import { expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';
import { type Run, run, summary } from './run.ts';

const recordings = readManifest().filter(({ protocol }) => protocol === 'anthropic-messages');
const has = (features: string[], ...names: string[]): boolean => names.some((name) => features.includes(name));
const streams = recordings.filter(({ stream }) => stream);
const bodies = recordings.filter(({ stream }) => !stream);

/** Violations that were found in recordings, by file. */
const VIOLATIONS: Record<string, string[]> = {
  'anthropic-messages/anthropic-3d7a0ba0.sse': ['sse/unterminated-event'],
  'anthropic-messages/anthropic-bc10f231.sse': ['anthropic/done-sentinel'],
  'anthropic-messages/openrouter-485803f7.sse': ['anthropic/done-sentinel'],
};

/** The text of a stream, straight from the wire. */
const plain = (payloads: JsonObject[], type: string, field: string): string =>
  payloads.map(({ delta }) => (isObject(delta) && delta['type'] === type ? String(delta[field]) : '')).join('');

function expectWhole(found: Run, isCut: boolean): void {
  const { complete, error, message } = found;
  expect({ complete, error }).toEqual({ complete: true, error: null });
  for (const block of message.content) {
    if (block.type !== 'tool_use' || isCut) continue;
    expect(isObject(JSON.parse(block.input_raw ?? '{}'))).toBe(true);
    expect(block.status).toBeUndefined();
  }
}

test('there are recordings', () => expect(Math.min(streams.length, bodies.length)).toBeGreaterThan(20));

test.each(streams.map((entry) => [entry.file, entry] as const))('%s', (file, { features }) => {
  const found = run(readRecording(file));
  expectWhole(found, has(features, 'truncated'));
  const { text, reasoning, usage } = summary(found);
  expect(text).toBe(plain(found.payloads, 'text_delta', 'text'));
  expect(reasoning).toBe(plain(found.payloads, 'thinking_delta', 'thinking'));
  expect(usage).toMatchObject({ output_tokens: expect.any(Number) });
  const inputs = found.message.content.map((block) => (block.type === 'tool_use' ? (block.input_raw ?? '') : '')).join('');
  const starts = found.payloads.filter(
    ({ content_block: block }) => isObject(block) && isObject(block['input']) && Object.keys(block['input']).length,
  );
  if (starts.length === 0) expect(inputs).toBe(plain(found.payloads, 'input_json_delta', 'partial_json'));
  expect(found.rules).toEqual(VIOLATIONS[file] ?? []);
  expect(run(readRecording(file), 61).events).toEqual(found.events);
});

test.each(bodies.map((entry) => [entry.file, entry] as const))('%s', (file, { status, features }) => {
  const raw = JSON.parse(readRecording(file).toString());
  const found = run(readRecording(file));
  if (status !== 200 || has(features, 'error')) {
    expect(found.error?.upstream?.body).toEqual(raw.error);
    return;
  }
  expectWhole(found, has(features, 'truncated'));
  expect(summary(found).text).toBe(raw.content.map(({ text = '' }) => text).join(''));
  expect(summary(found).usage).toEqual(raw.usage);
  const blocks = summary(found).extras as JsonObject;
  if (blocks['blocks'])
    expect(blocks['blocks']).toMatchObject(
      raw.content.filter(({ type, text }: JsonObject) => type !== 'text' || text !== '').map(tidy),
    );
});

/** A body says `citations: null` where a stream says nothing. */
const tidy = (block: JsonObject): JsonObject => Object.fromEntries(Object.entries(block).filter(([, value]) => value !== null));
