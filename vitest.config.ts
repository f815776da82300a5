import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The gateway is tested with the sources of core, not with its last build. */
export const resolve = {
  alias: [{ find: /^@sluice\/core$/, replacement: fileURLToPath(new URL('packages/core/src/index.ts', import.meta.url)) }],
};

export default defineConfig({
  resolve,
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 60_000,
    pool: 'threads',
    // By default a core is left free, which is half of the smallest machine.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // The dot reporter keeps thousands of table rows readable; CI counts them from the report.
    reporters: process.env['CI'] ? ['dot', ['json', { outputFile: '.cache/tests.json' }]] : ['default'],
  },
});
