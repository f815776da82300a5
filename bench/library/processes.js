/** The processes that measure: one family of rows each, with a limit for subjects that would never come to an end. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cpuOf } from '../method/machine.js';

const CHILD = fileURLToPath(new URL('./child.js', import.meta.url));
/** CPU seconds that one run of a subject may take. */
const LIMIT_SECONDS = 2;
const SLICES_OF_PROCESS = 100;

/**
 * Runs a child and returns what it found by the id of the row. A child whose subject exceeds the limit is ended, and `{ stuck }` names the subject.
 */
async function runChild(task) {
  const child = spawn(process.execPath, ['--max-old-space-size=4000', CHILD, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const found = new Map();
  const state = { trying: undefined, since: 0, stuck: undefined };
  const timer = setInterval(() => {
    if (state.trying === undefined || cpuOf(child.pid) - state.since < LIMIT_SECONDS * 1e6) return;
    state.stuck = { id: task.ids[found.size], subject: state.trying };
    child.kill('SIGKILL');
  }, 100);
  let errors = '';
  child.stderr.on('data', (text) => (errors += text));
  createInterface({ input: child.stdout }).on('line', (line) => {
    const value = JSON.parse(line);
    if (value.id !== undefined) found.set(value.id, value);
    else Object.assign(state, { trying: value.trying, since: value.trying ? cpuOf(child.pid) : 0 });
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(timer);
  if (state.stuck === undefined && code !== 0)
    throw new Error(`bench/library/child.js ended with ${code}: ${errors.slice(-2000)}`);
  return { found, stuck: state.stuck };
}

/**
 * Measures the rows of a family in several processes: `[{ row, found }]`, where `found` is what `buildRow` takes. A subject that exceeds the
 * limit once is left out afterwards and has a note.
 */
export async function measureFamily(rows, { processes, ...options }) {
  const late = new Map();
  const runs = [];
  for (let index = 0; index < processes; index++) runs.push(await runUntilDone(rows, index, options, late));
  return rows.map((row) => ({ row, found: row.subjects.map(({ name }) => mergeRuns(row, name, runs, late)) }));
}

async function runUntilDone(rows, index, options, late) {
  for (;;) {
    const except = Object.fromEntries(
      rows.map(({ id }) => [id, [...late.values()].flatMap((one) => (one.id === id ? [one.subject] : []))]),
    );
    const { found, stuck } = await runChild({ ids: rows.map(({ id }) => id), process: index, except, ...options });
    if (stuck === undefined) return found;
    late.set(`${stuck.id} ${stuck.subject}`, stuck);
  }
}

/** The samples of one subject from all processes; a result that is wrong in one of them has no time. */
function mergeRuns({ id }, subject, runs, late) {
  if (late.has(`${id} ${subject}`)) return { subject, samples: [], note: `> ${LIMIT_SECONDS} s` };
  const results = runs.map((found) => found.get(id));
  const note = results.map(({ notes }) => notes[subject]).find(Boolean);
  const wrong = results.reduce((sum, one) => sum + (one.wrong[subject] ?? 0), 0);
  if (note) return { subject, samples: [], note, ...(wrong > 0 && { wrong }) };
  const renumber =
    (process) =>
    ({ slice, value }) => ({ slice: process * SLICES_OF_PROCESS + slice, process, value });
  return { subject, samples: results.flatMap(({ samples }, process) => samples[subject].map(renumber(process))) };
}

/** Both builds on some rows in one process: what it found by the id of the row. */
export async function comparePair(rows, options) {
  const { found } = await runChild({ ids: rows.map(({ id }) => id), ...options });
  return found;
}
