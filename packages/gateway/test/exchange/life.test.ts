// Whatever clients, upstreams, the store and the operator do, and whenever: afterwards nothing is held, the ledger has what the upstreams
// served, and each request had one response. docs/reliability.md describes it.
import { beforeAll, describe, expect, test } from 'vitest';
import { assertBuilt } from '../store/processes.ts';
import { checkSchedules, type Run } from './check.ts';
import { readParts } from './model.ts';
import { playWithKills } from './process.ts';
import { killSchedules, schedules } from './schedule.ts';
import { World } from './world.ts';

/** One schedule, to play it again. */
const path = process.env['SLUICE_SCHEDULE'];

const seed = Number(process.env['SLUICE_SEED']) || 20261119;

/** In the suite, few schedules with always the same seed. */
const count = Number(process.env['SLUICE_SCHEDULES'] ?? 60);
const kills = Number(process.env['SLUICE_KILL_SCHEDULES'] ?? 3);

/** Schedules of one seed: few, so that a failure is found again soon. */
const CHUNK = 200;

/** Worlds that play at the same time: while one waits for its sockets, others go on. */
const WORLDS = 4;

const NIGHT_MS = 12 * 3_600_000;

beforeAll(assertBuilt);

/** The runs that make so many schedules, each with a seed of its own. */
function listRuns(first: number, total: number, name: string): Run[] {
  if (path !== undefined) return [{ seed: first, count: 1, path, test: name }];
  const size = Math.min(CHUNK, Math.ceil(total / WORLDS));
  return Array.from({ length: Math.ceil(total / size) }, (_, index) => ({
    seed: first + index,
    count: Math.min(size, total - index * size),
    test: name,
  }));
}

/** Plays runs, several at the same time. */
async function playAll(runs: Run[], play: (run: Run) => Promise<number>): Promise<number> {
  const wanted = runs.reduce((sum, run) => sum + run.count, 0);
  const began = performance.now();
  let played = 0;
  const work = async (): Promise<void> => {
    for (let run = runs.shift(); run; run = runs.shift()) {
      const count = await play(run);
      played += count;
      const rate = (played / (performance.now() - began)) * 1000;
      if (wanted > CHUNK) console.log(`${played} of ${wanted} schedules, ${rate.toFixed(1)} a second`);
    }
  };
  await Promise.all(Array.from({ length: WORLDS }, work));
  return played;
}

const IN_PROCESS = 'a gateway in this process';

describe(IN_PROCESS, () => {
  test.skipIf(count === 0)(
    'holds nothing after any schedule, has the rows and the money of its upstreams, and sends one response to each request',
    async () => {
      const runs = listRuns(seed, count, IN_PROCESS);
      const wanted = path === undefined ? count : 1;
      const played = await playAll(runs, async (run) => {
        const world = await World.open();
        try {
          return await checkSchedules(schedules, (schedule) => world.play(schedule), run);
        } finally {
          await world.close();
        }
      });
      expect(played).toBe(wanted);
    },
    NIGHT_MS,
  );
});

const KILLED = 'a gateway that is killed';

describe(KILLED, () => {
  test.skipIf(kills === 0)(
    'has a row for every response that a client saw, and leaves nothing open or reserved',
    async () => {
      const played = await playAll(listRuns(seed, kills, KILLED), (run) => checkSchedules(killSchedules, playWithKills, run));
      expect(played).toBe(path === undefined ? kills : 1);
    },
    NIGHT_MS,
  );
});

describe('the model', () => {
  test.each([
    ['a1.0-1 a1.0-2', [{ source: 'a1.0', words: [1, 2] }]],
    [
      'a1.0-1b1.0-1 b1.0-2',
      [
        { source: 'a1.0', words: [1] },
        { source: 'b1.0', words: [1, 2] },
      ],
    ],
    ['a1.0-1 and more', undefined],
    ['', []],
  ])('knows which upstreams sent %j', (text, parts) => expect(readParts(text)).toEqual(parts));
});
