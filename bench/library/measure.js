/**
 * One row in this process: its subjects are all alive, are warmed up, and take turns in short slices. A sample is the CPU time of the whole process
 * (event loop, garbage collector, compiler) for each unit.
 */
import { alternate } from '../method/slices.js';
import { median, summarizeRatio } from '../method/statistics.js';
import { loadSluice } from './load.js';

/** CPU time of this process, in microseconds. */
export function readCpu() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** A subject with longer runs has one slice in each process. */
const SLOW_US = 200_000;
/** Enough for subjects that only call JSON.parse and JSON.stringify. */
const NATIVE_WARM_MS = 60;
/** Enough when a row of the same code was measured in this process before. */
export const FAMILY_WARM_MS = 250;

/**
 * Measures a row. `except` is a list of subjects to leave out; `say` hears `{ trying }` before the first run of a subject, which may be a long
 * one, and `{ tried }` after it.
 *
 * @returns `{ samples, notes, wrong }`, each by the name of the subject: `[{ slice, value }]`, why there are none, and how many results were wrong.
 */
export async function measureRow(row, { slices = 7, sliceMs = 25, warmMs = 250, except = [], say = () => undefined } = {}) {
  const sluice = await loadSluice();
  const found = { samples: {}, notes: {}, wrong: {} };
  const input = row.buildInput();
  const subjects = [];
  for (const subject of row.subjects.filter(({ name }) => !except.includes(name))) {
    try {
      const ready = await prepareSubject(subject, { row, input, sluice, say });
      if (ready.isRight) subjects.push(ready);
      else addWrong(found, subject.name);
    } catch (error) {
      found.notes[subject.name] = describeFailure(error);
    }
  }
  for (const subject of subjects) await warmUp(subject, subject.isNative ? NATIVE_WARM_MS : warmMs, sliceMs);
  const samples = await alternate(subjects, slices, (subject, slice) => visit(subject, slice));
  subjects.forEach((subject, i) => {
    // A subject may change its input, and then only the first result would be right.
    if (row.check(subject.last, input, subject)) found.samples[subject.name] = samples[i];
    else addWrong(found, subject.name);
  });
  return found;
}

function addWrong({ notes, wrong }, name) {
  notes[name] = 'wrong result';
  wrong[name] = 1;
}

/** The first run of a subject: is the result right, is it a promise, and is it a long one? */
export async function prepareSubject(subject, { row, input, sluice, say = () => undefined }) {
  const run = await subject.create(input, sluice);
  say({ trying: subject.name });
  let result = run();
  let last = await result;
  // The first run is of cold code: a second one says whether it is slow.
  const before = readCpu();
  result = run();
  last = await result;
  const isSlow = readCpu() - before > SLOW_US;
  say({ tried: subject.name });
  const isRight = row.check(last, input, subject);
  const units = typeof row.units === 'function' ? row.units(input) : row.units;
  return { ...subject, run, last, isRight, isAsync: result instanceof Promise, isSlow, runs: 1, units, scale: row.scale };
}

const describeFailure = (error) =>
  `fails: ${String(error?.message ?? error)
    .split('\n', 1)[0]
    .slice(0, 120)}`;

/** Runs until so much CPU time is spent, and finds out how many runs make a slice. */
export async function warmUp(subject, warmMs, sliceMs) {
  if (subject.isSlow) return;
  let spent = 0;
  let us = 0;
  while (spent < warmMs * 1000) {
    us = await timeRuns(subject);
    spent += us;
    if (us < sliceMs * 250) subject.runs *= 2;
  }
  subject.runs = Math.max(1, Math.round((subject.runs * sliceMs * 1000) / Math.max(1, await timeRuns(subject))));
}

async function visit(subject, slice) {
  if (subject.isSlow && slice > 0) return undefined;
  return { value: await measureSlice(subject) };
}

/** CPU time of one slice, for each unit: nanoseconds, or microseconds with a scale of 1000. */
export const measureSlice = async (subject) =>
  ((await timeRuns(subject)) * 1000) / subject.runs / subject.units / (subject.scale ?? 1);

async function timeRuns(subject) {
  const { run, runs } = subject;
  let last;
  const before = readCpu();
  if (subject.isAsync) for (let i = 0; i < runs; i++) last = consume(await run());
  else for (let i = 0; i < runs; i++) last = consume(run());
  const us = readCpu() - before;
  subject.last = last;
  return us;
}

/** Every consumer reads the text. Strings that were put together piece by piece become flat only then. */
function consume(result) {
  if (result.text !== undefined) flatten(result.text);
  if (result.args !== undefined) for (const text of result.args) flatten(text);
  return result;
}

const flatten = (text) => text.charCodeAt(text.length >> 1);

/**
 * Two builds on one row, both in this process: `{ ratio, before, after }`, where the ratio is the median of after over before within slices. A build
 * without the function, or with a wrong result, has a `note` instead.
 */
export async function measurePair(row, builds, { slices, sliceMs, warmMs, isReversed }) {
  const input = row.buildInput();
  const subject = row.subjects.find(({ isSluice }) => isSluice);
  const sides = isReversed ? ['before', 'after'] : ['after', 'before'];
  const ready = [];
  for (const side of sides) {
    try {
      const one = await prepareSubject(subject, { row, input, sluice: builds[side] });
      if (!one.isRight) return { note: `wrong result (${side})` };
      ready.push(one);
    } catch (error) {
      return { note: `${describeFailure(error)} (${side})` };
    }
  }
  for (const one of ready) await warmUp(one, warmMs, sliceMs);
  // The same number of runs on both sides: less of the collector's work falls on one of them by chance.
  for (const one of ready) one.runs = Math.min(...ready.map(({ runs }) => runs));
  const samples = await alternate(ready, slices, (one) => measureSlice(one).then((value) => ({ value })));
  const [before, after] = ['before', 'after'].map((side) => samples[sides.indexOf(side)]);
  const middle = (list) => median(list.map(({ value }) => value));
  return { ratio: summarizeRatio(after, before).median, before: middle(before), after: middle(after) };
}
