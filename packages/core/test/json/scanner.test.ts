import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  endOfString,
  HEAD_AFTER_EMPTY_OBJECT,
  HEAD_BLANK,
  HEAD_BRACE,
  HEAD_EMPTY_OBJECT,
  HEAD_OTHER,
  JsonNesting,
  JsonScanner,
} from '../../src/json/scanner.ts';

/** Characters that mean something to a scanner, and runs around the length at which it changes from a loop to a search. */
const ATOMS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  ',',
  ':',
  ' ',
  '\n',
  '\u0000',
  '\u00a0',
  '|',
  'a',
  '1',
  '\\"',
  '\\\\',
  '{}',
  '[]',
  '"a":',
];
const RUNS = ['x'.repeat(23), 'y'.repeat(24), 'z'.repeat(25), ' '.repeat(30), '\\\\'.repeat(13)];

const malformed = fc.array(fc.constantFrom(...ATOMS, ...RUNS), { maxLength: 40 }).map((atoms) => atoms.join(''));
const json = fc.tuple(fc.jsonValue(), fc.constantFrom(0, 1, 30)).map(([value, indent]) => JSON.stringify(value, null, indent));
const text = fc.oneof(
  malformed,
  json,
  fc.tuple(json, malformed).map((parts) => parts.join('')),
);

/** The text, and the same in pieces. */
const pieces = fc.tuple(text, fc.array(fc.nat(), { maxLength: 12 })).map(([whole, cuts]) => {
  const ends = [...cuts.map((cut) => cut % (whole.length + 1)), whole.length].sort((a, b) => a - b);
  return ends.map((end, i) => whole.slice(ends[i - 1] ?? 0, end));
});

const TOKEN = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|[\s\S]/g;
const WHOLE_STRING = /^"(?:[^"\\]|\\[\s\S])*"$/;

/** The definition, by the tokens of the whole text. */
function define(whole: string) {
  const found = { depth: 0, deepest: 0, isInString: false, complete: false, firstEnd: -1, unmatched: 0 };
  for (const { 0: token, index } of whole.matchAll(TOKEN)) {
    if (token <= ' ') continue;
    const closes = found.depth > 0 && (token === '}' || token === ']');
    if (closes) found.depth--;
    else if (token === '}' || token === ']') found.unmatched++;
    else if (token === '{' || token === '[') found.depth++;
    found.deepest = Math.max(found.deepest, found.depth);
    const ends = found.depth === 0 && (WHOLE_STRING.test(token) || closes);
    if (ends && found.firstEnd < 0) found.firstEnd = index + token.length;
    found.complete = ends && closes;
    found.isInString = token.startsWith('"') && !WHOLE_STRING.test(token);
  }
  return { ...found, head: defineHead(whole) };
}

/** By the first characters that are not white space. */
function defineHead(whole: string): number {
  const start = [...whole].filter((char) => char > ' ').slice(0, 3);
  if (start.length === 0) return HEAD_BLANK;
  if (start[0] !== '{') return HEAD_OTHER;
  if (start.length === 1) return HEAD_BRACE;
  if (start[1] !== '}') return HEAD_OTHER;
  return start.length === 2 ? HEAD_EMPTY_OBJECT : HEAD_AFTER_EMPTY_OBJECT;
}

describe('JsonScanner', () => {
  test('follows strings, escapes and depth, one character at a time', () => {
    fc.assert(
      fc.property(text, (whole) => {
        const scanner = new JsonScanner();
        for (let at = 0; at < whole.length; at++) scanner.step(whole.charCodeAt(at));
        const { depth, deepest, isInString, unmatched } = define(whole);
        expect(scanner).toMatchObject({ depth: depth - unmatched, isInString });
        if (unmatched === 0) expect(scanner.deepest).toBe(deepest);
      }),
      { numRuns: 2000 },
    );
  });

  test('counts the bytes of UTF-8 like the characters', () => {
    fc.assert(
      fc.property(text, (whole) => {
        const [byCharacter, byByte] = [new JsonScanner(), new JsonScanner()];
        for (let at = 0; at < whole.length; at++) byCharacter.step(whole.charCodeAt(at));
        for (const byte of new TextEncoder().encode(whole)) byByte.step(byte);
        expect(byByte).toEqual(byCharacter);
      }),
      { numRuns: 1000 },
    );
  });

  test('skips strings and what is between them with the same result, wherever the text is cut', () => {
    fc.assert(
      fc.property(pieces, (list) => {
        const [stepping, skipping] = [new JsonScanner(), new JsonScanner()];
        for (const piece of list) {
          for (let at = 0; at < piece.length; at++) stepping.step(piece.charCodeAt(at));
          for (let at = 0; at < piece.length; at++) {
            at = skipping.isInString ? skipping.skipString(piece, at) : skipping.skipValues(piece, at);
            if (at < piece.length) skipping.step(piece.charCodeAt(at));
          }
          const { depth, deepest, isInString } = stepping;
          expect(skipping).toMatchObject({ depth, deepest, isInString });
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('tells when a string, an object or an array closes', () => {
    const scanner = new JsonScanner();
    const closed = [...'{"a\\"":[1],"b":{}}'].map((char) => scanner.step(char.charCodeAt(0)));
    expect(closed.flatMap((is, at) => (is ? [at] : []))).toEqual([5, 9, 13, 16, 17]);
  });

  test('has a negative depth after unmatched closing brackets', () => {
    const scanner = new JsonScanner();
    for (const char of ']}[') scanner.step(char.charCodeAt(0));
    expect(scanner).toMatchObject({ depth: -1, deepest: 0 });
  });
});

test('JsonNesting finds the same documents in malformed text, wherever it is cut', () => {
  fc.assert(
    fc.property(pieces, (list) => {
      const nesting = new JsonNesting();
      let whole = '';
      for (const piece of list) {
        nesting.push(piece);
        whole += piece;
        const { unmatched, ...expected } = define(whole);
        expect(nesting).toMatchObject({ ...expected, length: whole.length });
      }
    }),
    { numRuns: 2000 },
  );
});

describe('endOfString', () => {
  test.each([
    ['""x"', 2],
    ['"a"', 3],
    ['"a\\"b"c"', 6],
    ['"\\\\"c"', 4],
    ['"\\\\\\"" "', 6],
    ['"\\"\\""', 6],
  ])('skips escaped quotes: %s', (written, end) => {
    expect(endOfString(written, 0)).toBe(end);
    expect(endOfString(`\\${written}`, 1)).toBe(end + 1);
  });

  test('is where JSON.parse ends the string', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), malformed, malformed, (value, before, after) => {
        const written = JSON.stringify(value);
        expect(endOfString(before + written + after, before.length)).toBe(before.length + written.length);
      }),
      { numRuns: 1000 },
    );
  });

  test.each(['"', '"a', '"a\\"', '"\\'])('is the length of the text when the string does not end: %s', (unterminated) => {
    expect(endOfString(unterminated, 0)).toBe(unterminated.length);
  });
});
