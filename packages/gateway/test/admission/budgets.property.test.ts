/** Random schedules of admissions, settlements, crashes and clock jumps, held against the rule of budgets in its simplest form. */
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { type Account, type AccountLimit, LEASE_MS, type LimitBackend } from '../../src/admission/backend.ts';
import { Calendar } from '../../src/admission/windows.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { BACKENDS, type CreateBackend, closeBackends, createPrefix, stopServers } from './backends.ts';

afterAll(stopServers);

const calendar = new Calendar('Europe/Berlin');

/** Before a change of clocks, and before the end of a week and a month. */
const START = Date.parse('2026-03-28T12:00:00Z');

const HOUR = 3_600_000;

const BUDGETS = [
  { by: 'key', of: 'a', period: 'day', micros: 100 },
  { by: 'key', of: 'a', period: 'total', micros: 900 },
  { by: 'key', of: 'b', period: 'week', micros: 250 },
  { by: 'tag', of: 'team=x', period: 'day', micros: 150 },
  { by: 'tag', of: 'team=x', period: 'month', micros: 400 },
] as const;

const limitsOf = (key: string, isTagged: boolean, at: number): AccountLimit[] =>
  BUDGETS.filter(({ by, of }) => of === key || (isTagged && by === 'tag')).map((budget) => ({
    ...budget,
    name: budget.of,
    window: calendar.find(budget.period, at),
  }));

interface Entry {
  id: string;
  at: number;
  limits: AccountLimit[];
  reserved: number;
  /** Null while it runs; the ledger has it afterwards. */
  charged: number | null;
}

/** The simplest form of the rule: a list of everything that ever happened. */
class Oracle {
  readonly entries: Entry[] = [];

  /** Settled and reserved in the window of a limit. */
  used({ by, of, period, window }: AccountLimit): number {
    let sum = 0;
    for (const { at, limits, charged, reserved } of this.entries)
      if (at >= window.start && at < window.end && limits.some((one) => one.by === by && one.of === of && one.period === period))
        sum += charged ?? reserved;
    return sum;
  }

  spent({ by, of }: Account, since: number): number {
    let sum = 0;
    for (const { at, limits, charged } of this.entries)
      if (at >= since && limits.some((one) => one.by === by && one.of === of)) sum += charged ?? 0;
    return sum;
  }

  fits(limits: readonly AccountLimit[], micros: number): boolean {
    return micros === 0 || limits.every((limit) => this.used(limit) + micros <= limit.micros);
  }
}

type Step =
  | { do: 'admit'; key: string; isTagged: boolean; micros: number }
  | { do: 'raise'; pick: number; by: number }
  | { do: 'settle'; pick: number; share: number }
  | { do: 'crash' }
  | { do: 'jump'; hours: number };

const step = (jump: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('admit' as const),
        key: fc.constantFrom('a', 'b'),
        isTagged: fc.boolean(),
        micros: fc.integer({ min: 0, max: 120 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('raise' as const), pick: fc.nat(20), by: fc.integer({ min: 1, max: 60 }) }),
    },
    // A share above 1 is an overrun; 0 an attempt that failed for free.
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('settle' as const),
        pick: fc.nat(20),
        share: fc.constantFrom(0, 0.1, 0.5, 1, 1, 1.7),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ do: 'crash' as const }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('jump' as const), hours: jump }) },
  );

interface PlayOptions {
  create: CreateBackend;
  steps: readonly Step[];
  /** Sees every decision before it counts. */
  check: (isAdmitted: boolean, oracle: Oracle, entry: Entry, more: number) => void;
}

/** Plays a schedule. */
async function play(options: PlayOptions): Promise<Oracle> {
  try {
    return await playSteps(options);
  } finally {
    await closeBackends();
  }
}

async function playSteps({ create, steps, check }: PlayOptions): Promise<Oracle> {
  const oracle = new Oracle();
  const shared = { prefix: createPrefix(), clock: new TestClock() };
  const open = async (): Promise<LimitBackend> =>
    (await create(async (since, account) => oracle.spent(account, since), shared)).backend;
  let backend = await open();
  let at = START;
  const running = (): Entry[] => oracle.entries.filter(({ charged }) => charged === null);
  for (const [index, one] of steps.entries()) {
    if (one.do === 'jump') at += one.hours * HOUR;
    else if (one.do === 'admit') {
      const limits = limitsOf(one.key, one.isTagged, at);
      const entry: Entry = { id: String(index), at, limits, reserved: one.micros, charged: null };
      const { result } = await backend.take({ member: entry.id, rates: [], money: { micros: one.micros, accounts: limits } });
      check(result === 'taken', oracle, entry, one.micros);
      if (result === 'taken') oracle.entries.push(entry);
    } else if (one.do === 'crash') {
      // What ran is closed by the ledger with what was reported until then: here, nothing.
      for (const entry of running()) entry.charged = 0;
      await backend.close();
      await shared.clock.advance(LEASE_MS);
      backend = await open();
    } else {
      const entry = running()[one.pick % Math.max(1, running().length)];
      if (!entry) continue;
      if (one.do === 'raise') {
        const isRaised = await backend.raise(entry.id, entry.reserved + one.by);
        check(isRaised, oracle, entry, one.by);
        if (isRaised) entry.reserved += one.by;
      } else {
        entry.charged = Math.round(entry.reserved * one.share);
        await backend.end({ member: entry.id, corrections: [], charged: entry.charged });
        await backend.end({ member: entry.id, corrections: [], charged: 1e9 });
      }
    }
  }
  return oracle;
}

/** Schedules for each backend: those of servers take a hundred times as long, so nights have the rest. */
const countRuns = (name: string, runs: number): number =>
  name === 'memory' || process.env['SLUICE_SEED'] !== undefined ? runs : runs / 5;

describe.each(BACKENDS)('$name', ({ name, create, options }) => {
  test('a request is admitted if and only if settled costs, open reservations and its own fit into every budget', {
    ...options,
    timeout: 240_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step(fc.integer({ min: 0, max: 30 })), { maxLength: 60 }), async (steps) => {
        const check: PlayOptions['check'] = (isAdmitted, oracle, { limits }, more) =>
          expect(isAdmitted).toBe(oracle.fits(limits, more));
        await play({ create, steps, check });
      }),
      { numRuns: countRuns(name, 400) },
    );
  });

  test('whatever the clock does, no more is spent than all windows that were seen allow', {
    ...options,
    timeout: 240_000,
  }, async () => {
    const jumps = fc.integer({ min: -50, max: 50 });
    const schedule = fc.array(
      step(jumps).filter((one) => one.do !== 'crash' && !(one.do === 'settle' && one.share > 1)),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(schedule, async (steps) => {
        const { entries } = await play({ create, steps, check: () => undefined });
        for (const { by, of, period, micros } of BUDGETS) {
          const own = entries.filter(({ limits }) =>
            limits.some((one) => one.by === by && one.of === of && one.period === period),
          );
          const windows = new Set(own.map(({ at }) => calendar.find(period, at).start));
          const total = own.reduce((sum, { charged, reserved }) => sum + (charged ?? reserved), 0);
          expect(total).toBeLessThanOrEqual(windows.size * micros);
        }
      }),
      { numRuns: countRuns(name, 200) },
    );
  });
});
