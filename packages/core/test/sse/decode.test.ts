import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BARE, LENIENT, type Row, STANDARD } from './rows.ts';
import { byteByByte, bytesOf, cut, decode, withoutOffset } from './run.ts';
import { whatwg } from './whatwg.ts';

const ROWS = [...STANDARD, ...LENIENT, ...BARE];
const inputOf = ({ input }: Row): Uint8Array => (typeof input === 'string' ? bytesOf(input) : input);
const startsWithBom = (row: Row): boolean => inputOf(row)[0] === 0xef;
const allOf = (bytes: Uint8Array): number[] => Array.from(bytes, (_, index) => index);

describe.each(ROWS)('$name', (row) => {
  const bytes = inputOf(row);
  const whole = decode([bytes]);

  test('in one piece', () => {
    expect(whole.frames.map(withoutOffset)).toEqual(row.frames);
    expect(whole.reports.map(([rule]) => rule)).toEqual(row.reports ?? []);
    if (row.offsets) expect(whole.frames.map(({ offset }) => offset)).toEqual(row.offsets);
  });

  test('in two pieces, cut anywhere', () => {
    for (const place of [0, ...allOf(bytes)]) expect(decode(cut(bytes, [place])), `cut at ${place}`).toEqual(whole);
  });

  test('byte by byte, empty pieces between', () => {
    expect(decode(byteByByte(bytes).flatMap((byte) => [byte, new Uint8Array(0)]))).toEqual(whole);
  });

  // Chunks of some length are searched by words: every alignment of the row in such a chunk.
  if (!startsWithBom(row))
    test('behind a long comment', () => {
      for (let length = 3000; length < 3008; length++) {
        const comment = bytesOf(`:${'c'.repeat(length - 3)}\n\n`);
        const { frames, reports } = decode([Uint8Array.from([...comment, ...bytes])]);
        expect(frames).toEqual(whole.frames.map((frame) => ({ ...frame, offset: (frame.offset ?? 0) + length })));
        expect(reports).toEqual(whole.reports.map(([rule, offset]) => [rule, offset + length]));
      }
    });
});

const TOKENS = [
  'data',
  'data:',
  'data: ',
  'event: e',
  'id: 1',
  'retry: 5',
  ':',
  ' ',
  '\t',
  '\n',
  '\n\n',
  '\r',
  '\r\n',
  '\r\n\r\n',
  '\0',
  'é',
  '世👩',
  '\ufeff',
  'word',
  '}',
  ']',
  '"',
  'x'.repeat(140),
  '€'.repeat(60),
  'y'.repeat(2500),
];
const JSON_TOKENS = [...TOKENS, '{', '[', '{"a":1}', '[{"a":1},', ',', '\\', '\\"', 'error: {}', 'event: error\n', '[DONE]', '1'];
const soup = (tokens: string[]): fc.Arbitrary<Uint8Array> =>
  fc.array(fc.constantFrom(...tokens), { maxLength: 60 }).map((parts) => bytesOf(parts.join('')));
const places = fc.array(fc.nat(4000), { maxLength: 12 });

describe('properties', () => {
  test('streams without our leniencies are read like the standard says', () => {
    fc.assert(
      fc.property(soup(TOKENS), places, (bytes, cuts) => {
        const { frames } = decode(cut(Uint8Array.from([...bytes, 0x0a, 0x0a]), cuts));
        expect(frames.map(withoutOffset)).toEqual(whatwg(`${new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)}\n\n`));
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ['soup of fields and JSON', soup(JSON_TOKENS)],
    [
      'bytes that matter',
      fc
        .array(fc.constantFrom(...bytesOf('data:evntiro[]{}",\\ \r\n1\0'), 0xef, 0xbb, 0xbf, 0xff, 0xe4), { maxLength: 300 })
        .map((list) => Uint8Array.from(list)),
    ],
    ['any bytes', fc.uint8Array({ maxLength: 300 })],
  ])('%s: never throws, the same however split', (_, arbitrary) => {
    fc.assert(
      fc.property(arbitrary, places, fc.constantFrom(undefined, 10, 100), (bytes, cuts, limit) => {
        const options = limit === undefined ? {} : { maxLineBytes: limit * 2, maxEventBytes: limit };
        const whole = decode([bytes], options);
        expect(decode(cut(bytes, cuts), options)).toEqual(whole);
        expect(decode(byteByByte(bytes), options)).toEqual(whole);
      }),
      { numRuns: 1500 },
    );
  });
});
