import { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { ClientConnection } from '../../src/exchange/client-connection.ts';
import { chooseFinish, type Lane, Race } from '../../src/exchange/race.ts';
import { type Candidate, type Outcome, STOPPED } from '../../src/exchange/types.ts';
import { TestClock } from '../gateway/test-clock.ts';

const clock = new TestClock();
const connection = (): ClientConnection =>
  // biome-ignore lint/suspicious/noExplicitAny: only its events matter
  new ClientConnection(new ServerResponse({ method: 'POST', httpVersionMajor: 1, httpVersionMinor: 1 } as any), clock);

// A race only hands candidates on.
const candidateOf = (key: string): Candidate => ({ key }) as Candidate;

const FAILED: Outcome = { is: 'failed', error: STOPPED };
const BROKEN: Outcome = { is: 'broken', error: STOPPED };
const ANSWERED: Outcome = { is: 'answered' };

function start(): { race: Race; one: Lane; two: Lane; client: ClientConnection } {
  const client = connection();
  const race = new Race(client);
  return { race, one: race.enter(candidateOf('one')), two: race.enter(candidateOf('two')), client };
}

afterEach(() => expect(clock.running).toBe(0));

describe('a claim', () => {
  test('is granted to the first lane only, and ends the others before it is granted', () => {
    const { race, one, two } = start();
    const ended: string[] = [];
    one.onLost(() => ended.push('one'));
    two.onLost(() => ended.push('two'));
    const claim = two.claim();
    expect(claim?.isHeld).toBe(true);
    expect(ended).toEqual(['one']);
    expect(one.isOver).toBe(true);
    expect(one.claim()).toBeUndefined();
    expect(race.wasClaimed).toBe(true);
  });

  test('is free again when the response is truncated and its lane leaves', () => {
    const { race, one } = start();
    const first = one.claim();
    expect(race.enter(candidateOf('three')).isOver).toBe(true);
    one.leave(BROKEN);
    expect(first?.isHeld).toBe(false);
    const next = race.enter(candidateOf('four'));
    expect(next.claim()?.isHeld).toBe(true);
    expect(one.claim()).toBeUndefined();
  });

  test('of the same lane replaces the one before', () => {
    const { one } = start();
    const first = one.claim();
    const second = one.claim();
    expect([first?.isHeld, second?.isHeld]).toEqual([false, true]);
  });

  test('stays with a response that has ended', () => {
    const { race, one } = start();
    one.claim();
    one.leave(ANSWERED);
    expect(race.enter(candidateOf('three')).claim()).toBeUndefined();
  });

  test('of the gateway ends every lane for good', () => {
    const { race, one, two } = start();
    const claim = one.claim();
    const own = race.conclude();
    expect([claim?.isHeld, own.isHeld, one.isOver, two.isOver]).toEqual([false, true, true, true]);
    expect(race.enter(candidateOf('three')).claim()).toBeUndefined();
  });
});

describe('a lane that waits', () => {
  test('waits for the time, and for a promise', async () => {
    const { one } = start();
    await expect(clock.after(50, one.wait(50))).resolves.toBe(true);
    await expect(one.waitFor(Promise.resolve())).resolves.toBe(true);
    await expect(one.waitFor(Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  test('ends at once when another lane claims the client', async () => {
    const { one, two } = start();
    const waits = [one.wait(50_000), one.waitFor(new Promise(() => undefined))];
    two.claim();
    await expect(Promise.all(waits)).resolves.toEqual([false, false]);
    expect(one.explainEnd()).toEqual({ is: 'lost' });
    await expect(one.wait(1)).resolves.toBe(false);
  });

  test('ends at once when the exchange is stopped', async () => {
    const { one, client } = start();
    const waits = [one.wait(50_000), one.waitFor(new Promise(() => undefined))];
    client.stop(STOPPED);
    await expect(Promise.all(waits)).resolves.toEqual([false, false]);
    expect(one.explainEnd()).toEqual({ is: 'failed', error: STOPPED });
  });

  test('gets no loss that it no longer listens for', () => {
    const { one, two } = start();
    let count = 0;
    one.onLost(() => count++)();
    two.claim();
    expect(count).toBe(0);
  });
});

test('the result of two lanes is the one with which the client has most', () => {
  const finish = (outcome: Outcome, key = 'x') => ({ outcome, candidate: candidateOf(key) });
  const order: Outcome[] = [{ is: 'lost' }, FAILED, BROKEN, { is: 'gone' }, ANSWERED];
  for (const [low, worse] of order.entries())
    for (const better of order.slice(low)) {
      expect(chooseFinish(finish(worse), finish(better)).outcome).toBe(better);
      expect(chooseFinish(finish(better), finish(worse)).outcome).toBe(better);
    }
  expect(chooseFinish(finish(FAILED, 'one'), finish(FAILED, 'two')).candidate.key).toBe('two');
});
