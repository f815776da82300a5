/**
 * Checks what would be published: `npm run packages`. publint and attw read the packages; then their tarballs are installed into
 * an empty folder, with all other dependencies from the registry, and the command runs there.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packPackage } from './build/npm.js';
import { PACKAGES, ROOT, readManifest } from './build/packages.js';

/** Prints what a command says only when it fails: the tables of attw are long. */
const run = (command, args, cwd = ROOT) => {
  console.log(`$ ${command} ${args.join(' ')}`);
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status === 0) return;
  console.log(`${stdout}${stderr}`);
  throw new Error(`${command} ended with ${status}`);
};

const folder = mkdtempSync(join(tmpdir(), 'sluice-packages-'));
try {
  const tarballs = PACKAGES.map((target) => {
    run('npx', ['publint', '--strict', target.folder]);
    const tarball = packPackage(target.name, folder);
    // Only ESM: resolution from CommonJS and by node 10 is not offered.
    run('npx', ['attw', tarball, '--profile', 'esm-only', '--format', 'table-flipped']);
    return tarball;
  });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'empty', version: '1.0.0', private: true }));
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', ...tarballs], folder);
  const version = execFileSync('npx', ['sluice', '--version'], { cwd: folder, encoding: 'utf8' }).trim();
  const expected = readManifest('packages/gateway').version;
  if (version !== expected) throw new Error(`sluice --version prints ${version} instead of ${expected}`);
  console.log(`installed from tarballs: sluice ${version}`);
} finally {
  rmSync(folder, { recursive: true });
}
