import { PROTOCOLS } from '@sluice/core';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { repairStream } from '../../packages/gateway/src/doctor/repair.ts';
import { readCases } from '../corpus.ts';
import { bytesOf, protocolOf, splitAt } from '../run.ts';
import { examine } from './examine.ts';

const cases = readCases().filter(({ raw }) => raw.length < 20_000);

const protocols = Object.values(PROTOCOLS);

/** Values where the wire has others. */
const odd = fc.constantFrom(
  'null',
  '[]',
  '{}',
  '-1',
  '1e400',
  '"__proto__"',
  'true',
  '[null]',
  '[[]]',
  '"\\ud800"',
  '{"__proto__":{}}',
);

/** A reported stream in which values were exchanged and bytes lost. */
const damaged = fc
  .record({
    at: fc.nat(cases.length - 1),
    values: fc.array(fc.tuple(fc.nat(), odd), { maxLength: 6 }),
    cuts: fc.array(fc.nat(), { maxLength: 3 }),
  })
  .map(({ at, values, cuts }) => {
    const { raw = '', protocol = 'sse' } = cases[at] ?? {};
    let text = raw;
    for (const [place, value] of values) {
      const found = [...text.matchAll(/(?<=":)(?:"(?:[^"\\]|\\.)*"|-?\d+|null|true|\[|\{)/g)];
      const one = found[place % Math.max(found.length, 1)];
      if (one) text = text.slice(0, one.index) + value + text.slice(one.index + one[0].length);
    }
    for (const cut of cuts) text = text.slice(0, cut % (text.length + 1)) + text.slice((cut % (text.length + 1)) + 1);
    return { protocol: protocolOf(protocol), bytes: bytesOf(text), cuts };
  });

test('any bytes are examined, with the same result in any pieces and for unknown protocols', () => {
  fc.assert(
    fc.property(damaged, ({ protocol, bytes, cuts }) => {
      const whole = examine([bytes], { protocol });
      expect(examine(splitAt(bytes, cuts), { protocol })).toEqual(whole);
      expect(whole.score).toBeGreaterThanOrEqual(0);
      for (const { offset, count, excerpt } of whole.findings) {
        expect(offset).toBeLessThanOrEqual(bytes.length);
        expect(count).toBeGreaterThan(0);
        expect(excerpt.length).toBeLessThan(200);
      }
      examine([bytes], { protocol: protocols });
    }),
    { numRuns: 400, seed: 11 },
  );
});

test('any bytes are repaired or passed through unchanged', () => {
  fc.assert(
    fc.property(damaged, ({ protocol, bytes }) => {
      const { chunks, repaired, examination } = repairStream([bytes], { protocols: [protocol], all: true });
      if (repaired.length === 0 && chunks) expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
      if (chunks && examination.message.complete && !examination.message.error)
        expect(examine(chunks, { protocol }).message.text).toBe(examination.message.text);
    }),
    { numRuns: 400, seed: 12 },
  );
});
