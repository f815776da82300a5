import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { REVOKED } from '../../src/exchange/types.ts';
import type { Stored } from '../../src/responses/store.ts';
import { type ExchangeRow, openStore, type Store } from '../../src/store/index.ts';
import { eventually, type Started, startGateway } from '../gateway/start.ts';
import { startUpstream, type Upstream } from './upstreams.ts';

// Responses with state pass the same gate, ledger, cache and idempotency as all others.

const KEY = 'client-key-of-the-first-0123456789';
const OTHER = 'client-key-of-the-other-0123456789';

let upstream: Upstream;
let gateway: Started;
let store: Store;

beforeAll(async () => {
  upstream = await startUpstream('anthropic-messages');
  store = await openStore({ folder: null });
  gateway = await startGateway({
    config: {
      providers: { claude: { protocol: 'anthropic-messages', base_url: upstream.url, api_key: 'k' } },
      prices: { 'claude/*': { input: 1, output: 1 } },
      auth: {
        keys: [
          { key: KEY, name: 'first', concurrency: 1, models: ['claude/*'], budget: '1usd/day' },
          { key: OTHER, name: 'other', models: ['claude/m'] },
        ],
      },
      cache: { scope: 'shared' },
    },
    store,
  });
});

beforeEach(() => {
  upstream.hold.isOn = false;
  upstream.next = {};
});

afterAll(async () => {
  upstream.hold.release();
  await gateway.close();
  await store.close();
  upstream.close();
});

interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown> & { id: string };
}

async function call(path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(`${gateway.url}/v1/${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] }; // asserted below
}

const ask = (body: object, headers: Record<string, string> = {}): Promise<Answer> =>
  call('responses', { model: 'claude/m', input: `text ${count++}`, ...body }, headers);

let count = 0;

const findRow = async (id: string | null): Promise<ExchangeRow | undefined> =>
  (await store.list({ limit: 200 })).exchanges.find(({ request_id }) => request_id === id);

/** The row, when its exchange has ended. */
const findEnded = (id: string | null): Promise<ExchangeRow> =>
  eventually(async () => {
    const row = await findRow(id);
    return row?.ending ? row : undefined;
  });

const waitForEnd = (id: string): Promise<unknown> =>
  eventually(() => gateway.kept?.find('response', id, callerOf(id))?.events?.isEnded);

const callerOf = (id: string): string => [...(gateway.kept?.entries ?? [])].find((entry) => entry.id === id)?.caller ?? '';

describe('a background response', () => {
  test('holds its place at the gate until it ends, and is recorded then', async () => {
    upstream.hold.isOn = true;
    const before = upstream.got.length;
    const { body, headers } = await ask({ background: true });
    const id = headers.get('x-sluice-request-id');
    await eventually(() => upstream.got.length > before);
    expect((await ask({})).status).toBe(429);
    expect((await findRow(id))?.ending ?? null).toBeNull();
    upstream.hold.isOn = false;
    upstream.hold.release();
    await waitForEnd(body.id);
    expect(await findEnded(id)).toMatchObject({ ending: 'answered', http_status: 200, model_requested: 'claude/m' });
    expect((await findRow(id))?.cost_micros).toBeGreaterThan(0);
    expect((await ask({})).status).toBe(200);
  });

  test('that is cancelled gives its place back', async () => {
    upstream.hold.isOn = true;
    const before = upstream.got.length;
    const { body, headers } = await ask({ background: true });
    await eventually(() => upstream.got.length > before);
    expect((await call(`responses/${body.id}/cancel`, {})).body).toMatchObject({ status: 'cancelled' });
    expect(await findEnded(headers.get('x-sluice-request-id'))).toMatchObject({
      ending: expect.stringMatching(/stopped|aborted/),
    });
    upstream.hold.isOn = false;
    expect((await ask({})).status).toBe(200);
  });

  test('ends when its key is revoked', async () => {
    upstream.hold.isOn = true;
    const before = upstream.got.length;
    const { body } = await ask({ background: true });
    await eventually(() => upstream.got.length > before);
    const error = { code: 'AUTHENTICATION', message: 'revoked', http_status: 401, details: { ending: 'stopped' } } as const;
    expect(gateway.services.streams.stopKey(callerOf(body.id), error)).toBe(1);
    await waitForEnd(body.id);
    expect((await call(`responses/${body.id}`)).body).toMatchObject({ status: 'failed' });
  });

  test.each([true, false])(
    'whose key is revoked ends with the error in the stream that a client reads; resumed: %s',
    async (isResumed) => {
      upstream.hold.isOn = true;
      const before = upstream.got.length;
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ model: 'claude/m', input: `text ${count++}`, background: true, stream: true });
      const first = await fetch(`${gateway.url}/v1/responses`, { method: 'POST', headers, body });
      await eventually(() => upstream.got.length > before);
      const isRunning = (entry: Stored): boolean => entry.kind === 'response' && entry.events?.isEnded === false;
      const entry = [...(gateway.kept?.entries ?? [])].find(isRunning);
      const reader = isResumed ? await fetch(`${gateway.url}/v1/responses/${entry?.id}?stream=true`, { headers }) : first;
      gateway.services.streams.stopKey(entry?.caller ?? '', REVOKED);
      const text = await reader.text();
      expect(text.match(/^event: response\.failed$/gm)).toHaveLength(1);
      expect(text).toContain(REVOKED.message);
      if (isResumed) await first.text();
    },
  );

  test('does not begin when its key is revoked while the response is being stored', async () => {
    const before = upstream.got.length;
    let goOn: () => void = () => undefined;
    const written = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const saved: string[] = [];
    const { kept } = gateway;
    if (!kept) throw new Error('the gateway keeps no responses');
    const journal = kept.journal;
    kept.journal = {
      saved: ({ id }) => {
        saved.push(id);
        return written;
      },
      used: () => undefined,
      removed: () => undefined,
    };
    try {
      const asked = ask({ background: true });
      const [id = ''] = await eventually(() => saved.length > 0 && saved);
      gateway.services.streams.stopKey(callerOf(id), REVOKED);
      goOn();
      await asked;
      await waitForEnd(id);
      expect((await call(`responses/${id}`)).body).toMatchObject({ status: 'failed', error: { message: REVOKED.message } });
      expect(upstream.got.length).toBe(before);
    } finally {
      kept.journal = journal;
    }
  });

  test('of a repeated request with an Idempotency-Key is the first one', async () => {
    const before = upstream.got.length;
    const request = { input: 'the same', background: true };
    const first = await ask(request, { 'idempotency-key': 'k1' });
    await waitForEnd(first.body.id);
    const second = await ask(request, { 'idempotency-key': 'k1' });
    expect(second.body.id).toBe(first.body.id);
    expect(second.headers.get('x-sluice-idempotency')).toBe('replayed');
    expect(upstream.got.length).toBe(before + 1);
  });
});

describe('the response cache', () => {
  test('sends a response that its client can continue', async () => {
    const request = { input: 'cached text' };
    const first = await ask(request);
    const hit = await ask(request, { authorization: `Bearer ${OTHER}` });
    expect(hit.headers.get('x-sluice-cache')).toBe('hit');
    for (const [key, { body }] of [
      [KEY, first],
      [OTHER, hit],
    ] as const) {
      const next = await ask({ previous_response_id: body.id }, { authorization: `Bearer ${key}` });
      expect(next.status).toBe(200);
      expect(upstream.got.at(-1)).toContain('cached text');
    }
  });

  test.each<[name: string, fields: (id: string) => object]>([
    ['previous_response_id', (id) => ({ input: 'x', previous_response_id: id })],
    ['an item reference', (_id) => ({ input: [{ type: 'item_reference', id: item }] })],
    ['background', () => ({ input: 'x', background: true })],
  ])('is not used for a request with %s', async (_name, fields) => {
    const first = await ask({ store: true });
    item = (first.body['output'] as { id: string }[])[0]?.id ?? ''; // every response has an item
    for (let i = 0; i < 2; i++) {
      const before = upstream.got.length;
      const { headers, body, status } = await ask(fields(first.body.id));
      expect(status).toBe(200);
      expect(headers.get('x-sluice-cache')).not.toBe('hit');
      await eventually(() => upstream.got.length === before + 1);
      if (body['background'] === true) await waitForEnd(body.id);
    }
  });

  let item = '';
});

test('what a request refers to counts at the gate', async () => {
  const long = 'long '.repeat(1000);
  const { body } = await ask({ input: long, store: true });
  const caller = { id: callerOf(body.id) } as Parameters<NonNullable<typeof gateway.services.responses>['measure']>[1]; // only the id is read
  const measure = (fields: object): number =>
    gateway.services.responses?.measure({ input: 'x', ...fields }, caller, undefined) ?? 0;
  expect(measure({})).toBe(0);
  expect(measure({ previous_response_id: body.id })).toBeGreaterThan(long.length);
});

describe('compaction', () => {
  test('is refused for a model that the key does not allow', async () => {
    const { status } = await call('responses/compact', { model: 'claude/n', input: 'x' }, { authorization: `Bearer ${OTHER}` });
    expect(status).toBe(403);
  });

  test('is recorded with its model and cost', async () => {
    const { status, headers } = await call('responses/compact', { model: 'claude/m', input: 'x' });
    expect(status).toBe(200);
    const row = await findEnded(headers.get('x-sluice-request-id'));
    expect(row).toMatchObject({ model_requested: 'claude/m', ending: 'answered' });
    expect(row.cost_micros).toBeGreaterThan(0);
  });
});

test('a request for a conversation that is repeated with its Idempotency-Key makes one', async () => {
  const make = () => call('conversations', { metadata: { a: 'b' } }, { 'idempotency-key': 'k2' });
  expect((await make()).body.id).toBe((await make()).body.id);
});
