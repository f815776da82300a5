/** The difference of two texts by lines, in bounded time. */

/** A line, and whether only one of the texts has it. */
export interface DiffLine {
  readonly is: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** The difference, and whether it may be larger than necessary. */
export interface Diff {
  readonly lines: readonly DiffLine[];
  /** A limit was reached: what is left of both texts is shown as removed and added. */
  readonly isCut: boolean;
}

/** How much is compared. The time is at most the product of both. */
export interface DiffLimits {
  /** Lines of each text; the rest is left out. */
  readonly lines: number;
  /** Lines that differ. */
  readonly changes: number;
}

/** Takes some 100 ms at most. */
const DIFF_LIMITS: DiffLimits = { lines: 20_000, changes: 1000 };

/** Compares two texts. */
export function diffLines(before: string, after: string, limits: DiffLimits = DIFF_LIMITS): Diff {
  const a = splitLines(before, limits.lines);
  const b = splitLines(after, limits.lines);
  const start = countCommon(a.lines, b.lines, (lines, index) => lines[index]);
  const left = { a: a.lines.slice(start), b: b.lines.slice(start) };
  const end = countCommon(left.a, left.b, (lines, index) => lines[lines.length - 1 - index]);
  const middle = diffMiddle(left.a.slice(0, left.a.length - end), left.b.slice(0, left.b.length - end), limits.changes);
  const lines = [...a.lines.slice(0, start).map(keep), ...middle.lines, ...left.a.slice(left.a.length - end).map(keep)];
  return { lines, isCut: middle.isCut || a.isCut || b.isCut };
}

const keep = (text: string): DiffLine => ({ is: 'same', text });

const remove = (text: string): DiffLine => ({ is: 'removed', text });

const add = (text: string): DiffLine => ({ is: 'added', text });

function splitLines(text: string, max: number): { lines: string[]; isCut: boolean } {
  if (text === '') return { lines: [], isCut: false };
  const lines = text.split('\n', max + 1);
  return { lines: lines.slice(0, max), isCut: lines.length > max };
}

type Pick = (lines: readonly string[], index: number) => string | undefined;

function countCommon(a: readonly string[], b: readonly string[], pick: Pick): number {
  const max = Math.min(a.length, b.length);
  let count = 0;
  while (count < max && pick(a, count) === pick(b, count)) count++;
  return count;
}

/**
 * Myers' greedy search: `reach[k]` is how far into `a` the best path on the diagonal `k` gets with so many changes. Every round is
 * kept, so that the path can be followed back.
 */
function diffMiddle(a: readonly string[], b: readonly string[], maxChanges: number): Diff {
  const rounds: Int32Array[] = [];
  const limit = Math.min(maxChanges, a.length + b.length);
  let reach = new Int32Array(3);
  for (let changes = 0; changes <= limit; changes++) {
    const next = new Int32Array(2 * changes + 3);
    for (let k = -changes; k <= changes; k += 2) {
      const x = advance(a, b, k, findStart(reach, changes, k));
      next[k + changes + 1] = x;
      if (x >= a.length && x - k >= b.length) {
        rounds.push(next);
        return { lines: followBack(a, b, rounds), isCut: false };
      }
    }
    rounds.push(next);
    reach = next;
  }
  return { lines: [...a.map(remove), ...b.map(add)], isCut: true };
}

/** Where the diagonal `k` begins after one more change: by a removal from its left, or an addition from its right. */
function findStart(reach: Int32Array, changes: number, k: number): number {
  if (changes === 0) return 0;
  const at = (diagonal: number): number => reach[diagonal + changes] ?? 0;
  return isAddition(reach, changes, k) ? at(k + 1) : at(k - 1) + 1;
}

function isAddition(reach: Int32Array, changes: number, k: number): boolean {
  const at = (diagonal: number): number => reach[diagonal + changes] ?? 0;
  return k === -changes || (k !== changes && at(k - 1) < at(k + 1));
}

function advance(a: readonly string[], b: readonly string[], k: number, start: number): number {
  let x = start;
  while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
  return x;
}

function followBack(a: readonly string[], b: readonly string[], rounds: readonly Int32Array[]): DiffLine[] {
  const lines: DiffLine[] = [];
  let x = a.length;
  let y = b.length;
  for (let changes = rounds.length - 1; changes > 0; changes--) {
    const reach = rounds[changes - 1] ?? new Int32Array(3);
    const k = x - y;
    const isAdded = isAddition(reach, changes, k);
    const start = findStart(reach, changes, k);
    for (; x > start; x--, y--) lines.push(keep(a[x - 1] ?? ''));
    lines.push(isAdded ? add(b[y - 1] ?? '') : remove(a[x - 1] ?? ''));
    if (isAdded) y--;
    else x--;
  }
  for (; x > 0; x--) lines.push(keep(a[x - 1] ?? ''));
  return lines.reverse();
}

/** Lines that are the same and far from a change are left out. */
export interface DiffGap {
  readonly is: 'gap';
  readonly count: number;
}

/** The lines near changes, with the number of those in between. */
export function foldDiff(lines: readonly DiffLine[], around = 3): (DiffLine | DiffGap)[] {
  const isNear = new Uint8Array(lines.length);
  for (const [index, { is }] of lines.entries())
    if (is !== 'same') isNear.fill(1, Math.max(0, index - around), index + around + 1);
  const folded: (DiffLine | DiffGap)[] = [];
  let hidden = 0;
  for (const [index, line] of lines.entries()) {
    if (isNear[index]) {
      if (hidden > 0) folded.push({ is: 'gap', count: hidden });
      hidden = 0;
      folded.push(line);
    } else hidden++;
  }
  if (hidden > 0) folded.push({ is: 'gap', count: hidden });
  return folded;
}
