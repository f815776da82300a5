import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = join(root, 'docs/pitfalls.md');
const HOME = 'packages/core/test/';
const FOLDERS = [HOME, 'packages/gateway/test/', 'test/'];

/** A number of the page. In a longer word, as in `P50-P99`, it is something else. */
const NUMBER = /(?<![\w-])P\d{2,3}(?![\w-])/g;

/** Which files carry a number, in the order of their paths. */
const carriers = new Map<string, string[]>();
for (const folder of FOLDERS) {
  for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (!file.endsWith('.ts') || file === 'pitfalls.test.ts') continue;
    const name = `${folder === HOME ? '' : folder}${file.replace(/(?:\.test)?\.ts$/, '')}`;
    const numbers = new Set(readFileSync(join(root, folder, file), 'utf8').match(NUMBER));
    for (const number of numbers) carriers.set(number, [...(carriers.get(number) ?? []), name]);
  }
}

/** A row of the page: `| P01 | what goes wrong | what Sluice does | tests |`. */
const ROW = /^\| (P\d+) \| (.+) \| (.+) \| (.+) \|$/gm;
const written = readFileSync(page, 'utf8');
const numbers = [...written.matchAll(ROW)].map(([, number = '']) => number);

test('docs/pitfalls.md numbers its cases without a gap', () => {
  expect(numbers.length).toBeGreaterThan(130);
  expect(numbers).toEqual(numbers.map((_, i) => `P${String(i + 1).padStart(2, '0')}`));
});

test('every case has a test that carries its number', () => {
  expect(numbers.filter((number) => !carriers.has(number))).toEqual([]);
});

test('docs/pitfalls.md lists the tests of every case', async () => {
  const current = written.replace(ROW, (_, number: string, problem: string, behaviour: string) => {
    const files = (carriers.get(number) ?? []).map((file) => `\`${file}\``).join(', ');
    return `| ${number} | ${problem} | ${behaviour} | ${files} |`;
  });
  await expect(current).toMatchFileSnapshot(page);
});

test('every number that a test carries is a case of docs/pitfalls.md', () => {
  expect([...carriers.keys()].filter((number) => !numbers.includes(number))).toEqual([]);
});
