import { describe, expect, test } from 'vitest';
import { findAffinity } from '../../src/routing/router.ts';
import { Fleet } from './fleet.ts';

const countServed = (fleet: Fleet): number[] => fleet.targets.map(({ served }) => served);

const ask = (fleet: Fleet, count: number): number[] => {
  const before = countServed(fleet);
  for (let i = 0; i < count; i++) fleet.request();
  return countServed(fleet).map((served, i) => served - (before[i] ?? 0));
};

describe('shares of requests', () => {
  test.each<[readonly number[], number]>([
    [[1, 1, 1], 1],
    [[3, 1], 2],
    [[1, 2, 7], 3],
    [[0.5, 0.5, 1], 4],
  ])('weights %j are kept within 2 %%', (weights, seed) => {
    const sum = weights.reduce((a, b) => a + b);
    const shares = ask(new Fleet({ weights, seed }), 10_000).map((served) => served / 10_000);
    for (const [i, weight] of weights.entries()) expect(Math.abs((shares[i] ?? 0) - weight / sum)).toBeLessThan(0.02);
  });

  test('the share of a paused target is divided among the others by their weights', () => {
    const fleet = new Fleet({ weights: [4, 2, 1] });
    for (const target of fleet.targets.slice(0, 1)) target.isUp = false;
    ask(fleet, 100);
    const [first, second = 0, third = 0] = ask(fleet, 3000);
    expect(first).toBe(0);
    expect(second / third).toBeGreaterThan(1.7);
    expect(second / third).toBeLessThan(2.3);
  });

  test('least_busy chooses the target with the fewest running requests, by weight', () => {
    const fleet = new Fleet({ sharing: 'least_busy', weights: [1, 1, 2] });
    const begin = (): string => {
      const [first] = fleet.plan().candidates;
      if (first) fleet.router.began(first);
      return first?.key ?? '';
    };
    const counts = new Map<string, number>();
    for (let i = 0; i < 40; i++) {
      const key = begin();
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    expect(Object.fromEntries(counts)).toEqual({ 'p/m0': 10, 'p/m1': 10, 'p/m2': 20 });
    for (const target of fleet.targets) for (let i = 0; i < 20; i++) fleet.router.ended(target);
    for (const { key } of fleet.targets) expect(fleet.router.stats.countRunning(key)).toBe(0);
  });

  test('cheapest chooses the lowest price, shares equal ones, and takes unknown prices last', () => {
    const prices: Record<string, number | undefined> = { m0: 5, m1: 2, m2: 2, m3: undefined };
    const fleet = new Fleet({ sharing: 'cheapest', weights: [1, 1, 1, 1], price: (model) => prices[model] });
    const [first, second = 0, third = 0, fourth] = ask(fleet, 1000);
    expect([first, fourth, second + third]).toEqual([0, 0, 1000]);
    expect(Math.min(second, third)).toBeGreaterThan(400);
    expect(
      fleet
        .plan()
        .candidates.slice(2)
        .map(({ key }) => key),
    ).toEqual(['p/m0', 'p/m3']);
  });

  test('fastest chooses the shortest time, tries every target once, and finds one that has become faster', () => {
    const fleet = new Fleet({ sharing: 'fastest' });
    const [first, second, third] = fleet.targets as [never, never, never] & typeof fleet.targets;
    Object.assign(first, { ms: 100 });
    Object.assign(second, { ms: 300 });
    Object.assign(third, { ms: 900 });
    const before = ask(fleet, 1000);
    expect(before[0]).toBeGreaterThan(930);
    expect(Math.min(...before)).toBeGreaterThan(1);
    Object.assign(third, { ms: 20 });
    ask(fleet, 1000);
    expect(ask(fleet, 1000)[2]).toBeGreaterThan(930);
  });

  test('a target whose pause has ended gets the next request, whatever the strategy', () => {
    for (const sharing of ['weighted', 'least_busy', 'fastest', 'cheapest'] as const) {
      const fleet = new Fleet({ sharing, weights: [1000, 1], price: () => 1 });
      const [, second] = fleet.targets;
      if (!second) continue;
      fleet.breakers.rest(second.key, 'down', 1000);
      expect(fleet.plan().candidates).toHaveLength(2);
      expect(ask(fleet, 5)).toEqual([5, 0]);
      fleet.now += 1000;
      expect(ask(fleet, 1)).toEqual([0, 1]);
    }
  });
});

describe('conversations', () => {
  test('stay with their target, by any strategy that shares requests', () => {
    for (const sharing of ['weighted', 'least_busy', 'fastest', 'cheapest'] as const) {
      const fleet = new Fleet({ sharing, price: () => 1 });
      const { target, plan } = fleet.request('a');
      expect(target && findAffinity(plan, target)).toBe('new');
      for (let i = 0; i < 50; i++) {
        const next = fleet.request('a');
        expect(next.target).toBe(target);
        expect(target && findAffinity(next.plan, target)).toBe('hit');
      }
    }
  });

  test.each([
    [300_000, 299_999, 'hit'],
    [300_000, 300_000, 'new'],
    [3_600_000, 3_599_999, 'hit'],
  ])('are kept for %i ms: after %i ms it is a %s', (affinityMs, passed, state) => {
    const fleet = new Fleet({ affinityMs });
    fleet.request('a');
    fleet.now += passed;
    const { target, plan } = fleet.request('a');
    expect(target && findAffinity(plan, target)).toBe(state);
  });

  test('every turn renews the time', () => {
    const fleet = new Fleet();
    const { target } = fleet.request('a');
    for (let i = 0; i < 10; i++) {
      fleet.now += 200_000;
      expect(fleet.request('a').target).toBe(target);
    }
  });

  test('leave a target that is paused, and stay with the next one after it has recovered', () => {
    const fleet = new Fleet();
    const { target: first } = fleet.request('a');
    if (!first) throw new Error('no target');
    first.isUp = false;
    for (let i = 0; i < 5; i++) fleet.breakers.failed(first.key, 'down');
    const moved = fleet.request('a');
    expect(moved.target).not.toBe(first);
    expect(moved.target && findAffinity(moved.plan, moved.target)).toBe('miss');
    first.isUp = true;
    fleet.now += 60_000;
    const stayed = fleet.request('a');
    expect(stayed.target).toBe(moved.target);
    expect(stayed.target && findAffinity(stayed.plan, stayed.target)).toBe('hit');
  });

  test('are not named when they need not be: one target, tiers of one, or affinity off', () => {
    const fail = (): never => {
      throw new Error('must not be called');
    };
    const prices = {} as never; // not used
    const single = new Fleet({ weights: [1] });
    const request = { kind: 'stream', affinityMs: 1000, nameConversation: fail, prices } as const;
    expect(single.router.plan(single.targets, request).candidates).toBe(single.targets);
    const tiers = new Fleet().targets.map((target, tier) => ({ ...target, tier, isShared: false }));
    expect(single.router.plan(tiers, request).candidates).toEqual(tiers);
    const off = new Fleet();
    expect(off.router.plan(off.targets, { ...request, affinityMs: null }).conversation).toBeUndefined();
  });

  test('the number of those that are remembered is bounded', () => {
    const fleet = new Fleet();
    const [target] = fleet.targets;
    for (let i = 0; i < 50_000; i++) fleet.router.affinity.bind(`conversation-${i}`, target?.key ?? '', 1000);
    const known = Array.from({ length: 50_000 }, (_, i) => fleet.router.affinity.find(`conversation-${i}`)).filter(Boolean);
    expect(known.length).toBeLessThanOrEqual(20_000);
    expect(known.length).toBeGreaterThan(1000);
  });
});

describe('keys that rest', () => {
  test('are tried last, also in front of other tiers, until their time is over', () => {
    const fleet = new Fleet({ weights: [1, 1] });
    const [a, b] = fleet.targets;
    if (!a || !b) throw new Error('no targets');
    const targets = [
      { ...a, endpointId: 'p#1' },
      { ...b, endpointId: 'p#2' },
      { ...a, key: 'q/m', tier: 1, isShared: false },
    ];
    const plan = (): string[] =>
      fleet.router
        .plan(targets, { kind: 'whole', affinityMs: null, nameConversation: () => undefined, prices: {} as never }) // not used
        .candidates.map(({ key }) => key);
    fleet.router.stats.rest('p#1', 30_000);
    expect(plan()).toEqual(['p/m1', 'q/m', 'p/m0']);
    fleet.router.stats.rest('p#2', 40_000);
    expect(plan()[0]).toBe('q/m');
    fleet.now += 30_000;
    expect(plan()).toEqual(['p/m0', 'q/m', 'p/m1']);
    fleet.now += 10_000;
    expect(plan().slice(0, 2).sort()).toEqual(['p/m0', 'p/m1']);
  });
});
