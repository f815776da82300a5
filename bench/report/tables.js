/** Tables of the page: subjects beside each other, goals, and directions of conversions. */
import { format, formatNumber, table } from '../method/statistics.js';
import { findResult, listGoals, listSubjects, listWrong, strain } from './data.js';
import { formatCount, formatRatio } from './frame.js';
import { describeDirection, nameOf, readDirection } from './names.js';

/** A cell of Markdown: a bar would end it, and `<` would begin an element. */
export const escapeCell = (text) =>
  String(text).replace(/[|<>&]/g, (one) => ({ '|': '\\|', '<': '&lt;', '>': '&gt;', '&': '&amp;' })[one]);

const UNITS = { us: 'µs' };
const formatUnit = (unit) => UNITS[unit] ?? unit;

const range = ({ median, p10, p90, count }) =>
  count > 1 ? [formatNumber(median), `[${formatNumber(p10)}-${formatNumber(p90)}]`] : [formatNumber(median)];

/** Median, range, and the ratio to the reference of the row; a note when there is no value. */
function formatResult(row, subject) {
  const found = row.results.find((result) => result.subject === subject);
  if (!found?.value) return found?.note ? escapeCell(found.note) : '–';
  const isCompared = found.ratio && subject !== row.reference;
  const [median, ...rest] = range(found.value);
  return [isCompared ? `${median} (${formatRatio(found.ratio.median)})` : median, ...rest].join('<br>');
}

const formatGoal = ({ subject, of, most }, unit) =>
  `${escapeCell(nameOf(subject))}: ${of ? `${most}x ${escapeCell(nameOf(of))}` : `${most} ${formatUnit(unit)}`}`;

const formatGoals = (row) => (row.goals.length === 0 ? '–' : row.goals.map((goal) => formatGoal(goal, row.unit)).join('<br>'));

const formatWrong = (row) => {
  const wrong = listWrong(row);
  if (wrong.length > 0) return wrong.map((one) => `${escapeCell(nameOf(one.subject))}: ${formatCount(one.wrong)}`).join('<br>');
  return row.results.some((result) => result.wrong === 0) ? '0' : '–';
};

/** One line a row, one column a subject. `hasWrong`: with a column of lost and wrong responses. */
export function buildRowTable(rows, { hasWrong = false } = {}) {
  if (rows.length === 0) return undefined;
  const subjects = listSubjects(rows);
  const hasGoals = rows.some(({ goals }) => goals.length > 0);
  const head = [
    '',
    ...(hasGoals ? ['goal, at most'] : []),
    ...subjects.map((one) => escapeCell(nameOf(one))),
    ...(hasWrong ? ['lost or wrong'] : []),
  ];
  const lines = rows.map((row) => [
    `${escapeCell(row.title)}, ${formatUnit(row.unit)}`,
    ...(hasGoals ? [formatGoals(row)] : []),
    ...subjects.map((subject) => formatResult(row, subject)),
    ...(hasWrong ? [formatWrong(row)] : []),
  ]);
  return table(head, lines);
}

/** Ratios of one subject to the reference: one line a direction, one column for what the ids have before it. */
export function buildDirectionTable(rows, subject, nameColumn) {
  const found = rows.flatMap((row) => {
    const [direction, ratio] = [readDirection(row.id), findResult(row, subject)?.ratio];
    const text = ratio ? format(ratio) : formatResult(row, subject);
    return direction ? [{ column: direction.before, line: describeDirection(direction), ratio, text }] : [];
  });
  if (!found.some(({ ratio }) => ratio)) return undefined;
  const columns = [...new Set(found.map(({ column }) => column))];
  const lines = [...new Set(found.map(({ line }) => line))];
  const cell = (line, column) => found.find((one) => one.line === line && one.column === column)?.text ?? '–';
  return table(
    ['', ...columns.map(nameColumn)],
    lines.map((line) => [line, ...columns.map((column) => cell(line, column))]),
  );
}

/** Of all runs, those that are missed by most first. Clock times of a busy machine are not judged. */
export const sortGoals = (runs) =>
  runs
    .flatMap((run) => listGoals(run).map((goal) => ({ ...goal, isJudged: isJudged(run, goal.row) })))
    .toSorted((a, b) => strain(b) - strain(a));

const isJudged = ({ noise }, { kind }) => noise.state === 'quiet' || (noise.state === 'busy' && kind !== 'clock');

const describeVerdict = ({ isReached, isJudged: judged }) =>
  judged ? (isReached ? 'reached' : '**MISSED**') : isReached ? 'reached, not judged' : 'missed, not judged';

export const buildGoalTable = (goals) =>
  table(
    ['', 'subject', 'goal, at most', 'measured', ''],
    goals.map((goal) => [
      escapeCell(goal.row.title),
      escapeCell(nameOf(goal.subject)),
      goal.of ? `${goal.most}x ${escapeCell(nameOf(goal.of))}` : `${goal.most} ${formatUnit(goal.row.unit)}`,
      `${format(goal.ratio)}${goal.of ? 'x' : ` ${formatUnit(goal.row.unit)}`}`,
      describeVerdict(goal),
    ]),
  );
