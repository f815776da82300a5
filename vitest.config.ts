import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The entries of @sluice/core, each with the source of its build. */
function listEntries(): { find: RegExp; replacement: string }[] {
  const { exports: entries } = JSON.parse(readFileSync(local('packages/core/package.json'), 'utf8')) as {
    exports: Record<string, { default: string }>;
  };
  return Object.entries(entries).map(([entry, { default: file }]) => ({
    find: new RegExp(`^@sluice/core${entry.slice(1)}$`),
    replacement: local(`packages/core/${file.replace('./dist/', 'src/').replace(/\.js$/, '.ts')}`),
  }));
}

export const resolve = {
  alias: [
    // The packages are tested with the sources of the others, not with their last build.
    ...listEntries(),
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
