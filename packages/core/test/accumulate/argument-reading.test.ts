import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ArgumentText } from '../../src/accumulate/argument-text.ts';
import { JsonNesting } from '../../src/json/scanner.ts';

type Step = ['push' | 'append' | 'replace', string];

function run(steps: readonly Step[], argument = new ArgumentText()): ArgumentText {
  for (const [verb, text] of steps) argument[verb](text);
  return argument;
}

const push = (...texts: string[]): Step[] => texts.map((text) => ['push', text]);
const append = (...texts: string[]): Step[] => texts.map((text) => ['append', text]);
const replace = (...texts: string[]): Step[] => texts.map((text) => ['replace', text]);

const stateOf = ({ isEmpty, isComplete, isSettled }: ArgumentText): object => ({ isEmpty, isComplete, isSettled });

interface Row {
  name: string;
  steps: Step[];
  text: string;
  reading: string;
  /** All that came is closed, and beyond that not to be changed by anything known. */
  complete?: boolean;
  settled?: boolean;
}

const ROWS: Row[] = [
  { name: 'nothing', steps: [], text: '', reading: 'plain' },
  { name: 'an open document', steps: push('{"a":'), text: '{"a":', reading: 'plain' },
  { name: 'a closed document', steps: push('{"a":1}'), text: '{"a":1}', reading: 'plain', complete: true, settled: true },
  {
    name: 'a closed document, then white space',
    steps: push('[1]', ' \n'),
    text: '[1] \n',
    reading: 'plain',
    complete: true,
    settled: true,
  },
  { name: 'a scalar', steps: push('12'), text: '12', reading: 'plain' },
  { name: 'an empty object', steps: push('{}'), text: '{}', reading: 'plain', complete: true },
  { name: 'an empty object with space in it', steps: push('{ }'), text: '{ }', reading: 'plain', complete: true },
  { name: 'an empty list', steps: push('[]'), text: '[]', reading: 'plain', complete: true, settled: true },
  { name: 'fragments that are JSON together', steps: push('1', '12'), text: '112', reading: 'plain' },
  { name: 'two snapshots', steps: push('{"a":1', '{"a":1}'), text: '{"a":1}', reading: 'cumulative', complete: true },
  { name: 'snapshots that never close', steps: push('{"a', '{"a":'), text: '{"a{"a":', reading: 'plain' },
  { name: 'a snapshot that goes wrong', steps: push('{"a":1}', '{"a":1}{'), text: '{"a":1}{"a":1}{', reading: 'unreadable' },
  {
    name: 'an empty object, then nonsense',
    steps: push('{}{x}'),
    text: '{}{x}',
    reading: 'unreadable',
    complete: true,
    settled: true,
  },
  {
    name: 'an empty object, then a document',
    steps: push('{ }', '{"a":1}'),
    text: '{"a":1}',
    reading: 'after-empty-object',
    complete: true,
    settled: true,
  },
  { name: 'nonsense twice', steps: push('{x}{x}'), text: '{x}{x}', reading: 'unreadable', complete: true, settled: true },
  { name: 'nonsense once', steps: push('{x}'), text: '{x}', reading: 'plain', complete: true, settled: true },
  { name: 'nonsense, then white space', steps: push('{x} '), text: '{x} ', reading: 'plain', complete: true, settled: true },
  { name: 'a document, then the beginning of one', steps: push('{"a":1}', '{"b"'), text: '{"a":1}{"b"', reading: 'unreadable' },
  { name: 'a document, then a word', steps: push('{"a":1}', 'x'), text: '{"a":1}x', reading: 'unreadable' },
  {
    name: 'a text twice, in quotes',
    steps: push('"a"', ' "a"'),
    text: '"a"',
    reading: 'sent-again',
  },
  {
    name: 'a null among the fragments',
    steps: push('{"a":[', '1,', 'null', ']}'),
    text: '{"a":[1,null]}',
    reading: 'plain',
    complete: true,
    settled: true,
  },
  { name: 'a null at the end of a cut text', steps: push('{"a":[', '1,', 'null'), text: '{"a":[1,null', reading: 'plain' },
  { name: 'a brace too many', steps: push('}{"a":1}'), text: '}{"a":1}', reading: 'plain', complete: true, settled: true },
  { name: 'a snapshot as an object', steps: replace('{"x":1}'), text: '{"x":1}', reading: 'plain', complete: true },
  { name: 'the last snapshot counts', steps: replace('{"x":{}', '{"y":1}'), text: '{"y":1}', reading: 'plain', complete: true },
  {
    name: 'a snapshot said again as text',
    steps: [...replace('{"x":1}'), ...push('{"x":1}')],
    text: '{"x":1}',
    reading: 'sent-again',
    complete: true,
  },
  {
    name: 'a snapshot after text that went out is text',
    steps: [...push('{"x":'), ...replace('{"x":1}')],
    text: '{"x":1}',
    reading: 'cumulative',
    complete: true,
  },
  {
    name: 'a snapshot after a single bracket that went out',
    steps: [...push('['), ...replace('[1]')],
    text: '[1]',
    reading: 'cumulative',
    complete: true,
  },
  {
    name: 'a cut snapshot after an empty object',
    steps: [...push('{}'), ...replace('[1')],
    text: '[1',
    reading: 'plain',
  },
  {
    name: 'an empty object as an object, then the arguments as text',
    steps: [...replace('{}'), ...push('{"x"', ':1}')],
    text: '{"x":1}',
    reading: 'after-empty-object',
    complete: true,
  },
  {
    name: 'a snapshot after text that did not go out replaces it',
    steps: [...push('{'), ...replace('{"x":1}')],
    text: '{"x":1}',
    reading: 'plain',
    complete: true,
  },
];

describe.each(ROWS)('$name', ({ steps, text, reading, complete = false, settled = false }) => {
  const expected = { isEmpty: steps.length === 0, isComplete: complete, isSettled: settled };

  test('is read', () => {
    const argument = run(steps);
    expect(stateOf(argument)).toEqual(expected);
    expect(argument.decide()).toEqual({ text, reading });
    expect(argument.end()).toMatchObject({ text, reading });
    expect(argument.end()).toEqual({ rest: '', text, reading });
  });

  test('is read the same when nobody needs it live', () => {
    const steps_: Step[] = steps.map(([verb, part]) => [verb === 'push' ? 'append' : verb, part]);
    const argument = run(steps_);
    expect(argument.decide()).toEqual({ text, reading });
    expect(stateOf(argument)).toEqual(expected);
  });

  test('is read the same after JSON', () => {
    for (let cut = 0; cut <= steps.length; cut++) {
      const saved = JSON.parse(JSON.stringify(run(steps.slice(0, cut))));
      const resumed = run(steps.slice(cut), Object.assign(new ArgumentText(), saved));
      expect(stateOf(resumed)).toEqual(expected);
      expect(resumed.decide()).toEqual({ text, reading });
    }
  });
});

test('the text is what came, in order', () => {
  expect(run([...push('{}'), ...append('{"a"', ':1}')]).text).toBe('{}{"a":1}');
});

test('what comes after the end goes out once', () => {
  const argument = run(push('{"a":1}{"b":2}'));
  expect(argument.end()).toEqual({ rest: '{"b":2}', text: '{"a":1}{"b":2}', reading: 'unreadable' });
  expect(argument.push(' ')).toBe('');
  expect(argument.end()).toEqual({ rest: ' ', text: '{"a":1}{"b":2} ', reading: 'unreadable' });
});

test('asked in the middle, a text that nobody needs live knows how far it is', () => {
  const argument = new ArgumentText();
  const known = ['{"a":[', '1,', '{"b":', '"}"', '}', ']', '}', ' '].map((part) => {
    argument.append(part);
    return argument.isComplete;
  });
  expect(known).toEqual([false, false, false, false, false, false, true, true]);
  expect(run(append('{"a":[', '1,', '{"b":', '"}"', '}', ']', '}', ' ')).isComplete).toBe(true);
});

const long = 'x'.repeat(40);

// Long runs without a mark are searched by another way than short ones: every border between the two.
test.each([
  ['a long string', `{"a":"${long}"}`],
  ['a long string with an escape at its end', `{"a":"${long}\\\\"}`],
  ['a long string with a quote in it', `{"a":"${long}\\"}${long}\\"]"}`],
  ['escapes one after the other', `{"a":"${'\\\\'.repeat(30)}\\"}"}`],
  ['an escape, then a long run', `{"a":"\\n${long}\\"${long}{"}`],
  ['a long number', `{"a":${'1'.repeat(60)},"b":[${'2'.repeat(60)}]}`],
  ['a long key', `{"${long}":{"${long}":[]}}`],
  ['much white space', `{${' '.repeat(60)}"a"${'\n'.repeat(60)}:${'\t'.repeat(60)}1${' '.repeat(60)}}`],
  ['nonsense', '[z|Z\\]'],
  ['a letter next to a brace', '[z]'],
  ['empty strings', '{"":""}'],
  ['an escape at the end of a string, then an empty one', '{"a\\\\":"","\\"":""}'],
  ['a long number, then marks in a string', `{"a":${'1'.repeat(60)},"}":[${'2'.repeat(60)},"]"]}`],
  ['a long word', `[${'true,'.repeat(30)}[${'null,'.repeat(30)}{}]]`],
])('%s: closed at its last character and not before', (_, text) => {
  for (let cut = 0; cut <= text.length; cut++) {
    const nesting = new JsonNesting();
    nesting.push(text.slice(0, cut));
    expect(nesting).toMatchObject({ complete: cut === text.length, length: cut, firstEnd: cut === text.length ? cut : -1 });
    nesting.push(text.slice(cut));
    expect(nesting).toMatchObject({ complete: true, length: text.length, firstEnd: text.length });
    nesting.push(' {');
    expect(nesting).toMatchObject({ complete: false, length: text.length + 2, firstEnd: text.length });
  }
});

test('a document closes where JSON says, and only there', () => {
  const nested = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()));
  fc.assert(
    fc.property(nested, fc.constantFrom(0, 1, 30), fc.nat(), (value, indent, place) => {
      const text = JSON.stringify(value, null, indent);
      const cut = place % (text.length + 1);
      const nesting = new JsonNesting();
      nesting.push(text.slice(0, cut));
      expect(nesting.complete).toBe(cut === text.length);
      nesting.push(text.slice(cut));
      expect(nesting).toMatchObject({ complete: true, firstEnd: text.length, length: text.length });
    }),
    { numRuns: 500 },
  );
});
