/** The shortest list that still fails and that leaving out any one run of it no longer makes shorter: delta debugging. */
export function shortest<T>(list: readonly T[], fails: (list: readonly T[]) => boolean): readonly T[] {
  let best = list;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.length; ) {
      const shorter = [...best.slice(0, from), ...best.slice(from + size)];
      if (shorter.length < best.length && fails(shorter)) best = shorter;
      else from += size;
    }
  }
  return best;
}
