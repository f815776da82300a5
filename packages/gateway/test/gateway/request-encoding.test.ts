import { randomBytes } from 'node:crypto';
import * as zlib from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectRefused } from './check.ts';
import { questionOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { eventually, type Started, startGateway } from './start.ts';

// Requests whose body is compressed (Content-Encoding).

const CLIENT_KEY = 'client-key-0123456789';
const LIMIT = 2 * 1024 * 1024;

let faultd: Faultd;
let gateway: Started;
let locked: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  const config = { providers: providersAt(faultd), limits: { request_bytes: LIMIT } };
  gateway = await startGateway({ config });
  locked = await startGateway({ config: { ...config, auth: { keys: [CLIENT_KEY] } } });
});

afterAll(async () => {
  await gateway.close();
  await locked.close();
  await faultd.stop();
});

type Pack = (body: string | Buffer) => Buffer;

/** Node has it since 22.15; the types are those of node 20. */
const zstdCompressSync = (zlib as { zstdCompressSync?: Pack }).zstdCompressSync;

const CODINGS: readonly (readonly [coding: string, pack: Pack])[] = [
  ['gzip', zlib.gzipSync],
  ['x-gzip', zlib.gzipSync],
  ['GZIP', zlib.gzipSync],
  ['identity, gzip', zlib.gzipSync],
  // The best quality, which is the default, takes seconds.
  ['br', (body) => zlib.brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } })],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync],
  ...(zstdCompressSync ? [['zstd', zstdCompressSync] as const] : []),
];
const ACCEPTED = `gzip, x-gzip, br, deflate${zstdCompressSync ? ', zstd' : ''}`;

const CLIENTS = PAIRS.slice(0, 4);
const pair = CLIENTS[0] as Pair;

interface Sent {
  coding: string;
  body: Buffer;
  headers?: Record<string, string>;
  /** In pieces of this size. */
  size?: number;
  url?: string;
  path?: string;
}

/** The head of a request, and its body in chunks. */
function begin(client: RawClient, of: Pair, { coding, headers = {}, path }: Omit<Sent, 'body'>): void {
  const question = questionOf(of.client, modelOf(of), false);
  const sent = { ...question.headers, 'content-encoding': coding, 'transfer-encoding': 'chunked', ...headers };
  client.send(requestText('POST', path ?? question.path, sent));
}

async function post(of: Pair, { size = Number.POSITIVE_INFINITY, ...sent }: Sent): Promise<Reply> {
  const client = await RawClient.open(sent.url ?? gateway.url);
  begin(client, of, sent);
  for (let at = 0; at < sent.body.length; at += size) client.send(chunk(sent.body.subarray(at, at + size)));
  client.send(LAST_CHUNK);
  const reply = await client.reply();
  client.leave();
  return reply;
}

const bodyOf = (of: Pair): string => JSON.stringify({ ...questionOf(of.client, modelOf(of), false).body, x: 'y' });

describe.each(CODINGS)('%s', (coding, pack) => {
  test.each(CLIENTS)('a body is decompressed: $name', async (of) => {
    for (const size of [1, 7, Number.POSITIVE_INFINITY]) {
      faultd.play(good(of, false));
      expectAnswered(of, false, await post(of, { coding, body: pack(bodyOf(of)), size }));
      expect(faultd.served[0]?.headers['content-encoding']).toBeUndefined();
      expect(JSON.parse(faultd.served[0]?.body ?? '')).toMatchObject({ x: 'y' });
    }
  });

  test('with a content-length, and with "Expect: 100-continue"', async () => {
    faultd.play(good(pair, false));
    const body = pack(bodyOf(pair));
    const client = await RawClient.open(gateway.url);
    const headers = { 'content-encoding': coding, 'content-length': String(body.length), expect: '100-continue' };
    client.send(requestText('POST', '/v1/chat/completions', headers));
    await client.sees('100 Continue');
    expectAnswered(pair, false, await client.send(body).reply());
    client.leave();
  });

  test('passed-through endpoints get it decompressed', async () => {
    faultd.play([{ send: whole(200, '{}') }]);
    const body = pack('{"input":"hello"}');
    expect((await post(pair, { coding, body, path: '/v1/moderations' })).status).toBe(200);
    expect(faultd.served[0]).toMatchObject({ body: '{"input":"hello"}' });
    expect(faultd.served[0]?.headers['content-encoding']).toBeUndefined();
  });

  test('an empty body is an empty body', async () => {
    expectRefused(pair.client, await post(pair, { coding, body: Buffer.alloc(0) }), 400, 'a request body is required');
  });

  test.each(CLIENTS)('a truncated or corrupt body is rejected with 400: $name', async (of) => {
    faultd.play(good(of, false));
    const packed = pack(bodyOf(of));
    const flipped = Buffer.from(packed);
    for (let at = 4; at < flipped.length; at += 3) flipped[at] = 255 - (flipped[at] ?? 0);
    // A checksum that is missing is missing data; raw deflate has none.
    for (const body of [packed.subarray(0, packed.length >> 1), packed.subarray(0, -1), flipped, Buffer.from('{"model":"m"}')])
      expectRefused(of.client, await post(of, { coding, body }), 400);
    expect(faultd.served).toEqual([]);
  });

  test('a body that is too large when decompressed is rejected with 413', async () => {
    faultd.play(good(pair, false));
    const filled = (length: number): string => bodyOf(pair).replace('"y"', () => `"${randomBytes(length / 2).toString('hex')}"`);
    expectAnswered(pair, false, await post(pair, { coding, body: pack(filled(LIMIT - 1000)) }));
    const body = pack(filled(LIMIT + 1000));
    expect(body.length).toBeLessThan(LIMIT);
    expectRefused(pair.client, await post(pair, { coding, body }), 413, `${LIMIT} bytes`);
  });

  test('a body that grows more than 100 times is rejected with 413, unless it is small', async () => {
    faultd.play(good(pair, false));
    const repetitive = (length: number): string => bodyOf(pair).replace('"y"', () => `"${'a'.repeat(length)}"`);
    const small = pack(repetitive(512 * 1024));
    expect(small.length).toBeLessThan(5000);
    expectAnswered(pair, false, await post(pair, { coding, body: small }));
    const reply = await post(pair, { coding, body: pack(repetitive(LIMIT - 1000)) });
    expectRefused(pair.client, reply, 413, 'grows more than 100 times when decompressed (limits.compression_ratio)');
  });

  test('a client that disconnects midway leaves no resources', async () => {
    const client = await RawClient.open(gateway.url);
    begin(client, pair, { coding });
    client.send(chunk(pack(bodyOf(pair)).subarray(0, 20)));
    await eventually(() => gateway.services.streams.count === 1);
    client.leave();
    await eventually(() => gateway.services.streams.count === 0);
  });
});

test.each(['gzip, gzip', 'gzip, br', 'compress', 'zst', '<evil>', 'x'.repeat(1000)])(
  '%s gets 415 with the accepted encodings',
  async (coding) => {
    for (const of of CLIENTS) {
      faultd.play(good(of, false));
      const reply = await post(of, { coding, body: Buffer.from(bodyOf(of)) });
      expectRefused(of.client, reply, 415, `unsupported content-encoding; use one of: ${ACCEPTED}`);
      expect(reply.headers['accept-encoding']).toBe(ACCEPTED);
      expect(reply.body.toString()).not.toContain('<evil>');
      expect(faultd.served).toEqual([]);
    }
  },
);

test.runIf(zstdCompressSync === undefined)('zstd gets 415 where node has no zstd', async () =>
  expectRefused(pair.client, await post(pair, { coding: 'zstd', body: Buffer.from('x') }), 415, ACCEPTED),
);

test('compressed bytes without content are limited', async () => {
  const client = await RawClient.open(gateway.url);
  begin(client, pair, { coding: 'gzip' });
  const empty = Buffer.concat(Array.from({ length: 10_000 }, () => zlib.gzipSync('')));
  for (let sent = 0; sent <= LIMIT; sent += empty.length) client.send(chunk(empty));
  expectRefused(pair.client, await client.reply(), 413);
  client.leave();
});

test('a body is not decompressed before authentication', async () => {
  const sent = { coding: 'gzip', body: Buffer.from('not gzip'), url: locked.url };
  expectRefused(pair.client, await post(pair, sent), 401);
  expectRefused(pair.client, await post(pair, { ...sent, headers: { 'x-api-key': CLIENT_KEY } }), 400);
});

test('a gateway that stops does not wait for the rest of a body', async () => {
  const stopping = await startGateway({ config: { providers: providersAt(faultd) } });
  const client = await RawClient.open(stopping.url);
  begin(client, pair, { coding: 'gzip' });
  client.send(chunk(zlib.gzipSync(bodyOf(pair)).subarray(0, 20)));
  await eventually(() => stopping.services.streams.count === 1);
  const closed = stopping.close(0);
  expectRefused(pair.client, await client.reply(), 503, 'shutting down');
  client.leave();
  await closed;
});
