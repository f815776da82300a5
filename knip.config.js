import { listEntries, PACKAGES } from './scripts/build/packages.js';

const PROJECT = ['src/**/*.ts', 'test/**/*.ts'];

/** Entry points are listed in package.json as builds; knip reads sources. */
const entriesOf = (folder) => listEntries(folder).map(({ module }) => `src/${module}.ts`);

const programsOf = (folder) =>
  PACKAGES.filter((one) => one.folder === folder).flatMap(({ programs }) => programs.map((name) => `src/${name}.ts`));

export default {
  workspaces: {
    '.': {
      entry: [
        'examples/*.js',
        'scripts/**/*.js',
        '!scripts/runtimes/programs/**',
        'test/seeded-check.ts',
        'test/sdk-next/vitest.config.ts',
        'test/prove/vitest.config.ts',
        'test/prove/setup.ts',
        'test/recorded/vitest.config.ts',
        'fixtures/corpus/*.js',
      ],
      // The programs of the runtimes are bundled with packages that are not installed here.
      project: ['examples/*.js', 'fixtures/**/*.js', 'scripts/**', 'test/**', '!scripts/runtimes/programs/**'],
      // They run with the packages of the clients, which are installed outside of the repository.
      ignore: ['scripts/clients/state/*.mjs'],
      // Those of the chart: a Helm of the system, or the Go that builds one. The others boot a machine for the guide of systemd.
      ignoreBinaries: ['helm', 'go', 'systemd-nspawn', 'nsenter', 'apt-get', 'debootstrap'],
      // The first is of the gateway, whose databases scripts/upgrade reads; the second is in test/sdk-next, with a lockfile of its own; the third
      // is of the console, whose elements tsconfig.json reads; the others are programs that scripts/check-packages.js runs, and what the site has
      // in its own lockfile.
      ignoreDependencies: [
        '@photostructure/sqlite',
        'openai-7',
        'preact',
        'publint',
        '@arethetypeswrong/cli',
        'vitepress',
        'minisearch',
        'playwright-core',
      ],
    },
    'packages/console': {
      entry: ['index.html', 'src/inspector/standalone.tsx', 'src/css.d.ts', 'scripts/*.js'],
      project: ['src/**/*.{ts,tsx}', 'test/**/*.ts', 'scripts/*.js'],
    },
    'packages/core': { entry: entriesOf('packages/core'), project: PROJECT },
    'packages/ai-sdk': { entry: entriesOf('packages/ai-sdk'), project: PROJECT },
    'packages/langchain': { entry: entriesOf('packages/langchain'), project: PROJECT },
    'packages/lab': { entry: entriesOf('packages/lab'), project: PROJECT },
    'packages/gateway': {
      entry: [...entriesOf('packages/gateway'), ...programsOf('packages/gateway')],
      project: PROJECT,
      ignoreBinaries: ['mount', 'umount', 'openssl', 'promtool', 'systemd-analyze'],
    },
    bench: {
      // The others are programs of their own, which are started with their path.
      entry: [
        '*.js',
        'subjects/*.js',
        'gateway/{run,load,upstream,bind-local}.js',
        'library/{child,sources}.js',
        'fetch/{side,child}.js',
        'check/{run,ratios-child}.js',
        'method/speed.js',
        'report/run.js',
        'nightly/*.js',
      ],
      project: ['**/*.js'],
      ignoreDependencies: ['@musistudio/llms'],
      ignoreBinaries: ['taskset', 'strace'],
    },
  },
};
