/** Processes on their cores, and what the kernel says of them. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

/** The gateway has a core for itself; upstream and clients share the other one. */
export const CORES = { gateway: '0', others: '1' };
export const here = (path) => fileURLToPath(new URL(path, import.meta.url));
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function start(argv, env, core, stdout = 'ignore') {
  return spawn('taskset', ['-c', core, process.execPath, ...argv], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', stdout, 'inherit'],
  });
}

/** Until somebody listens. */
export async function answering(port) {
  for (let i = 0; i < 400; i++) {
    if (await isOpen(port)) return;
    await sleep(50);
  }
  throw new Error(`nobody listens on ${port}`);
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

export async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGKILL');
  await gone;
}

/** Runs a load script; resolves with the JSON line that it prints. */
export function load(script, env) {
  const child = start([here(script)], env, CORES.others, 'pipe');
  let out = '';
  child.stdout.on('data', (data) => {
    out += data;
  });
  return new Promise((resolve, reject) => {
    child.on('close', () => {
      const line = out.trim().split('\n').at(-1);
      if (line) resolve(JSON.parse(line));
      else reject(new Error(`${script} said nothing`));
    });
  });
}

/** CPU time of all threads of a process so far, in microseconds. The times in `stat` are hundredths of seconds. */
export const cpuOf = ({ pid }) => readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + threadCpuOf(pid, thread), 0);

/** The same of its event loop alone. */
export const loopCpuOf = ({ pid }) => threadCpuOf(pid, pid);

/** A thread may have ended since it was listed. */
function threadCpuOf(pid, thread) {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1000;
  } catch {
    return 0;
  }
}

/** Resident memory of a process, in bytes. */
export function memoryOf({ pid }) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
}
