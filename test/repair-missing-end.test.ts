/** Streams that end before their message does, cut after every frame: an error, unless every part of what came has ended and the reader allows it. */
import { expect, test } from 'vitest';
import { REPAIRS } from '../packages/core/src/protocols/index.ts';
import { RepairStream } from '../packages/core/src/repair/stream.ts';
import { PLAIN_FRAMING, seededRandom, writeStream } from '../packages/lab/src/mutate/index.ts';
import { cleanStreams, PROTOCOL_IDS } from './doctor/clean-streams.ts';
import { examine } from './doctor/examine.ts';

type Json = Record<string, unknown>;

const object = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {}); // JSON

/** What a part begins and ends with, by protocol. Chat and Gemini have no such events. */
const PARTS: Partial<Record<string, { start: string; stop: string; last: RegExp; find(event: Json): Json }>> = {
  'anthropic-messages': {
    start: 'content_block_start',
    stop: 'content_block_stop',
    last: /^(text|tool_use)$/,
    find: (event) => object(event['content_block']),
  },
  'openai-responses': {
    start: 'response.output_item.added',
    stop: 'response.output_item.done',
    last: /^(message|function_call|custom_tool_call)$/,
    find: (event) => object(event['item']),
  },
};

/** Whether every part of the events has ended, and the last one is content. */
function hasWholeParts(protocol: string, events: readonly Json[]): boolean {
  const parts = PARTS[protocol];
  if (!parts) return false;
  const count = (type: string): number => events.filter((event) => event['type'] === type).length;
  const last = events.findLast(({ type }) => type !== 'ping');
  const started = events.findLast(({ type }) => type === parts.start);
  if (last?.['type'] !== parts.stop || !started) return false;
  return count(parts.start) === count(parts.stop) && parts.last.test(String(parts.find(started)['type']));
}

function repair(
  protocol: keyof typeof REPAIRS,
  body: Uint8Array,
  allowMissingEnd: boolean,
): { text: string; error: string | undefined } {
  const stage = new RepairStream({ codec: REPAIRS[protocol], model: 'm-1', allowMissingEnd });
  const out: Uint8Array[] = [...stage.push(body), ...stage.end()];
  return { text: Buffer.concat(out).toString(), error: stage.converter.error?.code };
}

test.each(PROTOCOL_IDS)('%s: cut after every frame', (protocol) => {
  const counts = { whole: 0, cut: 0 };
  for (const clean of cleanStreams(protocol)) {
    for (let length = 1; length < clean.frames.length; length++) {
      const frames = clean.frames.slice(0, length);
      const body = Buffer.concat(writeStream({ ...clean, frames, framing: PLAIN_FRAMING }, seededRandom(1)));
      const before = examine([body], { protocol: REPAIRS[protocol] }).message;
      if (before.complete || before.error) continue;
      const events = frames.map(({ data }) => object(JSON.parse(data)));
      const { text, error } = repair(protocol, body, true);
      const name = `${protocol}, ${length} of ${clean.frames.length} frames`;
      expect(error, name).toBe('STREAM_TRUNCATED');
      if (hasWholeParts(protocol, events)) {
        counts.whole++;
        expect(text, name).toBe(body.toString());
        expect(repair(protocol, body, false).text, name).toMatch(/"error":/);
      } else {
        counts.cut++;
        expect(text, name).toMatch(/"error":/);
      }
    }
  }
  expect(counts.cut).toBeGreaterThan(10);
  expect(counts.whole > 5).toBe(protocol in PARTS);
});
