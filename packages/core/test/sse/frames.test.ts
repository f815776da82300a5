import { describe, expect, test } from 'vitest';
import { FrameReader } from '../../src/sse/decode.ts';
import type { SseFrame } from '../../src/sse/encode.ts';
import { createSseDecoder, encodeSseComment } from '../../src/sse/index.ts';
import { byteByByte, bytesOf, decode, withoutOffset } from './run.ts';

interface Row {
  name: string;
  input: string;
  /** Exactly the frames: a field that the wire did not have is not there. */
  frames: SseFrame[];
  reports?: string[];
}

const ROWS: Row[] = [
  { name: 'data and nothing else', input: 'data: a\n\n', frames: [{ data: 'a' }] },
  {
    name: 'every field',
    input: 'event: e\nid: 1\nretry: 5\ndata: a\n\n',
    frames: [{ event: 'e', data: 'a', id: '1', retry: 5 }],
  },
  {
    name: 'a document and nothing else',
    input: '{"a":1}',
    frames: [{ data: '{"a":1}', bare: true }],
    reports: ['sse/bare-json'],
  },
  {
    name: 'a field name that is cut short, where a longer line stood before',
    input: 'data:1\n\ndat\n\nevent:e\ndata:2\n\neven\ndata:3\n\n',
    frames: [{ data: '1' }, { event: 'e', data: '2' }, { data: '3' }],
  },
  {
    name: 'a blank name after another',
    input: 'event: a\ndata: 1\n\nevent:\ndata: 2\n\nevent: a\nevent\ndata: 3\n\n',
    frames: [{ event: 'a', data: '1' }, { data: '2' }, { data: '3' }],
  },
  {
    name: 'names that begin alike',
    input: 'event: a \ndata: 1\n\nevent: ab\ndata: 2\n\nevent: a\ndata: 3\n\nevent: abc\ndata: 4\n\n',
    frames: [
      { event: 'a ', data: '1' },
      { event: 'ab', data: '2' },
      { event: 'a', data: '3' },
      { event: 'abc', data: '4' },
    ],
  },
  {
    name: 'a name, then a field that begins like one',
    input: 'event: a\nerrors: b\nevents: c\ndata: 1\n\n',
    frames: [{ event: 'a', data: '1' }],
  },
  {
    name: 'the sentinel alone on a line ends the event before it',
    input: 'data: {"a":1}\n[DONE]\n',
    frames: [{ data: '{"a":1}' }, { data: '[DONE]', bare: true }],
    reports: ['sse/bare-json'],
  },
  {
    name: 'the sentinel with white space behind it, up to 64 bytes',
    input: `[DONE]${' '.repeat(58)}\n[DONE]${' '.repeat(59)}\n`,
    frames: [{ data: `[DONE]${' '.repeat(58)}`, bare: true }],
    reports: ['sse/bare-json'],
  },
  {
    name: 'payloads a line each, the last of them cut',
    input: 'data: {"a":1}\ndata: {"b"',
    frames: [],
    reports: ['sse/truncated-event'],
  },
  {
    name: 'payloads a line each, and the sentinel',
    input: 'data: {"a":1}\ndata: [DONE]',
    frames: [{ data: '{"a":1}\n[DONE]' }],
    reports: ['sse/unterminated-event'],
  },
];

describe.each(ROWS)('$name', ({ input, frames, reports = [] }) => {
  test.each([
    ['in one piece', [bytesOf(input)]],
    ['byte by byte', byteByByte(bytesOf(input))],
    ['behind a long comment', [bytesOf(`:${'c'.repeat(200)}\n\n${input}`)]],
  ])('%s', (_, pieces) => {
    const run = decode(pieces);
    expect(run.frames.map(withoutOffset)).toStrictEqual(frames);
    expect(run.reports.map(([rule]) => rule)).toEqual(reports);
  });
});

/** Shows the protected members to the tests. */
class OpenReader extends FrameReader {
  override get isBetweenFrames(): boolean {
    return super.isBetweenFrames;
  }

  override skip(bytes: number): void {
    super.skip(bytes);
  }
}

describe('the members that only the cache of repeated chunks uses', () => {
  test.each([
    ['', false],
    ['\ufeff', true],
    ['data: a\n\n', true],
    ['data: a\r\n\r\n', true],
    ['data: a\n\nda', false],
    ['data: a\n', false],
    [': a\n', false],
    ['event: a\n', false],
    [' ', false],
    // A line feed may follow and belongs to the line end.
    ['data: a\r\n\r', false],
    ['{"a":1', false],
    ['{"a":1}', true],
    ['[1,', false],
    ['[1]', true],
    [`:${'x'.repeat(20)}`, false],
  ])('isBetweenFrames after %j: %s', (input, isBetween) => {
    const decoder = new OpenReader({ maxLineBytes: 20 });
    decoder.push(bytesOf(input));
    expect(decoder.isBetweenFrames).toBe(isBetween);
    decoder.end();
    expect(decoder.isBetweenFrames).toBe(false);
  });

  test('skip moves the position and the offsets of later frames', () => {
    const decoder = new OpenReader({});
    decoder.push(bytesOf('data: a\n\n'));
    expect(decoder.position).toBe(9);
    decoder.skip(100);
    expect(decoder.position).toBe(109);
    expect(decoder.push(bytesOf('data: b\n\n'))).toEqual([{ data: 'b', offset: 109 }]);
    decoder.end();
    decoder.push(bytesOf('data: c\n\n'));
    expect(decoder.position).toBe(118);
  });
});

test('nobody needs to be told', () => {
  const decoder = createSseDecoder();
  const broken = Uint8Array.from([...bytesOf('data: a'), 0xff, ...bytesOf('\n\nerror: {}\n{"a":1}\nevent: error\n\ndata: {}')]);
  const frames = [...decoder.push(broken), ...decoder.end()];
  expect(frames.map(({ data }) => data)).toEqual(['a\ufffd', '{}', '{"a":1}', '', '{}']);
});

describe('a limit is seen while the line is still open', () => {
  const x = (count: number): string => 'x'.repeat(count);

  test.each([
    ['the first line of data', `data: ${x(39)}`],
    ['data without a space', `data:${x(39)}`],
    ['the second line of data', `data: a\ndata: ${x(37)}`],
    ['a document', `{"a":"${x(33)}`],
  ])('%s', (_, input) => {
    const decoder = createSseDecoder({ maxEventBytes: 40 });
    expect(decoder.push(bytesOf(input))).toEqual([]);
    expect(decoder.push(bytesOf('x'))).toEqual([]);
    expect(decoder.push(bytesOf('x'))).toMatchObject([{ data: '', failure: { code: 'PAYLOAD_TOO_LARGE' } }]);
  });

  test.each(['id: ', 'event: ', ': ', 'dat: ', 'xata: ', ''])('%j is no data', (field) => {
    const decoder = createSseDecoder({ maxEventBytes: 40 });
    expect([...decoder.push(bytesOf(field + x(100))), ...decoder.push(bytesOf('\n\ndata: a\n\n'))]).toMatchObject([
      { data: 'a' },
    ]);
  });

  test('a line of any kind', () => {
    const decoder = createSseDecoder({ maxLineBytes: 10 });
    expect(decoder.push(bytesOf(`:${x(9)}`))).toEqual([]);
    expect(decoder.push(bytesOf('x'))).toMatchObject([{ failure: { code: 'PAYLOAD_TOO_LARGE' } }]);
  });
});

test('an error that is too large and never ends is one failure and no error', () => {
  const { frames, reports } = decode([bytesOf(`error: ${'x'.repeat(41)}`)], { maxEventBytes: 40 });
  expect(frames).toMatchObject([{ data: '', failure: { code: 'PAYLOAD_TOO_LARGE' } }]);
  expect(reports.map(([rule]) => rule)).toEqual(['sse/error-field']);
});

test.each([
  [{ maxLineBytes: 10 }, '10 bytes', '32 MiB'],
  [{ maxEventBytes: 10 }, '32 MiB', '10 bytes'],
  [{ maxLineBytes: 10, maxEventBytes: 5 << 20 }, '10 bytes', '5 MiB'],
  [{ maxLineBytes: 10, maxEventBytes: (5 << 20) + 1 }, '10 bytes', '5242881 bytes'],
])('the limits %j are reported in readable units', (options, line, event) => {
  const [frame] = createSseDecoder(options).push(bytesOf('data:xxxxxxxxxxx'));
  expect(frame?.failure?.message).toContain(`(maxLineBytes ${line}, maxEventBytes ${event})`);
});

test('by default a line may have 32 MiB', () => {
  const decoder = createSseDecoder();
  const chunk = new Uint8Array(1 << 20).fill(0x61);
  for (let count = 0; count < 32; count++) expect(decoder.push(chunk)).toEqual([]);
  expect(decoder.push(chunk.subarray(0, 1))).toMatchObject([{ failure: { code: 'PAYLOAD_TOO_LARGE' } }]);
});

test('a big line does not keep its buffer, and the next lines are read as ever', () => {
  const big = 'x'.repeat(3 << 20);
  const frames = decode([
    bytesOf('data: '),
    ...[...big.matchAll(/.{60000}/g)].map(([part]) => bytesOf(part)),
    bytesOf('\n\nda'),
    bytesOf('ta: a\n\n'),
  ]).frames;
  expect(frames.map(({ data }) => data.length)).toEqual([52 * 60000, 1]);
});

test('comments', () => {
  expect(encodeSseComment()).toBe(': \n\n');
  expect(encodeSseComment('a', { lineEnd: '\r\n' })).toBe(': a\r\n\r\n');
});
