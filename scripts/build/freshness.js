/** Whether the builds are newer than what they are made of. */
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PACKAGES, ROOT, SOURCES } from './packages.js';

const STAMP = join(ROOT, '.cache/built');

const INPUTS = [
  ...SOURCES.flatMap((folder) => ['src', 'package.json', 'tsconfig.json'].map((name) => join(folder, name))),
  ...['tsconfig.base.json', 'package-lock.json', 'scripts/build.js', 'scripts/build'],
];

/** The modules of tsc, which scripts read, and the bundles. */
const OUTPUTS = PACKAGES.flatMap(({ folder }) => [join(folder, 'out/index.js'), join(folder, 'dist/index.js')]);

/** True when every output is there and no input has changed since. */
export function isFresh() {
  if (!existsSync(STAMP) || !OUTPUTS.every((output) => existsSync(join(ROOT, output)))) return false;
  const builtAt = statSync(STAMP).mtimeMs;
  return INPUTS.every((input) => newest(join(ROOT, input)) <= builtAt);
}

/** Says that inputs as they were at `time` (ms) are built. */
export function markBuilt(time) {
  mkdirSync(dirname(STAMP), { recursive: true });
  writeFileSync(STAMP, '');
  utimesSync(STAMP, time / 1000, time / 1000);
}

/** The newest change below a path. Folders count: a file that was removed changes its folder. */
function newest(path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
