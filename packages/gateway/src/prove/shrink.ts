import type { Failure } from './failure.ts';
import { bordersOf } from './splits.ts';

/** How often a smaller list is tried before the smallest so far has to do. */
const TRIES = 3000;

/** The shortest list that still fails and that leaving out any one run of it no longer makes shorter: delta debugging. */
export function shortest<T>(list: readonly T[], fails: (list: readonly T[]) => boolean, tries = TRIES): readonly T[] {
  let best = list;
  let left = tries;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.length && left > 0; left--) {
      const shorter = [...best.slice(0, from), ...best.slice(from + size)];
      if (shorter.length < best.length && fails(shorter)) best = shorter;
      else from += size;
    }
  }
  return best;
}

/** What kind of failure it is: the property, what was done, and which parts differ. */
const kindOf = ({ property, id, message }: Failure): string => `${property} ${id} ${message.split(':')[0]}`;

/** The same failure with as few frames of the body as still show it, each as it was written. */
export function smallest(
  bytes: Uint8Array,
  failure: Failure,
  check: (bytes: Uint8Array) => Failure | undefined,
  tries = TRIES,
): Failure {
  const kind = kindOf(failure);
  let found = failure;
  shortest(
    piecesOf(bytes),
    (pieces) => {
      const again = check(Buffer.concat(pieces));
      if (again === undefined || kindOf(again) !== kind) return false;
      found = again;
      return true;
    },
    tries,
  );
  return found;
}

/** A body frame by frame. What stands before the first one belongs to it. */
function piecesOf(bytes: Uint8Array): Uint8Array[] {
  const borders = bordersOf(bytes).slice(1);
  return [0, ...borders].map((from, at) => bytes.subarray(from, borders[at] ?? bytes.length));
}
