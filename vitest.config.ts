import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const resolve = {
  alias: [
    // The gateway is tested with the sources of core, not with its last build.
    { find: /^@sluice\/core$/, replacement: local('packages/core/src/index.ts') },
    { find: /^fast-check$/, replacement: local('test/seeded-check.ts') },
  ],
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
