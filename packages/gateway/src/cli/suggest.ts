/** The known word nearest to a mistyped one, if it is near enough to be what was meant. */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  const typed = word.toLowerCase().slice(0, 64); // the cost is quadratic, and no known word is longer
  let nearest: string | undefined;
  let least = Math.max(1, Math.floor(typed.length / 3)) + 1;
  for (const candidate of known) {
    const distance = candidate.startsWith(typed) && typed.length > 2 ? 1 : editDistance(typed, candidate.toLowerCase());
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/** "; did you mean …?", or nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const nearest = suggest(word, known);
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`;
}

/** Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? (beforeLast[j - 2] ?? 0) + 1 : replaced;
      row.push(Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced, swapped));
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
