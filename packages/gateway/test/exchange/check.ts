/** Plays random schedules until one fails, which is shrunk and described in plain words. */
import fc from 'fast-check';
import { describeSchedule, type Schedule } from './schedule.ts';

/** Which schedules are played. */
export interface Run {
  readonly seed: number;
  readonly count: number;
  /** The place of one schedule among those of a seed, to play it again. */
  readonly path?: string | undefined;
  /** A part of the name of the test. */
  readonly test: string;
}

/** Resolves with the number of schedules that were played, and rejects with the first that failed. */
export async function checkSchedules(
  schedules: fc.Arbitrary<Schedule>,
  play: (schedule: Schedule) => Promise<string[]>,
  { seed, count, path, test }: Run,
): Promise<number> {
  let problems: string[] = [];
  const property = fc.asyncProperty(schedules, async (schedule) => {
    problems = await play(schedule);
    if (problems.length > 0) throw new Error(problems.join('\n'));
  });
  const result = await fc.check(property, { seed, numRuns: count, ...(path !== undefined && { path }) });
  if (!result.failed) return result.numRuns;
  const [schedule] = result.counterexample ?? [];
  const error = result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance);
  throw new Error(
    [
      `schedule ${result.numRuns} of seed ${seed} fails, shrunk ${result.numShrinks} times:`,
      schedule ? describeSchedule(schedule) : '',
      'afterwards:',
      ...error.split('\n').map((line) => `  ${line}`),
      `play it again: SLUICE_SEED=${seed} SLUICE_SCHEDULE=${result.counterexamplePath} npx vitest run packages/gateway/test/exchange/life.test.ts -t '${test}'`,
    ].join('\n'),
  );
}
