/**
 * What the samples of a measurement say: median with the tenth and ninetieth percentile, ratios within a slice, and whether two builds differ.
 *
 * A sample is `{ slice, process, value }`: subjects take turns within a slice, and each slice visits one of the processes of a subject.
 */

/** The value at a share of the samples, interpolated between neighbours; undefined without samples. */
export function quantile(values, share) {
  if (values.length === 0) return undefined;
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at - Math.floor(at));
}

export const median = (values) => quantile(values, 0.5);

/** @returns {{ median: number, p10: number, p90: number, count: number } | undefined} */
export function summarize(values) {
  const found = values.filter((value) => Number.isFinite(value));
  if (found.length === 0) return undefined;
  return { median: median(found), p10: quantile(found, 0.1), p90: quantile(found, 0.9), count: found.length };
}

/** The ratio to a reference, slice by slice: a slow moment of the machine affects both sides of a slice. */
export function summarizeRatio(samples, references) {
  const bySlice = new Map(references.map(({ slice, value }) => [slice, value]));
  return summarize(samples.flatMap(({ slice, value }) => (bySlice.has(slice) ? [value / bySlice.get(slice)] : [])));
}

/** Two-sided critical values of Student's t for a confidence of 99 %, by degrees of freedom from 1. */
const T_99 = [
  63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.25, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878,
  2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.75,
];
const criticalT = (degrees) => T_99[Math.max(1, Math.min(T_99.length, Math.floor(degrees))) - 1];

/** A difference below this is not worth a word, even when it is certain. */
const LEAST_DIFFERENCE = 0.03;
/** An interval that reaches further than this from 1 cannot say that two builds are equal. */
const WIDEST_EQUAL = 0.15;

/** `{ low, ratio, high }`: the mean of the logarithms with its confidence interval, as factors. */
function intervalOf(mean, error, degrees) {
  const reach = criticalT(degrees) * error;
  return { ratio: Math.exp(mean), low: Math.exp(mean - reach), high: Math.exp(mean + reach) };
}

const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function varianceOf(values) {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}

/** The logarithm of the median of every process: samples of one process are not independent, because each settles in a compiler state of its own. */
function logByProcess(samples) {
  const byProcess = groupByProcess(samples);
  return [...byProcess.values()].map((own) => Math.log(median(own.map(({ value }) => value))));
}

function groupByProcess(samples) {
  const groups = new Map();
  for (const sample of samples) {
    if (!groups.has(sample.process)) groups.set(sample.process, []);
    groups.get(sample.process).push(sample);
  }
  return groups;
}

/** After over before, when each process runs one of two builds (Welch's interval over processes). */
export function compareProcesses(before, after) {
  const [old, current] = [logByProcess(before), logByProcess(after)];
  if (Math.min(old.length, current.length) < 3) throw new Error('a comparison needs three processes of each build');
  const [a, b] = [varianceOf(old) / old.length, varianceOf(current) / current.length];
  const degrees = a + b === 0 ? Infinity : (a + b) ** 2 / (a ** 2 / (old.length - 1) + b ** 2 / (current.length - 1));
  return judge(intervalOf(meanOf(current) - meanOf(old), Math.sqrt(a + b), degrees));
}

/** The same when each process runs both builds: `ratios` has one median of after over before per process. */
export function comparePaired(ratios) {
  if (ratios.length < 3) throw new Error('a comparison needs three processes');
  const logs = ratios.map(Math.log);
  return judge(intervalOf(meanOf(logs), Math.sqrt(varianceOf(logs) / logs.length), logs.length - 1));
}

/**
 * `slower` and `faster` need an interval of 99 % beside 1 and a difference of 3 %; `equal` an interval that ends within 15 % of 1. What is
 * neither is `unclear`: the samples do not say.
 */
function judge({ ratio, low, high }) {
  const isBeside = low > 1 || high < 1;
  if (isBeside && Math.max(ratio, 1 / ratio) >= 1 + LEAST_DIFFERENCE)
    return { ratio, low, high, verdict: ratio > 1 ? 'slower' : 'faster' };
  const isNarrow = high <= 1 + WIDEST_EQUAL && low >= 1 / (1 + WIDEST_EQUAL);
  return { ratio, low, high, verdict: isNarrow ? 'equal' : 'unclear' };
}

/** `12.3 [11.9-13.0]` */
export function format(summary) {
  if (summary === undefined) return '–';
  const { median: middle, p10, p90, count } = summary;
  return count > 1 ? `${formatNumber(middle)} [${formatNumber(p10)}-${formatNumber(p90)}]` : formatNumber(middle);
}

export function formatNumber(value) {
  if (value === undefined || Number.isNaN(value)) return '–';
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}

/** A table of Markdown. */
export function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n');
}
