import { readFileSync } from 'node:fs';
import { RULES, type RuleId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { listMutations, seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { readCases } from '../corpus.ts';
import { bytesOf, protocolOf, splitEvery } from '../run.ts';
import { cleanStreams, PROTOCOL_IDS } from './clean-streams.ts';
import { examine } from './examine.ts';

/** The marks of the cases: an empty list for one that conforms; else the violation it was written for, then whatever else its bytes do. */
const VERDICTS = JSON.parse(readFileSync(new URL('../../fixtures/verdicts.json', import.meta.url), 'utf8')) as Record<
  string,
  RuleId[]
>;

const cases = readCases().map(({ id, protocol, raw }) => ({
  id,
  bytes: bytesOf(raw),
  protocol: protocolOf(protocol),
  marks: VERDICTS[id],
}));

const rulesOf = ({ bytes, protocol }: (typeof cases)[number]): RuleId[] =>
  examine([bytes], { protocol }).findings.map(({ rule }) => rule);

test('every case is marked, and every mark is a rule', () => {
  expect(Object.keys(VERDICTS).toSorted()).toEqual(cases.map(({ id }) => id).toSorted());
  for (const rule of Object.values(VERDICTS).flat()) expect(RULES[rule], rule).toBeDefined();
});

describe.each(cases)('$id', (row) => {
  const { bytes, protocol, marks = [] } = row;

  test('has exactly the marked findings', () => {
    expect(rulesOf(row).toSorted()).toEqual(marks.toSorted());
  });

  test('has the same findings byte by byte', () => {
    expect(examine(splitEvery(bytes, 1), { protocol })).toEqual(examine([bytes], { protocol }));
  });
});

test('the right rule is reported for at least 95 % of the violating cases, and none for a conforming one', () => {
  const violating = cases.filter(({ marks }) => marks && marks.length > 0);
  const conforming = cases.filter(({ marks }) => marks?.length === 0);
  const named = violating.filter((row) => rulesOf(row).some((rule) => rule === row.marks?.[0]));
  const accused = conforming.filter((row) => rulesOf(row).length > 0);
  console.log(
    `doctor: ${named.length} of ${violating.length} violating cases named, ${accused.length} of ${conforming.length} conforming accused`,
  );
  expect(named.length / violating.length).toBeGreaterThanOrEqual(0.95);
  expect(accused.map(({ id }) => id)).toEqual([]);
});

/** Every dialect that can be made out of a clean stream: the violation that it makes is found. */
describe.each(PROTOCOL_IDS)('%s', (protocol) => {
  const dialects = listMutations(protocol).flatMap((mutation) => (mutation.rule ? [{ ...mutation, rule: mutation.rule }] : []));

  test.each(dialects)('$id is reported as $rule', ({ apply, rule }) => {
    for (const clean of cleanStreams(protocol)) {
      const random = seededRandom(3);
      const mutated = apply(clean, random);
      if (mutated === clean) continue;
      const { findings } = examine(writeStream(mutated, random), { protocol: CODECS[protocol] });
      expect(findings.map((finding) => finding.rule)).toContain(rule);
    }
  });
});
