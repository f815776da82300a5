import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readImports } from '../../scripts/house/sources.js';
import { RECORDED_ONLY } from '../recorded/suites.ts';
import { NEXT_ONLY, REPEATED } from './suites.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The tables of SDKs. A suite may import their modules for other things, which no SDK changes. */
const TABLES = /\b(SDKS|OPENAI_SDKS|SDK_READERS|READERS|IS_NEXT|oracles)\b/;

const suites = ['packages/core/test', 'packages/gateway/test', 'packages/lab/test', 'test']
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`))
  .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'));

function reaches(file: string, target: string, seen = new Set<string>()): boolean {
  if (file === target) return true;
  if (seen.has(file)) return false;
  seen.add(file);
  return readImports(file).some((imported) => reaches(imported, target, seen));
}

test('every suite with a table of OpenAI clients is repeated with the newer ones', () => {
  const found = suites.filter(
    (name) =>
      name !== 'test/sdk-next/suites.test.ts' &&
      TABLES.test(readFileSync(join(root, name), 'utf8')) &&
      reaches(join(root, name), join(root, 'test/sdk/openai.ts')),
  );
  expect(found.length).toBeGreaterThan(15);
  expect(found.filter((name) => ![...NEXT_ONLY, ...REPEATED, ...RECORDED_ONLY].includes(name))).toEqual([]);
  expect([...NEXT_ONLY, ...REPEATED].filter((name) => !existsSync(join(root, name)))).toEqual([]);
});
