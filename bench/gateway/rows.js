/** What is measured, in this order; `npm run bench:gateway -- --only NAME` runs the parts whose names contain it. */
import { REQUESTS } from '../data/requests.js';
import { measureCaptures, measureExtras, measureJson, measureLatency, measureResponse, measureStreams } from './costs.js';
import { measureKeys, measureLedger, measureStreamGrowth, measureWorkers } from './growth.js';
import { measureMemory, measureStalled, measureStart } from './memory.js';
import { measureFirst, measurePaced } from './streams.js';

/** The small sizes differ little: one of them is measured in all directions. */
const DIRECTIONS_OF = { '1k': ['pass', 'anthropic>chat'] };

export const PARTS = [
  ...REQUESTS.map(({ name }) => ({
    name: `json-${name}`,
    measure: measureJson,
    options: { name, directions: DIRECTIONS_OF[name] },
  })),
  { name: 'response-100k', measure: measureResponse },
  { name: 'setup', measure: measureStreams, options: { kind: 'setup' } },
  { name: 'unpaced', measure: measureStreams, options: { kind: 'unpaced' } },
  { name: 'paced', measure: measurePaced },
  { name: 'latency-200', measure: measureLatency, options: { rate: 200 } },
  { name: 'latency-1000', measure: measureLatency, options: { rate: 1000 } },
  { name: 'extras', measure: measureExtras },
  { name: 'captures', measure: measureCaptures },
  { name: 'first', measure: measureFirst },
  { name: 'memory', measure: measureMemory },
  { name: 'stalled', measure: measureStalled },
  { name: 'start', measure: measureStart },
  { name: 'growth-keys', measure: measureKeys },
  { name: 'growth-ledger', measure: measureLedger },
  { name: 'growth-streams', measure: measureStreamGrowth },
  { name: 'growth-workers', measure: measureWorkers },
];

/** How much of it. A quick run shows that everything works; its figures say little. */
export const SIZES = {
  full: {
    processes: 3,
    slices: 6,
    warmSeconds: 6,
    visits: 3,
    windows: 7,
    windowMs: 400,
    settleMs: 500,
    rateSlices: 3,
    rateSeconds: 1,
    plateauSamples: 5,
    stalledSeconds: 6,
    starts: 5,
    idleSeconds: 2,
  },
  quick: {
    processes: 1,
    slices: 3,
    warmSeconds: 0.2,
    visits: 1,
    windows: 2,
    windowMs: 300,
    settleMs: 300,
    rateSlices: 1,
    rateSeconds: 0.5,
    plateauSamples: 3,
    stalledSeconds: 3,
    starts: 1,
    idleSeconds: 0.5,
  },
};
