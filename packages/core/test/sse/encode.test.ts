import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SseFrame } from '../../src/sse/encode.ts';
import { createSseEncoder, encodeSse, encodeSseComment } from '../../src/sse/index.ts';
import { cut, decode, withoutOffset } from './run.ts';

const ROWS: { name: string; frame: SseFrame; text: string; crlf?: string }[] = [
  { name: 'data', frame: { data: '{}' }, text: 'data: {}\n\n', crlf: 'data: {}\r\n\r\n' },
  { name: 'empty data', frame: { data: '' }, text: 'data: \n\n' },
  {
    name: 'all fields',
    frame: { retry: 5, id: '1', data: 'x', event: 'e', offset: 9 },
    text: 'event: e\nid: 1\nretry: 5\ndata: x\n\n',
  },
  {
    name: 'every line end',
    frame: { data: 'a\nb\r\nc\rd\n' },
    text: 'data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n',
    crlf: 'data: a\r\ndata: b\r\ndata: c\r\ndata: d\r\ndata: \r\n\r\n',
  },
  { name: 'empty name and id', frame: { event: '', id: '', data: 'x' }, text: 'id: \ndata: x\n\n' },
  {
    name: 'no field can be smuggled in',
    frame: { event: 'a\ndata: b', id: 'c\r\nd', data: 'x' },
    text: 'event: a data: b\nid: c d\ndata: x\n\n',
  },
  {
    name: 'nor by a CR alone',
    frame: { event: 'a\rdata: b', id: 'c\rd', data: 'x\ry' },
    text: 'event: a data: b\nid: c d\ndata: x\ndata: y\n\n',
  },
  { name: 'id with NUL', frame: { id: 'a\0', data: 'x' }, text: 'data: x\n\n' },
  { name: 'bare', frame: { data: '{"a":\n1}', bare: true }, text: '{"a":\n1}\n', crlf: '{"a":\n1}\r\n' },
];

test.each(ROWS)('$name', ({ frame, text, crlf }) => {
  expect(encodeSse(frame)).toBe(text);
  if (crlf !== undefined) expect(encodeSse(frame, { lineEnd: '\r\n' })).toBe(crlf);
});

test('an encoder of a stream', () => {
  const encoder = createSseEncoder({ lineEnd: '\r\n' });
  expect([...encoder.push({ data: 'é' })]).toEqual([new TextEncoder().encode('data: é\r\n\r\n')]);
  expect([...encoder.end()]).toEqual([]);
});

test.each([
  ['ping', ': ping\n\n'],
  ['a\ndata: b', ': a data: b\n\n'],
  ['', ': \n\n'],
])('comment %j', (text, expected) => {
  expect(encodeSseComment(text)).toBe(expected);
  expect(decode([new TextEncoder().encode(encodeSseComment(text))])).toEqual({ frames: [], reports: [] });
});

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.constantFrom('{"a":1}', 'a\n\nb', ' x', ': y', '\ufeff', '\n', 'é'.repeat(200)),
);
const lineless = text.map((value) => value.replace(/[\r\n\0]/g, '_').toWellFormed());
const frames = fc.array(
  fc.oneof(
    fc.record(
      {
        data: text.map((value) => value.replace(/\r\n?/g, '\n').toWellFormed()),
        event: lineless.filter((value) => value !== ''),
        id: lineless,
        retry: fc.nat(),
      },
      { requiredKeys: ['data'] },
    ),
    fc.record({
      data: fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
      bare: fc.constant(true as const),
    }),
  ),
  { maxLength: 12 },
);

test.each(['\n', '\r\n'] as const)('decode undoes encode (line end %j)', (lineEnd) => {
  fc.assert(
    fc.property(frames, fc.array(fc.nat(3000), { maxLength: 8 }), (sent, places) => {
      const encoder = createSseEncoder({ lineEnd });
      const bytes = Uint8Array.from(sent.flatMap((frame) => [...encoder.push(frame)].flatMap((piece) => [...piece])));
      expect([...encoder.end()]).toEqual([]);
      expect(decode(cut(bytes, places)).frames.map(withoutOffset)).toEqual(sent);
    }),
    { numRuns: 1000 },
  );
});
