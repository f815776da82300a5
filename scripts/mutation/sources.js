// What is changed, and which tests have to notice it.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { instrument } from './instrument.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDERS = ['packages/core/src/json/', 'packages/core/src/accumulate/', 'packages/core/src/sse/'];
export const SUITES = [
  'packages/core/test/json/',
  'packages/core/test/accumulate/',
  'packages/core/test/sse/',
  'test/cases.test.ts',
];

const listed = (folder) =>
  readdirSync(ROOT + folder)
    .sort()
    .map((name) => folder + name);

export const testFiles = SUITES.flatMap((suite) => (suite.endsWith('/') ? listed(suite) : [suite])).filter((file) =>
  file.endsWith('.test.ts'),
);

let first = 0;
/** The files with their mutants, numbered through. */
export const sources = FOLDERS.flatMap(listed).map((file) => {
  const { mutants } = instrument(readFileSync(ROOT + file, 'utf8'), file, first);
  first += mutants.length;
  return { file, first: first - mutants.length, mutants };
});

export const mutants = sources.flatMap((source) => source.mutants);
