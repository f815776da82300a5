/**
 * fast-check with one seed for every run, so that a commit that passes once passes again. The nightly run uses a new seed each time
 * (SLUICE_SEED=random) and prints it; SLUICE_SEED=<number> repeats that run.
 */
// By its path: the configuration of vitest maps the name `fast-check` to this file.
import fc from '../node_modules/fast-check/lib/fast-check.js';

const wanted = process.env['SLUICE_SEED'] ?? '20261116';

fc.configureGlobal(wanted === 'random' ? {} : { seed: Number(wanted) });

export * from '../node_modules/fast-check/lib/fast-check.js';
export default fc;
