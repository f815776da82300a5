import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import type { Reporter } from 'vitest/node';
import { listSources } from './scripts/build/packages.js';
import { cleanEnvironment } from './test/environment/clean.ts';
import { NeedsReporter } from './test/needs/reporter.ts';
import { RECORDED_ONLY } from './test/recorded/suites.ts';
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

cleanEnvironment();

/** Errors of hooks and errors outside of tests, which the JSON report leaves out: a hook that fails skips the tests of its file. */
const HOOKS: Reporter = {
  onTestRunEnd: (modules, unhandled) => {
    const hooks = modules.flatMap((module) =>
      [...module.children.allSuites()].flatMap((suite) =>
        suite.errors().map(({ message }) => `hook of ${module.relativeModuleId} > ${suite.fullName}: ${message}`),
      ),
    );
    const others = unhandled.map(({ message, stack }) => `outside of tests: ${message} ${stack?.split('\n')[1]?.trim() ?? ''}`);
    const lines = [...hooks, ...others].map((line) => `FAILED ${line.slice(0, 400).replaceAll('\n', ' ')}\n`);
    writeFileSync('.cache/hooks.txt', lines.join(''));
  },
};

const CI_REPORTERS: (string | Reporter | [string, Record<string, unknown>])[] = [
  'dot',
  ['json', { outputFile: '.cache/tests.json' }],
  HOOKS,
];

const TESTS = ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'];

const LEFT_OUT = [...configDefaults.exclude, ...NEXT_ONLY, ...RECORDED_ONLY];

/** Tests of the gateway with databases and other servers, which all files of a thread share. */
const WITH_SERVERS = [
  'packages/gateway/test/{admission,cli,config,deploy,exchange,keys,ledger,responses,store,tracing}/**/*.test.ts',
];

/** Tests that replace modules. All others share those that a thread has loaded: loading them for every file takes a third of a run. */
const ALONE: readonly string[] = [
  'packages/gateway/test/config/poll.test.ts',
  'packages/gateway/test/config/stable-read.test.ts',
  'packages/gateway/test/responses/disk-crash.test.ts',
  'packages/gateway/test/store/restart.test.ts',
  'test/prove-command/failing.test.ts',
];

export default defineConfig({
  resolve,
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'together', include: TESTS, exclude: [...LEFT_OUT, ...ALONE, ...WITH_SERVERS], isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          include: WITH_SERVERS,
          exclude: [...LEFT_OUT, ...ALONE],
          isolate: false,
          setupFiles: ['packages/gateway/test/real-parts/setup.ts'],
        },
      },
      { extends: true, test: { name: 'alone', include: [...ALONE], exclude: LEFT_OUT } },
    ],
    globalSetup: ['test/needs/setup.ts'],
    testTimeout: 60_000,
    // Hooks start servers, which takes long on a busy machine.
    hookTimeout: 60_000,
    // The default is one second, which a busy machine needs for a page or a process.
    expect: { poll: { timeout: 30_000 } },
    pool: 'threads',
    // By default a core is left free, which is half of the smallest machine. There, more threads than cores work while others wait.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    // The dot reporter keeps thousands of table rows readable; CI counts them from the report.
    reporters: [...(process.env['CI'] ? CI_REPORTERS : ['default']), new NeedsReporter()],
  },
});
