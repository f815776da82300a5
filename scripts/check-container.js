/**
 * Repeats the steps of the Dockerfile without Docker: `npm run container`. Runs COPY and RUN in empty folders with `.dockerignore` applied, starts
 * the result as another user who can write its data only, sends a request, creates a key, restarts, and uses the key. On Linux with x64 all of this
 * runs in the major version of Node that the image has, elsewhere in that of this process.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './build/packages.js';
import { listBaseImages, readDockerfile } from './container/dockerfile.js';
import { ImageBuild, measure } from './container/image.js';
import { findPackage, installRuntimes } from './runtimes/install.js';

/** The user of the image. Without root, the steps run as this user. */
const IDS = process.getuid() === 0 ? { uid: 1000, gid: 1000 } : { uid: process.getuid(), gid: process.getgid() };
const CLIENT_KEY = 'a-key-of-the-container-check';
const ADMIN_KEY = 'an-admin-key-of-the-container-check';

// Variables of the npm that runs this script would make the one of the image work in this folder.
const OWN = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(lifecycle|package|command|config_local_prefix)|^(NODE_ENV|INIT_CWD)$/.test(name),
  ),
);

process.umask(0o022);
const folder = mkdtempSync(join(tmpdir(), 'sluice-container-'));
chmodSync(folder, 0o755);
try {
  const node = placeNode();
  const env = { ...OWN, NPM_CONFIG_PREFER_OFFLINE: 'true', PATH: `${dirname(node)}:${process.env.PATH}` };
  const image = new ImageBuild({ root: ROOT, folder: join(folder, 'stages'), env, ids: IDS }).run();
  console.log(`the application has ${(measure(join(image.place, 'sluice')) / 1e6).toFixed(1)} MB`);
  await checkContainer(image);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The program `node` in a folder that the user of the image can read. */
function placeNode() {
  const [image = ''] = listBaseImages(readDockerfile(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')));
  const major = /^node:(\d+)/.exec(image)?.[1];
  const target = join(folder, 'bin/node');
  mkdirSync(dirname(target));
  let source = process.execPath;
  if (process.platform === 'linux' && process.arch === 'x64') {
    installRuntimes([`node-${major}`]);
    source = join(findPackage(`node-${major}`), 'bin/node');
  }
  cpSync(source, target, { dereference: true });
  return target;
}

async function checkContainer(image) {
  const first = await start(image);
  check('the demo model responds', await complete(first.url, CLIENT_KEY), 200);
  check('a wrong key is refused', await complete(first.url, 'another-key-0123456789'), 401);
  const { stdout } = await promisify(execFile)('sluice', ['keys', 'create', 'alice'], childOptions(image));
  const key = stdout.trim();
  check('a key of the command works', await complete(first.url, key), 200);
  check('the gateway ends on SIGTERM', await stop(first.child), 0);
  const second = await start(image);
  check('the key works after a restart', await complete(second.url, key), 200);
  check('the gateway ends on SIGTERM', await stop(second.child), 0);
}

function check(name, actual, expected) {
  if (actual !== expected) throw new Error(`${name}: ${actual} instead of ${expected}`);
  console.log(`ok: ${name}`);
}

/** As a container: its variables alone, its user, and no folder to write beside its data. */
function childOptions({ place, env, workdir }) {
  const own = new Set(Object.keys(OWN));
  const variables = Object.entries(env).filter(([name]) => !own.has(name) || name === 'PATH');
  const home = join(place, 'home');
  return {
    cwd: workdir,
    env: { ...Object.fromEntries(variables), HOME: home, SLUICE_KEYS: CLIENT_KEY, SLUICE_ADMIN_KEY: ADMIN_KEY },
    ...(process.getuid() === 0 ? IDS : {}),
  };
}

/** Starts ENTRYPOINT and CMD on a free port of the loopback address, and waits until the gateway is ready. */
async function start(image) {
  const args = image.args.map((arg) => ({ '0.0.0.0': '127.0.0.1', 4141: '0' })[arg] ?? arg);
  const [program, ...before] = image.command;
  const child = spawn(program, [...before, ...args], { ...childOptions(image), stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const url = await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => {
        output += data;
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0];
        if (found) resolve(found);
      });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}: ${output}`)));
  });
  return { child, url };
}

async function stop(child) {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const [code] = await ended;
  return code;
}

async function complete(url, key) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  await response.text();
  return response.status;
}
