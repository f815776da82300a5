/** CPU time of the whole process (main thread, GC and JIT threads) in nanoseconds: the machine may be shared, so wall time decides nothing. */
export function cpuTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

/** The value below which a quarter of the samples lie: noise only ever adds time. */
export function lowerQuartile(samples) {
  return samples.toSorted((a, b) => a - b)[Math.floor((samples.length - 1) / 4)];
}

/** Makes a rope of string pieces flat, as every consumer (JSON.parse, a write) would. */
export function flat(text) {
  if (text.length > 0) text.charCodeAt(text.length >> 1);
  return text;
}

/**
 * Runs `run` again and again: first to warm up (the JIT needs up to a second of CPU time), then measured, in batches long enough for the
 * clock. A run that alone is longer than both times is measured once, cold.
 *
 * @param {() => unknown} run
 * @param {{ warmMs?: number, cpuMs?: number, batchMs?: number }} [options] CPU milliseconds
 */
export async function measure(run, { warmMs = 500, cpuMs = 400, batchMs = 15 } = {}) {
  const first = await timed(run, 1);
  if (first.cpuNs > (warmMs + cpuMs) * 1e6) return { ...first, samples: 1 };
  let spent = first.cpuNs;
  let runs = 1;
  while (spent < warmMs * 1e6) {
    const { cpuNs } = await timed(run, runs);
    spent += cpuNs * runs;
    if (cpuNs * runs < batchMs * 1e6) runs *= 2;
  }
  const batches = [];
  while (spent < (warmMs + cpuMs) * 1e6 || batches.length < 3) {
    const batch = await timed(run, runs);
    spent += batch.cpuNs * runs;
    batches.push(batch);
  }
  return {
    cpuNs: lowerQuartile(batches.map((batch) => batch.cpuNs)),
    wallNs: lowerQuartile(batches.map((batch) => batch.wallNs)),
    samples: batches.length,
  };
}

async function timed(run, runs) {
  const cpuStart = cpuTime();
  const wallStart = performance.now();
  for (let i = 0; i < runs; i++) await run();
  return { cpuNs: (cpuTime() - cpuStart) / runs, wallNs: ((performance.now() - wallStart) * 1e6) / runs };
}
