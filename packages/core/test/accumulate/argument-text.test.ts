import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ArgumentText } from '../../src/accumulate/argument-text.ts';

interface Row {
  name: string;
  fragments: string[];
  /** What each fragment lets out, then what the end lets out. */
  released: string[];
  text: string;
  reading: string;
}

const ROWS: Row[] = [
  {
    name: 'a conforming stream goes out as it comes',
    fragments: ['{"a', '":1', '}'],
    released: ['{"a', '":1', '}', ''],
    text: '{"a":1}',
    reading: 'plain',
  },
  {
    name: 'a lone brace waits for the next fragment',
    fragments: ['{', '"a":1}'],
    released: ['', '{"a":1}', ''],
    text: '{"a":1}',
    reading: 'plain',
  },
  { name: 'an empty object waits for the end', fragments: ['{', '}'], released: ['', '', '{}'], text: '{}', reading: 'plain' },
  {
    name: 'an empty object before the arguments is dropped',
    fragments: ['{}', '{"a"', ':1}'],
    released: ['', '', '', '{"a":1}'],
    text: '{"a":1}',
    reading: 'after-empty-object',
  },
  {
    name: 'white space around the document stays',
    fragments: [' ', '{"a":1}', ' '],
    released: ['', ' {"a":1}', '', ' '],
    text: ' {"a":1} ',
    reading: 'plain',
  },
  {
    name: 'the whole once more is dropped',
    fragments: ['{"a"', ':1}', '{ "a": 1 }'],
    released: ['{"a"', ':1}', '', ''],
    text: '{"a":1}',
    reading: 'sent-again',
  },
  {
    name: 'snapshots of the text so far',
    fragments: ['{"a', '{"a":1', '{"a":1}'],
    released: ['{"a', '', '', '":1}'],
    text: '{"a":1}',
    reading: 'cumulative',
  },
  {
    name: 'fragments that only look cumulative',
    fragments: ['[', '[1]', ']'],
    released: ['[', '', '[1]]', ''],
    text: '[[1]]',
    reading: 'plain',
  },
  {
    name: 'equal fragments are content',
    fragments: ['{"t":"', 'ha', 'ha', '"}'],
    released: ['{"t":"', 'ha', 'ha', '"}', ''],
    text: '{"t":"haha"}',
    reading: 'plain',
  },
  {
    name: 'two documents are kept and named',
    fragments: ['{"a":1}{"b":2}'],
    released: ['{"a":1}', '{"b":2}'],
    text: '{"a":1}{"b":2}',
    reading: 'unreadable',
  },
  {
    name: 'JSON in a JSON string',
    fragments: ['"{\\"a\\":', '1}"'],
    released: ['"{\\"a\\":', '1}"', ''],
    text: '"{\\"a\\":1}"',
    reading: 'plain',
  },
  {
    name: 'braces inside strings do not count',
    fragments: ['{"a":"}', '\\"{"}'],
    released: ['{"a":"}', '\\"{"}', ''],
    text: '{"a":"}\\"{"}',
    reading: 'plain',
  },
  { name: 'a cut text stays cut', fragments: ['{"a":"b'], released: ['{"a":"b', ''], text: '{"a":"b', reading: 'plain' },
  {
    name: 'a mark is no white space',
    fragments: ['!', '{}'],
    released: ['!', '{}', ''],
    text: '!{}',
    reading: 'plain',
  },
  {
    name: 'no JSON at all goes out as it is',
    fragments: ['*** Begin', ' Patch'],
    released: ['*** Begin', ' Patch', ''],
    text: '*** Begin Patch',
    reading: 'plain',
  },
];

test.each(ROWS)('$name', ({ fragments, released, text, reading }) => {
  const argument = new ArgumentText();
  const out = fragments.map((fragment) => argument.push(fragment));
  const end = argument.end();
  expect([...out, end.rest]).toEqual(released);
  expect(end).toMatchObject({ text, reading });
});

describe('any fragments', () => {
  const piece = fc.oneof(
    fc.constantFrom('{', '}', '{}', '[', ']', '"', '\\', ':', ',', ' ', '1', 'a', '{"a":1}', '{"a"'),
    fc.string({ maxLength: 4 }),
  );

  test('what goes out live is the text decided in the end', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (fragments) => {
        const argument = new ArgumentText();
        const out = fragments.map((fragment) => argument.push(fragment)).join('');
        const { rest, text } = argument.end();
        expect(out + rest).toBe(text);
      }),
      { numRuns: 5000 },
    );
  });

  test('a document is never altered, however it is cut', () => {
    fc.assert(
      fc.property(fc.json(), fc.array(fc.nat(), { maxLength: 6 }), (text, cuts) => {
        const places = [0, ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b), text.length];
        const argument = new ArgumentText();
        for (const [i, end] of places.slice(1).entries()) argument.push(text.slice(places[i], end));
        expect(argument.decide()).toEqual({ text, reading: 'plain' });
      }),
      { numRuns: 2000 },
    );
  });

  test('the state survives JSON', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), fc.array(piece, { maxLength: 6 }), (first, second) => {
        const straight = new ArgumentText();
        for (const fragment of first) straight.push(fragment);
        const resumed = Object.assign(new ArgumentText(), JSON.parse(JSON.stringify(straight)));
        for (const fragment of second) expect(resumed.push(fragment)).toBe(straight.push(fragment));
        expect(resumed.end()).toEqual(straight.end());
      }),
    );
  });
});
