import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, errorOf, framesOf, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, head, type Reply, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { good } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

// docs/reliability.md, Upstreams: endless responses, responses in tiny pieces, and responses to requests that were not read.

let first: Faultd;
let gateway: Started;

beforeAll(async () => {
  first = await Faultd.start();
  const limits = {
    retries_per_provider: 0,
    event_bytes: '64KiB',
    stream_bytes: '1MiB',
    answer_bytes: '1MiB',
    error_bytes: '64KiB',
  };
  gateway = await startGateway({ config: { providers: providersAt(first), limits } });
});

afterAll(async () => {
  await gateway.close();
  await first.stop();
});

const askPair = (pair: Pair, stream: boolean): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });

const WAYS = waysOf(PAIRS);

describe('sizes', () => {
  test.each(PAIRS)('an endless line is cancelled at the limit: $name', async (pair) => {
    first.play([
      { send: streamHead() },
      { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) },
      { forever: chunk(`data: ${'x'.repeat(8000)}`) },
    ]);
    expectBrokenOff(pair.client, await askPair(pair, true), 'One two', 'longer than allowed');
    first.play([{ send: streamHead() }, { forever: chunk('x'.repeat(8000)) }]);
    expectRefused(pair.client, await askPair(pair, true), 502);
    // It is called off: what was sent beyond the limit is what the system holds.
    await first.served[0]?.closed;
    expect(first.served[0]?.sent).toBeLessThan(16 * 1024 * 1024);
  });

  test.each(PAIRS)('an endless event is cancelled at the limit: $name', async (pair) => {
    first.play([
      { send: streamHead() },
      { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) },
      { forever: chunk('data: "x"\n'.repeat(1000)) },
    ]);
    expectBrokenOff(pair.client, await askPair(pair, true), 'One two', 'longer than allowed');
  });

  test.each(PAIRS)('an endless stream is cancelled at the limit: $name', async (pair) => {
    const { before } = cutAfter(pair.upstream, 'two');
    first.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { forever: chunk(': nothing to say\n\n'.repeat(4000)) },
    ]);
    const reply = await askPair(pair, true);
    expectBrokenOff(pair.client, reply, 'One two', /sent .*(more than \d+ bytes|too large)/);
    expect(reply.body.length).toBeLessThan(2 * 1024 * 1024);
  });

  test.each(PAIRS)('an endless whole response is cancelled at the limit: $name', async (pair) => {
    first.play([{ send: head(200, { 'content-type': 'application/json' }) }, { forever: ' '.repeat(80_000) }]);
    expectRefused(pair.client, await askPair(pair, false), 502, /sent .*(more than \d+ bytes|too large)/);
    await first.served[0]?.closed;
  });

  test.each(WAYS)('an endless error body is cut at the limit: $name', async ({ pair, stream }) => {
    first.play([{ send: head(500, { 'content-type': 'text/plain' }) }, { forever: 'oh no '.repeat(1000) }]);
    expect((await askPair(pair, stream)).status).toBeGreaterThanOrEqual(500);
    await first.served[0]?.closed;
  });

  test.each(WAYS)('of a long error no more is read than the limit: $name', async ({ pair, stream }) => {
    const { body } = errorOf(pair.upstream, { code: 'INVALID_INPUT', message: 'oh no '.repeat(40_000), http_status: 400 });
    first.play([{ send: whole(400, body) }]);
    const reply = await askPair(pair, stream);
    expect(reply.status).toBe(400);
    expect(reply.body.length).toBeLessThan(16 * 1024);
  });

  test.each(WAYS)('a status line without an end is cancelled: $name', async ({ pair, stream }) => {
    first.play([{ send: 'HTTP/1.1 200 ' }, { forever: 'OK '.repeat(1000) }]);
    expectRefused(pair.client, await askPair(pair, stream), 502, 'a line of its head is longer than');
    await first.served[0]?.closed;
    expect(first.served[0]?.sent).toBeLessThan(16 * 1024 * 1024);
  });

  test.each(PAIRS)('a response that is nested too deeply is not parsed: $name', async (pair) => {
    const levels = 200_000;
    first.play([{ send: whole(200, `{"choices":${'['.repeat(levels)}${']'.repeat(levels)}}`) }]);
    const parse = vi.spyOn(JSON, 'parse');
    try {
      expectRefused(pair.client, await askPair(pair, false), 502, /nested more than \d+ levels/);
      expect(parse.mock.calls.filter(([text]) => text.length > levels)).toEqual([]);
    } finally {
      parse.mockRestore();
    }
  });
});

test.each(waysOf(PAIRS.slice(3, 6)))('a response that arrives byte by byte is read: $name', async ({ pair, stream }) => {
  const body = stream ? framesOf(pair.upstream).join('') : wholeOf(pair.upstream);
  const type = stream ? 'text/event-stream' : 'application/json';
  first.play([{ send: head(200, { 'content-type': type, 'content-length': String(body.length) }) }, { split: body }]);
  expectAnswered(pair, stream, await askPair(pair, stream));
});

describe('uploads', () => {
  test.each([413, 400])('an upstream may respond with %i before it has read the request', async (status) => {
    for (const { pair, stream } of WAYS) {
      const { body } = errorOf(pair.upstream, { code: 'PAYLOAD_TOO_LARGE', message: 'far too much', http_status: status });
      first.play([{ send: whole(status, body, { connection: 'close' }) }, { wait: 30 }, { reset: true }]);
      first.readsBodies = false;
      const reply = await ask(gateway.url, {
        client: pair.client,
        model: modelOf(pair),
        stream,
        body: { padding: 'x'.repeat(2 * 1024 * 1024) },
      });
      expectRefused(pair.client, reply, status, 'far too much');
    }
  });

  test('an interim response is skipped', async () => {
    for (const { pair, stream } of WAYS) {
      first.play([{ send: head(102) }, { send: head(103, { link: '</x>' }) }, ...good(pair, stream)]);
      expectAnswered(pair, stream, await askPair(pair, stream));
    }
  });
});
