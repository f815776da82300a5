import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputUnwrapper, unwrapInput } from '../../src/engine/restore.ts';

function read(pieces: readonly string[]): { text: string; hasMore: boolean; parts: string[] } {
  const reader = new InputUnwrapper();
  const parts = [...pieces.map((piece) => reader.push(piece)), reader.end()];
  return { text: parts.join(''), hasMore: reader.hasMore, parts };
}

const ROWS: { name: string; pieces: string[]; text: string; hasMore?: boolean }[] = [
  { name: 'whole', pieces: ['{"input":"SELECT 1"}'], text: 'SELECT 1' },
  { name: 'in pieces', pieces: ['{"inp', 'ut": ', '"SEL', 'ECT 1', '"', '}'], text: 'SELECT 1' },
  { name: 'white space', pieces: [' {\n  "input" :\t"x"\n}\n'], text: 'x' },
  { name: 'escapes', pieces: [String.raw`{"input":"a\n\t\"\\\/\u00e9\b\f\r"}`], text: 'a\n\t"\\/é\b\f\r' },
  { name: 'an escape in pieces', pieces: ['{"input":"a\\', 'n\\u0', '0e', '9b"}'], text: 'a\néb' },
  { name: 'an empty text', pieces: ['{"input":""}'], text: '' },
  { name: 'nothing at all', pieces: [], text: '' },
  { name: 'cut in the text', pieces: ['{"input":"half'], text: 'half' },
  { name: 'cut in an escape', pieces: ['{"input":"half\\u00'], text: 'half\\u00' },
  { name: 'cut before the text: as it is', pieces: ['{"inp'], text: '{"inp' },
  { name: 'no object: as it is', pieces: ['SELECT', ' 1'], text: 'SELECT 1' },
  { name: 'another property: as it is', pieces: ['{"sql":', '"x"}'], text: '{"sql":"x"}' },
  { name: 'a space inside the name: as it is', pieces: ['{"in put":"x"}'], text: '{"in put":"x"}' },
  { name: 'no text: as it is', pieces: ['{"input":', '{"a":1}}'], text: '{"input":{"a":1}}' },
  { name: 'no arguments: as they are', pieces: ['{}'], text: '{}' },
  { name: 'more than the text', pieces: ['{"input":"x",', '"lang":"sql"}'], text: 'x', hasMore: true },
  { name: 'no escape: as it is', pieces: ['{"input":"a\\u12zz b"}'], text: 'a\\u12zz b' },
  { name: 'endless white space: as it is', pieces: [' '.repeat(100), '{"input":"x"}'], text: `${' '.repeat(100)}{"input":"x"}` },
  { name: 'half a character', pieces: ['{"input":"\\ud83d"}'], text: '\ufffd' },
];

describe('P46: the text of a custom tool that went out as a function', () => {
  test.each(ROWS)('$name', ({ pieces, text, hasMore = false }) => {
    expect(read(pieces)).toMatchObject({ text, hasMore });
  });

  test('any text, cut anywhere, written with or without escapes', () => {
    const cuts = fc.array(fc.nat(400), { maxLength: 8 });
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), cuts, fc.boolean(), (text, places, isEscaped) => {
        const json = JSON.stringify({ input: text });
        const source = isEscaped ? json.replace(/[^\x20-\x7e]/g, unicode) : json;
        const ends = [0, ...places.map((place) => place % (source.length + 1)).toSorted((a, b) => a - b), source.length];
        const { text: got, parts } = read(ends.slice(1).map((end, i) => source.slice(ends[i], end)));
        expect(got).toBe(text);
        for (const part of parts) expect(part.isWellFormed()).toBe(true);
      }),
    );
  });
});

const unicode = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

describe('P57: the value of a wrapped input', () => {
  test.each([
    ['{"input":[1,2]}', '[1,2]'],
    ['{"input": {"a": 12345678901234567890} }', '{"a": 12345678901234567890}'],
    [' {"input":"x"}\n', '"x"'],
    ['{"input":1,"more":2}', '{"input":1,"more":2}'],
    ['{"other":1}', '{"other":1}'],
    ['[1]', '[1]'],
    ['{"input":', '{"input":'],
    ['', ''],
  ])('%s is %s', (wire, value) => expect(unwrapInput(wire)).toBe(value));
});
