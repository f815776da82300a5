/**
 * Makes the command `sluice` available in every folder: `npm run install-sluice`, or `npm run install-sluice -- --prefix DIR`.
 * Packs this checkout and installs the tarballs into npm's global prefix, or into `~/.local` when that is not writable.
 * A checkout that is built may be read-only. To remove it: `npm uninstall --global sluice @sluice/core --prefix DIR`.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packPackage, runNpm } from './build/npm.js';
import { ROOT, readManifest } from './build/packages.js';
import { choosePrefix, describePathLine, findBin, isOnPath } from './install/place.js';

const { platform, env } = process;

try {
  install(readPrefix());
} catch (error) {
  console.error(`install-sluice: ${error.message}`);
  process.exitCode = 1;
}

function readPrefix() {
  const { values } = parseArgs({ options: { prefix: { type: 'string' } } });
  // npm runs scripts in the folder of the package; a relative path is meant from where the user is.
  const asked = values.prefix === undefined ? undefined : resolve(env.INIT_CWD ?? process.cwd(), values.prefix);
  const npmPrefix = asked ?? runNpm(['prefix', '--global']).trim();
  return choosePrefix({ asked, npmPrefix, isWritable: isPrefixWritable, home: homedir(), platform });
}

function install(prefix) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-install-'));
  try {
    build();
    const tarballs = ['@sluice/core', 'sluice'].map((name) => packPackage(name, folder));
    console.log(`Installing into ${prefix} …`);
    mkdirSync(prefix, { recursive: true });
    // No dependency needs its scripts.
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
    runNpm(['install', '--global', '--prefix', prefix, ...options, ...tarballs], { cwd: folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  report(findBin(prefix, platform));
}

function build() {
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts/build.js')], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error('the build failed; see the messages above');
}

function report(bin) {
  const command = join(bin, platform === 'win32' ? 'sluice.cmd' : 'sluice');
  if (!existsSync(command)) throw new Error(`npm succeeded, but ${command} does not exist`);
  console.log(`Installed sluice ${readManifest('packages/gateway').version}: ${command}`);
  if (isOnPath(bin, env.PATH ?? env.Path ?? '', platform)) return;
  console.log(`${bin} is not on PATH. Run this line, then open a new terminal:`);
  console.log(`  ${describePathLine(bin, { shell: env.SHELL, platform })}`);
}

/** Whether npm can add packages and commands below a prefix; its folders may not exist yet. */
function isPrefixWritable(prefix) {
  const modules = platform === 'win32' ? join(prefix, 'node_modules') : join(prefix, 'lib/node_modules');
  return [modules, findBin(prefix, platform)].every((folder) => isWritable(folder));
}

function isWritable(folder) {
  if (!existsSync(folder)) return dirname(folder) !== folder && isWritable(dirname(folder));
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
