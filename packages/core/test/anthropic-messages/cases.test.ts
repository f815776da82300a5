import { expect, test } from 'vitest';
import { readCases } from '../../../../test/corpus.ts';
import { run, summary } from './run.ts';

const cases = readCases().filter(({ protocol }) => protocol === 'anthropic');

test('there are cases', () => expect(cases.length).toBeGreaterThan(15));

test.each(cases)('$id: $title', ({ raw, expected }) => {
  const found = summary(run(raw));
  // vitest's subset match takes lists as whole, so that only the listed keys of their entries are compared.
  expect(found).toMatchObject({ ...expected, tool_calls: expected.tool_calls.map((call) => ({ ...call })) });
  if (!expected.error) expect(found.error).toBeUndefined();
});

test.each(cases)('$id split into single bytes', ({ raw }) => {
  expect(run(raw, 1).events).toEqual(run(raw).events);
});
