import type { CanonicalError, ProtocolId } from '@sluice/core';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MemoryBackend } from '../../src/admission/memory.ts';
import { type ExchangeRow, openStore, type Store } from '../../src/store/index.ts';
import { FarLimits } from '../exchange/far-limits.ts';
import { cutAfter, readError, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { type Asking, ask, askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/idempotency.md: requests with the same `Idempotency-Key` share one response.

let faultd: Faultd;
let gateway: Started;
let store: Store;
let count = 0;

beforeAll(async () => {
  faultd = await Faultd.start();
  store = await openStore({ folder: null });
  gateway = await startGateway({
    config: { providers: providersAt(faultd), limits: { retries: 0 }, idempotency: { max_bytes: '8MiB' } },
    store,
  });
});

afterEach(() => {
  faultd.served = [];
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  await store.close();
});

const newKey = (): string => `key-${++count}`;

const asking = ({ client, ...pair }: Pair, stream: boolean, key: string, body: object = {}): Asking => ({
  client,
  model: modelOf({ client, ...pair }),
  stream,
  headers: { 'idempotency-key': key },
  body,
});

/** Sends a request and leaves its response to be read. */
const begin = async (request: Asking, url = gateway.url): Promise<RawClient> =>
  (await RawClient.open(url)).send(askText(request));

/** A script waits for `until`; `go` lets it go on. */
function gate(): { until: { run: () => Promise<void> }; go: () => void } {
  let go: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    go = resolve;
  });
  return { until: { run: () => opened }, go: () => go() };
}

const reused = ({ headers }: Reply): string | undefined => headers['x-sluice-idempotency'];

const errorIn = (client: ProtocolId, { status, headers, body }: Reply): CanonicalError =>
  readError(client, status, headers, body);

const CHAT: Pair = PAIRS[0] as Pair; // the table is not empty
const ANOTHER_BODY = { temperature: 0.5 } as const;

/** The exchange with this id, when it is settled. */
async function findRow(id: string | undefined): Promise<ExchangeRow> {
  let row: ExchangeRow | undefined;
  while (row?.state !== 'settled') {
    const { exchanges } = await store.list({ limit: 200 });
    row = exchanges.find(({ request_id }) => request_id === id);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return row;
}

describe.each(waysOf(PAIRS))('$name', ({ pair, stream }) => {
  test('a finished request is replayed byte for byte, and charged once', async () => {
    faultd.play(good(pair, stream));
    const request = asking(pair, stream, newKey());
    const first = await ask(gateway.url, request);
    const second = await ask(gateway.url, request);
    expect([first.status, reused(first)]).toEqual([200, 'new']);
    expect([second.status, reused(second)]).toEqual([200, 'replayed']);
    expect(second.body.equals(first.body)).toBe(true);
    expect(second.headers['content-type']).toBe(first.headers['content-type']);
    expect(second.headers['x-sluice-original-request-id']).toBe(first.headers['x-sluice-request-id']);
    expect(second.headers['x-sluice-attempts']).toBe('0');
    expect(faultd.served).toHaveLength(1);
    const [charged, free] = [
      await findRow(first.headers['x-sluice-request-id']),
      await findRow(second.headers['x-sluice-request-id']),
    ];
    expect(charged).toMatchObject({ ending: 'answered', attempts: 1, input_tokens: 11, output_tokens: 5 });
    expect(free).toMatchObject({ ending: 'answered', attempts: 0, input_tokens: null, output_tokens: null, cost_micros: null });
    expect(free).toMatchObject({
      note_codes: ['replayed'],
      model_requested: charged.model_requested,
      is_stream: charged.is_stream,
    });
  });

  test('an error frees the key, so that a retry is sent upstream', async () => {
    const request = asking(pair, stream, newKey());
    faultd.play([{ send: whole(500, '{"error":{"message":"down"}}') }], good(pair, stream));
    const first = await ask(gateway.url, request);
    const second = await ask(gateway.url, request);
    expect([first.status >= 500, reused(first)]).toEqual([true, 'new']);
    expect([second.status, reused(second)]).toEqual([200, 'new']);
    expect(faultd.served).toHaveLength(2);
  });

  test('the same key with another body gets 422 in the protocol of the client', async () => {
    faultd.play(good(pair, stream));
    const key = newKey();
    const first = await ask(gateway.url, asking(pair, stream, key));
    const second = await ask(
      gateway.url,
      asking(pair, stream, key, pair.client === 'gemini' ? { generationConfig: ANOTHER_BODY } : ANOTHER_BODY),
    );
    const error = errorIn(pair.client, second);
    expect(second.status).toBe(422);
    expect(error.message).toContain(`was used with another body by request ${first.headers['x-sluice-request-id']}`);
    expect(faultd.served).toHaveLength(1);
  });
});

/** Where the upstream is when another client joins. */
const STAGES = ['before the headers', 'before the content', 'in the middle', 'before the end'] as const;

/** A good stream or whole response that waits at one stage. */
function scriptAt(stage: (typeof STAGES)[number], upstream: ProtocolId, stream: boolean, until: Script[number]): Script {
  const { before, after } = cutAfter(upstream, 'two');
  const text = wholeOf(upstream);
  const full = whole(200, text);
  const bodyAt = full.length - Buffer.byteLength(text);
  const parts: Buffer[] = stream
    ? [Buffer.from(streamHead()), chunk(before.join('')), chunk(after.join('')), Buffer.from(LAST_CHUNK)]
    : [full.subarray(0, bodyAt), full.subarray(bodyAt, bodyAt + 20), full.subarray(bodyAt + 20, -1), full.subarray(-1)];
  return parts.flatMap((send, index) => (index === STAGES.indexOf(stage) ? [until, { send }] : [{ send }]));
}

describe.each(STAGES)('a client that joins %s', (stage) => {
  test.each(waysOf(PAIRS))('receives the same response: $name', async ({ pair, stream }) => {
    const { until, go } = gate();
    faultd.play(scriptAt(stage, pair.upstream, stream, until));
    const request = asking(pair, stream, newKey());
    const first = await begin(request);
    await eventually(() => faultd.served.length === 1);
    const second = await begin(request);
    if (stage === 'before the end' && stream) await second.sees('three');
    else await eventually(() => gateway.services.streams.count === 2);
    go();
    const [one, two] = [await first.reply(), await second.reply()];
    expect([one.status, reused(one), two.status, reused(two)]).toEqual([200, 'new', 200, 'joined']);
    expect(two.isWhole && two.body.equals(one.body)).toBe(true);
    expect(faultd.served).toHaveLength(1);
    expect(await findRow(two.headers['x-sluice-request-id'])).toMatchObject({
      ending: 'answered',
      input_tokens: null,
      note_codes: ['joined'],
      http_status: 200,
    });
    first.leave();
    second.leave();
  });
});

describe.each(PAIRS)('clients that leave: $name', (pair) => {
  const { before, after } = cutAfter(pair.upstream, 'two');
  const play = (until: Script[number]): void =>
    faultd.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      until,
      { send: chunk(after.join('')) },
      { send: LAST_CHUNK },
    ]);

  test('the upstream call goes on for the client that joined, and is charged to the first', async () => {
    const { until, go } = gate();
    play(until);
    const request = asking(pair, true, newKey());
    const first = await begin(request);
    await first.sees('two');
    const second = await begin(request);
    await second.sees('two');
    first.reset();
    await eventually(() => gateway.services.streams.underWay.some(({ isGone }) => isGone));
    go();
    const reply = await second.reply();
    expect(reply.isWhole).toBe(true);
    const original = await findRow(reply.headers['x-sluice-original-request-id']);
    expect(original).toMatchObject({ ending: 'answered', input_tokens: 11, output_tokens: 5 });
    const third = await ask(gateway.url, request);
    expect([reused(third), third.body.equals(reply.body)]).toEqual(['replayed', true]);
    expect(faultd.served).toHaveLength(1);
    second.leave();
  });

  test('a client that joined and leaves does not matter', async () => {
    const { until, go } = gate();
    play(until);
    const request = asking(pair, true, newKey());
    const first = await begin(request);
    await first.sees('two');
    const second = await begin(request);
    await second.sees('two');
    const id = /x-sluice-request-id: (\S+)/i.exec(second.received.toString())?.[1];
    second.reset();
    expect(await findRow(id)).toMatchObject({ ending: 'client_aborted', note_codes: ['joined'], input_tokens: null });
    go();
    expect(await first.reply()).toMatchObject({ isWhole: true, status: 200 });
    first.leave();
  });

  test('the upstream call is cancelled when all have left, and the key is free', async () => {
    const { until, go } = gate();
    play(until);
    const request = asking(pair, true, newKey());
    const first = await begin(request);
    await first.sees('two');
    const second = await begin(request);
    await second.sees('two');
    first.reset();
    second.reset();
    await faultd.served[0]?.closed;
    await eventually(() => gateway.services.streams.count === 0);
    go();
    faultd.play(good(pair, true));
    expect(reused(await ask(gateway.url, request))).toBe('new');
  });

  test('a connection to the upstream that is lost in the middle: both get the same error, and nothing is stored', async () => {
    const { until, go } = gate();
    faultd.play([{ send: streamHead() }, { send: chunk(before.join('')) }, until, { reset: true }], good(pair, true));
    const request = asking(pair, true, newKey());
    const first = await begin(request);
    await first.sees('two');
    const second = await begin(request);
    await second.sees('two');
    go();
    const [one, two] = [await first.reply(), await second.reply()];
    expect(two.body.equals(one.body)).toBe(true);
    const [failed, joined] = [
      await findRow(one.headers['x-sluice-request-id']),
      await findRow(two.headers['x-sluice-request-id']),
    ];
    expect(failed.ending).not.toBe('answered');
    expect([joined.ending, joined.error_code]).toEqual([failed.ending, failed.error_code]);
    expect(reused(await ask(gateway.url, request))).toBe('new');
    expect(faultd.served).toHaveLength(2);
    first.leave();
    second.leave();
  });
});

describe('keys', () => {
  test.each([
    ['longer than 256 characters', 'k'.repeat(257), 400],
    ['empty', '', 400],
    ['not ASCII', 'k\u00e9y', 400],
    ['256 characters', 'k'.repeat(256), 200],
  ])('%s', async (_, key, status) => {
    faultd.play(good(CHAT, false));
    const reply = await ask(gateway.url, asking(CHAT, false, key));
    expect(reply.status).toBe(status);
    if (status === 400) expect(errorIn('openai-chat', reply).message).toContain('1 to 256 visible ASCII characters');
    expect(faultd.served).toHaveLength(status === 400 ? 0 : 1);
  });

  test('belong to a route: the same key for another path is another request', async () => {
    const key = newKey();
    const body = JSON.stringify({ model: modelOf(CHAT), messages: [{ role: 'user', content: 'hi' }], input: 'hi' });
    const headers = { 'idempotency-key': key };
    faultd.play(good(CHAT, false), [{ send: whole(200, '{"object":"list","data":[],"model":"m"}') }]);
    const send = async (path: string): Promise<Reply> => {
      const client = await RawClient.open(gateway.url);
      const reply = await client.send(requestText('POST', path, headers, body)).reply();
      client.leave();
      return reply;
    };
    expect(reused(await send('/v1/chat/completions'))).toBe('new');
    expect(reused(await send('/v1/embeddings'))).toBe('new');
    expect(reused(await send('/v1/embeddings'))).toBe('replayed');
  });

  test('a request without a key, or with GET, is not shared', async () => {
    faultd.play(good(CHAT, false), good(CHAT, false));
    const request = { client: CHAT.client, model: modelOf(CHAT), stream: false };
    const replies = [await ask(gateway.url, request), await ask(gateway.url, request)];
    expect(replies.map(reused)).toEqual([undefined, undefined]);
    expect(faultd.served).toHaveLength(2);
  });

  test('a failed request before dispatch is not stored', async () => {
    const request = { ...asking(CHAT, false, newKey()), model: 'unknown-model-x' };
    const replies = [await ask(gateway.url, request), await ask(gateway.url, request)];
    expect(replies.map((reply) => [reply.status, reused(reply)])).toEqual([
      [404, 'new'],
      [404, 'new'],
    ]);
  });
});

describe('forwarded bytes', () => {
  const form = (boundary: string, value: string): string =>
    [
      `--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\npass-openai-chat/whisper`,
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.mp3"\r\n\r\n${value}`,
      `--${boundary}--\r\n`,
    ].join('\r\n');

  async function send(key: string, boundary: string, value: string): Promise<Reply> {
    const client = await RawClient.open(gateway.url);
    const headers = { 'idempotency-key': key, 'content-type': `multipart/form-data; boundary=${boundary}` };
    const reply = await client.send(requestText('POST', '/v1/audio/transcriptions', headers, form(boundary, value))).reply();
    client.leave();
    return reply;
  }

  test('a form with another boundary is the same request; with another file it is not', async () => {
    const key = newKey();
    faultd.play([{ send: whole(200, '{"text":"hello"}') }]);
    const first = await send(key, 'aaaa', 'sound');
    const second = await send(key, 'bbbb', 'sound');
    const third = await send(key, 'cccc', 'noise');
    expect([first.status, second.status, third.status]).toEqual([200, 200, 422]);
    expect([reused(second), second.body.toString()]).toEqual(['replayed', '{"text":"hello"}']);
  });

  test('a boundary of one character that is all over the form takes no longer than another', async () => {
    faultd.play([{ send: whole(200, '{"text":"hello"}') }]);
    const measure = async (boundary: string): Promise<number> => {
      const started = process.cpuUsage();
      const { status } = await send(newKey(), boundary, 'a'.repeat(8 << 20));
      expect(status).toBe(200);
      return process.cpuUsage(started).user / 1e6;
    };
    const usual = await measure('----usual-boundary-of-a-form');
    // Where every place with the boundary is visited, it takes 2 s and more.
    expect(await measure('a')).toBeLessThan(5 * usual + 0.5);
  });

  test('a body that is cut off is cut off for the client that joined', async () => {
    const { until, go } = gate();
    const key = newKey();
    faultd.play([{ send: whole(200, '{"text":"hello"}').subarray(0, -5) }, until, { reset: true }]);
    const text = requestText(
      'POST',
      '/v1/images/generations',
      { 'idempotency-key': key },
      JSON.stringify({ model: 'pass-openai-chat/image', prompt: 'x' }),
    );
    const first = (await RawClient.open(gateway.url)).send(text);
    await first.sees('"text"');
    const second = (await RawClient.open(gateway.url)).send(text);
    await second.sees('"text"');
    go();
    const [one, two] = [await first.reply(), await second.reply()];
    expect([one.isWhole, two.isWhole, two.body.equals(one.body)]).toEqual([false, false, true]);
  });
});

describe('callers', () => {
  const KEYS = ['sk-first-0123456789abcdef', 'sk-second-0123456789abcdef'];
  let other: Started;

  beforeAll(async () => {
    other = await startGateway({ config: { providers: providersAt(faultd), auth: { keys: KEYS } } });
  });

  afterAll(() => other.close());

  test('never share a response, and never a key of the upstream', async () => {
    const key = newKey();
    faultd.play(good(CHAT, false), good(CHAT, false));
    const replies: Reply[] = [];
    for (const secret of [...KEYS, ...KEYS]) {
      const request = asking(CHAT, false, key);
      replies.push(await ask(other.url, { ...request, headers: { ...request.headers, authorization: `Bearer ${secret}` } }));
    }
    expect(replies.map(reused)).toEqual(['new', 'new', 'replayed', 'replayed']);
    const sent = faultd.served.map(({ headers }) => headers['idempotency-key']);
    expect(new Set([...sent, key]).size).toBe(3);
    expect(sent.every((text) => /^[0-9a-f]{32}$/.test(text ?? ''))).toBe(true);
  });
});

describe('limits', () => {
  test('a response is kept for `ttl`', async () => {
    const clock = new TestClock();
    const timed = await startGateway({ config: { providers: providersAt(faultd), idempotency: { ttl: '5s' } }, clock });
    faultd.play(good(CHAT, false), good(CHAT, false));
    const request = asking(CHAT, false, newKey());
    expect(reused(await ask(timed.url, request))).toBe('new');
    await clock.advance(4999);
    expect(reused(await ask(timed.url, request))).toBe('replayed');
    expect(timed.services.idempotency?.count).toBe(1);
    await clock.advance(1);
    // By its timer, before the next request.
    expect([timed.services.idempotency?.count, timed.services.idempotency?.bytes]).toEqual([0, 0]);
    expect(reused(await ask(timed.url, request))).toBe('new');
    await timed.close();
  });

  test('a response above an eighth of `max_bytes` is not stored: 409 that names the request and is not retried', async () => {
    const large = wholeOf('openai-chat').replace('One two', 'x'.repeat(1_100_000));
    faultd.play([{ send: whole(200, large) }]);
    const request = asking(CHAT, false, newKey());
    const first = await ask(gateway.url, request);
    const second = await ask(gateway.url, request);
    expect([first.status, first.body.length > 1_000_000, second.status]).toEqual([200, true, 409]);
    expect(second.headers['x-should-retry']).toBe('false');
    expect(errorIn('openai-chat', second).message).toContain(
      `request ${first.headers['x-sluice-request-id']} had this key and has finished`,
    );
  });

  test('off: requests are not shared, and the key is still forwarded', async () => {
    const without = await startGateway({ config: { providers: providersAt(faultd), idempotency: 'off' } });
    faultd.play(good(CHAT, false), good(CHAT, false));
    const request = asking(CHAT, false, 'my-key');
    const replies = [await ask(without.url, request), await ask(without.url, request)];
    expect(replies.map(reused)).toEqual([undefined, undefined]);
    expect(faultd.served.map(({ headers }) => headers['idempotency-key'])).toEqual(['my-key', 'my-key']);
    await without.close();
  });

  test('a client that joined and does not read never holds up the first', async () => {
    const { until, go } = gate();
    const { before, after } = cutAfter('openai-chat', 'two');
    const filler = `: ${'x'.repeat(4000)}\n\n`;
    const middle = (cutAfter('openai-chat', 'two').after[0] ?? '').replace('three', 'y'.repeat(60_000));
    faultd.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      until,
      ...Array.from({ length: 200 }, () => ({ send: chunk(middle + filler) })),
      { send: chunk(after.join('')) },
      { send: LAST_CHUNK },
    ]);
    const request = { ...asking(CHAT, true, newKey()), model: 'mend-openai-chat/m' };
    const first = await begin(request);
    await first.sees('two');
    const second = await begin(request);
    await second.sees('two');
    second.socket.pause();
    go();
    const reply = await first.reply();
    expect([reply.isWhole, reply.body.length > 1_000_000]).toEqual([true, true]);
    // The response is too large to be kept for a client that is so far behind.
    const id = /x-sluice-request-id: (\S+)/i.exec(second.received.toString())?.[1];
    expect(await findRow(id)).toMatchObject({ ending: 'client_stalled', note_codes: ['joined'] });
    second.leave();
    first.leave();
    await eventually(() => gateway.services.streams.count === 0);
  });
});

describe('a client that leaves while the rest is read for its usage (on_disconnect: drain)', () => {
  test('frees its key: the request is sent upstream again, and both are charged', async () => {
    const providers = Object.fromEntries(
      Object.entries(providersAt(faultd)).map(([name, provider]) => [name, { ...provider, on_disconnect: 'drain' }]),
    );
    const draining = await startGateway({
      config: { providers, limits: { retries: 0 } },
      store,
    });
    const { until, go } = gate();
    const { before, after } = cutAfter('openai-chat', 'two');
    faultd.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      until,
      { send: chunk(after.join('')) },
      { send: LAST_CHUNK },
    ]);
    const request = asking(CHAT, true, newKey());
    const first = await begin(request, draining.url);
    await first.sees('two');
    const id = /x-sluice-request-id: (\S+)/i.exec(first.received.toString())?.[1];
    first.reset();
    await eventually(() => draining.services.streams.underWay.some(({ isGone }) => isGone));
    faultd.play(good(CHAT, true));
    const second = await ask(draining.url, request);
    expect([second.status, reused(second)]).toEqual([200, 'new']);
    // The first ends after the second: it must not end what the second has begun.
    go();
    expect(await findRow(id)).toMatchObject({ ending: 'client_aborted', input_tokens: 11, output_tokens: 5 });
    const third = await ask(draining.url, request);
    expect([reused(third), third.body.equals(second.body)]).toEqual(['replayed', true]);
    // Since the second script.
    expect(faultd.served).toHaveLength(1);
    await draining.close();
  });
});

test('a request that joins one whose budget is checked elsewhere, and is refused, has the status that its client receives', async () => {
  const clock = new TestClock();
  const limits = new FarLimits(new MemoryBackend(clock, async () => 0), clock, 250);
  const poor = await startGateway({
    config: {
      providers: providersAt(faultd),
      default_price: { input: 1, output: 1 },
      auth: { keys: [{ name: 'poor', key: 'key-of-a-poor-client-0123456789', budget: '0.000001usd/total' }] },
    },
    clock,
    limitBackend: limits,
    store,
  });
  const request = asking(CHAT, true, newKey());
  const headers = { ...request.headers, authorization: 'Bearer key-of-a-poor-client-0123456789' };
  const clients = [await begin({ ...request, headers }, poor.url), await begin({ ...request, headers }, poor.url)];
  await eventually(() => poor.services.streams.count === 2 && poor.services.gate.held.requests === 1);
  await clock.advance(500);
  for (const client of clients) {
    const reply = await client.reply();
    expect(reply.status).toBe(429);
    expect(await findRow(reply.headers['x-sluice-request-id'])).toMatchObject({ http_status: 429, ending: 'refused' });
    client.leave();
  }
  await poor.close();
});

describe('shutdown', () => {
  test('both clients get the error of the gateway, also when the first has left', async () => {
    for (const leaves of [false, true]) {
      const stopping = await startGateway({ config: { providers: providersAt(faultd) } });
      const { before } = cutAfter('openai-chat', 'two');
      faultd.play([{ send: streamHead() }, { send: chunk(before.join('')) }, { hang: true }]);
      const request = asking(CHAT, true, newKey());
      const first = await begin(request, stopping.url);
      await first.sees('two');
      const second = await begin(request, stopping.url);
      await second.sees('two');
      if (leaves) {
        first.reset();
        await eventually(() => stopping.services.streams.underWay.some(({ isGone }) => isGone));
      }
      const closed = stopping.close();
      const replies = leaves ? [await second.reply()] : [await first.reply(), await second.reply()];
      await closed;
      for (const { isWhole, body } of replies)
        expect([isWhole, body.toString().includes('the gateway is shutting down')]).toEqual([true, true]);
    }
  });
});

describe('the official SDK', () => {
  test('its retries with the same key go upstream after an error, and are replayed after a success', async () => {
    faultd.play(
      [{ send: whole(500, '{"error":{"message":"down"}}') }],
      [{ send: whole(429, '{"error":{"message":"slow down"}}', { 'retry-after-ms': '1' }) }],
      good(CHAT, false),
    );
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 3 });
    const key = newKey();
    const create = (): Promise<OpenAI.ChatCompletion> =>
      openai.chat.completions.create(
        { model: modelOf(CHAT), messages: [{ role: 'user', content: 'hi' }] },
        { headers: { 'idempotency-key': key, 'x-retry-after': '0' } },
      );
    const first = await create();
    expect(faultd.served).toHaveLength(3);
    expect(new Set(faultd.served.map(({ headers }) => headers['idempotency-key']))).toEqual(new Set([key]));
    expect(await create()).toEqual(first);
    expect(faultd.served).toHaveLength(3);
  });
});
