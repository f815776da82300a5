/** The property tests with a seed that no run used before. A failure prints its seed: `SLUICE_SEED=<seed> npx vitest run FILE` repeats it. */
import { runTestFiles } from './test-files.js';

runTestFiles({ having: "from 'fast-check'", env: { SLUICE_SEED: 'random' }, kind: 'with property tests' });
