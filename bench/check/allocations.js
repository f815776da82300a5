/** Bytes of heap that a JSON request allocates, on one connection, where nothing is collected between two readings of the heap. */
import { median } from '../method/statistics.js';
import { openSequence } from './client.js';
import { startGateway } from './gateway.js';

/** A semi-space of 256 MB: a window of 300 requests allocates about 40 MB. */
const NO_SCAVENGE = ['--min-semi-space-size=256', '--max-semi-space-size=256'];

/**
 * `unoptimized`: every object that the code creates. `optimized`: without the objects that the compiler removes, which depends on what it compiled
 * when.
 */
export const TIERS = {
  unoptimized: { flags: ['--no-opt'], warmUp: 300, windows: 5, requests: 200 },
  optimized: { flags: [], warmUp: 1500, windows: 5, requests: 200 },
};
/** Attempts to find a window without a collection. */
const ATTEMPTS = 3;

/** The median of several windows, in bytes a request. */
export async function measureAllocations(upstream, way, tier) {
  const { flags, warmUp, windows, requests } = TIERS[tier];
  const gateway = await startGateway(upstream, [...NO_SCAVENGE, ...flags]);
  try {
    const sequence = await openSequence(gateway.port, way);
    await sequence.run(warmUp);
    const found = [];
    while (found.length < windows) found.push(await measureWindow(gateway, sequence, requests));
    sequence.close();
    return median(found);
  } finally {
    await gateway.stop();
  }
}

async function measureWindow(gateway, sequence, requests) {
  for (let i = 0; i < ATTEMPTS; i++) {
    const before = await gateway.request('beginWindow');
    await sequence.run(requests);
    const after = await gateway.request('endWindow');
    if (after.collections === 0) return (after.heap - before.heap) / requests;
  }
  throw new Error(
    `the gateway collected garbage in ${ATTEMPTS} windows of ${requests} requests in spite of ${NO_SCAVENGE.join(' ')}`,
  );
}
