/**
 * The list without every run that can be left out, runs of half the list first: delta debugging. Few of many are found in few tries. From the
 * end to the beginning, because what comes later builds on what came before.
 */
export async function shortest<T>(list: readonly T[], shows: (shorter: readonly T[]) => Promise<boolean>): Promise<readonly T[]> {
  if (list.length > 0 && (await shows([]))) return [];
  let best = list;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let end = best.length; end > 0; end -= size) {
      const shorter = [...best.slice(0, Math.max(end - size, 0)), ...best.slice(end)];
      if (shorter.length > 0 && (await shows(shorter))) best = shorter;
    }
  }
  return best;
}
