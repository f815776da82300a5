/** Ratios of CPU time, Sluice over the reference of a row of bench/library, each row in a process of its own: the compiler knows no other row. */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { prepareSources } from '../library/sources.js';
import { startNode } from './gateway.js';

const CHILD = fileURLToPath(new URL('./ratios-child.js', import.meta.url));

/**
 * Compilers and collectors work on the thread that is measured: whether their threads have a core does not change what is compiled when. With
 * threads of their own, ratios of conversions differ by 20 % between runs on a busy machine, and by 8 % without.
 */
const NODE_FLAGS = ['--single-threaded'];
/** Seven slices are too few where the collector works in every third one. */
const SLICES = { slices: 15, sliceMs: 20 };

/** CPU time until most rows are compiled; they differ by 8 % between runs. */
const WARM_MS = 1000;
/** Many functions that run seldom: after 1000 ms, ratios are up to 40 % too high, because a part of the slices compiles. */
const LONG_WARM_MS = 2200;

/**
 * Rows that are guarded, and their warm-up: each kind of work, and each protocol as source and as target. Not among them are `sse-16k` and
 * `accumulate-calls`, whose ratios are 20 % higher while another process runs on the other thread of the same core.
 */
export const GUARDED = {
  'accumulate-text': WARM_MS,
  'sse-256': WARM_MS,
  'sse-1k': WARM_MS,
  'bytes-text': WARM_MS,
  'bytes-call': 1500,
  'bytes-calls': WARM_MS,
  'stream-text-chat-anthropic': WARM_MS,
  'stream-text-anthropic-chat': WARM_MS,
  'stream-text-responses-gemini': WARM_MS,
  'stream-call-gemini-responses': LONG_WARM_MS,
  'request-0.1k-chat-anthropic': LONG_WARM_MS,
  'request-100k-anthropic-chat': LONG_WARM_MS,
  'request-100k-gemini-responses': LONG_WARM_MS,
};

let isPrepared = false;

/**
 * The ratio of a row, and the share of a core that its process had.
 *
 * @returns {Promise<{ ratio: number, share: number }>}
 */
export async function measureRatio(id) {
  if (!isPrepared) prepareSources();
  isPrepared = true;
  const child = startNode([...NODE_FLAGS, CHILD, id, JSON.stringify({ ...SLICES, warmMs: GUARDED[id] })]);
  let output = '';
  let errors = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  child.stderr.on('data', (data) => {
    errors += data;
  });
  const [code, signal] = await once(child, 'close');
  if (code !== 0)
    throw new Error(`the process of the row "${id}" ended with ${signal ?? `code ${code}`}: ${errors.slice(-2000)}`);
  return JSON.parse(output.trim().split('\n').at(-1));
}
