import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PROTOCOLS } from '../packages/core/src/index.ts';
import { readCases } from './corpus.ts';
import { checkCase } from './match.ts';
import { assemble, bytesOf, protocolOf, splitAt, splitEvery, validate } from './run.ts';

const cases = readCases();

describe.each(cases)('$protocol: $id', ({ raw, protocol: name, expected }) => {
  const protocol = protocolOf(name);
  const bytes = bytesOf(raw);
  const whole = assemble(protocol, [bytes]);

  test('gives the expected result', () => {
    expect(checkCase(whole, expected)).toEqual([]);
  });

  test('gives the same result byte by byte', () => {
    expect(assemble(protocol, splitEvery(bytes, 1))).toEqual(whole);
  });

  test('gives the same result in any pieces', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), (cuts) => {
        expect(assemble(protocol, splitAt(bytes, cuts))).toEqual(whole);
      }),
      { numRuns: raw.length > 20_000 ? 5 : 25 },
    );
  });

  test('is a canonical stream', () => {
    expect(validate(protocol, [bytes])).toBeGreaterThan(0);
  });
});

// A body that holds no message of any protocol cannot tell whose it is.
const recognisable = cases.filter(({ expected }) => expected.finish_reason !== null && !expected.error);

test.each(recognisable)('the protocol of $id is detected', ({ raw, protocol }) => {
  expect(assemble(Object.values(PROTOCOLS), [bytesOf(raw)]).protocol).toBe(protocolOf(protocol).id);
});
