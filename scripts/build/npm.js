/** npm as a child process, on every system, and the tarballs of our packages. */
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { PACKAGES, ROOT } from './packages.js';

/**
 * Runs npm and returns what it prints to stdout; throws with its output when it fails. Started by npm itself, its script is known, and node runs it
 * without a shell: `npm.cmd` of Windows needs one. Other package managers name a script of their own.
 */
export function runNpm(args, { cwd = ROOT, env = process.env } = {}) {
  const script = env.npm_execpath ?? (process.platform === 'win32' ? BUNDLED_NPM : undefined);
  const [command, ...first] = script?.endsWith('npm-cli.js') ? [process.execPath, script] : ['npm'];
  const { status, stdout, stderr, error } = spawnSync(command, [...first, ...args], { cwd, env, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(
    `npm ${args[0]} failed${error ? `: ${error.message}` : ` with exit code ${status}`}\n${stdout ?? ''}${stderr ?? ''}`,
  );
}

const BUNDLED_NPM = join(dirname(process.execPath), 'node_modules/npm/bin/npm-cli.js');

/** Packs a package into a folder, and returns the file. */
export function packPackage(name, folder) {
  const target = PACKAGES.find((one) => one.name === name);
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [{ filename }] = JSON.parse(runNpm(args, { cwd: join(ROOT, target.folder) }));
  return join(folder, filename);
}
