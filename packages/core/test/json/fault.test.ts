import { describe, expect, test } from 'vitest';
import { readCases } from '../../../../test/corpus.ts';
import { findJsonFault } from '../../src/json/fault.ts';

describe('the place where a text stops being JSON', () => {
  test.each([
    ['', 'line 1, column 1: the text ends in the middle of the document'],
    ['model=fast', 'line 1, column 1: expected a value'],
    ['<html>', 'line 1, column 1: expected a value'],
    ['{"a":1,}', 'line 1, column 8: expected a name in double quotes'],
    ["{'a':1}", 'line 1, column 2: expected a name in double quotes'],
    ['{a:1}', 'line 1, column 2: expected a name in double quotes'],
    ['{"a" 1}', 'line 1, column 6: expected ":"'],
    ['{"a":1 "b":2}', 'line 1, column 8: expected "," or "}"'],
    ['{"a":\n  [1, 2\n  3]}', 'line 3, column 3: expected "," or "]"'],
    ['[1,]', 'line 1, column 4: expected a value'],
    ['[1}', 'line 1, column 3: expected "," or "]"'],
    ['{"a":01}', 'line 1, column 7: expected "," or "}"'],
    ['{"a":1.}', 'line 1, column 7: expected "," or "}"'],
    ['{"a":NaN}', 'line 1, column 6: expected a value'],
    ['{"a":True}', 'line 1, column 6: expected a value'],
    ['{"a":"\\x"}', 'line 1, column 7: invalid escape in a string'],
    ['{"a":"\\u12g4"}', 'line 1, column 7: invalid escape in a string'],
    ['{"a":"x\ny"}', 'line 1, column 8: a string has an unescaped control character'],
    ['{"a":"x', 'line 1, column 8: the text ends in the middle of the document'],
    ['{"a":[1', 'line 1, column 8: the text ends in the middle of the document'],
    ['{} {}', 'line 1, column 4: expected the end of the document'],
    ['{"a":1}]', 'line 1, column 8: expected the end of the document'],
  ])('%j: %s', (text, place) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(findJsonFault(text)?.message).toBe(place);
  });

  test('agrees with JSON.parse about every prefix and every change of one character', () => {
    const text = '{"a": [1, -2.5e+3, true, null, "x\\u00e9\\n\u2028\u007f"], "b": {"c": {}}, "": []}';
    const others = [...text, '"', '\\', '\n', 'x', '0', '.', '-', 'e'];
    const changed = [...text].flatMap((_, i) => [
      text.slice(0, i),
      text.slice(0, i) + text.slice(i + 1),
      ...others.map((other) => text.slice(0, i) + other + text.slice(i + 1)),
    ]);
    for (const one of [text, ...changed]) expect(findJsonFault(one) === undefined, one).toBe(isJson(one));
  });

  test('agrees with JSON.parse about the payloads of every case', () => {
    const payloads = readCases().flatMap(({ raw }) => raw.split(/\r\n|\n|\r/).map((line) => line.replace(/^data: ?/, '')));
    for (const payload of payloads) expect(findJsonFault(payload) === undefined, payload).toBe(isJson(payload));
  });

  test('an excerpt is one printable line of at most 60 characters', () => {
    const { excerpt, message } = findJsonFault(`${'\n'.repeat(500)}{"a": "\u202e${'x'.repeat(1000)}",\u0007 b}`) ?? {};
    expect(message).toMatch(/^line 501, column 1011: expected a name/);
    expect(excerpt).toMatch(/^x{1,60}", {2}b\}$|^x+",$/);
    expect(excerpt?.length).toBeLessThanOrEqual(60);
  });

  test('text that is nested too deeply or too long has no place', () => {
    expect(findJsonFault('['.repeat(100_000))).toBeUndefined();
    expect(findJsonFault(`[${'1,'.repeat(2 ** 20)}]`)).toBeUndefined();
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
