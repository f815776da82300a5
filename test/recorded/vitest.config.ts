import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { resolve } from '../../vitest.config.ts';
import { NEXT_ONLY } from '../sdk-next/suites.ts';
import { RECORDED_ONLY } from './suites.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Modules that hand the corpus to tests. */
const READERS = /from '[^']*\/(corpus|recordings|convert-sources|recorded-clients|scan|clean-streams)\.ts'/;

/**
 * The tests of the library that read the corpus, with the recordings in its place: `npm run test:recordings`. `npm run prove` reads the
 * recordings by itself.
 */
const readers = ['test', 'packages/core/test'].flatMap((folder) =>
  readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
    .map((file) => `${folder}/${file}`)
    .filter((file) => !file.startsWith('test/prove') && READERS.test(readFileSync(root + file, 'utf8'))),
);

/** They hold pages or shapes, which come from the corpus. */
const OF_THE_CORPUS = ['test/corpus.test.ts', 'test/doctor/pages.test.ts', 'test/conformance.test.ts'];

export default defineConfig({
  resolve,
  test: {
    root,
    include: [...RECORDED_ONLY, ...readers.filter((file) => !NEXT_ONLY.includes(file) && !OF_THE_CORPUS.includes(file))],
    // With the newer SDKs as well, where `npm run test:sdk-next` has installed them.
    env: { SLUICE_CORPUS: 'recordings', ...(existsSync(`${root}test/sdk-next/node_modules`) && { SLUICE_SDK: 'next' }) },
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'threads',
    maxWorkers: 2,
    reporters: process.env['CI'] ? ['dot', ['json', { outputFile: '.cache/tests-recordings.json' }]] : ['default'],
  },
});
