/** Compares the times of a function for two classes of inputs by Welch's t: a proof that its time shows nothing of the class. */

const TRIES = 10_000;
const MAX_T = 4.5;
/** A measurement of a shared machine may be disturbed; a leak shows every time. */
const ROUNDS = 5;

/**
 * Runs comparisons `{ name, first, second, run }`: `first` and `second` make inputs as text, `run` is measured. Prints the figures;
 * false when a class can be told from another.
 */
export function compareTimes(comparisons) {
  let worst = 0;
  let ns = 0;
  for (const comparison of comparisons) {
    measure(comparison);
    const rounds = Array.from({ length: ROUNDS }, () => measure(comparison));
    const median = rounds.map(({ t }) => Math.abs(t)).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)];
    ns = rounds[0].ns;
    console.log(`${comparison.name}: |t| ${median.toFixed(2)}`);
    worst = Math.max(worst, median);
  }
  console.log(`|t| ${worst.toFixed(2)} of at most ${MAX_T}, ${(ns / 1000).toFixed(1)} us a check`);
  return worst < MAX_T;
}

/** Inputs are made before they are measured, and measured in random order, so that both classes meet the same disturbances. */
function measure({ first, second, run }) {
  const samples = [[], []];
  // In turns, so that neither class has the older memory.
  const queue = Array.from({ length: 2 * TRIES }, (_, i) => ({ at: i % 2, input: flatten(i % 2 === 0 ? first() : second()) }));
  for (let i = queue.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [queue[i], queue[j]] = [queue[j], queue[i]];
  }
  for (const { at, input } of queue) {
    const begun = process.hrtime.bigint();
    run(input);
    samples[at].push(Number(process.hrtime.bigint() - begun));
  }
  return computeT(...samples.map(dropSlowest));
}

/** As text arrives from a socket: one piece of memory, not a rope of the pieces it was made of. */
const flatten = (text) => Buffer.from(text).toString('latin1');

/** Collections and interrupts are no property of an input. */
const dropSlowest = (values) => values.toSorted((a, b) => a - b).slice(0, Math.floor(values.length * 0.9));

function computeT(a, b) {
  const describe = (values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return { mean, error: values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1) / values.length };
  };
  const [one, other] = [describe(a), describe(b)];
  return { t: (one.mean - other.mean) / Math.sqrt(one.error + other.error), ns: one.mean };
}
