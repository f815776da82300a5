import { describe, expect, test } from 'vitest';
import { type AccountLimit, LEASE_MS, RATE_MS } from '../../src/admission/backend.ts';
import { MemoryBackend } from '../../src/admission/memory.ts';
import { TestClock } from '../gateway/test-clock.ts';

function create(read: (since: number) => Promise<number> = async () => 0) {
  const clock = new TestClock();
  return { clock, backend: new MemoryBackend(clock, (_, since) => read(since)) };
}

const DAY: AccountLimit = { by: 'key', of: 'a', name: 'alice', period: 'day', micros: 100, window: { start: 0, end: 1000 } };

describe('concurrency', () => {
  test('admits the limit, and one more when one has ended', () => {
    const { backend } = create();
    expect(['1', '2', '3'].map((member) => backend.acquire('k', member, 2))).toEqual([true, true, false]);
    expect(backend.acquire('other', '1', 1)).toBe(true);
    backend.release('k', '1');
    backend.release('k', '1');
    expect(['4', '5'].map((member) => backend.acquire('k', member, 2))).toEqual([true, false]);
  });

  test('a slot that is not renewed is free after its lease, a renewed one is not', async () => {
    const { backend, clock } = create();
    backend.acquire('k', 'lost', 2);
    backend.acquire('k', 'kept', 2);
    await clock.advance(LEASE_MS - 1);
    backend.renew([{ member: 'kept', slots: 'k' }]);
    expect(backend.acquire('k', 'next', 2)).toBe(false);
    await clock.advance(1);
    expect(backend.acquire('k', 'next', 2)).toBe(true);
    expect(backend.acquire('k', 'more', 2)).toBe(false);
  });

  test('a lower limit refuses until fewer are running', () => {
    const { backend } = create();
    for (const member of ['1', '2', '3']) backend.acquire('k', member, 5);
    expect(backend.acquire('k', '4', 2)).toBe(false);
    backend.release('k', '1');
    backend.release('k', '2');
    expect(backend.acquire('k', '4', 2)).toBe(true);
  });
});

describe('rates', () => {
  test('a period begins with the first request and ends a minute later', async () => {
    const { backend, clock } = create();
    expect(backend.consume('k', 60, 60)).toMatchObject({ isAllowed: true, used: 60, resetsInMs: RATE_MS });
    await clock.advance(RATE_MS - 1);
    expect(backend.consume('k', 1, 60)).toMatchObject({ isAllowed: false, used: 60, resetsInMs: 1 });
    await clock.advance(1);
    expect(backend.consume('k', 1, 60)).toMatchObject({ isAllowed: true, used: 1 });
  });

  test.each([
    ['gives back what was not used', -30, 70],
    ['counts more than was expected', 50, 150],
    ['never becomes negative', -1000, 0],
  ])('a correction %s', (_, by, used) => {
    const { backend } = create();
    const { period } = backend.consume('k', 100, 1000);
    backend.correct('k', period, by);
    expect(backend.consume('k', 0, 1000).used).toBe(used);
  });

  test.each([
    ['saved counts nothing', -30, 5],
    ['used counts now', 30, 35],
  ])('what a period before has %s', async (_, by, used) => {
    const { backend, clock } = create();
    const { period } = backend.consume('k', 100, 1000);
    await clock.advance(RATE_MS);
    backend.consume('k', 5, 1000);
    backend.correct('k', period, by);
    expect(backend.consume('k', 0, 1000).used).toBe(used);
  });

  test('counters of a minute ago are forgotten', async () => {
    const { backend, clock } = create();
    const { period } = backend.consume('k', 100, 1000);
    await clock.advance(RATE_MS);
    backend.renew([]);
    expect(backend.consume('k', 0, 1000)).toMatchObject({ used: 0 });
    expect(backend.consume('k', 0, 1000).period).not.toBe(period);
  });
});

describe('budgets', () => {
  test('the first request waits for what was spent before; the others do not', async () => {
    const reads: number[] = [];
    const { backend } = create(async (since) => reads.push(since) && 40);
    const [one, two] = [backend.reserve('1', 30, [DAY]), backend.reserve('2', 30, [DAY])];
    expect(one).toBeInstanceOf(Promise);
    expect([await one, await two]).toEqual([undefined, undefined]);
    expect(backend.reserve('3', 1, [DAY])).toEqual({ account: DAY, spent: 40, reserved: 60 });
    expect(reads).toEqual([0]);
  });

  test('a read that fails refuses, and the next request reads again', async () => {
    let isBroken = true;
    const { backend } = create(() => (isBroken ? Promise.reject(new Error('no')) : Promise.resolve(0)));
    await expect(backend.reserve('1', 1, [DAY])).rejects.toThrow('no');
    isBroken = false;
    expect(await backend.reserve('2', 100, [DAY])).toBeUndefined();
  });

  test('a reservation is in all accounts or in none', async () => {
    const { backend } = create();
    const tag: AccountLimit = { ...DAY, by: 'tag', of: 't', micros: 10 };
    expect(await backend.reserve('1', 11, [DAY, tag])).toMatchObject({ account: tag });
    expect(backend.list().map(({ by, reserved }) => [by, reserved])).toEqual([
      ['key', 0],
      ['tag', 0],
    ]);
  });

  test.each([
    [99, true],
    [100, true],
    [101, false],
  ])('%d of 100', async (micros, fits) => {
    const { backend } = create();
    expect((await backend.reserve('1', micros, [DAY])) === undefined).toBe(fits);
  });

  test('what costs nothing is admitted when the budget is spent', async () => {
    const { backend } = create(async () => 500);
    expect(await backend.reserve('1', 0, [DAY])).toBeUndefined();
    expect(backend.reserve('2', 1, [DAY])).toMatchObject({ spent: 500, reserved: 0 });
  });

  test('cost counts in the window of the admission, also when it is settled in the next', async () => {
    const { backend } = create();
    const next = { ...DAY, window: { start: 1000, end: 2000 } };
    await backend.reserve('1', 80, [DAY]);
    expect(backend.reserve('2', 80, [next])).toBeUndefined();
    backend.settle('1', 90);
    expect(backend.list()).toMatchObject([{ spent: 0, reserved: 80 }]);
    expect(backend.reserve('3', 11, [DAY])).toMatchObject({ spent: 90, reserved: 0 });
  });

  test('an overrun is deducted before the next admission', async () => {
    const { backend } = create();
    await backend.reserve('1', 50, [DAY]);
    backend.settle('1', 95);
    expect(backend.reserve('2', 6, [DAY])).toEqual({ account: DAY, spent: 95, reserved: 0 });
    expect(backend.reserve('3', 5, [DAY])).toBeUndefined();
  });

  test('a raise fits or changes nothing', async () => {
    const { backend } = create();
    await backend.reserve('1', 50, [DAY]);
    await backend.reserve('2', 20, [DAY]);
    expect([backend.raise('1', 81), backend.raise('1', 80), backend.raise('1', 10), backend.raise('none', 1)]).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(backend.list()).toMatchObject([{ spent: 0, reserved: 100 }]);
  });
});
