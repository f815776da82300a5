import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const resolve = {
  alias: [
    // The packages are tested with the sources of the others, not with their last build.
    { find: /^@sluice\/core$/, replacement: local('packages/core/src/index.ts') },
    { find: /^@sluice\/lab\/text$/, replacement: local('packages/lab/src/text.ts') },
    { find: /^@sluice\/lab\/(\w+)$/, replacement: local('packages/lab/src/$1/index.ts') },
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
