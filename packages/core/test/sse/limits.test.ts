import { describe, expect, test } from 'vitest';
import { createSseDecoder } from '../../src/sse/index.ts';
import { byteByByte, bytesOf, cut, decode } from './run.ts';

const TOO_LARGE = 'a line or an event of the stream is longer than allowed (maxLineBytes 100 bytes, maxEventBytes 40 bytes)';
const x = (count: number): string => 'x'.repeat(count);

const ROWS: { name: string; input: string; fails?: true; before?: number; offset?: number }[] = [
  { name: 'line of the limit', input: `:${x(99)}\n\n` },
  { name: 'line of the limit, begun like a document', input: `{${x(99)}\n\n` },
  { name: 'line of the limit, behind a brace', input: `{\n ${x(99)}\n\n` },
  { name: 'line over the limit', input: `:${x(100)}\n\n`, fails: true, offset: 0 },
  { name: 'line over the limit, never ended', input: `data: ok\n\n:${x(100)}`, fails: true, before: 1, offset: 10 },
  { name: 'blank line over the limit', input: ' '.repeat(101), fails: true, offset: 0 },
  { name: 'event of the limit', input: `data: ${x(40)}\n\n`, before: 1 },
  { name: 'event over the limit', input: `data: ${x(41)}\n\n`, fails: true, offset: 0 },
  {
    name: 'event over the limit, never ended',
    input: `data: ok\n\nid: 1\ndata: ${x(41)}`,
    fails: true,
    before: 1,
    offset: 10,
  },
  { name: 'second event of the limit', input: `data: x\n\ndata: ${x(40)}\n\n`, before: 2 },
  { name: 'event of many lines of the limit', input: `data: ${x(19)}\ndata: ${x(20)}\n\n`, before: 1 },
  { name: 'event of many lines over the limit', input: `data: ${x(20)}\ndata: ${x(20)}\n\n`, fails: true, offset: 0 },
  { name: 'many empty lines', input: 'data\n'.repeat(42), fails: true, offset: 0 },
  { name: 'many empty lines with a colon', input: `data: x\n${'data:\n'.repeat(40)}`, fails: true, offset: 0 },
  { name: 'three small events', input: `data: ${x(30)}\n\n`.repeat(3), before: 3 },
  { name: 'small events add up to nothing', input: `data: ${x(30)}\n\n`.repeat(50), before: 50 },
  { name: 'error field over the limit', input: `error: ${x(41)}\n`, fails: true, offset: 0 },
  { name: 'document of the limit', input: `{"a":"${x(32)}"}`, before: 1 },
  { name: 'document over the limit', input: `{"a":"${x(33)}"}`, fails: true, offset: 0 },
  { name: 'document over the limit, never ended', input: `[{"a":1},{"a":"${x(100)}`, fails: true, before: 1, offset: 9 },
  {
    name: 'elements add up to nothing',
    input: `[${Array(50)
      .fill(`"${x(20)}"`)
      .join(',')}]`,
    before: 50,
  },
];

describe.each(ROWS)('$name', ({ input, fails, before = 0, offset }) => {
  const bytes = bytesOf(`${input}${fails && !input.endsWith('x') && !input.endsWith(' ') ? 'data: later\n\n' : ''}`);
  const limits = { maxLineBytes: 100, maxEventBytes: 40 };

  test('fails, or does not', () => {
    const { frames } = decode([bytes], limits);
    expect(frames.filter((frame) => frame.failure === undefined)).toHaveLength(before);
    const error = { code: 'PAYLOAD_TOO_LARGE', message: TOO_LARGE, details: { code: 'too_large' } };
    expect(frames.slice(before)).toEqual(fails ? [{ data: '', failure: error, offset }] : []);
  });

  test('the same in two pieces', () => {
    const whole = decode([bytes], limits);
    for (let place = 0; place < bytes.length; place++) expect(decode(cut(bytes, [place]), limits)).toEqual(whole);
  });

  test('the same byte by byte', () => {
    expect(decode(byteByByte(bytes), limits)).toEqual(decode([bytes], limits));
  });
});

test.each([
  ['a line that never ends', 'data: ', 'x'.repeat(1024)],
  ['an event that never ends', '', `${'data: x\n'.repeat(128)}`],
  ['a document that never ends', '{"a":"', 'x'.repeat(1024)],
  ['a document of nesting', '{"a":', '['.repeat(1024)],
])('%s stops at the limit while bytes arrive', (_, head, more) => {
  const decoder = createSseDecoder({ maxLineBytes: 1 << 16, maxEventBytes: 1 << 16 });
  decoder.push(bytesOf(head));
  const chunk = bytesOf(more);
  let pushes = 0;
  while (pushes < 1000 && [...decoder.push(chunk)].length === 0) pushes++;
  expect(pushes).toBeLessThan(300);
  expect([...decoder.push(chunk), ...decoder.end()]).toEqual([]);
});

// Quadratic work (copying or searching the open line again for each byte) would take minutes.
test.each([
  ['line', 'data: ', 'x', '\n\n'],
  ['document', '{"a":"', 'x', '"}'],
])(
  'a long %s is linear byte by byte',
  (_, head, byte, tail) => {
    const decoder = createSseDecoder();
    const count = 2_000_000;
    const chunk = bytesOf(byte);
    decoder.push(bytesOf(head));
    for (let index = 0; index < count; index++) decoder.push(chunk);
    const [frame] = decoder.push(bytesOf(tail));
    expect(frame?.data.length).toBeGreaterThanOrEqual(count);
  },
  20_000,
);
