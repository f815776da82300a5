/** Whether the builds are newer than what they are made of. */
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CONSOLE, PACKAGES, ROOT, SOURCES } from './packages.js';

const COMMON = ['package-lock.json', 'scripts/build.js', 'scripts/build'];

/** What is built apart: the packages, and the console. The modules of tsc, which scripts read, are outputs, too. */
const TARGETS = {
  packages: {
    stamp: '.cache/built',
    inputs: [
      ...SOURCES.flatMap((folder) => ['src', 'package.json', 'tsconfig.json'].map((name) => join(folder, name))),
      ...['tsconfig.base.json', ...COMMON],
    ],
    outputs: PACKAGES.flatMap(({ folder }) => [join(folder, 'out/index.js'), join(folder, 'dist/index.js')]),
  },
  console: {
    stamp: '.cache/built-console',
    inputs: [
      ...['src', 'index.html', 'package.json', 'tsconfig.json', 'vite.config.ts'].map((name) => join(CONSOLE.folder, name)),
      // Modules that run in both: the language of filters and the derivation of streams, and what they import.
      ...['store/filter.ts', 'store/rows.ts', 'capture', 'config/secret-patterns.ts', 'observe/redact.ts'].map((name) =>
        join('packages/gateway/src', name),
      ),
      ...['exchange/limits.ts', 'exchange/response-errors.ts'].map((name) => join('packages/gateway/src', name)),
      ...['packages/core/src', 'packages/lab/src/text.ts', ...COMMON],
    ],
    outputs: [join(CONSOLE.published, 'index.html'), join(CONSOLE.published, CONSOLE.inspectPage)],
  },
};

/** True when every output of a target, or of all, is there and no input has changed since. */
export const isFresh = (target) => (target === undefined ? Object.keys(TARGETS) : [target]).every(isTargetFresh);

function isTargetFresh(target) {
  const { stamp, inputs, outputs } = TARGETS[target];
  if (![stamp, ...outputs].every((output) => existsSync(join(ROOT, output)))) return false;
  const builtAt = statSync(join(ROOT, stamp)).mtimeMs;
  return inputs.every((input) => newest(join(ROOT, input)) <= builtAt);
}

/** Says that inputs of a target as they were at `time` (ms) are built. */
export function markBuilt(target, time) {
  const stamp = join(ROOT, TARGETS[target].stamp);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, '');
  utimesSync(stamp, time / 1000, time / 1000);
}

/** The newest change below a path. Folders count: a file that was removed changes its folder. */
function newest(path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
