/** What is left in Redis. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import type { AccountLimit } from '../../src/admission/backend.ts';
import { closeBackends, createNode, createPrefix, stopServers, useServer } from './backends.ts';

afterEach(closeBackends);
afterAll(stopServers);

const TOTAL: AccountLimit = { by: 'key', of: 'a', name: 'alice', period: 'total', micros: 100, window: { start: 0, end: 1e15 } };

describe('keys', needs('redis'), () => {
  test('of an epoch all expire, so that those of an epoch that has ended are not kept for ever', async () => {
    const prefix = createPrefix();
    const node = await createNode('redis', { prefix, nodes: 1, readSpending: async () => 0 });
    await expect.poll(() => node.isShared).toBe(true);
    const money = { micros: 10, accounts: [TOTAL] };
    for (const member of ['one', 'two'])
      await node.take({ member, slots: { name: 's', limit: 5 }, rates: [{ counter: 'c', amount: 1, limit: 9 }], money });
    await node.end({ member: 'one', slots: 's', corrections: [], charged: 5 });
    const client = new Redis((await useServer('redis')).url);
    try {
      const names = (await client.keys(`${prefix}*`)).filter((name) => !name.endsWith(':state'));
      const kinds = new Set(names.map((name) => name.slice(prefix.length).split(':')[2]));
      expect([...kinds].sort()).toEqual(['b', 'c', 'dirty', 'joined', 'leases', 'nodes', 'r', 's']);
      const lasting: string[] = [];
      for (const name of names) if ((await client.pttl(name)) < 0) lasting.push(name);
      expect(lasting).toEqual([]);
    } finally {
      client.disconnect();
    }
  });
});
