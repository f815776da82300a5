/** Axes: from values to pixels, and which values are marked. */

/** The smallest of 1, 2, 2.5 or 5 times a power of ten that is at least `value`. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 2.5, 5, 10].find((one) => one * power >= value * (1 - 1e-9));
  return factor * power;
}

/** From 0 to `most`; `count`: about how many steps the axis has. */
export function linearScale(most, [from, to], count = 3) {
  const top = most > 0 ? most : 1;
  const step = roundUp(top / count);
  const ticks = [];
  for (let i = 0; i * step <= top * (1 + 1e-9); i++) ticks.push(Number((i * step).toPrecision(12)));
  const place = (value) => from + (Math.max(0, Math.min(value, top)) / top) * (to - from);
  return { place, ticks, top, isLog: false };
}

/** Values below `least` are placed at it: differences may be 0 or less, which has no logarithm. */
export function logScale([least, most], [from, to]) {
  if (!(least > 0 && most > least)) throw new Error(`a log axis cannot reach from ${least} to ${most}`);
  const length = Math.log(most / least);
  const place = (value) => from + (Math.log(Math.max(least, Math.min(value, most)) / least) / length) * (to - from);
  return { place, ticks: powersOfTen(least, most), top: most, isLog: true };
}

/** Powers of ten inside; less than three of them are joined by 2 and 5 times each. */
export function powersOfTen(least, most) {
  const powers = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) powers.push(power);
  const within = (factors) =>
    powers
      .flatMap((power) => factors.map((factor) => Number((factor * 10 ** power).toPrecision(12))))
      .filter((value) => value >= least * (1 - 1e-9) && value <= most * (1 + 1e-9));
  return within([1]).length >= 3 ? within([1]) : within([1, 2, 5]);
}

/** A linear axis hides what is small when values differ by more than this. */
const WIDEST_LINEAR = 12;

/** An axis for curves: from 0, or of logarithms when the values differ much. */
export function chooseScale(values, range) {
  const [positive, most] = [values.filter((value) => value > 0), Math.max(...values)];
  if (positive.length === 0) return linearScale(1, range, 4);
  const least = Math.min(...positive);
  if (most / least <= WIDEST_LINEAR) return linearScale(most * 1.05, range, 4);
  return logScale([least * 0.8, most * 1.25], range);
}

/**
 * Moves labels apart that are closer than `gap`, as little as possible, within `[top, bottom]`; where there is no room for all, the gaps become
 * smaller. Returns the new places in the order of the given.
 */
export function spreadLabels(places, gap, [top, bottom]) {
  const order = places.map((place, index) => ({ place, index })).toSorted((a, b) => a.place - b.place);
  const step = Math.min(gap, (bottom - top) / Math.max(1, order.length - 1));
  // Without the gaps, labels may touch but not change places: those that would share the mean of their places.
  const groups = [];
  for (const [i, { place }] of order.entries()) {
    let group = { sum: place - i * step, count: 1 };
    while (groups.length > 0 && meanOf(groups.at(-1)) >= meanOf(group)) {
      const { sum, count } = groups.pop();
      group = { sum: group.sum + sum, count: group.count + count };
    }
    groups.push(group);
  }
  const last = bottom - (order.length - 1) * step;
  const moved = groups.flatMap((group) => Array(group.count).fill(Math.max(top, Math.min(last, meanOf(group)))));
  const result = [];
  for (const [i, { index }] of order.entries()) result[index] = moved[i] + i * step;
  return result;
}

const meanOf = ({ sum, count }) => sum / count;
