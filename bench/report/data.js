/** Reading of a run (`bench/method/results.js`): rows and results that may be missing. */
import { orderSubjects, SUBJECTS } from './names.js';

export const findRow = (run, id) => run?.rows.find((row) => row.id === id);

export const listGroup = (run, group) => run?.rows.filter((row) => row.group === group) ?? [];

/** The result of a subject with at least one sample. */
export function findResult(row, subject) {
  const found = row?.results.find((result) => result.subject === subject);
  return found?.value ? found : undefined;
}

export const medianOf = (run, id, subject) => findResult(findRow(run, id), subject)?.value.median;

/** Subjects with a value or a note in any of the rows. */
export const listSubjects = (rows) =>
  orderSubjects(rows.flatMap(({ results }) => results.filter(({ value, note }) => value || note).map(({ subject }) => subject)));

/** The goal of a subject as a value of its axis: for a ratio, that many times the median of what it refers to. */
export function findGoalValue(row, subject) {
  const goal = row.goals.find((one) => one.subject === subject);
  if (!goal) return undefined;
  if (!goal.of) return goal.most;
  const reference = findResult(row, goal.of);
  return reference && goal.most * reference.value.median;
}

/** Responses that were wrong or lost, by subject: `[{ subject, wrong }]`. */
export const listWrong = (row) => row.results.filter(({ wrong }) => wrong > 0).map(({ subject, wrong }) => ({ subject, wrong }));

/** The program behind a result. Subjects of rows about growth are sizes, and the program is in the id: the full gateway unless it is another one. */
export function findProgram({ group, id }, subject) {
  if (group !== 'growth') return subject;
  const [, program] = id.split(' ');
  return program in SUBJECTS ? program : 'sluice-full';
}

/** Every goal of a run, with its row. */
export const listGoals = (run) => run?.rows.flatMap((row) => row.goals.map((goal) => ({ row, ...goal }))) ?? [];

/** A goal that is missed by much has a large value; above 1 it is missed. */
export const strain = ({ ratio, most }) => ratio.median / most;
