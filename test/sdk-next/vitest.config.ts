import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { resolve } from '../../vitest.config.ts';
import { NEXT_ONLY, REPEATED } from './suites.ts';

/** The suites that use the official SDKs, with the majors that ask for a newer node than Sluice: `npm run test:sdk-next`. */
export default defineConfig({
  resolve,
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: [...NEXT_ONLY, ...REPEATED],
    env: { SLUICE_SDK: 'next' },
    testTimeout: 60_000,
    pool: 'threads',
    maxWorkers: 2,
    reporters: process.env['CI'] ? ['dot', ['json', { outputFile: '.cache/tests-sdk-next.json' }]] : ['default'],
  },
});
