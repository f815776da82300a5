import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CORPUS } from '../corpus.ts';
import { type Facts, reportOf } from './report.ts';
import { blockOf, gapsOf, lineOf, replaceBlock, summaryTable } from './summary.ts';
import { casesFolder, closeRun, openRun, type Row } from './tally.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = join(root, 'docs/conformance.md');
const README = join(root, 'README.md');
const JUDGES = [
  'node_modules/openai',
  'test/sdk-next/node_modules/openai-7',
  'node_modules/anthropic-0',
  'node_modules/@anthropic-ai/sdk',
  'node_modules/google-genai-1',
  'node_modules/google-genai-2',
  'node_modules/eventsource-parser',
];

const manifestOf = (folder: string): { name: string; version: string } =>
  JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as { name: string; version: string };

function factsOfRun(): Facts {
  const judges = JUDGES.map(manifestOf);
  return { version: manifestOf('packages/core').version, judges: judges.map(({ name, version }) => `\`${name}\` ${version}`) };
}

/** The page, and its summary in the README. `PROVE_REPORT` names another place for the page, and leaves the README alone. */
function publish(rows: readonly Row[]): string {
  const elsewhere = process.env['PROVE_REPORT'];
  writeFileSync(elsewhere ?? PAGE, reportOf(rows, factsOfRun()));
  if (elsewhere === undefined) writeFileSync(README, replaceBlock(readFileSync(README, 'utf8'), blockOf(rows)));
  return elsewhere ?? PAGE;
}

/** Where the page is, or why there is none: everybody must be able to write it again. */
function describePage(rows: readonly Row[]): string {
  if (CORPUS === 'recordings') return 'no page is written: it shows the run over the corpus, which everybody has';
  const gaps = gapsOf(rows);
  return gaps.length === 0 ? publish(rows) : `no page is written, for want of: ${gaps.join(', ')}`;
}

/** After a full run: the page, unless only a part was run. */
export function setup(): () => void {
  const folder = openRun();
  return () => {
    const rows = closeRun(folder);
    console.log(`\n${summaryTable(rows)}\n\n${lineOf(rows)}`);
    console.log(describePage(rows));
    if (existsSync(casesFolder())) console.log(`cases of what failed: ${casesFolder()}`);
  };
}
