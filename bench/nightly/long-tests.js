/** The tests that have a long form, in that form. */
import { runTestFiles } from './test-files.js';

runTestFiles({ having: "/night.ts'", env: { SLUICE_NIGHT: '1' }, kind: 'in their long form' });
