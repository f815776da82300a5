import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root folder of the repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Our own packages: a folder of tests gets them by other ways. */
const OWN = ['sluice', '@sluice', 'sluice-bench'];

/** The names of the files in the tarball of a package. */
export function listPacked(folder: string): string[] {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const output = execFileSync('npm', args, { cwd: join(ROOT, folder), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const [{ files }] = JSON.parse(output) as [{ files: { path: string }[] }];
  return files.map(({ path }) => path).toSorted();
}

/** Makes a project with the packages as an installation from their tarballs leaves them; other dependencies are links. */
export function installPacked(folders: Readonly<Record<string, string>>): string {
  const project = mkdtempSync(join(tmpdir(), 'sluice-installed-'));
  const modules = join(project, 'node_modules');
  mkdirSync(modules);
  linkDependencies(modules);
  for (const [name, folder] of Object.entries(folders)) {
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', project];
    const output = execFileSync('npm', args, { cwd: join(ROOT, folder), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const [{ filename }] = JSON.parse(output) as [{ filename: string }];
    mkdirSync(join(modules, name), { recursive: true });
    execFileSync('tar', ['-xzf', join(project, filename), '-C', join(modules, name), '--strip-components=1']);
    rmSync(join(project, filename));
  }
  return project;
}

/** Links everything that is installed here, except our own packages. */
export function linkDependencies(modules: string): void {
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (!OWN.includes(name)) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
}
