/** Limits in PostgreSQL: what differs from Redis, because calls of several connections run at the same time. */
import pg from 'pg';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { AccountLimit } from '../../src/admission/backend.ts';
import { closeBackends, createNode, createPrefix, SERVERS, stopServers, useServer } from './backends.ts';

afterEach(closeBackends);
afterAll(stopServers);

const account = (of: string): AccountLimit => ({
  by: 'tag',
  of,
  name: of,
  period: 'total',
  micros: 1_000_000,
  window: { start: 0, end: Number.POSITIVE_INFINITY },
});

/** Uses a connection of its own. */
async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: (await useServer('postgres')).url });
  await client.connect();
  return client;
}

describe('limits in PostgreSQL', SERVERS.postgres.options, () => {
  test('requests that need the same limits in another order do not wait for each other in a circle', async () => {
    let failures = 0;
    const onFailure = (): void => {
      failures++;
    };
    const options = { prefix: createPrefix(), nodes: 2, readSpending: async () => 0, onFailure };
    const nodes = await Promise.all([createNode('postgres', options), createNode('postgres', options)]);
    const names = ['a', 'b', 'c', 'd', 'e'];
    const run = async (index: number): Promise<string | object> => {
      const node = nodes[index % 2];
      if (!node) throw new Error('a cluster has no node');
      const order = index % 3 === 0 ? names : [...names].reverse();
      const accounts = order.slice(index % 4).map(account);
      const slots = { name: `k${index % 2}`, limit: 1000 };
      const { result } = await node.take({ member: `m${index}`, slots, rates: [], money: { micros: 10, accounts } });
      await node.end({ member: `m${index}`, slots: slots.name, corrections: [], charged: 1 });
      return result;
    };
    const results = await Promise.all(Array.from({ length: 200 }, (_, index) => run(index)));
    expect(new Set(results)).toEqual(new Set(['taken']));
    expect(failures).toBe(0);
    for (const { reserved } of (await nodes[0]?.list()) ?? []) expect(reserved).toBe(0);
  });

  test('a lock that another transaction holds ends the call by its time limit, and the node uses its part', async () => {
    let insured = 0;
    const onInsured = (): void => {
      insured++;
    };
    const options = { prefix: createPrefix(), nodes: 2, readSpending: async () => 0, timeoutMs: 300, pauseMs: 1000, onInsured };
    const node = await createNode('postgres', options);
    const take = (member: string) => node.take({ member, slots: { name: 'k', limit: 4 }, rates: [] });
    await take('first');
    const other = await connect();
    try {
      await other.query('BEGIN');
      await other.query('SELECT 1 FROM limits1_rows FOR UPDATE');
      // Two of the four are for the other node.
      expect((await take('second')).result).toBe('taken');
      expect((await take('third')).result).toBe('no slot');
      expect(insured).toBe(2);
      // Calls that wait for the lock have ended with their time limit.
      const waits = async (): Promise<number> =>
        (await other.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT limits1%'")).rows
          .length;
      await expect.poll(waits).toBe(0);
      await other.query('ROLLBACK');
      await expect.poll(() => node.isShared).toBe(true);
      const count = async (): Promise<unknown> =>
        (await other.query('SELECT used::int FROM limits1_rows WHERE key LIKE $1', [`${options.prefix}%s:k`])).rows;
      await expect.poll(count).toEqual([{ used: 2 }]);
    } finally {
      await other.end();
    }
  }, 30_000);

  test('a lease has the node that holds it, and when it ends', async () => {
    const prefix = createPrefix();
    const node = await createNode('postgres', { prefix, nodes: 1, readSpending: async () => 0 });
    await node.take({ member: 'm', slots: { name: 'k', limit: 1 }, rates: [], money: { micros: 5, accounts: [account('a')] } });
    const client = await connect();
    try {
      const { rows } = await client.query(
        `SELECT node = (SELECT n.node FROM limits1_nodes n WHERE starts_with(id, $1 || n.epoch)) AS own, slots, micros::int, done,
           expires - floor(extract(epoch FROM clock_timestamp()) * 1000) BETWEEN 0 AND 30000 AS ends
         FROM limits1_leases WHERE starts_with(id, $1)`,
        [prefix],
      );
      expect(rows).toEqual([{ own: true, slots: 'k', micros: 5, done: false, ends: true }]);
    } finally {
      await client.end();
    }
  });
});
