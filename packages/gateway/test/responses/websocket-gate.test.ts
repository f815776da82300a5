import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { REVOKED } from '../../src/exchange/types.ts';
import { KeyBook } from '../../src/keys/key-book.ts';
import { type ExchangeRow, openStore, type Store } from '../../src/store/index.ts';
import { eventually, type Started, startGateway } from '../gateway/start.ts';
import { startUpstream, type Upstream } from './upstreams.ts';
import { Client, isLast, listTypes, readId } from './websocket-client.ts';

// Messages over WebSocket pass the same keys, limits, budgets and ledger as requests over HTTP.

const KEY = 'client-key-of-the-first-0123456789';
const POOR = 'client-key-of-the-poor-0123456789';
const RATED = 'client-key-of-the-rated-0123456789';
const MODEL = 'claude/m';

let upstream: Upstream;
let store: Store;
let gateway: Started;
let client: Client;

const listProviders = (): object => ({
  claude: { protocol: 'anthropic-messages', base_url: upstream.url, api_key: 'k' },
});

beforeAll(async () => {
  upstream = await startUpstream('anthropic-messages');
  store = await openStore({ folder: null });
  gateway = await startGateway({
    store,
    config: {
      providers: listProviders(),
      // Dollars for a million tokens: a token costs a tenth of a cent.
      prices: { 'claude/*': { input: 1000, output: 1000 } },
      auth: {
        keys: [
          { key: KEY, name: 'first' },
          // Enough for one request at a time: the least that is reserved is 2 dollars.
          { key: POOR, name: 'poor', budget: '4usd/day' },
          { key: RATED, name: 'rated', rpm: 2 },
        ],
      },
    },
  });
});

beforeEach(async () => {
  upstream.hold.isOn = false;
  client = await Client.open(gateway.url, bearer(KEY));
});

afterEach(() => client.socket.terminate());

afterAll(async () => {
  upstream.hold.release();
  await gateway.close();
  await store.close();
  upstream.close();
});

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

const post = (body: object, key = KEY): Promise<Response> =>
  fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { ...bearer(key), 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
  });

const listRows = async (): Promise<ExchangeRow[]> => (await store.list({ limit: 200 })).exchanges;

/** The rows that are added meanwhile, in the order of their requests. */
async function collectRows(count: number, run: () => Promise<void>): Promise<ExchangeRow[]> {
  const before = new Set((await listRows()).map(({ request_id }) => request_id));
  await run();
  return eventually(async () => {
    const added = (await listRows()).filter(({ request_id }) => !before.has(request_id));
    return added.length >= count && added.every(({ ending }) => ending) && added.reverse();
  });
}

const MESSAGES: readonly [name: string, body: object][] = [
  ['a response', { model: MODEL, input: 'x', max_output_tokens: 10 }],
  ['a response that is not stored', { model: MODEL, input: 'x', max_output_tokens: 10, store: false }],
  ['an unknown model', { model: 'nobody/x', input: 'x' }],
  ['invalid input', { model: MODEL, input: 7 }],
  ['an unknown response', { model: MODEL, input: 'x', previous_response_id: 'resp_none' }],
];

describe('the ledger', () => {
  test.each(MESSAGES)('has one row for a message, as over HTTP: %s', async (_name, body) => {
    const overHttp = await collectRows(1, async () => void (await (await post(body)).text()));
    const overSocket = await collectRows(1, async () => void (await client.turn(body)));
    expect(overSocket).toHaveLength(1);
    const [http, socket] = [overHttp[0], overSocket[0]];
    for (const field of ['ending', 'http_status', 'key_id', 'model_requested', 'cost_micros', 'output_tokens'] as const)
      expect({ field, value: socket?.[field] }).toEqual({
        field,
        value: http?.[field],
      });
  });

  test('has a row for each of many messages on one connection', async () => {
    const rows = await collectRows(5, async () => {
      let previous: string | undefined;
      for (let i = 0; i < 5; i++)
        previous = readId(await client.turn({ model: MODEL, input: 'x', max_output_tokens: 10, previous_response_id: previous }));
    });
    expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(5);
    expect(rows.map(({ ending }) => ending)).toEqual(Array(5).fill('answered'));
    for (const { cost_micros } of rows) expect(cost_micros).toBeGreaterThan(0);
  });
});

describe('limits', () => {
  test('the budget of a key is reserved by a message, and given back at its end', async () => {
    const own = await Client.open(gateway.url, bearer(POOR));
    const large = { model: MODEL, input: 'x', max_output_tokens: 10 };
    upstream.hold.isOn = true;
    const before = upstream.got.length;
    own.create({ stream_id: 'a', ...large });
    await eventually(() => upstream.got.length > before);
    const overHttp = await post(large, POOR);
    const error = own.nextError();
    own.create({ stream_id: 'b', ...large });
    expect(await error).toMatchObject({
      status: overHttp.status,
      stream_id: 'b',
      error: { message: expect.stringMatching(/budget/) },
    });
    expect(overHttp.status).toBe(429);
    await overHttp.text();
    upstream.hold.isOn = false;
    upstream.hold.release();
    await eventually(() => own.frames.some(({ type }) => type === 'response.completed'));
    expect(upstream.got.length).toBe(before + 1);
    const frames = await eventuallyAdmitted(() => own.turn({ stream_id: 'b', ...large }));
    expect(listTypes(frames).at(-1)).toBe('response.completed');
    own.socket.close();
  });

  test('messages and requests share the rate of a key', async () => {
    const own = await Client.open(gateway.url, bearer(RATED));
    const request = { model: MODEL, input: 'x' };
    expect((await post(request, RATED)).status).toBe(200);
    expect(listTypes(await own.turn(request)).at(-1)).toBe('response.completed');
    expect(await own.turn(request)).toMatchObject([{ type: 'error', status: 429 }]);
    expect((await post(request, RATED)).status).toBe(429);
    own.socket.close();
  });
});

/** What was reserved is given back when the row is written, which is after the last event. */
const eventuallyAdmitted = <T extends { type: string }>(run: () => Promise<T[]>): Promise<T[]> =>
  eventually(async () => {
    const frames = await run();
    return frames[0]?.type !== 'error' && frames;
  });

describe('a key that is revoked while its connection is open', () => {
  let book: KeyBook;
  let locked: Started;

  beforeAll(async () => {
    book = await KeyBook.open({ store, pepperFile: null, requiresPepper: true });
    locked = await startGateway({ config: { providers: listProviders() }, book });
    book.listen(({ record, endsRequests }) => {
      if (endsRequests) locked.services.streams.stopKey(record.id, REVOKED);
    });
  });

  afterAll(async () => {
    await locked.close();
    await book.close();
  });

  test.each<[name: string, isNow: boolean, last: string]>([
    ['finishes what runs', false, 'response.completed'],
    ['with --now ends what runs', true, 'error'],
  ])('%s, and its next message is refused', async (name, isNow, last) => {
    const { record, text } = await book.create(name.replace(/\W+/g, '-'), {}, 'cli');
    const own = await Client.open(locked.url, bearer(text));
    const request = { model: MODEL, input: 'x' };
    expect(listTypes(await own.turn(request)).at(-1)).toBe('response.completed');
    upstream.hold.isOn = true;
    own.create(request);
    await eventually(() => own.frames.filter(({ type }) => type === 'response.created').length === 2);
    await book.revoke(record.id, isNow, 'cli');
    upstream.hold.isOn = false;
    if (!isNow) upstream.hold.release();
    await eventually(() => own.frames.filter(isLast).length === 2);
    expect(own.frames.filter(isLast)[1]).toMatchObject({ type: last });
    if (isNow) expect(own.frames.at(-1)).toMatchObject({ status: 401, error: { message: expect.stringContaining('revoked') } });
    const before = upstream.got.length;
    // Nothing of the response before comes after its end.
    expect(await own.turn(request)).toMatchObject([{ type: 'error', status: 401 }]);
    expect(upstream.got.length).toBe(before);
    upstream.hold.release();
    own.socket.terminate();
  });
});

test('works over TLS', async () => {
  const secure = await startGateway({ config: { providers: listProviders() }, scheme: 'https' });
  expect(secure.url).toMatch(/^https:/);
  const own = await Client.open(secure.url);
  const first = await own.turn({ model: MODEL, store: false, input: 'over TLS' });
  expect(listTypes(await own.turn({ model: MODEL, input: 'y', previous_response_id: readId(first) })).at(-1)).toBe(
    'response.completed',
  );
  expect(upstream.got.at(-1)).toContain('over TLS');
  own.socket.terminate();
  await secure.close();
});
