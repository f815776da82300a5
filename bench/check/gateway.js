/** The gateway as users run it, and other children of the check: they listen on free ports of loopback, and end with `closeAll`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const PROGRAM = join(ROOT, 'packages/gateway/bin/sluice.js');
const PRELOAD = new URL('./preload.mjs', import.meta.url).href;
const READY_MS = 20_000;

const children = new Set();
let folder;

/** A folder of this run, which `closeAll` removes. */
export function makeFolder(name) {
  folder ??= mkdtempSync(join(tmpdir(), 'sluice-check-'));
  return mkdtempSync(join(folder, `${name}-`));
}

/** Starts a program of node that `closeAll` ends. */
export function startNode(args, options = {}) {
  return startProgram(process.execPath, args, options);
}

export function startProgram(program, args, { env = {}, stdio = ['ignore', 'pipe', 'pipe'] } = {}) {
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const child = spawn(program, args, { cwd: ROOT, env: { ...inherited, NODE_ENV: 'production', ...env }, stdio });
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
}

async function stop(child) {
  if (!children.has(child)) return;
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}

/** On every path, also that of a signal: children do not outlive the check. */
export function closeAll() {
  for (const child of children) child.kill('SIGKILL');
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  folder = undefined;
}

/** The first match in what a child prints; rejects when it ends without. */
export function waitForOutput(child, pattern, what, stream = child.stdout) {
  return new Promise((resolve, reject) => {
    let text = '';
    let errors = '';
    const fail = (reason) => reject(new Error(`${what} ${reason}; its output: ${(text + errors).slice(-2000) || 'none'}`));
    const timer = setTimeout(fail, READY_MS, `is not ready after ${READY_MS / 1000} s`);
    const settle = (found) => {
      clearTimeout(timer);
      resolve(found);
    };
    stream.on('data', (data) => {
      text += data;
      const found = pattern.exec(text);
      if (found) settle(found);
    });
    if (stream !== child.stderr) child.stderr?.on('data', (data) => (errors += data));
    child.once('error', (error) => fail(`does not start: ${error.message}`));
    child.once('close', (code) => {
      clearTimeout(timer);
      fail(`ended with code ${code}`);
    });
  });
}

const buildConfig = (port) => `log: { level: silent }
limits: { streams: 100000 }
capture: { ring: off }
providers:
  pass: { protocol: openai-chat, base_url: "http://127.0.0.1:${port}/v1", repair: false }
`;

/** The arguments of `sluice serve` with a data folder of its own. */
export function buildServeArguments(upstreamPort) {
  const own = makeFolder('gateway');
  const config = join(own, 'sluice.yaml');
  writeFileSync(config, buildConfig(upstreamPort));
  return [PROGRAM, 'serve', '--config', config, '--port', '0', '--data', join(own, 'data')];
}

/** What `sluice serve` prints when it listens. */
export const LISTENING = /listens on http:\/\/127\.0\.0\.1:(\d+)/;

/** `request`: sends a command of preload.mjs. `flags`: of node. */
export async function startGateway(upstream, flags = []) {
  const args = ['--expose-gc', '--import', PRELOAD, ...flags, ...buildServeArguments(upstream.port)];
  const child = startNode(args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  const [, port] = await waitForOutput(child, LISTENING, '`sluice serve`');
  child.stdout.resume();
  return {
    port: Number(port),
    pid: child.pid,
    request: (command, rest) => request(child, command, rest),
    stop: () => stop(child),
  };
}

async function request(child, command, rest) {
  const ended = new AbortController();
  const fail = () => ended.abort(new Error(`the gateway ended during the command "${command}"`));
  child.once('close', fail);
  try {
    child.send({ command, ...rest });
    const [result] = await once(child, 'message', { signal: ended.signal });
    return result;
  } catch (error) {
    throw ended.signal.aborted ? ended.signal.reason : error;
  } finally {
    child.off('close', fail);
  }
}
