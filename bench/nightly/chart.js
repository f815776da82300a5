/** The tests of the Helm chart, with a Helm that is built here if the system has none. */
import { requireHelm } from '../../scripts/chart/helm.js';
import { runTestFiles } from './test-files.js';

requireHelm();
runTestFiles({ having: "needs('helm')", env: { SLUICE_REQUIRE: 'helm' }, kind: 'with Helm' });
