/** Whether measured values are within their limits. A limit is a recorded value and the tolerance of its kind. */

/**
 * How far a value may be above its record: `share` of the record, and `slack` beside it. In the comments is how much values differed between 12 runs,
 * on an idle machine and on one with 30 other processes: medians are recorded, so that noise reaches up to two thirds of a tolerance.
 */
export const KINDS = {
  // 0.5 %: a read of the upstream's socket has one chunk or two.
  objects: { share: 0.015 },
  // 0.03 %. One closure more for each stream is 0.8 %.
  closures: { share: 0.005 },
  // 0.05 %.
  arrays: { share: 0.01 },
  // 0.8 %: some texts are put together when they are first read.
  strings: { share: 0.015 },
  // 7 %: tables of V8 grow in steps.
  heap: { share: 0.06 },
  // 1.5 %: the ledger commits by the clock, so that windows have different numbers of commits.
  'bytes, unoptimized': { share: 0.03 },
  // 3 %: a function is compiled sooner or later.
  'bytes, optimized': { share: 0.06 },
  // None. One more for each request is 50 %.
  sends: { share: 0.01 },
  // 3 %: wake-ups of threads are merged or not.
  'reads and writes': { share: 0.05 },
  // 3 %: the ledger commits by the clock.
  'ledger files': { share: 0.06 },
  // 0.05 calls: files and connections that are opened and closed by the clock.
  'other calls': { share: 0, slack: 0.4 },
  // None. A file more is too much for short programs; the gateway may gain four.
  files: { share: 0.01 },
  // None, but every change of the code moves it.
  'bytes of files': { share: 0.02 },
  // 10 % where text is parsed into objects, 20 % for small requests and short streams.
  ratio: { share: 0.15 },
};

/** A value so far below its record is a reason to lower the record. */
const CLEARLY_BELOW = 0.1;

export function findLimit(kind, recorded) {
  const { share, slack = 0 } = KINDS[kind];
  return recorded * (1 + share) + slack;
}

export const isAbove = (kind, recorded, value) => value > findLimit(kind, recorded);

/**
 * The verdict on the measurements of one check, of which the second is made only when the first is above the limit.
 *
 * @param {string} kind of KINDS
 * @param {number | undefined} recorded
 * @param {readonly number[]} values one or two
 * @returns {{ state: 'ok' | 'FAILED', note?: string, isLow?: boolean }}
 */
export function judge(kind, recorded, values) {
  if (recorded === undefined) return { state: 'FAILED', note: 'has no recorded value' };
  const [first, second] = values;
  if (!isAbove(kind, recorded, first)) {
    const { slack = 0 } = KINDS[kind];
    return { state: 'ok', isLow: first < recorded * (1 - CLEARLY_BELOW) - slack };
  }
  if (second === undefined) return { state: 'FAILED', note: 'measured once' };
  if (!isAbove(kind, recorded, second))
    return { state: 'ok', note: `above the limit in one of two measurements; the other is ${formatValue(second)}` };
  const more = (Math.min(first, second) / recorded - 1) * 100;
  const byHow = Number.isFinite(more) ? ` (${more.toFixed(1)} %)` : '';
  return {
    state: 'FAILED',
    note: `above its record of ${formatValue(recorded)}${byHow}; measured again: ${formatValue(second)}`,
  };
}

export const formatValue = (value) =>
  Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : String(Number(value.toFixed(2)));
