import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { reportOf, summaryOf } from './report.ts';
import { CASES_FOLDER, forget, readRows } from './tally.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Before a full run: nothing of the last one. After it: the page. */
export function setup(): () => void {
  forget();
  return () => {
    const rows = readRows();
    const { version } = JSON.parse(readFileSync(join(root, 'packages/core/package.json'), 'utf8')) as { version: string };
    const page = process.env['PROVE_REPORT'] ?? join(root, 'docs/conformance.md');
    writeFileSync(page, reportOf(rows, version));
    console.log(`\n${summaryOf(rows)}\n${page}`);
    if (existsSync(CASES_FOLDER)) console.log(`cases of what failed: ${CASES_FOLDER}`);
  };
}
