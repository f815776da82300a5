import { rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import type { Reporter } from 'vitest/node';
import { listSources } from './scripts/build/packages.js';
import { NEXT_ONLY } from './test/sdk-next/suites.ts';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const resolve = {
  alias: [
    // The packages are tested with the sources of the others, not with their last build.
    ...listSources().map(({ specifier, file }) => ({ find: new RegExp(`^${specifier}$`), replacement: file })),
    { find: /^@gateway\/(.+)$/, replacement: `${local('packages/gateway/src')}/$1.ts` },
    { find: /^fast-check$/, replacement: local('test/seeded-check.ts') },
  ],
};

/** Gateways of tests that choose no data folder use this one, never that of the user. Every run begins without it. */
const DATA_HOME = local('.cache/test-data');
rmSync(DATA_HOME, { recursive: true, force: true });

/** Errors of hooks, which the JSON report leaves out: one that fails skips the tests of its file. */
const HOOKS: Reporter = {
  onTestRunEnd: (modules) => {
    const errors = modules.flatMap((module) =>
      [...module.children.allSuites()].flatMap((suite) =>
        suite.errors().map(({ message }) => `${module.relativeModuleId} > ${suite.fullName}: ${message.slice(0, 300)}`),
      ),
    );
    writeFileSync('.cache/hooks.txt', errors.map((error) => `FAILED hook of ${error}\n`).join(''));
  },
};

const TESTS = ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'];

const LEFT_OUT = [...configDefaults.exclude, ...NEXT_ONLY];

/**
 * Tests that replace modules, or start servers for their own file. All others share the modules that a thread has loaded: loading them
 * again for every file takes a third of the time of a run.
 */
const ALONE = [
  'packages/console/test/**/*.test.ts',
  'packages/gateway/test/{admission,config,deploy,keys,ledger,responses,store,tracing}/**/*.test.ts',
  'test/prove-command/**/*.test.ts',
];

export default defineConfig({
  resolve,
  test: {
    projects: [
      { extends: true, test: { name: 'together', include: TESTS, exclude: [...LEFT_OUT, ...ALONE], isolate: false } },
      { extends: true, test: { name: 'alone', include: ALONE, exclude: LEFT_OUT } },
    ],
    env: { XDG_DATA_HOME: DATA_HOME },
    globalSetup: ['packages/gateway/test/real-parts/setup.js'],
    testTimeout: 60_000,
    // Hooks start servers, which takes long on a busy machine.
    hookTimeout: 60_000,
    // The default is one second, which a busy machine needs for a page or a process.
    expect: { poll: { timeout: 30_000 } },
    pool: 'threads',
    // By default a core is left free, which is half of the smallest machine.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // The dot reporter keeps thousands of table rows readable; CI counts them from the report.
    reporters: process.env['CI'] ? ['dot', ['json', { outputFile: '.cache/tests.json' }], HOOKS] : ['default'],
  },
});
