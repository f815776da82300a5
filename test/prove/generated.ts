import fc from 'fast-check';
import type { Failure } from '../../packages/lab/src/prove/failure.ts';
import { openReason } from './open.ts';
import { SEED } from './tally.ts';

/** How long the search for a smaller input may take, in milliseconds. */
const SHRINK_TIME = 20_000;

/** What came of generated inputs: the first failure of each kind, and all that were like one of them. */
export interface Outcome {
  runs: number;
  failures: Failure[];
  repeats: Failure[];
}

/** Runs a check over generated inputs. The first failure of each kind is made as small as it gets; the rest of its kind is only counted. */
export function overGenerated<T>(
  arbitrary: fc.Arbitrary<T>,
  runs: number,
  check: (input: T, isPassed: (id: string) => boolean) => Failure | undefined,
): Outcome {
  const failures = new Map<string, Failure>();
  const repeats: Failure[] = [];
  const isKnown = (id: string): boolean => failures.has(id);
  for (let left = runs; left > 0; ) {
    let found: Failure | undefined;
    const first = fc.check(
      fc.property(arbitrary, (input) => {
        found = check(input, isKnown);
        if (!found || !isKnown(found.id)) return !found;
        repeats.push(found);
        found = undefined;
        return true;
      }),
      { numRuns: left, seed: SEED + runs - left, endOnFailure: true },
    );
    left -= Math.max(1, first.numRuns);
    if (!found) break;
    failures.set(found.id, openReason(found) === undefined ? (smallest(arbitrary, check, found, first.seed) ?? found) : found);
  }
  return { runs, failures: [...failures.values()], repeats };
}

/** The same failure with a smaller input. */
function smallest<T>(
  arbitrary: fc.Arbitrary<T>,
  check: (input: T, isPassed: (id: string) => boolean) => Failure | undefined,
  { id }: Failure,
  seed: number,
): Failure | undefined {
  let smallestFound: Failure | undefined;
  fc.check(
    fc.property(arbitrary, (input) => {
      const again = check(input, (other) => other !== id);
      if (again) smallestFound = { ...again, message: `${again.message} (input ${JSON.stringify(input)})` };
      return !again;
    }),
    { numRuns: 2000, seed, interruptAfterTimeLimit: SHRINK_TIME },
  );
  return smallestFound;
}
