/** Several nodes with one server for their limits, which is emptied, frozen, killed and restarted. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tried } from '../../../../test/tries.ts';
import { pace } from '../../../../test/wait.ts';
import type { AccountLimit, LimitBackend, Shortage } from '../../src/admission/backend.ts';
import type { SharedBackend } from '../../src/admission/shared/backend.ts';
import type { Driver, DriverEvents } from '../../src/admission/shared/driver.ts';
import {
  closeBackends,
  createNode,
  createPrefix,
  type LimitsServer,
  type NodeOptions,
  SERVERS,
  type ServerName,
  stopServers,
  useServer,
} from './backends.ts';

afterEach(closeBackends);
afterAll(stopServers);

const TOTAL: AccountLimit = {
  by: 'tag',
  of: 'team=a',
  name: 'team=a',
  period: 'total',
  micros: 10_000,
  window: { start: 0, end: Number.POSITIVE_INFINITY },
};

/** What all nodes have done: the ledger that they share, and what is running. */
class Ledger {
  settled = 0;
  readonly running = new Map<string, number>();
  #ids = 0;

  get used(): number {
    return [...this.running.values()].reduce((sum, micros) => sum + micros, this.settled);
  }

  readonly readSpending = async (): Promise<number> => this.settled;

  /** Whether a request was admitted. */
  async admit(node: LimitBackend, micros: number, account = TOTAL): Promise<string | Shortage> {
    const member = `request-${this.#ids++}`;
    const { result } = await node.take({ member, rates: [], money: { micros, accounts: [account] } });
    if (typeof result === 'object') return result;
    this.running.set(member, micros);
    expect(this.used).toBeLessThanOrEqual(account.micros);
    return member;
  }

  async end(node: LimitBackend, member: string, charged: number): Promise<void> {
    this.running.delete(member);
    this.settled += charged;
    await node.end({ member, corrections: [], charged });
  }
}

/** Nodes that share limits and a ledger. */
async function startCluster(name: ServerName, count: number, options: Partial<NodeOptions> = {}) {
  const ledger = new Ledger();
  const prefix = createPrefix();
  const create = (): Promise<SharedBackend> =>
    createNode(name, { prefix, nodes: count, readSpending: ledger.readSpending, ...options });
  const nodes = await Promise.all(Array.from({ length: count }, create));
  const at = (index: number): SharedBackend => {
    const node = nodes[index % count];
    if (!node) throw new Error('a cluster has no node');
    return node;
  };
  // The first admission waits until all nodes have joined.
  await at(0).take({ member: 'first', rates: [] });
  return { ledger, nodes, at, prefix };
}

/** How long a call may take where a test freezes the server: PostgreSQL compiles functions for each new connection. */
const TIMEOUTS = { redis: 50, postgres: 150 } as const satisfies Record<ServerName, number>;

const NAMES = Object.keys(SERVERS) as ServerName[]; // the keys of a constant

const describeServers = (define: (name: ServerName) => void): void => {
  for (const name of NAMES) describe(name, SERVERS[name].options, () => define(name));
};

describeServers((name) => {
  let server: LimitsServer;
  const timeoutMs = TIMEOUTS[name];
  const createCluster = (count: number, options: Partial<NodeOptions> = {}) =>
    startCluster(name, count, { pauseMs: 1000, ...options });

  beforeEach(async () => {
    server = await useServer(name);
  }, 30_000);

  test('500 parallel requests at the last cent of two nodes admit one', async () => {
    tried(500);
    const { ledger, at } = await createCluster(2);
    ledger.settled = TOTAL.micros - 100;
    const results = await Promise.all(Array.from({ length: 500 }, (_, index) => ledger.admit(at(index), 100)));
    expect(results.filter((result) => typeof result === 'string')).toHaveLength(1);
  });

  test('a limit of 20 requests at the same time admits exactly 20 on three nodes', async () => {
    const { at } = await createCluster(3);
    const take = (index: number) => at(index).take({ member: `m${index}`, slots: { name: 'k', limit: 20 }, rates: [] });
    const results = await Promise.all(Array.from({ length: 300 }, (_, index) => take(index)));
    expect(results.filter(({ result }) => result === 'taken')).toHaveLength(20);
  });

  test('a rate of 50 admits exactly 50 on two nodes', async () => {
    const { at } = await createCluster(2);
    const take = (index: number) => at(index).take({ member: `m${index}`, rates: [{ counter: 'c', amount: 1, limit: 50 }] });
    const results = await Promise.all(Array.from({ length: 300 }, (_, index) => take(index)));
    expect(results.filter(({ result }) => result === 'taken')).toHaveLength(50);
  });

  test('a server that is emptied under load never lets more be spent than the budget', async () => {
    const { ledger, at } = await createCluster(2);
    let isOver = false;
    let admitted = 0;
    const client = async (index: number): Promise<void> => {
      while (!isOver) {
        const member = await ledger.admit(at(index), 40 + index);
        if (typeof member !== 'string') {
          await pace(5);
          continue;
        }
        admitted++;
        await pace(3);
        await ledger.end(at(index), member, index);
      }
    };
    const clients = Array.from({ length: 20 }, (_, index) => client(index));
    for (let flushes = 0; flushes < 2; flushes++) {
      await pace(300);
      await server.flush();
      await pace(900);
    }
    isOver = true;
    await Promise.all(clients);
    expect(admitted).toBeGreaterThan(100);
    // What is left can be spent to the last millionth, and no more.
    expect(typeof (await ledger.admit(at(0), TOTAL.micros - ledger.used + 1))).toBe('object');
    expect(ledger.settled).toBeLessThanOrEqual(TOTAL.micros);
  }, 120_000);

  test('an admission whose reply arrives after the server was emptied is repeated: others may have taken what it reserved', async () => {
    const prefix = createPrefix();
    let isHeld = false;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const createDriver = (events: DriverEvents): Driver => {
      const driver = server.createDriver({ prefix, connectTimeoutMs: 1000 }, events);
      const send = driver.send.bind(driver);
      driver.send = async (operation, request) => {
        const reply = await send(operation, request);
        if (operation === 'take' && Array.isArray(reply) && reply[0] === 'taken') {
          isHeld = true;
          await released;
        }
        return reply;
      };
      return driver;
    };
    const ledger = new Ledger();
    const options = { prefix, nodes: 2, readSpending: ledger.readSpending, timeoutMs: 60_000 };
    const [late, other] = await Promise.all([createNode(name, { ...options, createDriver }), createNode(name, options)]);
    const admission = ledger.admit(late, 6000);
    await expect.poll(() => isHeld).toBe(true);
    await server.flush();
    await expect.poll(() => ledger.admit(other, 5000), { timeout: 20_000 }).toBeTypeOf('string');
    await expect.poll(() => late.isShared, { timeout: 20_000 }).toBe(true);
    release();
    expect(await admission).toMatchObject({ reserved: 5000 });
  }, 120_000);

  test('running requests of all nodes are reserved again after the server was emptied', async () => {
    const { ledger, at } = await createCluster(2);
    for (const index of [0, 1]) expect(typeof (await ledger.admit(at(index), 4000))).toBe('string');
    await server.flush();
    expect(await ledger.admit(at(0), 2001)).toMatchObject({ spent: 0, reserved: 8000 });
    expect(typeof (await ledger.admit(at(1), 2000))).toBe('string');
  });

  test('a frozen server costs at most three calls their timeout; then each node uses its part', async () => {
    const { ledger, at } = await createCluster(2, { timeoutMs });
    server.freeze();
    const times: number[] = [];
    try {
      for (let index = 0; index < 20; index++) {
        const from = performance.now();
        await ledger.admit(at(0), 1000);
        times.push(performance.now() - from);
      }
      // Half of the budget: the other half is for the other node.
      expect(ledger.running.size).toBe(5);
      for (let index = 0; index < 20; index++) await ledger.admit(at(1), 1000);
      expect(ledger.running.size).toBe(10);
      expect(times.filter((ms) => ms >= timeoutMs).length).toBeLessThanOrEqual(3);
    } finally {
      server.thaw();
    }
    console.log(`${name} frozen: ${times.map((ms) => ms.toFixed(1)).join(' ')} ms`);
    // What was admitted meanwhile is known to the server again.
    await expect.poll(() => at(0).isShared && at(1).isShared).toBe(true);
    await expect.poll(async () => (await at(0).list())[0]?.reserved).toBe(10_000);
    for (const member of [...ledger.running.keys()]) await ledger.end(at(0), member, 500);
  }, 120_000);

  test('what a frozen server received too late has no effect', async () => {
    const { at } = await createCluster(1, { timeoutMs });
    await at(0).take({ member: 'm0', slots: { name: 'k', limit: 5 }, rates: [] });
    server.freeze();
    const claims = ['m1', 'm2'].map((member) => ({ member, slots: { name: 'k', limit: 1 }, rates: [] }));
    const results = await Promise.all(claims.map((claim) => at(0).take(claim)));
    expect(results.map(({ result }) => result)).toEqual(['no slot', 'no slot']);
    await pace(200);
    server.thaw();
    await expect.poll(() => at(0).isShared).toBe(true);
    const next = await at(0).take({ member: 'm3', slots: { name: 'k', limit: 2 }, rates: [] });
    expect(next.result).toBe('taken');
  }, 120_000);

  test('killed: the part of each node at once; restarted empty: budgets are read from the ledger first', async () => {
    const { ledger, at } = await createCluster(2, { timeoutMs });
    const kept = await ledger.admit(at(0), 1000);
    const ended = await ledger.admit(at(0), 3000);
    await server.kill();
    await expect.poll(() => at(0).isShared || at(1).isShared).toBe(false);
    const from = performance.now();
    expect(await ledger.admit(at(0), 4001)).toMatchObject({ spent: 0 });
    expect(typeof (await ledger.admit(at(1), 5000))).toBe('string');
    const elapsed = performance.now() - from;
    console.log(`${name} killed: two admissions in ${elapsed.toFixed(1)} ms`);
    if (typeof ended === 'string') await ledger.end(at(0), ended, 2500);
    await server.restart();
    await expect.poll(() => at(0).isShared && at(1).isShared).toBe(true);
    expect(typeof kept).toBe('string');
    // 2,500 spent, 1,000 and 5,000 running.
    expect(await ledger.admit(at(1), 1501)).toMatchObject({ spent: 2500, reserved: 6000 });
    expect(typeof (await ledger.admit(at(0), 1500))).toBe('string');
  }, 120_000);

  test('killed: a node leaves to the other what that is known to hold', async () => {
    const { ledger, at } = await createCluster(2, { timeoutMs });
    expect(typeof (await ledger.admit(at(0), 9000))).toBe('string');
    // The reply has what all nodes hold.
    expect(typeof (await ledger.admit(at(1), 100))).toBe('string');
    await server.kill();
    await expect.poll(() => at(0).isShared || at(1).isShared).toBe(false);
    expect(await ledger.admit(at(1), 901)).toMatchObject({ spent: 0, reserved: 9100 });
    expect(typeof (await ledger.admit(at(1), 900))).toBe('string');
    expect(typeof (await ledger.admit(at(0), 1))).toBe('object');
    await server.restart();
  }, 120_000);

  const READ_TIMEOUT_MS = 5000;

  test('a node reads each second what others hold of the budgets that it has used', async () => {
    let reads = 0;
    const prefix = createPrefix();
    const createDriver = (events: DriverEvents): Driver => {
      const driver = server.createDriver({ prefix, connectTimeoutMs: 1000 }, events);
      const send = driver.send.bind(driver);
      driver.send = async (operation, request) => {
        const reply = await send(operation, request);
        if (operation === 'read') reads++;
        return reply;
      };
      return driver;
    };
    const ledger = new Ledger();
    const options = { prefix, nodes: 2, readSpending: ledger.readSpending, pauseMs: 1000, timeoutMs: READ_TIMEOUT_MS };
    const busy = createNode(name, options);
    const idle = createNode(name, { ...options, createDriver });
    const nodes = await Promise.all([busy, idle]);
    expect(typeof (await ledger.admit(nodes[1], 100))).toBe('string');
    expect(typeof (await ledger.admit(nodes[0], 9000))).toBe('string');
    // A read counts from when all calls before it have ended: a timeout earlier.
    const before = reads;
    await expect.poll(() => reads).toBeGreaterThan(before + 2 + READ_TIMEOUT_MS / 1000);
    await server.kill();
    await expect.poll(() => nodes.some((node) => node.isShared)).toBe(false);
    expect(await ledger.admit(nodes[1], 901)).toMatchObject({ reserved: 9100 });
    expect(typeof (await ledger.admit(nodes[1], 900))).toBe('string');
    await server.restart();
  }, 120_000);

  test('what a node holds that has not joined a new epoch is set aside for it', async () => {
    const ledger = new Ledger();
    const options = { prefix: createPrefix(), nodes: 2, readSpending: ledger.readSpending };
    const [gone, alive] = await Promise.all([createNode(name, options), createNode(name, options)]);
    expect(typeof (await ledger.admit(gone, 6000))).toBe('string');
    expect(typeof (await ledger.admit(alive, 100))).toBe('string');
    await gone.close();
    await server.flush();
    expect(await ledger.admit(alive, 3901)).toMatchObject({ spent: 0, reserved: 6100 });
    expect(typeof (await ledger.admit(alive, 3900))).toBe('string');
  }, 120_000);

  test('a minute that has begun has only the rest of it when the server is killed', async () => {
    const { at } = await createCluster(2, { timeoutMs });
    const take = (index: number, member: string) => at(index).take({ member, rates: [{ counter: 'c', amount: 1, limit: 20 }] });
    for (let index = 0; index < 12; index++) await take(index, `m${index}`);
    await server.kill();
    await expect.poll(() => at(0).isShared || at(1).isShared).toBe(false);
    const results = [];
    for (let index = 0; index < 40; index++) results.push((await take(index, `n${index}`)).result);
    // One node has heard of 11, the other of 12.
    expect(results.filter((result) => result === 'taken')).toHaveLength(8);
    await server.restart();
  }, 120_000);

  test('a gateway starts without the server, and uses it when it is there', async () => {
    await server.kill();
    const { ledger, at } = await createCluster(1, { timeoutMs, startMs: 300 });
    expect(at(0).isShared).toBe(false);
    expect(typeof (await ledger.admit(at(0), 10_000))).toBe('string');
    await server.restart();
    await expect.poll(() => at(0).isShared).toBe(true);
    expect(await ledger.admit(at(0), 1)).toMatchObject({ reserved: 10_000 });
  }, 120_000);

  test('what a dead node held is free after its lease, and what it spent is read from the ledger', async () => {
    let now = Date.now();
    const ledger = new Ledger();
    const options = { prefix: createPrefix(), nodes: 1, readSpending: ledger.readSpending, serverTime: () => now };
    const [dead, alive] = [await createNode(name, options), await createNode(name, options)];
    now += 5000;
    await ledger.admit(dead, 9000);
    await alive.load([TOTAL]);
    expect((await alive.list())[0]).toMatchObject({ spent: 0, reserved: 9000 });
    await dead.close();
    ledger.running.clear();
    ledger.settled = 700;
    now += 31_000;
    // Its reservation has ended; another node has closed its exchange in the ledger meanwhile.
    await expect.poll(async () => (await alive.list())[0]).toMatchObject({ spent: 700, reserved: 0 });
  }, 120_000);
});
