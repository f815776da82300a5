import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ChangeFeed, type LiveOptions } from '../../src/admin/live.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { StoreError } from '../../src/store/errors.ts';
import { type ExchangeRow, type Ledger, openStore, parseFilter, type Store, Write } from '../../src/store/index.ts';
import { eventually } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { ADMIN_KEY, converse, send, startAdmin, type TestGateway, withKey } from './start.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

interface Event {
  id: string;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  data: any;
}

/** A client that reads events until it leaves. */
class Reader {
  readonly events: Event[] = [];
  status = 0;
  isClosed = false;
  #text = '';
  #socket: Socket | undefined;
  readonly #leave: () => void;

  constructor(url: string, path: string, headers: Record<string, string>) {
    const sending = request(new URL(path, url), { headers, agent: false });
    sending.on('error', () => undefined);
    sending.on('close', () => {
      this.isClosed = true;
    });
    sending.on('response', (response) => {
      this.status = response.statusCode ?? 0;
      this.#socket = response.socket;
      response.on('error', () => undefined);
      response.on('data', (chunk) => this.#read(String(chunk)));
    });
    sending.end();
    this.#leave = () => void sending.destroy();
    cleanups.push(this.#leave);
  }

  /** Events without the first one, which says whether the stream was resumed. */
  get changes(): Event[] {
    return this.events.filter(({ event }) => event !== 'ready');
  }

  leave(): void {
    this.#leave();
  }

  pause(): void {
    this.#socket?.pause();
  }

  #read(text: string): void {
    this.#text += text;
    // Most pieces of a large frame end none; to search all of it each time would be quadratic.
    if (!text.includes('\n')) return;
    const frames = this.#text.split('\n\n');
    this.#text = frames.pop() ?? '';
    for (const frame of frames) {
      const find = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1] ?? '';
      if (find('event') !== '') this.events.push({ id: find('id'), event: find('event'), data: JSON.parse(find('data')) });
    }
  }
}

describe('exchanges/live', () => {
  const PATH = '/admin/v1/exchanges/live';

  async function start(): Promise<TestGateway> {
    const gateway = await startAdmin({ config: { admin: { key: ADMIN_KEY } } });
    cleanups.push(() => gateway.stop());
    return gateway;
  }

  const read = async ({ url }: TestGateway, path = PATH, headers: Record<string, string> = {}): Promise<Reader> => {
    const reader = new Reader(url, path, { ...withKey(ADMIN_KEY), ...headers });
    await eventually(() => reader.events.length > 0);
    return reader;
  };

  test('has every change once, also across a reconnect', async () => {
    const gateway = await start();
    const first = await read(gateway);
    const expected: string[] = [];
    const converseTimes = async (times: number): Promise<void> => {
      const answers = await Promise.all(Array.from({ length: times }, () => converse(gateway.url)));
      for (const { headers } of answers) expected.push(String(headers['x-sluice-request-id']));
    };
    await converseTimes(5);
    await eventually(() => first.changes.length >= 4);
    first.leave();
    const seen = [...first.changes];
    await converseTimes(20);
    const second = await read(gateway, PATH, { 'last-event-id': seen.at(-1)?.id ?? '' });
    expect(second.events[0]).toMatchObject({ event: 'ready', data: { resumed: true } });
    await converseTimes(5);
    await eventually(() => seen.length + second.changes.length >= 60);
    const all = [...seen, ...second.changes].map(({ event, data }) => `${event} ${data.request_id}`);
    expect(all.toSorted()).toEqual(expected.flatMap((id) => [`opened ${id}`, `settled ${id}`]).toSorted());
    for (const id of expected) expect(all.indexOf(`opened ${id}`)).toBeLessThan(all.indexOf(`settled ${id}`));
  });

  test('has the row as the list has it', async () => {
    const gateway = await start();
    const reader = await read(gateway);
    await converse(gateway.url);
    const settled = await eventually(() => reader.changes.find(({ event }) => event === 'settled'));
    const { json } = await gateway.call('exchanges', { headers: withKey(ADMIN_KEY) });
    expect([settled.data]).toEqual(json.exchanges);
  });

  test('is filtered, has selected fields, and resumes by a query parameter', async () => {
    const gateway = await start();
    const all = await read(gateway);
    await converse(gateway.url, 'demo/hello');
    await converse(gateway.url, 'demo/other');
    await eventually(() => all.changes.length === 4);
    const path = `${PATH}?filter=model:other+status:ok&fields=model&last_event_id=${all.events[0]?.id}`;
    const reader = await read(gateway, path);
    await eventually(() => reader.changes.length > 0);
    expect(reader.changes.at(-1)).toMatchObject({ event: 'settled', data: { id: expect.any(String), model: 'other' } });
    expect(reader.changes.every(({ data }) => Object.keys(data).length === 2 && data.model === 'other')).toBe(true);
  });

  test('of another run of the gateway cannot be resumed, and the first event shows it', async () => {
    const reader = await read(await start(), PATH, { 'last-event-id': '0b0e9d2e-0000-4000-8000-000000000000.3' });
    expect(reader.events[0]?.data).toEqual({ resumed: false });
  });

  test('ends when the gateway stops', async () => {
    const gateway = await start();
    const reader = await read(gateway);
    await gateway.close(60_000);
    await eventually(() => reader.isClosed);
  });

  test('has a limit of listeners', async () => {
    const gateway = await start();
    for (let i = 0; i < 32; i++) await read(gateway);
    const { status, json } = await send(gateway.url, PATH, { headers: withKey(ADMIN_KEY) });
    expect([status, json.detail]).toEqual([503, 'more than 32 clients listen; close one of them']);
  });
});

describe('ChangeFeed', () => {
  /** A server whose every request listens to the feed. */
  async function serve(
    feed: ChangeFeed,
    options: Partial<LiveOptions> = {},
  ): Promise<{ url: string; responses: ServerResponse[] }> {
    const responses: ServerResponse[] = [];
    const server = createServer((incoming, response) => {
      responses.push(response);
      feed.listen(response, {
        lastEventId: incoming.headers['last-event-id'] as string | undefined,
        format: (row) => JSON.stringify(row),
        isAllowed: () => true,
        ...options,
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, responses };
  }

  const rowOf = (id: string): ExchangeRow => ({ id, model: 'm', tags: [], rules: [], note_codes: [] }) as unknown as ExchangeRow;

  const open = async (url: string, headers: Record<string, string> = {}): Promise<Reader> => {
    const reader = new Reader(url, '/', headers);
    await eventually(() => reader.events.length > 0);
    return reader;
  };

  test('remembers a bounded number of changes; an older position cannot be resumed', async () => {
    const feed = new ChangeFeed({ boot: 'b', clock: REAL_CLOCK, capacity: 10, read: async (id) => rowOf(id) });
    for (let i = 1; i <= 25; i++) feed.publish('opened', `e${i}`);
    const { url } = await serve(feed);
    expect((await open(url, { 'last-event-id': 'b.14' })).events[0]).toMatchObject({ id: 'b.25', data: { resumed: false } });
    const reader = await open(url, { 'last-event-id': 'b.15' });
    expect(reader.events[0]).toMatchObject({ id: 'b.15', data: { resumed: true } });
    await eventually(() => reader.changes.length === 10);
    expect(reader.changes.map(({ data }) => data.id)).toEqual(Array.from({ length: 10 }, (_, i) => `e${i + 16}`));
  });

  test.each(['b.26', 'b.-1', 'b.1e1', 'b.', 'b', 'x.20', 'b.99999999999999999999', 'b.0x1'])('%s is no position', async (id) => {
    const feed = new ChangeFeed({ boot: 'b', clock: REAL_CLOCK, read: async (exchange) => rowOf(exchange) });
    for (let i = 1; i <= 25; i++) feed.publish('opened', `e${i}`);
    const { url } = await serve(feed);
    expect((await open(url, { 'last-event-id': id })).events[0]?.data).toEqual({ resumed: false });
  });

  test('closes a client that does not read, and only that one', async () => {
    const clock = new TestClock();
    const large = 'x'.repeat(1_000_000);
    const feed = new ChangeFeed({ boot: 'b', clock, read: async (id) => ({ ...rowOf(id), model: large }) });
    const { url, responses } = await serve(feed);
    const slow = await open(url);
    const fast = await open(url);
    slow.pause();
    for (let i = 0; i < 40; i++) feed.publish('opened', `e${i}`);
    await eventually(() => fast.changes.length === 40);
    expect(responses[0]?.writableNeedDrain).toBe(true);
    expect(responses[0]?.destroyed).toBe(false);
    await clock.advance(10_000);
    await eventually(() => responses[0]?.destroyed);
    feed.publish('settled', 'last');
    await eventually(() => fast.changes.length === 41);
  });

  test('closes a client that falls behind what is remembered', async () => {
    const feed = new ChangeFeed({ boot: 'b', clock: REAL_CLOCK, capacity: 10, read: async (id) => rowOf(id) });
    const { url, responses } = await serve(feed);
    await open(url);
    for (let i = 0; i < 200; i++) feed.publish('opened', `e${i}`);
    await eventually(() => responses[0]?.destroyed);
  });

  test('closes a client when the store cannot be read', async () => {
    const feed = new ChangeFeed({ boot: 'b', clock: REAL_CLOCK, read: () => Promise.reject(new Error('no')) });
    const { url, responses } = await serve(feed);
    await open(url);
    feed.publish('opened', 'e');
    await eventually(() => responses[0]?.destroyed);
  });

  test('ends a stream whose access has ended', async () => {
    const clock = new TestClock();
    let isAllowed = true;
    const feed = new ChangeFeed({ boot: 'b', clock, read: async (id) => rowOf(id) });
    const { url } = await serve(feed, { isAllowed: () => isAllowed });
    const reader = await open(url);
    await clock.advance(15_000);
    expect(reader.isClosed).toBe(false);
    isAllowed = false;
    await clock.advance(15_000);
    await eventually(() => reader.isClosed);
  });

  test('reads a row once for all listeners', async () => {
    let reads = 0;
    const feed = new ChangeFeed({
      boot: 'b',
      clock: REAL_CLOCK,
      read: async (id) => {
        reads++;
        return rowOf(id);
      },
    });
    const { url } = await serve(feed);
    const readers = await Promise.all(Array.from({ length: 8 }, () => open(url)));
    for (let i = 0; i < 20; i++) feed.publish('opened', `e${i}`);
    await eventually(() => readers.every(({ changes }) => changes.length === 20));
    expect(reads).toBe(20);
  });

  test('publishes what is durable, and not what was rejected', async () => {
    const store: Store = await openStore({ folder: null });
    cleanups.push(() => store.close());
    const published: string[] = [];
    const feed = new ChangeFeed({ boot: 'b', clock: REAL_CLOCK, read: async () => null });
    feed.publish = (change, id) => void published.push(`${change} ${id}`);
    const { id, ts } = store.createId();
    const watched = feed.watch(store);
    await watched.openExchange({ id, ts });
    const refused = new Write();
    refused.end(new StoreError('full', 'full'));
    const failing: Ledger = { ...watched, openExchange: () => refused };
    await expect(feed.watch(failing).openExchange({ id: 'x', ts })).rejects.toThrow('full');
    await watched.settleExchange({ id, ts, ending: 'answered' });
    expect(published).toEqual([`opened ${id}`, `settled ${id}`]);
    expect(watched.accepting).toBe(store.accepting);
  });

  test('sends only rows that pass the filter', async () => {
    const { filter } = parseFilter('model:m*', 0);
    const feed = new ChangeFeed({ boot: 'b', clock: REAL_CLOCK, read: async (id) => ({ ...rowOf(id), model: id }) });
    const { url } = await serve(feed, { filter });
    const reader = await open(url);
    for (const id of ['a', 'm1', 'b', 'm2']) feed.publish('opened', id);
    await eventually(() => reader.changes.length === 2);
    expect(reader.changes.map(({ id }) => id)).toEqual(['b.2', 'b.4']);
  });
});
