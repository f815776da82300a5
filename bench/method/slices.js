/** Subjects in short slices: all of them alive, one after the other, in reverse order every second time. */

/**
 * Calls `visit(subject, slice)` for every subject of every slice, and returns the samples of each subject in the order of `subjects`. What
 * `visit` returns is merged into the sample; a subject whose visit returns undefined has no sample of that slice.
 */
export async function alternate(subjects, slices, visit) {
  const samples = new Map(subjects.map((subject) => [subject, []]));
  for (let slice = 0; slice < slices; slice++) {
    for (const subject of slice % 2 === 0 ? subjects : subjects.toReversed()) {
      const found = await visit(subject, slice);
      if (found !== undefined) samples.get(subject).push({ slice, ...found });
    }
  }
  return subjects.map((subject) => samples.get(subject));
}

/** The value `key` of every sample, as a sample of its own. */
export const pluck = (samples, key) => samples.map(({ slice, process, [key]: value }) => ({ slice, process, value }));
