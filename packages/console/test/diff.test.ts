import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DiffLine, diffLines, foldDiff } from '../src/lib/diff.ts';

const write = (lines: readonly DiffLine[]): string =>
  lines.map(({ is, text }) => `${{ same: ' ', removed: '-', added: '+' }[is]}${text}`).join('|');

test.each([
  ['', '', ''],
  ['a', 'a', ' a'],
  ['', 'a\nb', '+a|+b'],
  ['a\nb', '', '-a|-b'],
  ['a\nb\nc', 'a\nx\nc', ' a|-b|+x| c'],
  ['a\nb\nc\nd', 'b\nc\nd\ne', '-a| b| c| d|+e'],
  ['a\na\na', 'a\na', ' a| a|-a'],
])('%j to %j', (before, after, expected) => expect(write(diffLines(before, after).lines)).toBe(expected));

const texts = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 14 }).map((lines) => lines.join('\n'));

/** The length of the longest common subsequence, by the textbook. */
function countCommon(a: readonly string[], b: readonly string[]): number {
  let row = new Array<number>(b.length + 1).fill(0);
  for (const left of a) {
    const next = [0];
    for (const [j, right] of b.entries()) next.push(left === right ? (row[j] ?? 0) + 1 : Math.max(row[j + 1] ?? 0, next[j] ?? 0));
    row = next;
  }
  return row[b.length] ?? 0;
}

test('both texts can be read from a difference, which is the smallest one', () =>
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const { lines, isCut } = diffLines(before, after);
      const pick = (other: DiffLine['is']): string =>
        lines
          .filter(({ is }) => is !== other)
          .map(({ text }) => text)
          .join('\n');
      expect([pick('added'), pick('removed'), isCut]).toEqual([before, after, false]);
      const [a, b] = [before, after].map((text) => (text === '' ? [] : text.split('\n')));
      expect(lines.filter(({ is }) => is === 'same').length).toBe(countCommon(a ?? [], b ?? []));
    }),
    { numRuns: 500 },
  ));

describe('limits', () => {
  const count = (length: number, prefix: string): string => Array.from({ length }, (_, i) => prefix + i).join('\n');

  test('texts that differ too much are shown as removed and added', () => {
    const { lines, isCut } = diffLines(`same\n${count(50, 'a')}`, `same\n${count(50, 'b')}`, { lines: 1000, changes: 20 });
    expect([isCut, lines.length, lines[0]?.is, lines[1]?.is, lines.at(-1)?.is]).toEqual([true, 101, 'same', 'removed', 'added']);
  });

  test('lines beyond the limit are omitted', () => {
    const { lines, isCut } = diffLines(count(200, 'a'), count(200, 'a'), { lines: 100, changes: 10 });
    expect([isCut, lines.length]).toEqual([true, 100]);
  });

  test('a text of a million characters without line ends is one line', () =>
    expect(diffLines('x'.repeat(1e6), 'y'.repeat(1e6)).lines).toHaveLength(2));
});

test('lines far from a change become a gap', () => {
  const before = Array.from({ length: 20 }, (_, i) => `l${i}`);
  const folded = foldDiff(diffLines(before.join('\n'), before.with(10, 'x').join('\n')).lines, 2);
  expect(folded.map((line) => (line.is === 'gap' ? line.count : line.is[0]))).toEqual([8, 's', 's', 'r', 'a', 's', 's', 7]);
});
