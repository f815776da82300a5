import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'bench/README.md',
  ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'));

/** Inline links and reference definitions to places in this repository. */
const linksOf = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)|^\[[^\]]+\]:\s*(\S+)/gm)]
    .map((match) => (match[1] ?? match[2] ?? '').replace(/#.*$/, ''))
    .filter((link) => link !== '' && !/^https?:/.test(link));

test.each(pages)('every link of %s leads somewhere', (page) => {
  const file = join(root, page);
  const broken = linksOf(readFileSync(file, 'utf8')).filter((link) => !existsSync(resolve(dirname(file), link)));
  expect(broken).toEqual([]);
});

test.each(pages)('every reference of %s is defined', (page) => {
  const text = readFileSync(join(root, page), 'utf8').replace(/```[\s\S]*?```|`[^`\n]*`/g, '');
  const defined = new Set([...text.matchAll(/^\[([^\]]+)\]:/gm)].map((match) => match[1]));
  const used = [...text.matchAll(/\]\[([^\]]+)\]/g)].map((match) => match[1]);
  expect(used.filter((name) => !defined.has(name))).toEqual([]);
});

test('the two commands of the README are there', () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8');
  expect(text).toContain('npm ci && npm start');
  expect(text).toContain('npm ci && npm test');
});

test('nothing names a machine or a registry', () => {
  const files = [...pages, 'package.json', 'package-lock.json', 'knip.json', 'biome.json'];
  for (const name of files)
    expect(readFileSync(join(root, name), 'utf8'), relative(root, name)).not.toMatch(/\/work\/|\/root\/|registry\.npmjs/);
});

/** `folder/file › title`, as docs/security.md cites tests. A title stands in its file as a whole text. */
const citedTests = [...readFileSync(join(root, 'docs/security.md'), 'utf8').matchAll(/`([\w/-]+) › ([^`]+)`/g)].map(
  ([, file = '', title = '']) => ({ file, title }),
);

test.each(citedTests)('docs/security.md cites an existing test: $file › $title', ({ file, title }) => {
  const source = readFileSync(join(root, `packages/gateway/test/${file}.test.ts`), 'utf8');
  expect(source.includes(`'${title}'`)).toBe(true);
});

test('docs/security.md cites a test or a command for every defence', () => {
  const rows = readFileSync(join(root, 'docs/security.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| threat'));
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter((row) => !/ › |`npm run /.test(row))).toEqual([]);
});
