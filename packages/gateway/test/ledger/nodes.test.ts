import { beforeAll, describe, expect, test } from 'vitest';
import { createAddress, createFolder, ENGINES, startPostgres } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';

beforeAll(assertBuilt);

// Imported late: without a build they cannot be loaded.
const load = () => import('./node-proofs.js');

const createPlace = async () => ({ server: await startPostgres(), url: await createAddress(), folder: createFolder() });

describe.skipIf(!ENGINES.includes('PostgreSQL'))('two gateways on one database', () => {
  test('one that is killed leaves exact rows, which the other one closes, and no request of the other fails', async () => {
    const { violations, contents, ends, crashed } = await (await load()).proveNodeKills(await createPlace(), 3, 40);
    expect(violations).toEqual([]);
    expect([contents > 0, ends > 0, crashed > 0]).toEqual([true, true, true]);
  }, 180_000);

  test('no request fails and no row is wrong when the database is restarted', async () => {
    const { violations, ends } = await (await load()).proveDatabaseRestarts(await createPlace(), 2, 20);
    expect(violations).toEqual([]);
    expect(ends).toBeGreaterThan(100);
  }, 180_000);

  test('no request fails and no row is wrong when both are replaced, one after the other', async () => {
    const { violations, ends } = await (await load()).proveRollingRestart(await createPlace(), 20);
    expect(violations).toEqual([]);
    expect(ends).toBeGreaterThan(100);
  }, 180_000);
});
