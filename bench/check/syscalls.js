/** System calls of a JSON request: `strace` counts those of all threads of the gateway while one connection sends requests. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { openSequence } from './client.js';
import { startGateway, startProgram, waitForOutput } from './gateway.js';
import { countCalls, parseTable } from './strace.js';

const WARM_UP = 300;
const REQUESTS = 300;

/** Why system calls cannot be counted here; undefined when they can. */
export function findObstacle() {
  const { error, status, stderr } = spawnSync('strace', ['-c', 'true'], { encoding: 'utf8' });
  if (error) return 'strace is missing (install the package "strace")';
  if (status !== 0) return `strace may not trace a process here: ${stderr.trim().split('\n', 1)[0]}`;
  return undefined;
}

/** `{ counts, seconds }`: counts of strace.js for each request, and how long the requests took. */
export async function countSystemCalls(upstream, way) {
  const gateway = await startGateway(upstream);
  try {
    const sequence = await openSequence(gateway.port, way);
    await sequence.run(WARM_UP);
    const { table, seconds } = await trace(gateway.pid, () => sequence.run(REQUESTS));
    sequence.close();
    return { counts: countCalls(table, REQUESTS), seconds };
  } finally {
    await gateway.stop();
  }
}

async function trace(pid, work) {
  const strace = startProgram('strace', ['-c', '-f', '-p', String(pid)], { env: { LC_ALL: 'C' } });
  const closed = once(strace, 'close');
  let output = '';
  strace.stderr.on('data', (data) => {
    output += data;
  });
  await waitForOutput(strace, /attached/, 'strace', strace.stderr);
  const begun = performance.now();
  await work();
  const seconds = (performance.now() - begun) / 1000;
  // It detaches and prints its table.
  strace.kill('SIGINT');
  await closed;
  return { table: parseTable(output), seconds };
}
