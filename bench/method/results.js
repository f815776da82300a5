/**
 * The results of a run: one JSON file with the machine, the noise, and every row with all of its samples. The newest whole run of each kind is in
 * the repository (`bench/results`), and every run stays in `.cache/bench/runs`. Pages and charts are written from such a file, never from memory.
 *
 * @typedef {{ slice: number, process: number, value: number }} Sample
 * @typedef {{ median: number, p10: number, p90: number, count: number }} Summary
 * @typedef {{ subject: string, value?: Summary, ratio?: Summary, samples: Sample[], wrong?: number, note?: string }} Result
 *   `value` is missing without samples, and then `note` says why. `ratio`: to the reference of the row, within slices. `wrong`: responses that differ from what the upstream sent.
 * @typedef {{ subject: string, of?: string, most: number, ratio: Summary, isReached: boolean }} Goal
 *   A goal without `of` is a value and not a ratio.
 * @typedef {{ id: string, group: string, title: string, unit: string, kind: 'cpu' | 'clock' | 'memory' | 'count', reference?: string,
 *   results: Result[], goals: Goal[] }} Row
 *   `kind`: times of the clock are judged on a quiet machine only.
 * @typedef {{ kind: string, commit?: string, begun: string, seconds: number, machine: object, noise: object, missing: Record<string, string>,
 *   rows: Row[] }} Run
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './commits.js';
import { summarize, summarizeRatio } from './statistics.js';

const KEPT = join(ROOT, 'bench/results');
const RUNS = join(ROOT, '.cache/bench/runs');

/**
 * A row of its samples. `found`: `[{ subject, samples, wrong, note }]`. `goals`: `[{ subject, of, most }]`, where `of` is the subject that the ratio
 * refers to; a goal without it is a value.
 *
 * @param {Omit<Row, 'results' | 'goals'> & { found: { subject: string, samples: Sample[], wrong?: number, note?: string }[],
 *   goals?: { subject: string, of?: string, most: number }[] }} row
 * @returns {Row}
 */
export function buildRow({ found, goals = [], ...row }) {
  const samplesOf = (subject) => found.find((one) => one.subject === subject)?.samples ?? [];
  const references = row.reference ? samplesOf(row.reference) : [];
  const results = found.map(({ samples, ...rest }) => ({
    ...rest,
    value: summarize(samples.map(({ value }) => value)),
    ...(references.length > 0 && { ratio: summarizeRatio(samples, references) }),
    samples: samples.map(({ slice, process, value }) => ({ slice, process, value: Number(value.toPrecision(5)) })),
  }));
  const reached = goals.flatMap(({ subject, of, most }) => {
    const samples = samplesOf(subject);
    const ratio = of ? summarizeRatio(samples, samplesOf(of)) : summarize(samples.map(({ value }) => value));
    return ratio === undefined ? [] : [{ subject, of, most, ratio, isReached: ratio.median <= most }];
  });
  return { ...row, results, goals: reached };
}

/** Keeps a run; the one of the repository is replaced only when `isWhole`. */
export function keepRun(run, { isWhole = false } = {}) {
  mkdirSync(RUNS, { recursive: true });
  const file = join(RUNS, `${run.kind}-${run.begun.replaceAll(':', '')}.json`);
  const text = `${JSON.stringify(run)}\n`;
  writeFileSync(file, text);
  if (isWhole) {
    mkdirSync(KEPT, { recursive: true });
    writeFileSync(join(KEPT, `${run.kind}.json`), text);
  }
  return file;
}

/** The newest whole run of a kind, or the run of a file. */
export const readRun = (kind, file = join(KEPT, `${kind}.json`)) => JSON.parse(readFileSync(file, 'utf8'));
