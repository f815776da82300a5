import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONSOLE, PACKAGES } from '../../scripts/build/packages.js';
import { IS_NIGHT } from '../night.ts';
import { linkDependencies, ROOT } from './packed.ts';

// The command of a fresh clone builds itself.

const run = promisify(execFile);
const LEFT_OUT = new Set(['node_modules', 'dist', 'out', '.cache', 'test']);
const COPIED = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.base.json', 'packages', 'scripts'];

let clone: string;
beforeAll(() => {
  clone = mkdtempSync(join(tmpdir(), 'sluice-clone-'));
  for (const name of COPIED)
    cpSync(join(ROOT, name), join(clone, name), { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  const modules = join(clone, 'node_modules');
  mkdirSync(join(modules, '@sluice'), { recursive: true });
  linkDependencies(modules);
  for (const name of ['core', 'lab']) symlinkSync(join(clone, 'packages', name), join(modules, '@sluice', name));
  symlinkSync(join(ROOT, 'packages/gateway/node_modules'), join(clone, 'packages/gateway/node_modules'));
  if (!IS_NIGHT) copyConsole();
});

/** The console as it was built for the tests: building it takes as long as all packages together. */
function copyConsole(): void {
  cpSync(join(ROOT, CONSOLE.published), join(clone, CONSOLE.published), { recursive: true });
  mkdirSync(join(clone, '.cache'));
  writeFileSync(join(clone, '.cache/built-console'), '');
}

afterAll(() => rmSync(clone, { recursive: true }));

const sluice = (...args: string[]) => run(process.execPath, [join(clone, 'packages/gateway/bin/sluice.js'), ...args]);
const builtAt = (): number => statSync(join(clone, 'packages/core/dist/index.js')).mtimeMs;
/** What a build prints: at once, for each step, and at the end. */
const listLines = (titles: readonly string[]): RegExp[] => [
  new RegExp(`^sluice: building this checkout … \\(${titles.length} steps\\)$`),
  ...titles.map((title, at) => new RegExp(`^sluice: ${at + 1} of ${titles.length}: ${title} \\(\\d+ s\\)$`)),
  /^sluice: built in \d+ s$/,
];
const CONSOLE_STEPS = ['bundle the console', 'bundle the page of "sluice inspect"'];
const PACKAGE_STEPS = ['check and compile the sources', ...PACKAGES.map(({ name }) => `bundle ${name}`)];
const expectBuild = (stderr: string, titles: readonly string[]): void =>
  expect(stderr.trimEnd().split('\n')).toEqual(listLines(titles).map((line) => expect.stringMatching(line)));

describe('the command in a checkout', { timeout: 240_000, shuffle: false }, () => {
  test('reports what is wrong with a source, and fails', async () => {
    const broken = join(clone, 'packages/gateway/src/broken.ts');
    writeFileSync(broken, 'export const broken: number = "text";\n');
    await expect(sluice('--version')).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/broken\.ts.*not assignable[\s\S]*sluice: the build failed/),
    });
    expect(existsSync(join(clone, 'packages/core/dist'))).toBe(false);
    rmSync(broken);
  });

  test('builds itself once, also when two start together after a build that died, and keeps stdout for its own output', async () => {
    // No process has this id: it is beyond the largest one.
    writeFileSync(join(clone, '.cache/build.lock'), String(2 ** 22 + 1));
    const both = await Promise.all([sluice('--version'), sluice('--version')]);
    for (const { stdout } of both) expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const [waiting, built] = both.map(({ stderr }) => stderr).sort((a, b) => a.length - b.length);
    expect(waiting).toMatch(/^(sluice: another process builds this checkout; waiting …\n)?$/);
    expectBuild(built ?? '', IS_NIGHT ? [...PACKAGE_STEPS, ...CONSOLE_STEPS] : PACKAGE_STEPS);
    expect(existsSync(join(clone, '.cache/build.lock'))).toBe(false);
    const before = builtAt();
    expect(await sluice('--version')).toMatchObject({ stderr: '' });
    expect(builtAt()).toBe(before);
  });

  // A second build takes as long as the first.
  test.runIf(IS_NIGHT)('builds again when a source is newer', async () => {
    const before = builtAt();
    const now = new Date();
    utimesSync(join(clone, 'packages/core/src/index.ts'), now, now);
    const { stdout, stderr } = await sluice('--version');
    expect(stdout).toMatch(/^\d/);
    expectBuild(stderr, [...PACKAGE_STEPS, ...CONSOLE_STEPS]);
    expect(builtAt()).toBeGreaterThan(before);
  });

  test('npm start uses the same build, and npm run build prints nothing when it is fresh', async () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
    expect(scripts['start']).toMatch(/^node packages\/gateway\/bin\/sluice\.js /);
    expect(await run(process.execPath, [join(clone, 'scripts/build.js')])).toEqual({ stdout: '', stderr: '' });
  });

  test('requires npm ci when nothing is installed', async () => {
    rmSync(join(clone, '.cache/built'));
    rmSync(join(clone, 'node_modules/typescript'));
    await expect(sluice('--version')).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('run "npm ci" first') });
  });
});
