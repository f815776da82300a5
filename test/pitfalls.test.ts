import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SHARED } from './shared.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const catalogue = join(SHARED ?? '', 'design/PITFALLS.md');
const FOLDERS = ['test', 'packages/core/test', 'packages/gateway/test'];

const sources = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('pitfalls.test.ts'))
    .map((file) => readFileSync(join(root, folder, file), 'utf8')),
);
const named = new Set(sources.flatMap((text) => text.match(/\bP\d{2,3}\b/g) ?? []));

/** A pitfall that somebody has met is met by a test that carries its number. */
test.skipIf(!existsSync(catalogue))('every pitfall of the catalogue has a test', () => {
  const listed = [...readFileSync(catalogue, 'utf8').matchAll(/^\*\*(P\d{2,3}) /gm)].map((match) => match[1] ?? '');
  expect(listed.length).toBeGreaterThan(130);
  expect(listed.filter((number) => !named.has(number))).toEqual([]);
});
