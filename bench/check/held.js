/** What a held stream costs in memory: heap snapshots of `sluice serve`, without and with streams that wait for their upstream. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdStreams, runStreams } from './client.js';
import { makeFolder, startGateway } from './gateway.js';
import { countNodes, divideGrowth } from './snapshot.js';

const HELD = 200;
/** The first streams compile code and fill caches, which are not of a stream. */
const WARM_UP = { streams: 200, atOnce: 10 };
/** More than `atOnce`, and held from before the first snapshot: no connection to the upstream is left from which a counted stream saves its own. */
const HELD_BEFORE = 20;
/** undici drops the timers of streams that ended a second later. */
const SETTLE_MS = 1500;

/** `{ objects, closures, arrays, strings, heap }` of each held stream; `heap` is bytes that live after a collection. */
export async function countHeld(upstream, way) {
  // Without the flag, V8 drops the code of functions that were not called for a while, and the live heap falls by it.
  const gateway = await startGateway(upstream, ['--no-flush-bytecode']);
  const held = [];
  try {
    await runStreams(gateway.port, way, WARM_UP);
    held.push(await holdStreams(gateway.port, way, HELD_BEFORE));
    await sleep(SETTLE_MS);
    const before = await readHeap(gateway);
    held.push(await holdStreams(gateway.port, way, HELD));
    return divideGrowth(before, await readHeap(gateway), HELD);
  } finally {
    for (const { close } of held) close();
    await gateway.stop();
  }
}

async function readHeap(gateway) {
  const file = join(makeFolder('heap'), 'gateway.heapsnapshot');
  const { heap } = await gateway.request('collect');
  await gateway.request('snapshot', { file });
  const snapshot = JSON.parse(readFileSync(file, 'utf8'));
  rmSync(file);
  return { ...countNodes(snapshot), heap };
}
