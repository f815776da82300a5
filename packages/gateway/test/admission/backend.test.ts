/** What limits do, held by every backend: in memory, in a real Redis, and in a real PostgreSQL. */
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import {
  type AccountLimit,
  LEASE_MS,
  type LimitBackend,
  RATE_MS,
  type RateState,
  type Shortage,
} from '../../src/admission/backend.ts';
import { BACKENDS, type CreateBackend, closeBackends, stopServers } from './backends.ts';

afterEach(closeBackends);
afterAll(stopServers);

const DAY: AccountLimit = { by: 'key', of: 'a', name: 'alice', period: 'day', micros: 100, window: { start: 0, end: 1000 } };

const acquire = async (backend: LimitBackend, name: string, member: string, limit: number): Promise<boolean> =>
  (await backend.take({ member, slots: { name, limit }, rates: [] })).result === 'taken';

const release = async (backend: LimitBackend, slots: string, member: string): Promise<void> =>
  backend.end({ member, slots, corrections: [] });

async function consume(backend: LimitBackend, counter: string, amount: number, limit: number): Promise<RateState> {
  const { rates } = await backend.take({ member: 'm', rates: [{ counter, amount, limit }] });
  if (!rates[0]) throw new Error('a rate has no state');
  return rates[0];
}

const correct = async (backend: LimitBackend, counter: string, period: number, by: number): Promise<void> =>
  backend.end({ member: 'm', corrections: [{ counter, period, by }] });

/** The shortage; undefined when everything was reserved. */
async function reserve(
  backend: LimitBackend,
  member: string,
  micros: number,
  accounts: readonly AccountLimit[],
): Promise<Shortage | undefined> {
  const { result } = await backend.take({ member, rates: [], money: { micros, accounts } });
  if (typeof result === 'object') return result;
  expect(result).toBe('taken');
  return undefined;
}

const settle = async (backend: LimitBackend, member: string, charged: number): Promise<void> =>
  backend.end({ member, corrections: [], charged });

/** One after the other. */
async function inOrder<T, U>(items: readonly T[], run: (item: T) => Promise<U> | U): Promise<U[]> {
  const results: U[] = [];
  for (const item of items) results.push(await run(item));
  return results;
}

describe.each(BACKENDS)('$name', ({ create: createBackend, options }) => {
  const create: CreateBackend = (read) => createBackend(read);
  describe('limits', options, () => {
    describe('concurrency', () => {
      test('admits the limit, and one more when one has ended', async () => {
        const { backend } = await create();
        expect(await inOrder(['1', '2', '3'], (member) => acquire(backend, 'k', member, 2))).toEqual([true, true, false]);
        expect(await acquire(backend, 'other', 'elsewhere', 1)).toBe(true);
        await release(backend, 'k', '1');
        await release(backend, 'k', '1');
        expect(await inOrder(['4', '5'], (member) => acquire(backend, 'k', member, 2))).toEqual([true, false]);
      });

      test('a slot that is not renewed is free after its lease, a renewed one is not', async () => {
        const { backend, clock } = await create();
        await acquire(backend, 'k', 'lost', 2);
        await acquire(backend, 'k', 'kept', 2);
        await clock.advance(LEASE_MS - 1);
        await backend.renew([{ member: 'kept', slots: 'k' }]);
        expect(await acquire(backend, 'k', 'next', 2)).toBe(false);
        await clock.advance(1);
        expect(await acquire(backend, 'k', 'next', 2)).toBe(true);
        expect(await acquire(backend, 'k', 'more', 2)).toBe(false);
      });

      test('a lower limit refuses until fewer are running', async () => {
        const { backend } = await create();
        await inOrder(['1', '2', '3'], (member) => acquire(backend, 'k', member, 5));
        expect(await acquire(backend, 'k', '4', 2)).toBe(false);
        await release(backend, 'k', '1');
        await release(backend, 'k', '2');
        expect(await acquire(backend, 'k', '4', 2)).toBe(true);
      });
    });

    describe('rates', () => {
      test('a period begins with the first request and ends a minute later', async () => {
        const { backend, clock } = await create();
        expect(await consume(backend, 'k', 60, 60)).toMatchObject({ isAllowed: true, used: 60, resetsInMs: RATE_MS });
        await clock.advance(RATE_MS - 1);
        expect(await consume(backend, 'k', 1, 60)).toMatchObject({ isAllowed: false, used: 60, resetsInMs: 1 });
        await clock.advance(1);
        expect(await consume(backend, 'k', 1, 60)).toMatchObject({ isAllowed: true, used: 1 });
      });

      test.each([
        ['gives back what was not used', -30, 70],
        ['counts more than was expected', 50, 150],
        ['never becomes negative', -1000, 0],
      ])('a correction %s', async (_, by, used) => {
        const { backend } = await create();
        const { period } = await consume(backend, 'k', 100, 1000);
        await correct(backend, 'k', period, by);
        expect((await consume(backend, 'k', 0, 1000)).used).toBe(used);
      });

      test.each([
        ['saved counts nothing', -30, 5],
        ['used counts now', 30, 35],
      ])('what a period before has %s', async (_, by, used) => {
        const { backend, clock } = await create();
        const { period } = await consume(backend, 'k', 100, 1000);
        await clock.advance(RATE_MS);
        await consume(backend, 'k', 5, 1000);
        await correct(backend, 'k', period, by);
        expect((await consume(backend, 'k', 0, 1000)).used).toBe(used);
      });

      test('counters of a minute ago are forgotten', async () => {
        const { backend, clock } = await create();
        const { period } = await consume(backend, 'k', 100, 1000);
        await clock.advance(RATE_MS);
        await backend.renew([]);
        expect(await consume(backend, 'k', 0, 1000)).toMatchObject({ used: 0 });
        expect((await consume(backend, 'k', 0, 1000)).period).not.toBe(period);
      });
    });

    describe('budgets', () => {
      test('the first request waits for what was spent before; the others do not', async () => {
        const reads: number[] = [];
        const { backend } = await create(async (since) => reads.push(since) && 40);
        const [one, two] = [reserve(backend, '1', 30, [DAY]), reserve(backend, '2', 30, [DAY])];
        expect([await one, await two]).toEqual([undefined, undefined]);
        // Of two that come together, both may find nothing on a shared server, and read it: the first result counts.
        const before = [...reads];
        expect([[0], [0, 0]]).toContainEqual(before);
        expect(await reserve(backend, '3', 1, [DAY])).toEqual({ account: DAY, spent: 40, reserved: 60 });
        expect(reads).toEqual(before);
      });

      test('a read that fails refuses, and the next request reads again', async () => {
        let isBroken = true;
        const { backend } = await create(() => (isBroken ? Promise.reject(new Error('no')) : Promise.resolve(0)));
        await expect(reserve(backend, '1', 1, [DAY])).rejects.toThrow('no');
        isBroken = false;
        expect(await reserve(backend, '2', 100, [DAY])).toBeUndefined();
      });

      test('a reservation is in all accounts or in none', async () => {
        const { backend } = await create();
        const tag: AccountLimit = { ...DAY, by: 'tag', of: 't', micros: 10 };
        expect(await reserve(backend, '1', 11, [DAY, tag])).toMatchObject({ account: tag });
        expect((await backend.list()).map(({ by, reserved }) => [by, reserved])).toEqual([
          ['key', 0],
          ['tag', 0],
        ]);
      });

      test.each([
        [99, true],
        [100, true],
        [101, false],
      ])('%d of 100', async (micros, fits) => {
        const { backend } = await create();
        expect((await reserve(backend, '1', micros, [DAY])) === undefined).toBe(fits);
      });

      test('what costs nothing is admitted when the budget is spent', async () => {
        const { backend } = await create(async () => 500);
        expect(await reserve(backend, '1', 0, [DAY])).toBeUndefined();
        expect(await reserve(backend, '2', 1, [DAY])).toMatchObject({ spent: 500, reserved: 0 });
      });

      test('cost counts in the window of the admission, also when it is settled in the next', async () => {
        const { backend } = await create();
        const next = { ...DAY, window: { start: 1000, end: 2000 } };
        await reserve(backend, '1', 80, [DAY]);
        expect(await reserve(backend, '2', 80, [next])).toBeUndefined();
        await settle(backend, '1', 90);
        expect(await backend.list()).toMatchObject([{ spent: 0, reserved: 80 }]);
        expect(await reserve(backend, '3', 11, [DAY])).toMatchObject({ spent: 90, reserved: 0 });
      });

      test('an overrun is deducted before the next admission', async () => {
        const { backend } = await create();
        await reserve(backend, '1', 50, [DAY]);
        await settle(backend, '1', 95);
        expect(await reserve(backend, '2', 6, [DAY])).toEqual({ account: DAY, spent: 95, reserved: 0 });
        expect(await reserve(backend, '3', 5, [DAY])).toBeUndefined();
      });

      test('a raise fits or changes nothing', async () => {
        const { backend } = await create();
        await reserve(backend, '1', 50, [DAY]);
        await reserve(backend, '2', 20, [DAY]);
        expect(
          await inOrder(
            [
              ['1', 81],
              ['1', 80],
              ['1', 10],
              ['none', 1],
            ] as const,
            ([member, micros]) => backend.raise(member, micros),
          ),
        ).toEqual([false, true, true, false]);
        expect(await backend.list()).toMatchObject([{ spent: 0, reserved: 100 }]);
      });
    });
  });
});
