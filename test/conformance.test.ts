import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { reportOf } from './prove/report.ts';
import { blockOf, findBlock, GROUPS, gapsOf, lineOf, replaceBlock } from './prove/summary.ts';
import type { Row } from './prove/tally.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

describe('docs/conformance.md', () => {
  test('the README shows its summary', () => {
    expect(findBlock(read('docs/conformance.md'))).toBeDefined();
    expect(findBlock(read('README.md'))).toBe(findBlock(read('docs/conformance.md')));
  });

  test('is the page of this version', () => {
    const { version } = JSON.parse(read('packages/core/package.json')) as { version: string };
    expect(read('docs/conformance.md')).toContain(`Sluice ${version},`);
  });
});

const row = (property: string, change: Partial<Row> = {}): Row => ({
  ...{ property, subject: 'gemini', tried: 10, failed: 0, open: 0, seed: null, seen: {} },
  ...change,
});
const full = Object.values<readonly string[]>(GROUPS).flatMap((properties) => properties.map((property) => row(property)));

describe('the summary', () => {
  test.each([
    ['a full run has no gap', full, []],
    ['a part of a run', full.slice(1), ['two-way split']],
    ['a property that nobody has put into a group', [...full, row('luck')], ['luck']],
    ['what is counted is not tried', [...full, row('recorded streams')], []],
  ])('%s', (_, rows, gaps) => {
    expect(gapsOf(rows)).toEqual(gaps);
  });

  test('counts what was tried, generated, recorded, failed and open', () => {
    const rows = [
      row('grammar', { tried: 1200, seed: 7 }),
      row('random split', { tried: 30, failed: 2, open: 1 }),
      row('recorded streams', { tried: 5 }),
      row('recorded bodies', { tried: 4 }),
      row('requests', { tried: 3 }),
    ];
    expect(lineOf(rows)).toMatch(
      /^1,230 checks, 1,200 of them on generated inputs, over 9 responses and 3 requests of the corpus, .* 2 failed, 1 open\.$/,
    );
    expect(blockOf(rows)).toContain('follows the grammar of its protocol | 1,200 | 1,200 | 0 | 0 |');
  });

  test('replaces the previous one', () => {
    const [old, fresh] = [blockOf([]), blockOf(full)];
    expect(replaceBlock(`a\n${old}\nb $& c`, fresh)).toBe(`a\n${fresh}\nb $& c`);
    expect(() => replaceBlock('nothing', fresh)).toThrow('conformance');
  });
});

test('the page lists pairs, providers, notes and seeds', () => {
  const page = reportOf(
    [
      ...full,
      row('there and back', { subject: 'gemini → openai-chat', tried: 12, failed: 1, seed: 7, seen: { 'DROPPED citations': 4 } }),
      row('recorded streams', { tried: 2, seen: { groq: 2 } }),
      row('requests', { seen: { groq: 1, mistral: 1 } }),
    ],
    { version: '9.9.9', judges: ['`sdk` 1.2.3'] },
  );
  for (const piece of [
    'Sluice 9.9.9, with the seed 7:',
    '| gemini |  | 12, **1 failed** |',
    '| groq | 2 | 0 | 1 |\n| mistral | 0 | 0 | 1 |\n| **all** | **2** | **0** | **2** |',
    '| DROPPED citations | 4 | 1 |',
    '`sdk` 1.2.3',
  ])
    expect(page).toContain(piece);
});
