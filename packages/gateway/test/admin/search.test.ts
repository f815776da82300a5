import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SEARCH_LIMITS, type SearchQuery, searchCaptures } from '../../src/admin/search.ts';
import type { Capture } from '../../src/capture/capture.ts';
import type { ExchangeDetail } from '../../src/store/queries.ts';
import { ADMIN_KEY, startAdmin, type TestGateway, withKey } from './start.ts';

// The bounds of a search for text; play.test.ts has what it finds.

const body = Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'needle' }] }));

const formatId = (number: number): string => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;

/** Captures with ids from `count` down to 1. `size`: how many bytes each has. */
function createSource(count: number, size: number = body.length) {
  let time = 0;
  const read: string[] = [];
  const capture = {
    at: '2026-11-17T08:00:00Z',
    endpoint: 'CHAT',
    protocol: 'openai-chat',
    request: { path: '/v1/chat/completions', headers: {}, body },
    response: { status: 500, body: { length: size - body.length } },
    attempts: [],
  } as unknown as Capture; // a search reads nothing else
  return {
    read,
    captures: {
      listIds: () => Array.from({ length: count }, (_, index) => formatId(count - index)),
      get: async (id: string) => {
        read.push(id);
        time += 1;
        return capture;
      },
    },
    store: { get: async (id: string) => ({ exchange: { id }, attempts: [] }) as unknown as ExchangeDetail },
    now: () => time,
  };
}

const QUERY: SearchQuery = { texts: ['needle'], filter: [], cursor: undefined, limit: 10_000, isAbandoned: () => false };

describe('a search ends', () => {
  test.each([
    ['after so many captures', createSource(SEARCH_LIMITS.captures + 5), SEARCH_LIMITS.captures],
    ['after so many bytes', createSource(50, SEARCH_LIMITS.bytes / 10), 10],
  ])('%s, and the next page continues', async (_, source, count) => {
    const first = await searchCaptures(QUERY, source);
    expect([first.exchanges.length, first.searched]).toMatchObject([count, { captures: count, is_complete: false }]);
    const next = await searchCaptures({ ...QUERY, cursor: first.next ?? '' }, source);
    expect(next.exchanges[0]?.id).toBe(source.captures.listIds()[count]);
    expect(new Set(source.read).size).toBe(source.read.length);
  });

  test('after so much time', async () => {
    const source = createSource(100);
    let time = 0;
    const { searched } = await searchCaptures(QUERY, { ...source, now: () => (time += SEARCH_LIMITS.ms / 10) });
    expect(searched).toMatchObject({ captures: 9, is_complete: false });
  });

  test('when its client has left', async () => {
    const source = createSource(100);
    await searchCaptures({ ...QUERY, isAbandoned: () => source.read.length >= 3 }, source);
    expect(source.read).toHaveLength(3);
  });

  test('at once when two others run', async () => {
    const running = [1, 2].map(() => searchCaptures(QUERY, createSource(20)));
    await expect(searchCaptures(QUERY, createSource(1))).rejects.toThrow('other searches');
    await Promise.all(running);
    expect((await searchCaptures(QUERY, createSource(1))).exchanges).toHaveLength(1);
  });
});

describe('captures of a data folder', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startAdmin({
      isPersistent: true,
      config: { admin: { key: ADMIN_KEY }, capture: { ring: 'off', models: ['demo/*'] } },
    });
  });

  afterAll(() => gateway.stop());

  test('are searched, too', async () => {
    for (const content of ['a needle', 'hay']) {
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content }] }),
      };
      await (await fetch(`${gateway.url}/v1/chat/completions`, init)).text();
    }
    await gateway.captures.settled();
    const { json } = await gateway.call('exchanges?filter=needle', { headers: withKey(ADMIN_KEY) });
    expect([json.exchanges.length, json.searched.captures]).toEqual([1, 2]);
  });
});
