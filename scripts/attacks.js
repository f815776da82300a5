/**
 * Attacks a gateway by the tests of scripts/attacks/table.js, prints a table of attempts and results, and writes it to docs/security.md:
 * `npm run attacks`. Exit code 1 when an attack did harm, or could not be made because a setup failed: then nothing is written.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ATTACKS } from './attacks/table.js';
import { ROOT } from './build/packages.js';

const PAGE = join(ROOT, 'docs/security.md');
const REPORT = join(ROOT, '.cache/attacks.json');
const [BEGIN, END] = ['<!-- attacks -->', '<!-- /attacks -->'];
const FOLDERS = ['packages/gateway/test', 'packages/console/test'];

/** The file and the title of a test of the table. */
function readName(name) {
  const [file, title] = name.split(' › ');
  const path = FOLDERS.map((folder) => `${folder}/${file}.test.ts`).find((candidate) => existsSync(join(ROOT, candidate)));
  if (path === undefined) throw new Error(`there is no test file for "${name}"`);
  return { path, title };
}

/** An expression for a title, whose values each row of a table of tests has. */
const writePattern = (title) =>
  title
    .split(/(%[sdifjoOcp#$]|\$[\w.]+)/)
    .map((part, index) => (index % 2 === 1 ? '.*' : part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')))
    .join('');

/** Runs all tests of the table at once. Returns their results by file, and whether vitest found nothing wrong. */
function runTests() {
  const names = ATTACKS.flatMap(({ tests }) => tests.map(readName));
  const files = [...new Set(names.map(({ path }) => path))];
  const pattern = `(?:^| )(?:${[...new Set(names.map(({ title }) => writePattern(title)))].join('|')})(?: |$)`;
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  rmSync(REPORT, { force: true });
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${REPORT}`];
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...reporters, '-t', pattern, ...files];
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
  if (!existsSync(REPORT)) throw new Error('the tests left no report');
  const { testResults } = JSON.parse(readFileSync(REPORT, 'utf8'));
  const results = new Map(
    testResults.map(({ name, assertionResults, message }) => [
      relative(ROOT, name).replaceAll('\\', '/'),
      { tests: assertionResults, message },
    ]),
  );
  // Tests of a suite whose setup failed are reported as skipped.
  return { results, isSound: status === 0 };
}

/** How many attempts an attack made, which of them did harm, and which could not be made. */
function judge({ tests }, results) {
  const found = tests.flatMap((name) => {
    const { path, title } = readName(name);
    const expression = new RegExp(`^${writePattern(title)}$`, 's');
    const { tests: all = [], message } = results.get(path) ?? {};
    const matching = all.filter((test) => [test.title, ...test.ancestorTitles].some((text) => expression.test(text)));
    if (matching.length === 0) throw new Error(`no test is called "${name}" ${message ?? ''}`);
    return matching;
  });
  const ran = found.filter(({ status }) => status === 'passed' || status === 'failed');
  return {
    tries: ran.reduce((sum, { meta }) => sum + (meta?.tries ?? 1), 0),
    harm: ran
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => `${fullName.trim()}\n${failureMessages.join('\n')}`),
    missing: found.length - ran.length,
  };
}

/** The table of docs/security.md. */
function writeTable(rows) {
  const lines = rows.map(
    ({ surface, attack, outcome, tries, harm }, index) =>
      `| ${rows[index - 1]?.surface === surface ? '' : surface} | ${attack} | ${tries.toLocaleString('en')} | ${harm.length} | ${outcome} |`,
  );
  const tries = rows.reduce((sum, row) => sum + row.tries, 0);
  return [
    `${tries.toLocaleString('en')} attempts; Node ${process.versions.node}, ${new Date().toISOString().slice(0, 10)}.`,
    '',
    '| | attack | attempts | did harm | what happens |',
    '|---|---|--:|--:|---|',
    ...lines,
  ].join('\n');
}

function main() {
  const { results, isSound } = runTests();
  const rows = ATTACKS.map((attack) => ({ ...attack, ...judge(attack, results) }));
  const table = writeTable(rows);
  console.log(table);
  for (const { attack, harm } of rows) for (const name of harm) console.error(`HARM: ${attack}: ${name}`);
  const missing = rows.filter((row) => row.missing > 0);
  for (const { attack, missing: count } of missing)
    console.error(`not made, because ${isSound ? 'a program is missing' : 'a setup failed'}: ${count} of "${attack}"`);
  const harmful = rows.reduce((sum, { harm }) => sum + harm.length, 0);
  if (harmful > 0 || !isSound) process.exitCode = 1;
  else if (missing.length === 0) writePage(table);
  console.log(
    `${ATTACKS.length} attacks, ${rows.reduce((sum, { tries }) => sum + tries, 0).toLocaleString('en')} attempts, ${harmful} did harm`,
  );
}

function writePage(table) {
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/security.md has no ${BEGIN} … ${END}`);
  writeFileSync(PAGE, `${page.slice(0, from + BEGIN.length)}\n${table}\n${page.slice(to)}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
