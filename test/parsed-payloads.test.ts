import { describe, expect, test } from 'vitest';
import { StreamAccumulator } from '../packages/core/src/engine/index.ts';
import { type AccumulatedMessage, createSseDecoder, type Protocol } from '../packages/core/src/index.ts';
import { readCases } from './corpus.ts';
import { assemble, bytesOf, protocolOf } from './run.ts';

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The payloads that an SDK would yield: up to `[DONE]`. Undefined when a frame is not an object, or an error by its name only. */
function parsePayloads(raw: string): object[] | undefined {
  const decoder = createSseDecoder();
  const frames = [...decoder.push(bytesOf(raw)), ...decoder.end()];
  const payloads: object[] = [];
  for (const { data, event } of frames) {
    if (data.trim() === '[DONE]') break;
    try {
      const payload: unknown = JSON.parse(data);
      if (!isObject(payload) || event === 'error') return undefined;
      payloads.push(payload);
    } catch {
      return undefined;
    }
  }
  return payloads.length > 0 ? payloads : undefined;
}

const rows = readCases().flatMap(({ id, protocol, raw }) => {
  const payloads = parsePayloads(raw);
  return payloads ? [{ id, protocol: protocolOf(protocol), raw, payloads }] : [];
});

function accumulatePayloads(protocol: Protocol, payloads: readonly object[]): AccumulatedMessage {
  const accumulator = new StreamAccumulator({ protocol });
  for (const payload of payloads) accumulator.push(payload);
  return accumulator.finish();
}

/** What does not depend on `[DONE]`, which only bytes have. */
const content = ({ text, reasoning, refusal, tool_calls, invalid_arguments, usage, extras }: AccumulatedMessage): object => ({
  ...{ text, reasoning, refusal, tool_calls, invalid_arguments, usage, extras },
});

test('most cases can be parsed', () => {
  expect(rows.length).toBeGreaterThan(150);
});

describe.each(rows)('$id', ({ protocol, raw, payloads }) => {
  test('as parsed payloads, it is the same message as from its bytes', () => {
    const whole = assemble(protocol, [bytesOf(raw)]);
    const parsed = accumulatePayloads(protocol, payloads);
    expect(content(parsed)).toEqual(content(whole));
    // Without a finish reason only `[DONE]` shows that a message is whole.
    if (whole.wire_finish_reason !== null)
      expect([parsed.complete, parsed.finish_reason]).toEqual([whole.complete, whole.finish_reason]);
  });

  test('its payloads are not changed', () => {
    const before = structuredClone(payloads);
    accumulatePayloads(protocol, payloads);
    expect(payloads).toEqual(before);
  });
});
