// One cell of the matrix: a real client, run once.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SECONDS = 180;
/** What the runner needs beside the client: to start it, and to clear up after it. */
const MARGIN_SECONDS = 45;

/** Runs a client against an address. `output`: its last words, for the log of a failure. */
export async function runClient(client, { clients, inst, url, model, seconds = SECONDS }) {
  const started = performance.now();
  const mark = `SLUICE_CELL=${randomUUID()}`;
  const child = spawn(join(clients, `run-${client.runner}.sh`), {
    env: {
      ...process.env,
      ...client.env,
      BASE_URL: url,
      MODEL: model,
      INST: join(inst, client.inst),
      TIMEOUT: String(seconds),
      ...pair(mark),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output = (output + data).slice(-20_000)));
  const timer = setTimeout(() => endAll(mark), (seconds + MARGIN_SECONDS) * 1000);
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  endAll(mark);
  child.stdout.destroy();
  child.stderr.destroy();
  return { passed: code === 0, code, seconds: Math.round((performance.now() - started) / 100) / 10, output };
}

const pair = (mark) => Object.fromEntries([mark.split('=')]);

/** Nothing of a client is left behind to ask on: not what it started, and not what left its group (`timeout` has one of its own). */
function endAll(mark) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

/** The version of a client that is installed; undefined when it is not. */
export function versionOf({ inst: part, folder, package: name }, inst) {
  const file = join(inst, part, folder, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined;
}
