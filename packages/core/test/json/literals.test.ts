import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import {
  closeDocument,
  findInexactNumber,
  findSource,
  listInexactNumbers,
  openDocument,
  writeExact,
} from '../../src/json/literals.ts';

afterEach(closeDocument);

/** JSON text of any value, with numbers that JSON.parse changes and with spaces. */
const text: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'medium' },
    fc.constantFrom(
      '12345678901234567890',
      '1e400',
      '-0.12345678901234567890123',
      '1',
      '1.5',
      'true',
      'null',
      '"12345678901234567890"',
    ),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[ ${items.join(' ,')}]`),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom('a', 'b', '__proto__', '\u00fc', '"'), tie('value')), {
        selector: ([key]) => key,
        maxLength: 4,
      })
      .map((members) => `{${members.map(([key, value]) => `${JSON.stringify(key)} : ${value}`).join(', ')}}`),
  ),
})).value;

/** Every object and list of a value. */
function listContainers(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value, ...Object.keys(value).flatMap((key) => listContainers(Reflect.get(value, key)))];
}

describe('values of a document', () => {
  test('are written with the numbers that it has', () => {
    fc.assert(
      fc.property(text, (json) => {
        const root: unknown = JSON.parse(json);
        openDocument(root, json);
        for (const value of listContainers(root)) {
          const written = writeExact(value) ?? '';
          expect(JSON.parse(written)).toEqual(value);
        }
        if (typeof root === 'object' && root !== null)
          expect(listInexactNumbers(writeExact(root) ?? '')).toEqual(listInexactNumbers(json));
      }),
      { numRuns: 1000 },
    );
  });

  test('are written as ever without a number that has changed', () => {
    const json = '{ "a": [1, 0.1, 12345678901234.5] }';
    const root: unknown = JSON.parse(json);
    openDocument(root, json);
    expect([findSource(root), writeExact(root)]).toEqual([undefined, JSON.stringify(root)]);
  });

  test.each([
    ['another document', (json: string) => JSON.parse(json) as unknown, '{"a":1}'],
    ['no document', (json: string) => JSON.parse(json) as unknown, ''],
  ])('of %s are not found', (_, parse, other) => {
    openDocument(other === '' ? undefined : JSON.parse(other), other);
    expect(findSource(parse('{"a":12345678901234567890}'))).toBeUndefined();
  });

  test('are written as ever when the document has the mark of numbers in a text', () => {
    const json = '{"a":12345678901234567890,"b":"\\u000012345678901234567890"}';
    const root: unknown = JSON.parse(json);
    openDocument(root, json);
    expect(writeExact(root)).toBe(JSON.stringify(root));
  });
});

test('the first number that has changed, and all', () => {
  const json = '[1, 12345678901234567890, "99999999999999999999", 1e400]';
  expect(findInexactNumber(json)).toBe('12345678901234567890');
  expect(listInexactNumbers(json)).toEqual(['12345678901234567890', '1e400']);
});
