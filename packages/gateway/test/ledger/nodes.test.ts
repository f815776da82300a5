import { beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { IS_NIGHT } from '../../../../test/night.ts';
import { createAddress, createFolder, startPostgres } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';

beforeAll(assertBuilt);

// Imported late: without a build they cannot be loaded.
const load = () => import('./node-proofs.js');

/** The lease is short, because the proof of kills waits for it; long enough for nodes that share their cores with other tests. */
const createPlace = async () => ({
  server: await startPostgres(),
  url: await createAddress(),
  folder: createFolder(),
  settings: ['node_lease: 5s'],
});

describe('two gateways on one database', needs('postgres'), () => {
  test('one that is killed leaves exact rows, which the other one closes, and no request of the other fails', async () => {
    const { violations, contents, ends, crashed } = await (await load()).proveNodeKills(
      await createPlace(),
      IS_NIGHT ? 3 : 1,
      30,
    );
    expect(violations).toEqual([]);
    expect([contents > 0, ends > 0, crashed > 0]).toEqual([true, true, true]);
  }, 180_000);

  test('no request fails and no row is wrong when the database is restarted', async () => {
    const { violations, ends } = await (await load()).proveDatabaseRestarts(await createPlace(), 2, 10);
    expect(violations).toEqual([]);
    expect(ends).toBeGreaterThan(50);
  }, 180_000);

  // Behind nginx, which makes no health checks: `npm run nightly -- --only node-restarts`.
  test('no request fails and no row is wrong when nodes are replaced behind a balancer with health checks', async () => {
    const { violations, ends } = await (await load()).proveRollingRestart(await createPlace(), 10, IS_NIGHT ? [0, 1] : [0]);
    expect(violations).toEqual([]);
    expect(ends).toBeGreaterThan(50);
  }, 180_000);
});
