import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { readFields, SOURCES } from '../scripts/fields/sources.js';
import { HINTS } from './fields/hints.ts';
import { complaintOf, judge } from './fields/ledger.ts';
import { page } from './fields/page.ts';
import { PROTOCOLS, routeOf } from './fields/protocols.ts';
import { rowsOf, usedHints } from './fields/rows.ts';

const sections = Object.entries(SOURCES).flatMap(([protocol, source]) =>
  Object.keys(source.sections).map((section) => ({ protocol, section })),
);

/** `file: name of the test`. */
function isTest(named: string): boolean {
  const [path = '', name = ''] = named.split(': ');
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  return existsSync(file) && readFileSync(file, 'utf8').includes(`'${name}'`);
}

describe.each(sections)('fields of $protocol: $section', ({ protocol, section }) => {
  const { entries, undecided, unused } = judge(readFields(protocol, section), PROTOCOLS[protocol]?.ledger[section] ?? {});

  test('every field of the SDK is decided', () => expect(undecided).toEqual([]));

  test('every decision is about a field of the SDK', () => expect(unused).toEqual([]));

  test('every decision holds', () => {
    const route = routeOf(protocol, section);
    expect(entries.flatMap((entry) => complaintOf(entry, route) ?? [])).toEqual([]);
  });

  test.each(['profile', 'plain'] as const)('other protocols convert or note it, unless a hint explains why not: %s', (server) => {
    const silent = rowsOf(protocol, section, server).flatMap(({ field, abroad }) =>
      Object.entries(abroad).flatMap(([to, fate]) => (fate === 'silent' ? [`${field.path} to ${to}`] : [])),
    );
    expect(silent).toEqual([]);
  });

  test('every cited test exists', () => {
    const named = new Set(entries.flatMap(({ decision }) => ('test' in decision && decision.test) || []));
    expect([...named].filter((name) => !isTest(name))).toEqual([]);
  });
});

test('every hint is needed, and has a reason', () => {
  for (const { protocol, section } of sections) rowsOf(protocol, section);
  expect(HINTS.filter((hint) => !usedHints.has(hint) || hint.why.length < 20)).toEqual([]);
});

test('docs/fields.md matches the output of `npm run fields`', async () => {
  await expect(page()).toMatchFileSnapshot('../docs/fields.md');
});
