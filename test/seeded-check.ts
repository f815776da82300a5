/**
 * fast-check with one seed for every run, so that a commit that passes once passes again, and with a third of the examples. The nightly run
 * uses a new seed each time (SLUICE_SEED=random), prints it, and tries all examples; SLUICE_SEED=<number> repeats that run.
 */
// By its path: the configuration of vitest maps the name `fast-check` to this file.
import fc from '../node_modules/fast-check/lib/fast-check.js';

const wanted = process.env['SLUICE_SEED'];

const DEFAULT_SEED = 20261116;
const DEFAULT_RUNS = 100;

fc.configureGlobal(wanted === 'random' ? {} : { seed: Number(wanted ?? DEFAULT_SEED) });

const countRuns = (numRuns = DEFAULT_RUNS): number => (wanted === undefined ? Math.ceil(numRuns / 3) : numRuns);

/** Checks a property with as many examples as this run has time for. */
export const assert = ((property, params) =>
  fc.assert(property, { ...params, numRuns: countRuns(params?.numRuns) })) as typeof fc.assert; // of any kind of property

export * from '../node_modules/fast-check/lib/fast-check.js';
export default { ...fc, assert };
