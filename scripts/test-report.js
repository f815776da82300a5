/**
 * Reads a report of the tests for `.ci/run`: `count FILE` prints how many passed and failed, `failures FILE` what failed and why.
 */
import { existsSync, readFileSync } from 'node:fs';

const [verb, file] = process.argv.slice(2);
const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { testResults: [] };

if (verb === 'count') {
  // A file that cannot be loaded fails without a test.
  console.log(report.numPassedTests, report.numFailedTests + (report.numFailedTests === 0 ? report.numFailedTestSuites : 0));
} else {
  for (const suite of report.testResults) printFailures(suite);
}

function printFailures(suite) {
  const failed = suite.assertionResults.filter((test) => test.status === 'failed');
  if (suite.status !== 'failed' && failed.length === 0) return;
  console.log(`FAILED ${suite.name}${suite.message ? `: ${head(suite.message)}` : ''}`);
  for (const test of failed) console.log(`  ${test.fullName}\n    ${head(test.failureMessages.join('\n'))}`);
}

/** The first lines of a message; a diff may be long. */
function head(message) {
  return message.split('\n').slice(0, 40).join('\n    ').slice(0, 4_000);
}
