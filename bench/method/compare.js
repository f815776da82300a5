/**
 * Looks at rows of two builds until each has a verdict. A row that is not equal at the first look is looked at again with twice as many fresh
 * processes: of all rows of two equal builds, one of a hundred is beside 1 by chance, but not twice in a row.
 */
import { format, formatNumber, summarize, table } from './statistics.js';

const LOOKS = 3;

/**
 * `look(rows, factor)` returns, in the order of `rows`, `{ verdict, ratio, low, high, before, after, wrong }`, or `{ note }` for a row that a build
 * cannot do. `factor`: how many times the usual number of processes.
 */
export async function lookUntilSure(rows, look) {
  const found = new Map();
  let open = rows;
  for (let i = 0; i < LOOKS && open.length > 0; i++) {
    const results = await look(open, i === 0 ? 1 : 2);
    for (const [at, row] of open.entries()) found.set(row, [...(found.get(row) ?? []), results[at]]);
    open = open.filter((row) => decide(found.get(row)) === undefined);
  }
  return rows.map((row) => {
    const looks = found.get(row);
    return { ...row, ...looks.at(-1), looks: looks.length, verdict: decide(looks) ?? 'unclear' };
  });
}

/** The verdict of all looks so far; undefined when another one is needed. */
export function decide(looks) {
  const verdicts = looks.map(({ verdict, note }) => (note === undefined ? verdict : 'not measured'));
  const [last] = verdicts.slice(-1);
  if (last === 'equal' || last === 'not measured') return last;
  return last !== 'unclear' && verdicts.at(-2) === last ? last : undefined;
}

/** Every row with both builds and the verdict. */
export function describeComparison(rows) {
  const lines = rows.map(({ id, unit, before, after, ratio, low, high, verdict, looks, note }) => {
    if (note !== undefined) return [id, '–', '–', '–', note];
    const figure = (samples) => format(summarize(samples.map(({ value }) => value)));
    return [
      `${id}, ${unit}`,
      figure(before),
      figure(after),
      `${formatNumber(ratio)} [${formatNumber(low)}-${formatNumber(high)}]`,
      looks > 1 ? `${verdict} (${looks} looks)` : verdict,
    ];
  });
  return table(['', 'before', 'after', 'after / before [99 %]', ''], lines);
}
