// npm run mutation: changes the code of accumulate/ and sse/ in a few thousand ways, one at a time, and counts how many the tests notice.
// Writes docs/mutation.md. A part of a file name limits the run to some files and writes nothing: npm run mutation -- sse/decode
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { equivalents } from './equivalents.js';
import { isCaught, page, summary, survivors } from './page.js';
import { mutants, ROOT } from './sources.js';

const CACHE = `${ROOT}.cache/mutation/`;
const CONFIG = 'scripts/mutation/vitest.config.js';
/** A worker that says nothing for so long hangs in code without a mutant in it. */
const SILENCE = 180_000;
const parts = Math.max(1, Math.min(4, availableParallelism()));
const only = process.argv[2] ?? '';

const linesOf = (file) =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    : [];

/** Runs the worker from one mutant on; says whether it came to its end. */
function work(part, from, out, log) {
  return new Promise((resolve) => {
    const env = {
      ...process.env,
      MUTATION_OUT: out,
      MUTATION_PART: String(part),
      MUTATION_PARTS: String(parts),
      MUTATION_FROM: String(from),
      MUTATION_ONLY: only,
    };
    const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--config', CONFIG], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => log.push(bytes));
    let seen = 0;
    const watch = setInterval(() => {
      const count = linesOf(out).length;
      if (count === seen) child.kill('SIGKILL');
      seen = count;
    }, SILENCE);
    child.on('exit', (code) => {
      clearInterval(watch);
      resolve(code === 0);
    });
  });
}

async function runPart(part) {
  const out = `${CACHE}part-${part}.jsonl`;
  let from = 0;
  for (;;) {
    const log = [];
    if (await work(part, from, out, log)) return linesOf(out);
    const last = linesOf(out).at(-1);
    // It ended between two mutants, or before the first one: the tests themselves fail.
    if (!last || last.result || last.id < from) throw new Error(`the worker failed:\n${Buffer.concat(log)}`);
    writeFileSync(out, `${JSON.stringify({ id: last.id, result: 'stuck' })}\n`, { flag: 'a' });
    from = last.id + 1;
  }
}

rmSync(CACHE, { recursive: true, force: true });
mkdirSync(CACHE, { recursive: true });
const began = Date.now();
const lines = (await Promise.all(Array.from({ length: parts }, (_, part) => runPart(part)))).flat();
const results = new Map(lines.filter(({ result }) => result).map(({ id, result }) => [id, result]));
const judged = mutants
  .filter(({ id }) => results.has(id))
  .map((mutant) => ({ ...mutant, result: results.get(mutant.id) }))
  .map((mutant) => (isCaught(mutant) ? mutant : { ...mutant, why: equivalents.reasonFor(mutant) }));

const unused = only ? [] : equivalents.unused();
for (const entry of unused) console.error(`called equivalent, but noticed or not there: ${entry}`);

console.log(only ? survivors(judged) : '');
console.log(summary(judged));
console.log(`${Math.round((Date.now() - began) / 1000)} s`);
if (!only) writeFileSync(`${ROOT}docs/mutation.md`, page(judged));
if (unused.length > 0) process.exitCode = 1;
