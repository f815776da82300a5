// Stands in for `fast-check`: few runs, always the same, and no search for the smallest failure.
import fc from 'fast-check';

const RUNS = 40;

const assert = (property, { numRuns = 100, ...rest } = {}) =>
  fc.assert(property, { ...rest, numRuns: Math.min(numRuns, numRuns < 100 ? 3 : RUNS), seed: 1, endOnFailure: true });

export default { ...fc, assert };
