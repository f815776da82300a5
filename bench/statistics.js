/** Median and quartiles of the rounds of a benchmark. */

/** The value at a share of the sorted samples, interpolated between neighbours. */
function quantile(sorted, share) {
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at - Math.floor(at));
}

/**
 * @param {readonly (number | undefined)[]} values One per round; undefined where nothing was measured.
 * @returns {{ median: number, q1: number, q3: number, min: number, max: number, rounds: number } | undefined}
 */
export function summarize(values) {
  const sorted = values.filter((value) => Number.isFinite(value)).toSorted((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  return {
    median: quantile(sorted, 0.5),
    q1: quantile(sorted, 0.25),
    q3: quantile(sorted, 0.75),
    min: sorted[0],
    max: sorted[sorted.length - 1],
    rounds: sorted.length,
  };
}

/** The ratio of two subjects, round by round: a slow moment of the machine affects both sides of a round. `above`: rounds above 1. */
export function summarizeRatio(values, references) {
  const ratios = values.map((value, round) => value / references[round]);
  const summary = summarize(ratios);
  return summary && { ...summary, above: ratios.filter((ratio) => ratio > 1).length };
}

/** Rounds that `compare` needs to tell a difference from noise. */
export const LEAST_COMPARED = 7;

/**
 * Whether a ratio of after to before is a difference: by a sign test, so that two equal builds differ in at most 2 % of all cases. The
 * interquartile range alone is beside 1 in 18 % of all comparisons of equal builds over 9 rounds.
 */
export function compare({ above, rounds }) {
  if (rounds < LEAST_COMPARED) return 'too few rounds';
  if (chanceOf(Math.max(above, rounds - above), rounds) > 0.02) return 'equal';
  return above * 2 > rounds ? 'slower' : 'faster';
}

/** The chance that at least `most` of `rounds` fair coins show the same side. */
function chanceOf(most, rounds) {
  let ways = 1;
  let sum = 1;
  for (let i = 1; i <= rounds - most; i++) {
    ways = (ways * (rounds - i + 1)) / i;
    sum += ways;
  }
  return Math.min(1, (2 * sum) / 2 ** rounds);
}

/** `1.02 [0.98-1.07]`; the range is left out after a single round. */
export function format(summary) {
  if (summary === undefined) return '–';
  const { median, q1, q3, rounds } = summary;
  return rounds > 1 ? `${formatNumber(median)} [${formatNumber(q1)}-${formatNumber(q3)}]` : formatNumber(median);
}

export const formatNumber = (value) => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3));

/** Rounds visit the subjects forwards and backwards in turn, so that a steady drift of the machine cancels out. */
export const orderOf = (subjects, round) => (round % 2 === 0 ? subjects : subjects.toReversed());
