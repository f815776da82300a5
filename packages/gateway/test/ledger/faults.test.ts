import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { lacks } from '../../../../test/needs/needs.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { modelOf, PAIRS, type Pair } from '../gateway/pairs.ts';
import { ask } from '../gateway/start.ts';
import { mountSmallDisk } from '../real-parts/programs.js';
import { createFolder } from '../store/ledger-fixture.ts';
import { assertBuilt, runScript } from '../store/processes.ts';
import { expectTimes, Rig } from './rig.ts';

// What the gateway does when its store cannot write, and when the clock of the machine is set.

beforeAll(assertBuilt);

const [PAIR] = PAIRS as [Pair, ...Pair[]];

/** Sends requests until one is refused, at most `count`. Returns the numbers of answered ones and the status of the last. */
async function sendMany(rig: Rig, count: number): Promise<{ answered: number; last: number }> {
  let answered = 0;
  let last = 200;
  for (let number = 0; number < count && last === 200; number++) {
    const stream = number % 2 === 0;
    rig.first.play(rig.good(PAIR, stream));
    last = (await ask(rig.gateway.url, { client: PAIR.client, model: modelOf(PAIR), stream })).status;
    if (last === 200) answered++;
  }
  return { answered, last };
}

const lateRecords = async (rig: Rig): Promise<number> => {
  const text = await rig.gateway.services.metrics.text();
  return Number(/^sluice_\w*late\w* (\d+)$/m.exec(text)?.[1]);
};

/** Every response that was sent has its row with what the upstream reported. */
async function expectAllRecorded(rig: Rig, answered: number): Promise<void> {
  const rows = await rig.takeRows();
  const log = rig.takeLog();
  expect(rows.filter(({ exchange }) => exchange.ending === 'answered').length).toBe(answered);
  expect(rows.map(({ exchange }) => exchange.input_tokens).filter((tokens) => tokens !== null)).toEqual(
    log.map(({ usage }) => usage?.input_tokens),
  );
  await rig.expectRollups();
}

describe('a full disk', () => {
  const disk = mountSmallDisk(3 << 20);

  afterAll(() => disk?.remove());

  test(
    'responses go on until the queue is full, then 503; when there is room again nothing is lost',
    disk ? {} : lacks('tmpfs'),
    async () => {
      const folder = disk?.folder ?? '';
      const store = await openStore({ folder: join(folder, 'data'), ballastBytes: 1 << 16, maxQueuedRows: 40 });
      const rig = await Rig.start({ store });
      const filler = join(folder, 'filler');
      const { bavail, bsize } = statfsSync(folder);
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - (96 << 10))));
      const { answered, last } = await sendMany(rig, 2000);
      expect([answered > 0, last]).toEqual([true, 503]);
      expect(store.status()).toMatchObject({ accepting: false, rejected_rows: 0 });
      expect(await lateRecords(rig)).toBeGreaterThan(0);
      rmSync(filler);
      await store.flush();
      const after = await sendMany(rig, 10);
      expect(after).toEqual({ answered: 10, last: 200 });
      rig.takeLog();
      const rows = await rig.takeRows();
      expect(rows.filter(({ exchange }) => exchange.ending === 'answered').length).toBe(answered + 10);
      expect(rows.every(({ exchange, attempts }) => exchange.attempts === attempts.length)).toBe(true);
      await rig.expectRollups();
      await rig.stop();
    },
  );
});

test('a database that another process has locked delays no response beyond its first failure, and loses nothing', async () => {
  const folder = createFolder();
  const store = await openStore({ folder, ballastBytes: 0, busyMs: 100 });
  const rig = await Rig.start({ store });
  expect(await sendMany(rig, 4)).toEqual({ answered: 4, last: 200 });
  const locker = runScript(
    `globalThis.db = new DatabaseSync(args[0]); db.exec('BEGIN IMMEDIATE'); console.log('locked'); process.stdin.resume();
     setInterval(() => {}, 1000);`,
    join(folder, 'sluice.db'),
  );
  await locker.printed('locked');
  expect(await sendMany(rig, 20)).toEqual({ answered: 20, last: 200 });
  expect(store.status().queued_rows).toBeGreaterThan(0);
  expect(await lateRecords(rig)).toBeGreaterThan(0);
  locker.child.kill('SIGKILL');
  await locker.ended;
  await store.flush();
  expect(store.status()).toMatchObject({ queued_rows: 0, rejected_rows: 0, last_error: null });
  await expectAllRecorded(rig, 24);
  await rig.stop();
});

const HOUR = 3_600_000;

describe.each([HOUR, -HOUR])('the wall clock jumps by %i ms', (jump) => {
  let offset = 0;
  let store: Store;
  let rig: Rig;

  beforeEach(async () => {
    offset = 0;
    store = await openStore({ folder: null, wallClock: () => NOON + offset });
    rig = await Rig.start({ store });
  });

  afterEach(() => rig.stop());

  const NOON = Date.UTC(2026, 10, 17, 12, 30);

  test.each([true, false])(
    'no duration is negative, and a request belongs to the hour of its admission (stream: %s)',
    async (stream) => {
      const [note, ...rest] = rig.good(PAIR, stream);
      const jumping = {
        run: () => {
          offset = jump;
        },
      };
      rig.first.play(note ? [note, jumping, ...rest] : []);
      await ask(rig.gateway.url, { client: PAIR.client, model: modelOf(PAIR), stream });
      const { exchange, attempts } = await rig.takeRow();
      expect(exchange.ts).toBe(NOON);
      expect(exchange.settled_ts ?? 0).toBeGreaterThanOrEqual(exchange.ts);
      expect((exchange.settled_ts ?? 0) - exchange.ts).toBeLessThan(HOUR / 2);
      expectTimes(exchange);
      for (const attempt of attempts) {
        expectTimes(attempt);
        expect(attempt.ts).toBeGreaterThanOrEqual(exchange.ts);
      }
      // The next one is admitted at the new time.
      rig.first.play(rig.good(PAIR, stream));
      await ask(rig.gateway.url, { client: PAIR.client, model: modelOf(PAIR), stream });
      expect((await rig.takeRow()).exchange.ts).toBe(NOON + jump);
      const hours = await rig.store.usage({ by: 'model', bucket: 'hour', since: NOON - 2 * HOUR, until: NOON + 2 * HOUR });
      expect(hours.map(({ requests }) => requests).reduce((sum, count) => sum + count, 0)).toBe(2);
      expect(hours.length).toBe(2);
    },
  );
});
