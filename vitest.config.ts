import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { listSources } from './scripts/build/packages.js';
import { NEXT_ONLY } from './test/sdk-next/suites.ts';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const resolve = {
  alias: [
    // The packages are tested with the sources of the others, not with their last build.
    ...listSources().map(({ specifier, file }) => ({ find: new RegExp(`^${specifier}$`), replacement: file })),
    { find: /^fast-check$/, replacement: local('test/seeded-check.ts') },
  ],
};

export default defineConfig({
  resolve,
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...NEXT_ONLY],
    testTimeout: 60_000,
    pool: 'threads',
    // By default a core is left free, which is half of the smallest machine.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // The dot reporter keeps thousands of table rows readable; CI counts them from the report.
    reporters: process.env['CI'] ? ['dot', ['json', { outputFile: '.cache/tests.json' }]] : ['default'],
  },
});
