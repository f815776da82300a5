import { expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { isObject, parseJson } from '../../src/json/json.ts';
import { anthropicMessages } from '../../src/protocols/anthropic-messages/index.ts';
import { createSseDecoder } from '../../src/sse/index.ts';

/** How many of the first payloads of a recording are recognised, and how many there are (pings apart). */
function recognised(file: string): [number, number] {
  const decoder = createSseDecoder();
  const frames = [...decoder.push(readRecording(file)), ...decoder.end()].slice(0, 20);
  const payloads = frames.flatMap(({ data, event }) => {
    const payload = parseJson(data);
    return isObject(payload) && payload['type'] !== 'ping' ? [{ payload, event }] : [];
  });
  return [payloads.filter(({ payload, event }) => anthropicMessages.recognises(payload, event)).length, payloads.length];
}

test.each(['anthropic-messages', 'openai-chat', 'openai-responses', 'gemini'])('payloads of %s', (protocol) => {
  for (const { file } of readManifest().filter((entry) => entry.protocol === protocol)) {
    const [count, all] = recognised(file);
    expect([file, count]).toEqual([file, protocol === 'anthropic-messages' ? all : 0]);
  }
});

test.each([
  [{ type: 'error', error: { type: 'overloaded_error', message: 'm' } }, 'error', true],
  [{ type: 'error', sequence_number: 1, error: { type: 'x', code: null } }, 'error', false],
  [{ error: { type: 'x', message: 'm' } }, undefined, false],
  [{ message: {} }, 'message_start', true],
  [{ type: 'ping' }, 'ping', false],
  [{}, undefined, false],
])('%j under %s: %s', (payload, event, expected) => {
  expect(anthropicMessages.recognises(payload, event)).toBe(expected);
});
