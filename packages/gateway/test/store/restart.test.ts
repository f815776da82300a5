import type { Worker } from 'node:worker_threads';
import { beforeAll, expect, test, vi } from 'vitest';
import { openStore } from '../../src/store/index.ts';
import { createFolder } from './ledger-fixture.ts';
import { assertBuilt } from './processes.ts';

const started: Worker[] = vi.hoisted(() => []);

vi.mock('node:worker_threads', async (load) => {
  const real = await load<typeof import('node:worker_threads')>();
  class RecordedWorker extends real.Worker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      started.push(this);
    }
  }
  return { ...real, Worker: RecordedWorker };
});

beforeAll(assertBuilt);

test('workers that end unexpectedly are started again; no row is lost and rows of this run stay open', async () => {
  const store = await openStore({ folder: createFolder(), ballastBytes: 0 });
  const { id, ts } = store.createId();
  await store.openExchange({ id, ts });
  await store.list();
  expect(started).toHaveLength(2);
  // Both are idle, so ending them is safe.
  await Promise.all(started.map((worker) => worker.terminate()));
  const [page] = await Promise.all([
    store.list(),
    store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'p' }),
    store.settleExchange({ id, ts, ending: 'answered', http_status: 200 }),
  ]);
  expect(page.exchanges).toHaveLength(1);
  expect(await store.get(id)).toMatchObject({
    exchange: { state: 'settled', ending: 'answered' },
    attempts: [{ state: 'open' }],
  });
  expect(await store.usage({ by: 'provider' })).toMatchObject([{ group: 'p', requests: 1, errors: 0 }]);
  expect(started).toHaveLength(4);
  expect(await store.close()).toBe(0);
});
