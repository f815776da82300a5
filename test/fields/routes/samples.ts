import { matcher, weightOf } from '../../../scripts/fields/pattern.js';
import type { Samples } from '../../../scripts/fields/sample.js';

/** Values by pattern of the path; the pattern that says most counts. */
export function samplesOf(table: Readonly<Record<string, readonly unknown[]>>): Samples {
  const rows = Object.entries(table)
    .toSorted(([a], [b]) => weightOf(b) - weightOf(a))
    .map(([pattern, values]) => ({ isMeant: matcher(pattern), values }));
  const known = new Map<string, readonly unknown[] | undefined>();
  return (path) => {
    if (!known.has(path)) known.set(path, rows.find(({ isMeant }) => isMeant(path))?.values);
    return known.get(path);
  };
}
