import { beforeAll, expect, test } from 'vitest';
import { createFolder } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';

beforeAll(assertBuilt);

test('a gateway that is killed has a row for every response that a client saw, and exact usage for every end', async () => {
  // Imported late: without a build it cannot be loaded.
  const { proveGatewayKills } = await import('./kill-gateway.js');
  const { violations, contents, ends, crashed } = await proveGatewayKills(createFolder(), 3, 20);
  expect(violations).toEqual([]);
  expect([contents > 0, ends > 0, crashed > 0]).toEqual([true, true, true]);
});
