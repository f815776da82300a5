/** Processes on their cores: the gateways, the upstream, the load generator, and the one that shows how fast the machine is. */
import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The gateway has a core for itself; upstream and clients share the other one. */
export const CORES = { gateway: '0', others: '1', all: '0,1' };
export const here = (path) => fileURLToPath(new URL(path, import.meta.url));
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

/** Starts a program on a core. `stdio`: of standard input and output; what it says of errors is shown, or with `isQuiet` kept for when it fails. */
export function start(program, args, { env = {}, core = CORES.gateway, stdio = ['ignore', 'ignore'], isQuiet = false } = {}) {
  const child = spawn('taskset', ['-c', core, program, ...args], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: [...stdio, isQuiet ? 'pipe' : 'inherit'],
  });
  child.stderr?.on('data', (data) => {
    child.errors = `${child.errors ?? ''}${data}`.slice(-2000);
  });
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
}

export const startNode = (args, options) => start(process.execPath, args, options);

/** Until somebody listens on a port. */
export async function waitForPort(port, child, everyMs = 25) {
  for (const begun = performance.now(); performance.now() - begun < 30_000; ) {
    if (await isOpen(port)) return;
    if (child.exitCode !== null)
      throw new Error(`the program for port ${port} ended with ${child.exitCode}: ${child.errors ?? ''}`);
    await sleep(everyMs);
  }
  throw new Error(`nothing listens on port ${port} after 30 s`);
}

function isOpen(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

/** A port that is free now. */
export function findPort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export async function stop(child, signal = 'SIGKILL') {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('close', resolve));
  child.kill(signal);
  await gone;
}

/** A process that reads one JSON command a line and writes one result a line. */
export function startHelper(script, core, env) {
  const child = startNode([here(script)], { core, env, stdio: ['pipe', 'pipe'] });
  const waiting = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(JSON.parse(line)));
  child.once('close', (code) => {
    for (const resolve of waiting) resolve({ error: `${script} ended with ${code}` });
  });
  const call = async (command, options = {}) => {
    const { result, error } = await new Promise((resolve) => {
      waiting.push(resolve);
      child.stdin.write(`${JSON.stringify({ command, ...options })}\n`);
    });
    if (error !== undefined) throw new Error(error);
    return result;
  };
  return Object.assign(call, { child });
}
