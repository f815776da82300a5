import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { linkDependencies, ROOT } from './packed.ts';

// `npx sluice` in a fresh clone: the command builds itself.

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
});
afterAll(() => rmSync(clone, { recursive: true }));

const sluice = (...args: string[]) => run(process.execPath, [join(clone, 'packages/gateway/bin/sluice.js'), ...args]);
const builtAt = (): number => statSync(join(clone, 'packages/core/dist/index.js')).mtimeMs;
const BUILDING = 'sluice: building this checkout …\n';

describe('the command in a checkout', { timeout: 240_000 }, () => {
  test('builds itself once, also when two start together, and keeps stdout for its own output', async () => {
    const both = await Promise.all([sluice('--version'), sluice('--version')]);
    for (const { stdout } of both) expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(both.map(({ stderr }) => stderr)).toContain(BUILDING);
    expect(existsSync(join(clone, '.cache/build.lock'))).toBe(false);
    const before = builtAt();
    expect(await sluice('--version')).toMatchObject({ stderr: '' });
    expect(builtAt()).toBe(before);
  });

  test('reports what is wrong with a newer source, and fails; builds when it is removed, and takes over from a build that died', async () => {
    const before = builtAt();
    writeFileSync(join(clone, 'packages/gateway/src/broken.ts'), 'export const broken: number = "text";\n');
    await expect(sluice('--version')).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/broken\.ts.*not assignable[\s\S]*sluice: the build failed/),
    });
    expect(builtAt()).toBe(before);
    rmSync(join(clone, 'packages/gateway/src/broken.ts'));
    // No process has this id: it is beyond the largest one.
    writeFileSync(join(clone, '.cache/build.lock'), String(2 ** 22 + 1));
    expect(await sluice('--version')).toMatchObject({ stdout: expect.stringMatching(/^\d/), stderr: BUILDING });
    expect(builtAt()).toBeGreaterThan(before);
  });

  test('requires npm ci when nothing is installed', async () => {
    rmSync(join(clone, '.cache/built'));
    rmSync(join(clone, 'node_modules/typescript'));
    await expect(sluice('--version')).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('run "npm ci" first') });
  });
});
