/** Whether measured values are within their limits. A limit is a recorded value and the tolerance of its kind. */

/**
 * How far a value may be above its record: `share` of the record, and `slack` beside it. Tolerances are about twice the spread between runs on
 * an idle and on a busy machine, which is in the comments, so that they show small changes and no noise.
 */
export const KINDS = {
  // 0.4 %: a read of the upstream's socket holds one chunk or two.
  objects: { share: 0.015 },
  // None: one closure more for each stream is 0.8 %.
  closures: { share: 0.005 },
  // 0.02 %.
  arrays: { share: 0.01 },
  // 0.5 %: some texts are built when they are first read.
  strings: { share: 0.015 },
  // 4 %: tables of V8 grow in steps.
  heap: { share: 0.06 },
  // 1.5 %: the ledger commits by the clock, so that windows have different numbers of commits.
  'bytes, unoptimized': { share: 0.03 },
  // 3 %: a function is compiled sooner or later.
  'bytes, optimized': { share: 0.06 },
  // None: one more for each request is 50 %.
  sends: { share: 0.01 },
  // 2 %: wake-ups of threads are merged or not.
  'reads and writes': { share: 0.05 },
  // 2 %: the ledger commits by the clock.
  'ledger files': { share: 0.06 },
  // 0.1 calls: files and connections that are opened and closed by the clock.
  'other calls': { share: 0, slack: 0.4 },
  // None: any file more is one too many for short programs; the gateway may gain some.
  files: { share: 0.01 },
  // None, but every change of the code moves it.
  'bytes of files': { share: 0.02 },
  // 8 %: the rows of conversions; 3 % the others.
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
