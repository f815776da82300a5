/** What the programs of both benchmarks have in common: how they say where they are, and how they end. */

import { ROOT } from './commits.js';
import { describeCommit, describeMachine, describeNoise } from './machine.js';
import { keepRun } from './results.js';
import { format, table } from './statistics.js';

const begun = performance.now();
const readSeconds = () => Math.round((performance.now() - begun) / 1000);
export const say = (text) => console.error(`${String(readSeconds()).padStart(5)} s  ${text}`);

/** The words of the command are off. */
export function fail(message) {
  console.error(message);
  process.exit(2);
}

/** When a run began that took so many seconds. */
export const findBegin = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();

/** Times of the clock are judged on a quiet machine only, and nothing on one that is too noisy. */
export const judgeRow = (row, { state }) =>
  state === 'quiet' || (state === 'busy' && row.kind !== 'clock') ? row : { ...row, goals: [] };

export const describeRow = ({ id, title, unit, results, reference }) =>
  `\n${id}: ${title}\n${table(
    ['', unit, `x ${reference ?? ''}`, 'wrong', ''],
    results.map(({ subject, value, ratio, wrong = 0, note = '' }) => [
      subject,
      format(value),
      format(ratio),
      String(wrong),
      note,
    ]),
  )}`;

function describeGoals(rows) {
  const goals = rows.flatMap(({ id, unit, goals: own }) => own.map((goal) => ({ id, unit, ...goal })));
  const line = ({ id, subject, of, most, unit, ratio, isReached }) => [
    `${id}, ${subject}`,
    of ? `${most}x of ${of}` : `${most} ${unit}`,
    format(ratio),
    isReached ? 'yes' : 'MISSED',
  ];
  return `\n${table(['goal', 'at most', 'measured', 'reached'], goals.map(line))}`;
}

/** Keeps the run and says what came out. A run that is whole replaces the one of the repository, unless the machine was too noisy. */
export function finishRun({ kind, rows, noise, isWhole, versions, ...more }) {
  const isJudged = noise.state !== 'too noisy';
  const seconds = readSeconds();
  const run = {
    kind,
    commit: describeCommit(ROOT),
    begun: findBegin(seconds),
    seconds,
    machine: describeMachine(versions),
    noise,
    missing: {},
    ...more,
    rows,
  };
  const file = keepRun(run, { isWhole: isWhole && isJudged });
  console.log(describeGoals(rows.map((row) => judgeRow(row, noise))));
  console.log(`\n${describeNoise(noise)} ${seconds} s, kept in ${file}`);
  for (const line of listWrong(rows)) console.log(`wrong responses: ${line}`);
  if (isJudged) return;
  console.log('Nothing is judged, and nothing was written: the machine was too noisy. Run it again when nothing else runs.');
  process.exitCode = 3;
}

const listWrong = (rows) =>
  rows.flatMap(({ id, results }) =>
    results.flatMap(({ subject, wrong, note }) => (wrong > 0 ? [`${id}, ${subject}: ${wrong} (${note})`] : [])),
  );
