import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { resolve } from '../../vitest.config.ts';

/** The full run: `npm run prove`. The same files are part of the tests, with fewer inputs. */
export default defineConfig({
  resolve,
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/prove/*.test.ts'],
    env: { PROVE: process.env['PROVE'] ?? 'full', SLUICE_SDK: 'next' },
    globalSetup: ['test/prove/setup.ts'],
    testTimeout: 900_000,
    pool: 'threads',
    maxWorkers: 2,
  },
});
