import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { takeTurns } from '../../../../test/wait.ts';
import { REVOKED } from '../../src/exchange/types.ts';
import { KeyBook } from '../../src/keys/key-book.ts';
import { type ExchangeRow, openStore, type Store } from '../../src/store/index.ts';
import { eventually, type Started, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
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
  ])('%s, and no further message is served', async (name, isNow, last) => {
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
    if (isNow) {
      expect(await eventually(() => own.closed)).toBe(1008);
      own.create(request);
    }
    // Nothing of the response before comes after its end.
    else expect(await own.turn(request)).toMatchObject([{ type: 'error', status: 401 }]);
    expect(upstream.got.length).toBe(before);
    upstream.hold.release();
    own.socket.terminate();
  });

  test('with --now closes connections that are idle or in the middle of a message', async () => {
    const { record, text } = await book.create('idle', {}, 'cli');
    const { record: other, text: otherText } = await book.create('other', {}, 'cli');
    const [idle, sending, kept] = [
      await Client.open(locked.url, bearer(text)),
      await Client.open(locked.url, bearer(text)),
      await Client.open(locked.url, bearer(otherText)),
    ];
    sendPart(sending, 100_000);
    await eventually(() => locked.services.pending.total > 100_000);
    await book.revoke(record.id, true, 'cli');
    for (const client of [idle, sending]) {
      expect(await eventually(() => client.frames[0])).toMatchObject({ type: 'error', status: 401 });
      expect(await eventually(() => client.closed)).toBe(1008);
    }
    await eventually(() => locked.services.pending.total === 0);
    expect(listTypes(await kept.turn({ model: MODEL, input: 'x' })).at(-1)).toBe('response.completed');
    kept.socket.terminate();
    await book.revoke(other.id, true, 'cli');
  });
});

describe('messages that do not end', () => {
  const FIRST = { key: KEY, name: 'first' };
  const SECOND = { key: POOR, name: 'second' };
  const start = (limits: object, clock?: TestClock): Promise<Started> =>
    startGateway({ config: { providers: listProviders(), auth: { keys: [FIRST, SECOND] }, limits }, ...(clock && { clock }) });

  test('are closed when one key sends too many bytes of them, and other keys are served', async () => {
    const own = await start({ request_bytes: '1MiB', pending_bytes: '4MiB' });
    const clients = await Promise.all([1, 2, 3, 4].map(() => Client.open(own.url, bearer(KEY))));
    for (const client of clients) sendPart(client, 900_000);
    const refused = await eventually(() => clients.find(({ frames }) => frames.length > 0));
    expect(refused.frames[0]).toMatchObject({
      type: 'error',
      status: 429,
      error: { message: expect.stringContaining('2097152') },
    });
    expect(await eventually(() => refused.closed)).toBe(1013);
    expect(own.services.pending.total).toBeLessThanOrEqual(2 * 1024 * 1024);
    const other = await Client.open(own.url, bearer(POOR));
    expect(listTypes(await other.turn({ model: MODEL, input: 'x' })).at(-1)).toBe('response.completed');
    for (const { socket } of [...clients, other]) socket.terminate();
    await own.close();
  });

  test('are counted together with bodies over HTTP', async () => {
    const own = await start({ request_bytes: '1MiB', pending_bytes: '4MiB' });
    const clients = await Promise.all([1, 2].map(() => Client.open(own.url, bearer(KEY))));
    for (const client of clients) sendPart(client, 900_000);
    await eventually(() => own.services.pending.total > 1_800_000);
    const send = (key: string): Promise<Response> =>
      fetch(`${own.url}/v1/responses`, {
        method: 'POST',
        headers: { ...bearer(key), 'content-type': 'application/json' },
        body: JSON.stringify({ model: MODEL, input: 'x'.repeat(500_000) }),
      });
    const refused = await send(KEY);
    expect([refused.status, await refused.json()]).toMatchObject([
      429,
      { error: { message: expect.stringContaining('limits.pending_bytes') } },
    ]);
    expect((await send(POOR)).status).toBe(200);
    for (const { socket } of clients) socket.terminate();
    await eventually(() => own.services.pending.total === 0);
    expect((await send(KEY)).status).toBe(200);
    await own.close();
  });

  test('time out after limits.request_timeout, whatever pings come between', async () => {
    const clock = new TestClock();
    const own = await start({ request_timeout: '20s' }, clock);
    const [idle, sending] = [await Client.open(own.url, bearer(KEY)), await Client.open(own.url, bearer(KEY))];
    idle.socket.ping('x'.repeat(100));
    sendPart(sending, 1000);
    await eventually(() => own.services.pending.total > 1000);
    sending.socket.ping('y');
    await clock.advance(19_999);
    expect([idle.closed, sending.closed]).toEqual([undefined, undefined]);
    await clock.advance(1);
    expect(await eventually(() => sending.frames[0])).toMatchObject({ status: 400, error: { code: 'message_timeout' } });
    expect(await eventually(() => sending.closed)).toBe(1008);
    expect(idle.closed).toBeUndefined();
    idle.socket.terminate();
    await own.close();
  });
});

describe('a client that reads no refusals', () => {
  test.each<[name: string, message: unknown]>([
    ['messages that are invalid', {}],
    ['steering', { type: 'response.steer', input: 'x'.repeat(1000) }],
    ['requests for unknown models', { type: 'response.create', model: 'nobody/x', input: 'x' }],
  ])('is not read until it does, and is closed in the end: %s', async (_name, message) => {
    const limits = { write_buffer: '64KiB', stall_timeout: '300ms' };
    const own = await startGateway({ config: { providers: listProviders(), limits } });
    const deaf = await Client.open(own.url);
    deaf.socket.pause();
    const text = JSON.stringify(message);
    const { pending } = own.services;
    for (let i = 0; i < Math.min(100_000, 8_000_000 / text.length); i++) deaf.socket.send(text);
    await eventually(() => pending.total > 32_000);
    let most = 0;
    await eventually(() => {
      most = Math.max(most, pending.total);
      return pending.total === 0;
    });
    // A piece that was read, and the refusals of its messages.
    expect(most).toBeLessThan(16_000_000);
    deaf.socket.resume();
    await eventually(() => deaf.closed);
    await own.close();
  });

  test('gets all of them when it reads on', async () => {
    const own = await startGateway({ config: { providers: listProviders(), limits: { write_buffer: '16KiB' } } });
    const late = await Client.open(own.url);
    late.socket.pause();
    for (let i = 0; i < 20_000; i++) late.send('{}');
    await takeTurns(200);
    late.socket.resume();
    await eventually(() => late.frames.length === 20_000);
    expect(listTypes(await late.turn({ model: MODEL, input: 'x' })).at(-1)).toBe('response.completed');
    late.socket.terminate();
    await own.close();
  });
});

/** Sends the beginning of a message that is a byte longer. */
function sendPart(client: Client, bytes: number): void {
  client.socket.send('x'.repeat(bytes), { fin: false });
}

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
