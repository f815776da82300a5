/** How far the medians of two runs differ, row by row: what a figure of one run is worth. */
import { describeNoise } from './machine.js';
import { formatNumber, quantile, table } from './statistics.js';

const KINDS = ['cpu', 'clock', 'memory'];
const percent = (factor) => `${((factor - 1) * 100).toFixed(1)} %`;
/** How far two values are apart, always at least 1. */
const apart = (a, b) => Math.max(a, b) / Math.min(a, b);

/** `[{ id, kind, subject, value, ratio }]`: how far medians, and ratios to the reference, are apart. */
function findDifferences(one, other) {
  return one.rows.flatMap((row) => {
    const same = other.rows.find(({ id }) => id === row.id);
    return row.results.flatMap((result) => {
      const pair = same?.results.find(({ subject }) => subject === result.subject);
      if (!result.value?.median || !pair?.value?.median) return [];
      const ratio =
        result.ratio && pair.ratio && result.subject !== row.reference
          ? apart(result.ratio.median, pair.ratio.median)
          : undefined;
      return [
        {
          id: row.id,
          kind: row.kind,
          subject: result.subject,
          medians: [result.value.median, pair.value.median],
          value: apart(result.value.median, pair.value.median),
          ratio,
        },
      ];
    });
  });
}

/** One line a kind: how far half of the rows, nine of ten and the worst are apart, and how many are within 5 and 10 %. */
function summarizeKind(found, kind, key) {
  const values = found.filter((one) => one.kind === kind).flatMap((one) => one[key] ?? []);
  if (values.length === 0) return [];
  const within = (most) => `${values.filter((value) => value <= most).length}`;
  const at = (share) => percent(quantile(values, share));
  const what = key === 'value' ? 'medians' : 'ratios to the reference';
  return [[`${kind}, ${what}`, String(values.length), at(0.5), at(0.9), at(1), within(1.05), within(1.1)]];
}

export function describeDifferences(one, other) {
  const found = findDifferences(one, other);
  const runs = [one, other].map(
    ({ begun, seconds, commit, noise }) => `${begun}, commit ${commit}, ${seconds} s. ${describeNoise(noise)}`,
  );
  const summary = KINDS.flatMap((kind) => ['value', 'ratio'].flatMap((key) => summarizeKind(found, kind, key)));
  const rows = found
    .toSorted((a, b) => b.value - a.value)
    .map(({ id, subject, medians, value, ratio }) => [
      `${id}, ${subject}`,
      ...medians.map(formatNumber),
      percent(value),
      ratio ? percent(ratio) : '',
    ]);
  return [
    ...runs,
    table(['', 'figures', 'half of them within', 'nine of ten', 'all', 'within 5 %', 'within 10 %'], summary),
    table(['', 'first', 'second', 'medians differ by', 'ratios differ by'], rows),
  ].join('\n\n');
}
