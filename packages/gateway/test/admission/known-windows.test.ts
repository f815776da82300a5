/** The part of budgets that a node uses while the server is away, and what it leaves to others. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AccountLimit } from '../../src/admission/backend.ts';
import { type Held, KnownWindows, nameWindow } from '../../src/admission/shared/known-windows.ts';
import { TestClock } from '../gateway/test-clock.ts';

const DAY: AccountLimit = { by: 'tag', of: 't', name: 't', period: 'day', micros: 1000, window: { start: 0, end: 86_400_000 } };

const KEY = nameWindow(DAY);

/** What one node knows. `ledger`: what the ledger has. */
function createNode(nodes: number, ledger: { spent: number } = { spent: 0 }) {
  const clock = new TestClock();
  const held = new Map<string, Held>();
  const windows = new KnownWindows({
    clock,
    readSpending: async () => ledger.spent,
    countNodes: () => nodes,
    held,
  });
  const hold = (member: string, micros: number, sharedAt?: number): Held => {
    const reserved = { slots: undefined, micros, accounts: [DAY], keys: [KEY], sharedAt };
    held.set(member, reserved);
    return reserved;
  };
  const end = (member: string, charged: number) => {
    const reserved = held.get(member);
    if (!reserved) throw new Error(`${member} does not run`);
    held.delete(member);
    return windows.end(reserved, charged);
  };
  const see = (spent: number, reserved: number, at: number, epoch = 'e') => windows.see(KEY, { spent, reserved, at, epoch });
  const readLeft = async (): Promise<number> => {
    await windows.prepare([DAY]);
    return windows.findLeft(DAY).left;
  };
  return { clock, windows, hold, end, see, readLeft };
}

describe('the part of a node', () => {
  test('is an equal one of what the ledger leaves, when the server never replied', async () => {
    const { readLeft, hold, end } = createNode(2, { spent: 200 });
    expect(await readLeft()).toBe(400);
    hold('a', 100);
    expect(await readLeft()).toBe(300);
    end('a', 30);
    expect(await readLeft()).toBe(370);
  });

  test('is what others leave, when they hold more than theirs', async () => {
    const { readLeft, hold, see } = createNode(2);
    hold('own', 100, 5);
    see(0, 900, 5);
    // Of 1,000, others hold 800.
    expect(await readLeft()).toBe(100);
  });

  test('is what it holds itself, when that is more', async () => {
    const { readLeft, hold, see, end } = createNode(2);
    hold('own', 800, 5);
    see(0, 800, 5);
    expect(await readLeft()).toBe(0);
    end('own', 300);
    expect(await readLeft()).toBe(500);
  });

  test('counts what has ended until the server has charged it and replied', async () => {
    const { readLeft, hold, see, end } = createNode(1);
    hold('own', 400, 5);
    see(0, 400, 5);
    const ended = end('own', 300);
    expect(await readLeft()).toBe(700);
    ended.settledAt = 7;
    see(300, 0, 7);
    expect(await readLeft()).toBe(700);
  });

  test('does not depend on the order in which replies arrive', async () => {
    const { readLeft, see } = createNode(2);
    see(0, 900, 6);
    see(0, 100, 5);
    expect(await readLeft()).toBe(100);
  });

  test('is not more than the ledger leaves: others spend through the server that this node does not reach', async () => {
    const ledger = { spent: 0 };
    const { clock, readLeft, see } = createNode(2, ledger);
    see(0, 0, 5);
    expect(await readLeft()).toBe(500);
    ledger.spent = 950;
    await clock.advance(1000);
    await readLeft();
    await clock.advance(0);
    expect(await readLeft()).toBe(50);
  });

  test('is that of the ledger when the server had replied long before it was lost', async () => {
    const { clock, windows, readLeft, see } = createNode(2, { spent: 400 });
    see(0, 900, 5);
    await clock.advance(60_000);
    windows.see('another', { spent: 0, reserved: 0, at: 60_005, epoch: 'e' });
    expect(await readLeft()).toBe(300);
  });

  test('of a budget that was exceeded is nothing', async () => {
    const { readLeft, hold, see } = createNode(2, { spent: 700 });
    hold('own', 200, 5);
    see(700, 500, 5);
    expect(await readLeft()).toBeLessThanOrEqual(0);
  });
});

test('nodes that know the same together spend no more than the budget, whatever each of them held', async () => {
  const amounts = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(amounts, fc.integer({ min: 0, max: 900 }), async (holdings, spent) => {
      const sum = holdings.reduce((total, micros) => total + micros, 0);
      fc.pre(spent + sum <= DAY.micros);
      let used = spent + sum;
      for (const micros of holdings) {
        const node = createNode(holdings.length, { spent });
        node.hold('own', micros, 5);
        node.see(spent, sum, 5);
        const left = await node.readLeft();
        expect(left).toBeGreaterThanOrEqual(0);
        used += left;
      }
      expect(used).toBeLessThanOrEqual(DAY.micros);
      // With one node, nothing is left over.
      if (holdings.length === 1) expect(used).toBe(DAY.micros);
    }),
  );
});

test('a node that has lost the server leaves to others what it has given back', async () => {
  const [one, other] = [createNode(2), createNode(2)];
  one.hold('a', 800, 5);
  one.see(0, 800, 5);
  one.end('a', 100).settledAt = 6;
  other.hold('b', 200, 7);
  other.see(100, 200, 7);
  expect(await one.readLeft()).toBe(400);
  expect(await other.readLeft()).toBe(250);
});

test('a node keeps nothing of what it may have given back: the reply was lost', async () => {
  const { hold, see, end, readLeft } = createNode(2);
  hold('a', 800, 5);
  see(0, 800, 5);
  end('a', 100).isTold = true;
  expect(await readLeft()).toBe(400);
});

/** What happens while the server is used: a request of a node, or its end, whose call or reply may get lost. */
type Act = { readonly node: number } & (
  | { readonly type: 'take'; readonly micros: number }
  | { readonly type: 'end'; readonly share: number; readonly fate: 'settled' | 'reply lost' | 'not sent' }
);

const arbitraryAct = (nodes: number): fc.Arbitrary<Act> => {
  const node = fc.nat({ max: nodes - 1 });
  return fc.oneof(
    fc.record({ node, type: fc.constant('take' as const), micros: fc.integer({ min: 1, max: 900 }) }),
    fc.record({
      ...{ node, type: fc.constant('end' as const), share: fc.constantFrom(0, 0.1, 1) },
      fate: fc.constantFrom('settled' as const, 'settled' as const, 'reply lost' as const, 'not sent' as const),
    }),
  );
};

/** A node that uses a server, what it runs, and what others have reserved and were charged since its last reply. */
type Player = ReturnType<typeof createNode> & { readonly running: { name: string; micros: number }[]; unheard: number };

/** A server without faults, which several nodes use in turns until they lose it. */
class Play {
  readonly #nodes: readonly Player[];
  #spent = 0;
  #reserved = 0;
  #at = 0;
  #paid = 0;

  constructor(count: number) {
    this.#nodes = Array.from({ length: count }, () => ({ ...createNode(count), running: [], unheard: 0 }));
  }

  async act(act: Act): Promise<void> {
    const node = this.#nodes[act.node];
    if (!node) return;
    this.#at++;
    await node.clock.advance(1);
    if (act.type === 'take') this.#take(node, act.micros);
    else this.#end(node, act);
  }

  #take(node: Player, micros: number): void {
    if (this.#spent + this.#reserved + micros <= DAY.micros) {
      const name = String(this.#at);
      this.#reserved += micros;
      for (const other of this.#nodes) other.unheard += micros;
      node.running.push({ name, micros });
      node.hold(name, micros, this.#at);
    }
    node.see(this.#spent, this.#reserved, this.#at);
    node.unheard = 0;
  }

  #end(node: Player, { share, fate }: Act & { type: 'end' }): void {
    const oldest = node.running.shift();
    if (!oldest) return;
    const charged = Math.floor(oldest.micros * share);
    const ended = node.end(oldest.name, charged);
    this.#paid += charged;
    if (fate === 'not sent') return;
    this.#reserved -= oldest.micros;
    this.#spent += charged;
    for (const other of this.#nodes) if (other !== node) other.unheard += charged;
    if (fate === 'settled') ended.settledAt = this.#at;
    else ended.isTold = true;
  }

  /** What all nodes spend when each uses what is left to it, and what they have not heard of each other. */
  async lose(): Promise<{ most: number; unheard: number }> {
    let most = this.#paid;
    for (const { readLeft, running } of this.#nodes)
      most += Math.max(0, await readLeft()) + running.reduce((sum, { micros }) => sum + micros, 0);
    return { most, unheard: this.#nodes.reduce((sum, node) => sum + node.unheard, 0) };
  }
}

test('nodes that lose the server exceed a budget by no more than they have not heard of each other', async () => {
  const scene = fc
    .integer({ min: 1, max: 3 })
    .chain((count) => fc.tuple(fc.constant(count), fc.array(arbitraryAct(count), { maxLength: 12 })));
  await fc.assert(
    fc.asyncProperty(scene, async ([count, acts]) => {
      const play = new Play(count);
      for (const act of acts) await play.act(act);
      const { most, unheard } = await play.lose();
      expect(most).toBeLessThanOrEqual(DAY.micros + unheard);
    }),
    { numRuns: 600 },
  );
});
