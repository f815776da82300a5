import { brotliCompressSync, constants, createGzip, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, framesOf, readWhole, TEXT, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';

// docs/reliability.md, Upstreams: compressed responses.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({
    config: {
      providers: providersAt(faultd),
      limits: { retries_per_provider: 0, stream_bytes: '16MiB', answer_bytes: '16MiB', upstream_keep_alive: '100ms' },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const askPair = (pair: Pair, stream: boolean): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });

const expectText = (pair: Pair, reply: Reply): void => expectAnswered(pair, true, reply);

describe('compressed although identity was requested', () => {
  const PACKINGS: readonly (readonly [coding: string, pack: (body: string) => Buffer])[] = [
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['identity', Buffer.from],
  ];

  test.each(PACKINGS)('%s is decompressed', async (coding, pack) => {
    for (const pair of PAIRS) {
      faultd.play([
        { send: streamHead({ 'content-encoding': coding }) },
        { send: chunk(pack(framesOf(pair.upstream).join(''))) },
        { send: LAST_CHUNK },
      ]);
      expectText(pair, await askPair(pair, true));
      expect(faultd.served[0]?.headers['accept-encoding']).toBe('identity');
      faultd.play([{ send: whole(200, pack(wholeOf(pair.upstream)), { 'content-encoding': coding }) }]);
      const reply = await askPair(pair, false);
      expect(readWhole(pair.client, reply.body).content).toMatchObject([{ text: TEXT }]);
      expect(reply.headers['content-encoding']).toBeUndefined();
    }
  });

  test.each(['gzip, gzip', 'gzip, br', 'compress', '<evil>'])('%s is rejected with 502', async (coding) => {
    for (const pair of PAIRS) {
      faultd.play([{ send: whole(200, gzipSync(gzipSync(wholeOf(pair.upstream))), { 'content-encoding': coding }) }]);
      for (const stream of [true, false]) expectRefused(pair.client, await askPair(pair, stream), 502, 'used content-encoding');
    }
  });

  test.each(PAIRS)('a compressed stream is forwarded as it arrives: $name', async (pair) => {
    const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
    const { before, after } = cutAfter(pair.upstream, 'two');
    const packed = (text: string): Promise<Buffer> =>
      new Promise((resolve) => {
        gzip.write(text);
        gzip.flush(() => resolve(gzip.read()));
      });
    const [one, two] = [await packed(before.join('')), await packed(after.join(''))];
    let release: () => void = () => undefined;
    const seen = new Promise<void>((resolve) => (release = resolve));
    faultd.play([
      { send: streamHead({ 'content-encoding': 'gzip' }) },
      { send: chunk(one) },
      { run: () => seen },
      { send: chunk(two) },
      { send: LAST_CHUNK },
    ]);
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    await client.sees('two');
    release();
    expectText(pair, await client.reply());
    client.leave();
  });

  test.each(PAIRS.slice(3, 6))('a decompression bomb is stopped: $name', async (pair) => {
    // 64 MiB of spaces in 64 KiB: a thousand to one.
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '), { level: 9 });
    faultd.play([{ send: whole(200, bomb, { 'content-encoding': 'gzip' }) }]);
    expectRefused(pair.client, await askPair(pair, false), 502, 'grows more than');
    expectRefused(pair.client, await askPair(pair, true), 502, 'grows more than');
  });

  // All of them stop to be read in their middle, so that the connection cannot be used again.
  test.each([
    ['cannot be decompressed', Buffer.alloc(400_000, '*')],
    ['grows more than the limit', gzipSync(Buffer.alloc(400 * 1024 * 1024, ' '))],
    ['ends before its body', Buffer.concat([gzipSync(' '), Buffer.alloc(400_000, '*')])],
  ])('the connection of a compressed response that %s is closed', async (_, body) => {
    faultd.dropConnections();
    await eventually(() => faultd.openSockets === 0);
    for (const pair of PAIRS.slice(3, 6))
      for (const stream of [true, false]) {
        faultd.play([{ send: whole(200, body, { 'content-encoding': 'gzip' }) }]);
        await askPair(pair, stream);
        await eventually(() => faultd.openSockets === 0);
      }
  });

  test.each(PAIRS)('corrupt compressed data is an error: $name', async (pair) => {
    faultd.play([{ send: whole(200, 'not packed at all', { 'content-encoding': 'gzip' }) }]);
    for (const stream of [true, false]) expectRefused(pair.client, await askPair(pair, stream), 502, 'cannot be decompressed');
  });

  test.each(PAIRS)('a truncated compressed stream is an error: $name', async (pair) => {
    const packed = gzipSync(cutAfter(pair.upstream, 'two').before.join(''));
    faultd.play([{ send: streamHead({ 'content-encoding': 'gzip' }) }, { send: chunk(packed) }, { wait: 20 }, { reset: true }]);
    expectBrokenOff(pair.client, await askPair(pair, true), 'One two', /connection to provider "[\w-]+" failed/);
  });
});
