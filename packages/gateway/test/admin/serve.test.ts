import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AdminAccess } from '../../src/admin/access.ts';
import { AdminApi } from '../../src/admin/api.ts';
import { ChangeFeed } from '../../src/admin/live.ts';
import type { AdminContext } from '../../src/admin/route.ts';
import { AddressRanges, readClientAddress } from '../../src/http/client-address.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { KeyBook } from '../../src/keys/key-book.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { joinHeaders } from '../../src/upstream/dialer.ts';
import { record, send } from './start.ts';

// The API without a gateway around it.

let store: Store;
let url: string;
let close: () => void;
/** Texts that were written at once, and turns of the event loop meanwhile. */
const written: string[] = [];
let list: Store['list'];

beforeAll(async () => {
  store = await openStore({ folder: null });
  const api = new AdminApi({
    store: new Proxy(store, {
      get: (target, name) => {
        if (name === 'list') return (query: never) => list(query);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }),
    keys: await KeyBook.open({ store, pepperFile: null, requiresPepper: true }),
    feed: new ChangeFeed({ boot: store.boot, clock: REAL_CLOCK, read: async () => null }),
    access: new AdminAccess({ policy: () => ({ adminKey: undefined, hasClientKeys: false }) }),
    breakers: {} as AdminContext['breakers'],
    captures: { get: async () => undefined, list: async () => [], listIds: () => [] },
    admitKey: () => undefined,
    send: () => undefined,
    listBudgets: async () => [],
    state: () => {
      throw new Error('not needed');
    },
    file: null,
    config: { settings: () => ({ settings: [], omitted: 0 }), reloads: () => [], version: () => undefined },
    hasKeys: () => false,
    now: Date.now,
    redact: (text) => {
      written.push(text);
      return text;
    },
    log: pino({ level: 'silent' }),
    stallMs: 60_000,
  });
  const server = createServer((request, response) => {
    const client = readClientAddress(request, new AddressRanges([]));
    api.handle({ id: 'r', request, response, headers: joinHeaders(request.headers), client }).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () => {
    server.closeAllConnections();
    server.close();
  };
});

beforeEach(() => {
  list = (query) => store.list(query);
});

afterAll(async () => {
  close();
  await store.close();
});

test('a long list is written in parts, with turns of the event loop between them', async () => {
  await Promise.all(Array.from({ length: 1000 }, () => record(store)));
  written.length = 0;
  const turns: number[] = [];
  let isDone = false;
  const count = (): void => {
    turns.push(written.length);
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const { json } = await send(url, '/admin/v1/exchanges?limit=1000');
  isDone = true;
  expect(json.exchanges).toHaveLength(1000);
  const rows = written.map((text) => text.split('"request_id"').length - 1);
  expect(Math.max(...rows)).toBeLessThanOrEqual(50);
  // Never two parts in the same turn; the rest of the body follows the last one.
  for (let parts = 1; parts < 20; parts++) expect(turns).toContain(parts);
});

test('at most 32 requests wait for the store; further ones get Retry-After', async () => {
  const release: (() => void)[] = [];
  list = () => new Promise((resolve) => release.push(() => resolve({ exchanges: [], next: null })));
  const waiting = Array.from({ length: 32 }, () => send(url, '/admin/v1/exchanges'));
  while (release.length < 32) await new Promise((resolve) => setImmediate(resolve));
  const { status, headers } = await send(url, '/admin/v1/exchanges');
  expect([status, headers['retry-after']]).toEqual([503, '1']);
  for (const finish of release) finish();
  expect((await Promise.all(waiting)).map((answer) => answer.status)).toEqual(Array(32).fill(200));
});
