/** What the readers of the guides have: a repository to clone, a home, an environment, and programs that guides take for granted. */
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runNpm } from '../build/npm.js';
import { ROOT } from '../build/packages.js';

const CLAUDE_CODE = '@anthropic-ai/claude-code@2.1.197';

const isRoot = process.getuid?.() === 0;

/** Who follows the guides: another user, where that is possible. */
export const READER = isRoot ? { uid: 1000, gid: 1000 } : {};

/** Gives a file or folder, with all that is in it, to the reader. */
export function giveToReader(path) {
  if (isRoot) execFileSync('chown', ['-R', `${READER.uid}:${READER.gid}`, path]);
}

/** A repository to clone, with the files of this one as they are now. */
export function copyRepository(target) {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of files.split('\0').filter((name) => name !== '' && existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(target, file)), { recursive: true });
    cpSync(join(ROOT, file), join(target, file));
  }
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=guides', '-c', 'user.email=guides@localhost', ...args], { cwd: target });
  git('init', '--quiet');
  git('add', '--all', '--force');
  git('commit', '--quiet', '--message', 'The files as they are now');
}

/** Settings of the network, without which no registry can be reached. */
export const NETWORK = Object.fromEntries(
  Object.entries(process.env).filter(([key]) =>
    /^(https?_proxy|no_proxy|node_extra_ca_certs|ssl_cert_\w+|npm_config_(registry|cafile))$/i.test(key),
  ),
);

/** What a new user of this machine has. */
export function buildEnvironment(home, npmCache) {
  return {
    ...NETWORK,
    HOME: home,
    USER: 'reader',
    SHELL: '/bin/bash',
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    // Bash would use the folders of the machine's users; npm's own prefix is not writable for them.
    PATH: [join(home, 'bin'), join(home, '.local/bin'), dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(
      ':',
    ),
    NPM_CONFIG_CACHE: npmCache,
    NPM_CONFIG_UPDATE_NOTIFIER: 'false',
  };
}

/** The command of this checkout instead of an installed one. */
export function placeCommand(home) {
  createFolder(join(home, 'bin'));
  writeFileSync(join(home, 'bin/sluice'), `#!/bin/sh\nexec node "${join(ROOT, 'packages/gateway/bin/sluice.js')}" "$@"\n`, {
    mode: 0o755,
  });
}

/** A folder of the reader. */
export function createFolder(path) {
  mkdirSync(path, { recursive: true });
  if (isRoot) chownSync(path, READER.uid, READER.gid);
}

/** Starts a gateway with the demo model, which takes the place of all providers. Ends with this process. */
export const startProvider = () => startProgram(['serve', '--port', '0', '--data', 'memory']);

/** Starts a command of this checkout, and returns the address that it prints. */
function startProgram(args) {
  const program = spawn(process.execPath, [join(ROOT, 'packages/gateway/bin/sluice.js'), ...args], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, HOME: tmpdir() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  process.once('exit', () => program.kill());
  program.unref();
  return new Promise((resolve, reject) => {
    let printed = '';
    for (const stream of [program.stdout, program.stderr])
      stream.on('data', (data) => {
        printed = (printed + data).slice(-10_000);
        const address = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0];
        if (!address) return;
        // Nor do its pipes keep this process, once the address is known.
        for (const pipe of [program.stdout, program.stderr]) pipe.unref();
        resolve(address);
      });
    program.once('exit', () => reject(new Error(`sluice ${args[0]} ended: ${printed}`)));
  });
}

/** Claude Code as a program that sends one message and ends, because there is no terminal to type in. */
export function installClaude(home) {
  const place = join(ROOT, '.cache/guides');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'package.json'), '{ "private": true }\n');
  runNpm(['install', '--no-audit', '--no-fund', '--no-save', '--prefer-offline', CLAUDE_CODE], { cwd: place });
  const bin = join(home, 'bin');
  createFolder(bin);
  const claude = join(home, 'claude-code');
  cpSync(join(place, 'node_modules'), claude, { recursive: true, verbatimSymlinks: true });
  writeFileSync(join(bin, 'claude'), `#!/bin/sh\nexec "${claude}/.bin/claude" -p 'Say hello.' "$@"\n`, { mode: 0o755 });
  giveToReader(home);
}
