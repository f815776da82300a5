/**
 * Runs `npm run install-sluice` as a user without privileges: `npm run installed`. The checkout is a copy that this user may only read, npm's global
 * prefix is not writable, and the home is empty; so the command is installed into `~/.local`. It then runs in an unrelated folder, and is removed by
 * the line of docs/install.md. A checkout whose build is out of date is refused. Dependencies come from the registry.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT, readManifest } from './build/packages.js';

/** Root becomes another user; others stay who they are. */
const IDS = process.getuid() === 0 ? { uid: 1000, gid: 1000 } : { uid: process.getuid(), gid: process.getgid() };

const COPIED = [
  ...['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json', 'tsconfig.base.json', 'LICENSE', 'packages', 'scripts'],
  ...['.cache/built', '.cache/built-console'],
];

/** How this machine reaches the registry. */
const NETWORK = /^(https?_proxy|no_proxy|node_extra_ca_certs|ssl_cert_\w+|npm_config_registry)$/i;

const STREAM = 'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[]}\n\ndata: [DONE]\n\n';

const folder = mkdtempSync(join(tmpdir(), 'sluice-installed-'));
const clone = join(folder, 'clone');
const home = join(folder, 'home');
const project = join(folder, 'project');
const prefix = join(folder, 'prefix');
try {
  chmodSync(folder, 0o755);
  copyCheckout();
  for (const own of [home, project]) makeFolder(own, IDS);
  mkdirSync(prefix);
  setWritable(false, prefix);
  install();
  use();
  remove();
  refuseStale();
} finally {
  setWritable(true, prefix);
  setWritable(true, clone);
  rmSync(folder, { recursive: true, force: true });
}

function install() {
  const started = performance.now();
  const { stdout } = run('npm', ['run', '--silent', 'install-sluice'], { cwd: clone });
  const command = join(home, '.local/bin/sluice');
  check('it names the command', stdout.includes(`Installed sluice ${readManifest('packages/gateway').version}: ${command}`));
  check('it names the line for PATH', stdout.includes(`export PATH="${dirname(command)}:$PATH"`));
  check('the global prefix is untouched', !existsSync(join(prefix, 'lib')));
  console.log(`installed in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

function use() {
  writeFileSync(join(project, 'stream.sse'), STREAM);
  const version = run('sluice', ['--version'], { cwd: project }).stdout.trim();
  check(`sluice --version prints ${version}`, version === readManifest('packages/gateway').version);
  const report = run('sluice', ['doctor', 'stream.sse'], { cwd: project, expected: [0, 1] }).stdout;
  check('sluice doctor reads a file', report.includes('stream.sse'));
}

/** The line of docs/install.md. */
function remove() {
  run('npm', ['uninstall', '--global', 'sluice', '@sluice/core', '--prefix', join(home, '.local')], { cwd: project });
  check(
    'npm removes it',
    !existsSync(join(home, '.local/bin/sluice')) && !existsSync(join(home, '.local/lib/node_modules/sluice')),
  );
}

function refuseStale() {
  setWritable(true, clone);
  mkdirSync(join(clone, 'node_modules/typescript'), { recursive: true });
  const now = new Date();
  utimesSync(join(clone, 'packages/core/src/index.ts'), now, now);
  setWritable(false, clone);
  const { stderr } = run('npm', ['run', '--silent', 'install-sluice'], { cwd: clone, expected: [1] });
  check('a stale build is refused', stderr.includes('you may not write to') && stderr.includes('npm run build'));
  check('and nothing is installed', !existsSync(join(home, '.local/bin/sluice')));
}

/** As it is after a build, with the times of files and folders: they decide whether the build is up to date. */
function copyCheckout() {
  mkdirSync(clone);
  const archive = join(folder, 'clone.tar');
  execFileSync('tar', ['-cf', archive, '--exclude=node_modules', '--exclude=test', ...COPIED], { cwd: ROOT });
  execFileSync('tar', ['-xpf', archive], { cwd: clone });
  setWritable(false, clone);
}

function makeFolder(path, { uid, gid }) {
  mkdirSync(path);
  chownSync(path, uid, gid);
}

/** Root owns the folders, so that the modes for others count; a user takes the permission from themselves. */
function setWritable(isWritable, path) {
  if (existsSync(path)) execFileSync('chmod', ['-R', isWritable ? 'u+w' : 'a+rX,go-w,u-w', path]);
}

/** Runs a command with the environment of a new user. */
function run(command, args, { cwd, expected = [0] }) {
  const network = Object.entries(process.env).filter(([name]) => NETWORK.test(name));
  const env = {
    ...Object.fromEntries(network),
    PATH: `${join(home, '.local/bin')}:${process.env.PATH}`,
    HOME: home,
    SHELL: '/bin/sh',
    NPM_CONFIG_PREFIX: prefix,
  };
  // The message about PATH needs one without the folder.
  if (command === 'npm') env.PATH = process.env.PATH;
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8', ...IDS });
  if (error) throw error;
  if (!expected.includes(status)) throw new Error(`${command} ${args.join(' ')} ended with ${status}\n${stdout}${stderr}`);
  return { stdout, stderr };
}

function check(name, isTrue) {
  if (!isTrue) throw new Error(`failed: ${name}`);
  console.log(`ok: ${name}`);
}
