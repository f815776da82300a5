import { type CanonicalStreamEvent, type ContentBlock, MessageAccumulator, type ProtocolId } from '@sluice/core';
import { CODECS, createStreamConverter, StreamAccumulator } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { cutFrames } from '../../src/capture/inspect/frames.ts';
import { formatInput, parseInput, readFiles } from '../../src/capture/inspect/input.ts';
import { InspectError, type Inspection, inspect } from '../../src/capture/inspect/inspect.ts';
import { Timeline } from '../../src/capture/inspect/timeline.ts';

// The same function runs in the console: test/console.test.ts of that package has it in a browser.

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

/** A repeatable sequence from 0 to 1. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** The whole body in one call, as a check of the derivation frame by frame. */
function convertAtOnce(body: Uint8Array, from: ProtocolId, to: ProtocolId): { events: CanonicalStreamEvent[]; sent: string } {
  const events: CanonicalStreamEvent[] = [];
  const stream = createStreamConverter({ from: CODECS[from], to: CODECS[to], onEvent: (event) => void events.push(event) });
  const sent = [...stream.push(body), ...stream.end()].map(textOf).join('');
  return { events, sent };
}

/** What is wrong with an inspection. */
function findFault(body: Uint8Array, from: ProtocolId, to: ProtocolId): string | undefined {
  const inspection = inspect({ is: 'body', name: '', body, reads: [], protocol: from, to });
  const { upstream, events, client, findings } = inspection;
  const expected = convertAtOnce(body, from, to);
  if (textOf(client.bytes) !== expected.sent) return 'other bytes for the client';
  if (JSON.stringify(events.map(({ event }) => event)) !== JSON.stringify(expected.events)) return 'other events';
  if (events.some(({ frame }, index) => frame < (events[index - 1]?.frame ?? 0))) return 'events are not in the order of frames';
  if (client.frames.some(({ events: [first, end] }) => first > end || end > events.length)) return 'a frame without its events';
  if (findings.some(({ frame }) => frame < -1 || frame > upstream.frames.length)) return 'a finding without a place';
  return findGap(body, upstream.frames) ?? findGap(client.bytes, client.frames) ?? findOtherMessage(inspection);
}

/** Frames cover the body, except for white space between them. */
function findGap(body: Uint8Array, frames: readonly { from: number; to: number }[]): string | undefined {
  let at = 0;
  for (const { from, to } of [...frames, { from: body.length, to: body.length }]) {
    const between = textOf(body.subarray(at, from));
    if (from < at || to < from || between.trim() !== '')
      return `frames do not cover bytes ${at} to ${from}: ${between.slice(0, 40)}`;
    at = to;
  }
  return undefined;
}

/** The message at some events is the same as without copies. */
function findOtherMessage({ events }: Inspection): string | undefined {
  const list = events.map(({ event }) => event);
  const timeline = new Timeline(list);
  const random = createRandom(list.length);
  for (const share of [0, random(), random(), random(), 1]) {
    const count = Math.round(share * list.length);
    const direct = new MessageAccumulator();
    for (const event of list.slice(0, count)) direct.push(event);
    if (JSON.stringify(timeline.at(count).finish()) !== JSON.stringify(direct.finish()))
      return `another message after event ${count}`;
  }
  return undefined;
}

/** What a message shows of a block. */
function describeBlock(block: ContentBlock): string[] {
  switch (block.type) {
    case 'text':
      return [block.type, block.text];
    case 'thinking':
      return [block.type, block.thinking];
    case 'tool_use':
      return [block.type, block.name, block.input_raw ?? ''];
    default:
      return [block.type];
  }
}

/**
 * Whether blocks are those of accumulate(), but for what a decoder holds back until it knows more: the start of a call, empty
 * arguments, reasoning without text. accumulate() ends the stream and so releases it.
 */
function isShown(shown: readonly string[][], expected: readonly string[][]): boolean {
  const isHeld = (type: string | undefined, text: string | undefined): boolean =>
    type === 'tool_use' || type === 'opaque' || (type === 'thinking' && text === '');
  return expected.every(([type, text, input], index) => {
    const [shownType, shownText, shownInput] = shown[index] ?? [];
    if (shownType === undefined) return isHeld(type, text);
    return type === shownType && text === shownText && (input === shownInput || shownInput === '');
  });
}

describe('every recording', () => {
  test.each(PROTOCOLS.flatMap((from) => PROTOCOLS.map((to) => ({ from, to }))))(
    'of $from for a client of $to',
    ({ from, to }) => {
      const recordings = readManifest().filter(({ protocol, status }) => protocol === from && status < 400);
      expect(recordings.length).toBeGreaterThan(5);
      const wrong = recordings.flatMap(({ file }) => {
        const fault = findFault(readRecording(file), from, to);
        return fault === undefined ? [] : [`${file}: ${fault}`];
      });
      expect(wrong).toEqual([]);
    },
  );

  test('at any byte, the message is what accumulate() makes of the bytes so far, without what a decoder holds back', () => {
    const wrong: string[] = [];
    for (const { file, protocol } of readManifest().filter(({ stream, status }) => stream && status < 400)) {
      const from = protocol as ProtocolId;
      const body = readRecording(file);
      if (body.length > 300_000) continue;
      const inspection = inspect({ is: 'body', name: '', body, reads: [], protocol: from });
      const timeline = new Timeline(inspection.events.map(({ event }) => event));
      const random = createRandom(body.length);
      for (let i = 0; i < 4; i++) {
        const frame = inspection.upstream.frames[Math.floor(random() * inspection.upstream.frames.length)];
        if (!frame) continue;
        const accumulator = new StreamAccumulator({ protocol: CODECS[from] });
        accumulator.push(body.subarray(0, frame.to));
        const expected = accumulator.finish().message.content.map(describeBlock);
        const shown = timeline.at(frame.events).content.map(describeBlock);
        if (!isShown(shown, expected)) wrong.push(`${file} at ${frame.to}: ${JSON.stringify([shown.at(-1), expected.at(-1)])}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});

test('every reported case can be inspected', () => {
  const wrong = readCases().flatMap(({ id, protocol, raw }) => {
    const from = PROTOCOLS.find((one) => one.startsWith(protocol)) ?? 'openai-chat';
    const fault = findFault(bytesOf(raw), from, 'anthropic-messages');
    return fault === undefined ? [] : [`${id}: ${fault}`];
  });
  expect(wrong).toEqual([]);
});

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const STREAM = [chunk({ content: 'one ' }), ': wait\n\n', chunk({ content: 'two' }), chunk({}, 'stop'), 'data: [DONE]\n\n'];

describe('one stream', () => {
  const body = bytesOf(STREAM.join(''));

  test('a frame has its bytes, its time and its events; a comment is a frame without events', () => {
    const [first = '', second = ''] = STREAM;
    const reads: [number, number][] = [
      [100, first.length + 3],
      [250, body.length - first.length - 3],
    ];
    const { upstream, events, client, hasTimes } = inspect({ is: 'body', name: 'x', body, reads, to: 'anthropic-messages' });
    expect(upstream.protocol).toBe('openai-chat');
    expect(upstream.frames.map(({ kind, ms }) => [kind, ms])).toEqual([
      ['event', 100],
      ['comment', 250],
      ['event', 250],
      ['event', 250],
      ['event', 250],
    ]);
    expect(upstream.frames[1]).toMatchObject({ from: first.length, to: first.length + second.length });
    expect(hasTimes).toBe(true);
    const delta = client.frames.find(({ from, to }) => textOf(client.bytes.subarray(from, to)).includes('"two"'));
    expect(delta).toMatchObject({ frame: 2 });
    expect(events[delta?.events[0] ?? -1]).toMatchObject({ frame: 2, event: { delta: { text: 'two' } } });
  });

  test('a violation has its place', () => {
    const late = bytesOf(`${STREAM.slice(0, 2).join('')}data: {broken\n\n${STREAM.slice(2).join('')}`);
    const { findings } = inspect({ is: 'body', name: 'x', body: late, reads: [], protocol: 'openai-chat' });
    expect(findings).toMatchObject([{ kind: 'rule', id: 'sse/malformed-json', frame: 2 }]);
  });

  test('a page gets the input back', () => {
    const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
    const input = { is: 'body', name: '</script>', body, reads: [[5, 3]], protocol: 'openai-chat', to: 'gemini' } as const;
    expect(parseInput(JSON.stringify(formatInput(input, encode)))).toEqual(input);
  });

  test('files of a recorded exchange belong together; others are refused with a reason', () => {
    const facts = { protocol: 'openai-chat', response: { body: 'response.sse', reads: [[7, 10]] } };
    const files = [
      { name: 'tape/exchange.json', bytes: bytesOf(JSON.stringify(facts)) },
      { name: 'tape/response.sse', bytes: body },
    ];
    expect(readFiles(files)).toMatchObject({ is: 'body', name: 'tape', protocol: 'openai-chat', reads: [[7, 10]] });
    const raw = STREAM.join('');
    const shrunk = { name: 'case.jsonl', bytes: bytesOf(`${JSON.stringify({ id: 'a', protocol: 'openai-chat', raw })}\n`) };
    expect(readFiles([shrunk])).toMatchObject({ is: 'body', name: 'a', protocol: 'openai-chat' });
    for (const [given, reason] of [
      [[], 'choose a file'],
      [files.slice(0, 1), 'choose response.sse together with'],
      [[shrunk, shrunk], 'choose one file'],
      [[{ name: 'c.json', bytes: bytesOf('{"capture":9,"attempts":[]}') }], 'capture: must be 1'],
    ] as const)
      expect(() => readFiles(given), reason).toThrow(reason);
    expect(() => inspect({ is: 'body', name: '', body: bytesOf('<html>'), reads: [] })).toThrow(InspectError);
  });
});

test.each([
  ['CRLF', 'data: 1\r\n\r\ndata: 2\r\n\r\n', [11, 11]],
  ['blank lines between frames', 'data: 1\n\n\n\ndata: 2\n\n', [9, 9]],
  ['a JSON array in lines', '[{"a":1}\n,\n{"b":2}\n]\n', [9, 10, 2]],
  ['a JSON array in one line', '[{"a":1},{"b":2}]', [9, 8]],
  ['an open frame', 'data: 1\n\ndata: {"a"', [9, 10]],
  ['a document with blank lines', '{"a":\n\n1}', [9]],
  ['nothing', '', []],
])('frames of %s', (_, text, sizes) => {
  expect(cutFrames(bytesOf(text)).map(({ from, to }) => to - from)).toEqual(sizes);
});

test('frames above the limit are one', () => {
  expect(cutFrames(bytesOf('data: 1\n\n'.repeat(10)), {}, 4).map(({ kind }) => kind)).toEqual([
    ...Array(4).fill('event'),
    'rest',
  ]);
});
