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
      ],
      // The programs of the runtimes are bundled with packages that are not installed here.
      project: ['examples/*.js', 'scripts/**', 'test/**', '!scripts/runtimes/programs/**'],
      // The first is in test/sdk-next, with a lockfile of its own; the others are programs that scripts/check-packages.js runs.
      ignoreDependencies: ['openai-7', 'publint', '@arethetypeswrong/cli'],
    },
    'packages/core': { entry: entriesOf('packages/core'), project: PROJECT },
    'packages/ai-sdk': { entry: entriesOf('packages/ai-sdk'), project: PROJECT },
    'packages/langchain': { entry: entriesOf('packages/langchain'), project: PROJECT },
    'packages/lab': { entry: entriesOf('packages/lab'), project: PROJECT },
    'packages/gateway': {
      entry: [...entriesOf('packages/gateway'), ...programsOf('packages/gateway')],
      project: PROJECT,
      ignoreBinaries: ['mount', 'umount', 'openssl'],
    },
    bench: {
      entry: ['*.js', 'subjects/*.js', 'gateway/*.js', 'nightly/*.js'],
      project: ['**/*.js'],
      ignoreDependencies: ['@musistudio/llms'],
      ignoreBinaries: ['taskset'],
    },
  },
};
