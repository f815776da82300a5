/** The runtimes, and how each runs the checks: `run` resolves with what `runChecks` returns and the version of the runtime. */
import { execFile, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { attackByPipelining } from './pipelining.js';

const MAJORS = ['20', '22', '24', '26'];

const run = promisify(execFile);
const OPTIONS = { maxBuffer: 64 * 1024 * 1024, timeout: 120_000 };

/** A runtime that runs a file and prints the result. */
function program(name, dependency, binary, args = []) {
  return {
    name,
    packages: [dependency],
    async run({ cache, findPackage }) {
      const command = join(findPackage(dependency), binary);
      const env = { PATH: process.env.PATH, HOME: cache, DENO_DIR: join(cache, 'deno') };
      const { stdout: version } = await run(command, ['--version'], { ...OPTIONS, env });
      const { stdout } = await run(command, [...args, join(cache, 'main.mjs')], { ...OPTIONS, env });
      return { version: /\d+\.\d+\.\d+/.exec(version)?.[0] ?? '', ...JSON.parse(stdout) };
    },
  };
}

/** The gateway in a release of node. */
function gateway(major) {
  const name = `node-${major}`;
  return {
    name: `gateway-${major}`,
    packages: [name],
    async run({ findPackage }) {
      const folder = findPackage(name);
      const { requests, failures } = await attackByPipelining(join(folder, 'bin/node'));
      return { version: readVersion(folder), counts: { 'requests ahead': requests }, failures };
    },
  };
}

/** ai 7, which wants node 22, with the adapter. */
const aiNext = {
  name: 'ai-7',
  packages: ['node-22', 'ai', '@ai-sdk/openai-compatible'],
  async run({ cache, findPackage }) {
    const { stdout } = await run(join(findPackage('node-22'), 'bin/node'), [join(cache, 'ai-next.mjs')], OPTIONS);
    return { version: readVersion(findPackage('ai')), ...JSON.parse(stdout) };
  },
};

const readVersion = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version;

const workerd = {
  name: 'workerd',
  packages: ['@cloudflare/workerd-linux-64'],
  async run({ cache, findPackage }) {
    const folder = findPackage('@cloudflare/workerd-linux-64');
    const modules = ['worker.mjs', 'checks.mjs', 'shared.mjs', 'data.mjs'];
    const listed = modules.map((name) => `(name = "${name}", esModule = embed "${name}")`);
    const config = join(cache, 'workerd.capnp');
    // Port 0: the control channel tells which port was taken.
    writeFileSync(
      config,
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .checks)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const checks :Workerd.Worker = (compatibilityDate = "2026-01-01", modules = [${listed.join(', ')}]);
`,
    );
    const child = spawn(join(folder, 'bin/workerd'), ['serve', config, '--control-fd=3'], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    });
    try {
      const port = await readPort(child);
      const response = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(120_000) });
      if (!response.ok) throw new Error(`workerd responded with ${response.status}: ${(await response.text()).slice(0, 300)}`);
      return { version: readVersion(folder), ...(await response.json()) };
    } finally {
      child.kill();
    }
  },
};

/** workerd reports the port of each socket as a line of JSON. */
function readPort(child) {
  return new Promise((resolve, reject) => {
    let errors = '';
    let lines = '';
    child.stderr.on('data', (text) => (errors += text));
    child.stdio[3].on('data', (text) => {
      lines += text;
      const port = /"port":\s*(\d+)/.exec(lines)?.[1];
      if (port) resolve(port);
    });
    child.on('exit', (code) => reject(new Error(`workerd ended with ${code}: ${errors.slice(0, 500)}`)));
  });
}

const chromium = {
  name: 'chromium',
  packages: ['playwright-core'],
  async run({ cache, findPackage }) {
    const { chromium: launcher } = createRequire(import.meta.url)(findPackage('playwright-core'));
    const server = createServer((request, response) => serveFile(cache, request.url, response));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
    const browser = await launcher.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    try {
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${server.address().port}/`);
      const runInPage = async ([checks, data]) => {
        const { runChecks } = await import(checks);
        return runChecks((await import(data)).default);
      };
      const result = await page.evaluate(runInPage, ['/checks.mjs', '/data.mjs']);
      return { version: browser.version(), ...result };
    } finally {
      await browser.close();
      server.close();
    }
  },
};

function serveFile(cache, url, response) {
  const name = /^\/(\w+\.mjs)$/.exec(url)?.[1];
  response.setHeader('content-type', name ? 'text/javascript' : 'text/html');
  response.end(name ? readFileSync(join(cache, name)) : '<!doctype html><title>checks</title>');
}

/** In the order of the table. */
export const RUNTIMES = [
  ...MAJORS.map((major) => program(`node-${major}`, `node-${major}`, 'bin/node')),
  ...MAJORS.map(gateway),
  program('bun', '@oven/bun-linux-x64', 'bin/bun'),
  program('deno', '@deno/linux-x64-glibc', 'deno', ['run', '--no-config', '--no-lock']),
  workerd,
  chromium,
  aiNext,
];
