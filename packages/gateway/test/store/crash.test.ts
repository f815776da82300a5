import { beforeAll, expect, test } from 'vitest';
import { createFolder } from './ledger-fixture.ts';
import { assertBuilt } from './processes.ts';

beforeAll(assertBuilt);

test('SIGKILL during acknowledged writes loses nothing and counts nothing twice', async () => {
  // Imported late: without a build it cannot be loaded.
  const { proveKills } = await import('./kills.js');
  const { violations, exchanges, crashed, writes } = await proveKills(createFolder(), 3);
  expect(violations).toEqual([]);
  expect([exchanges > 0, crashed > 0, writes > exchanges]).toEqual([true, true, true]);
});
