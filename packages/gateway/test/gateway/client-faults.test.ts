import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { expectAnswered } from './check.ts';
import { cutAfter, readStream, TEXT, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/reliability.md, Clients: clients that disconnect, read slowly or not at all, or half-close.

let faultd: Faultd;
let gateway: Started;
/** Takes connections and says nothing: no handshake comes to its end. */
const deaf = createServer((socket) => void socket.on('error', () => undefined).resume());

beforeAll(async () => {
  faultd = await Faultd.start();
  await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
  const { port } = deaf.address() as AddressInfo;
  gateway = await startGateway({
    config: {
      providers: {
        ...providersAt(faultd),
        deaf: { protocol: 'openai-chat', base_url: `https://127.0.0.1:${port}/v1`, api_key: 'none' },
      },
      limits: { heartbeat: '50ms', hold: '60ms', stall_timeout: '400ms', idle_timeout: '2s' },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  deaf.close();
});

const LEAVES = [
  ['closes', (client: RawClient) => client.leave()],
  ['resets', (client: RawClient) => client.reset()],
] as const;

/** What an upstream does, and what a client has seen when it leaves. */
const STAGES: readonly (readonly [stage: string, script: (pair: Pair) => Script, sees: string])[] = [
  ['before the headers of the upstream', () => [{ hang: true }], ''],
  ['before the first event', () => [{ send: streamHead() }, { hang: true }], ''],
  [
    'in an event',
    ({ upstream }) => [
      { send: streamHead() },
      { send: chunk(`${cutAfter(upstream, 'two').before.join('')}data: {"half`) },
      { hang: true },
    ],
    'two',
  ],
  [
    'after the last content',
    ({ upstream }) => [{ send: streamHead() }, { send: chunk(cutAfter(upstream, 'five.').before.join('')) }, { hang: true }],
    'five.',
  ],
  [
    'between heartbeats',
    ({ upstream }) => [{ send: streamHead() }, { send: chunk(cutAfter(upstream, 'One').before.join('')) }, { hang: true }],
    'One',
  ],
];

/** The upstream is called off within 200 ms; a busy machine has pauses of its own, so that this is said of most. */
const SOON_MS = 200;
const LATE_MS = 2000;
const delays: number[] = [];

async function expectCalledOff(began: number, { services, log } = gateway): Promise<void> {
  const [served] = faultd.served;
  expect(served).toBeDefined();
  const delay = ((await served?.closed) ?? Number.POSITIVE_INFINITY) - began;
  delays.push(delay);
  expect(delay).toBeLessThan(LATE_MS);
  await eventually(() => services.streams.count === 0);
  expect(log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'client_aborted', status: 499 });
}

// The last test reads what all others have measured.
describe('a client that leaves', { shuffle: false }, () => {
  describe.each(LEAVES)('a client that %s', (_, leave) => {
    describe.each(STAGES)('%s', (_stage, script, sees) => {
      test.each(PAIRS)('$name', async (pair) => {
        faultd.play(script(pair));
        const client = await RawClient.open(gateway.url);
        client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
        if (sees === '') await eventually(() => faultd.served[0]);
        else await client.sees(sees);
        const began = performance.now();
        leave(client);
        await expectCalledOff(began);
      });
    });

    test.each(PAIRS)('before a whole response: $name', async (pair) => {
      for (const script of [[], [{ send: whole(200, wholeOf(pair.upstream)).subarray(0, -20) }]]) {
        faultd.play([...script, { hang: true }]);
        const client = await RawClient.open(gateway.url);
        client.send(askText({ client: pair.client, model: modelOf(pair), stream: false }));
        await eventually(() => faultd.served[0]);
        if (script.length > 0) await eventually(() => faultd.served[0]?.sent);
        const began = performance.now();
        leave(client);
        await expectCalledOff(began);
      }
    });

    test.each(waysOf(PAIRS.slice(0, 4)))('before the upstream connection is established: $name', async ({ pair, stream }) => {
      const client = await RawClient.open(gateway.url);
      client.send(askText({ client: pair.client, model: 'deaf/m', stream }));
      await eventually(() => gateway.services.streams.count === 1);
      leave(client);
      await eventually(() => gateway.services.streams.count === 0);
      expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'client_aborted', status: 499 });
    });

    test.each(PAIRS.filter(({ upstream }) => upstream === 'anthropic-messages'))(
      'its reported usage is still counted: $name',
      async (pair) => {
        const said = cutAfter(pair.upstream, 'two').before.join('').replace('"input_tokens":0', '"input_tokens":11');
        faultd.play([{ send: streamHead() }, { send: chunk(said) }, { hang: true }]);
        const client = await RawClient.open(gateway.url);
        client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
        await client.sees('two');
        leave(client);
        await eventually(() => gateway.services.streams.count === 0);
        expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({
          ending: 'client_aborted',
          input_tokens: 11,
        });
      },
    );

    test.each(waysOf(PAIRS.slice(3, 5)))('before its request is complete: $name', async ({ pair, stream }) => {
      faultd.play(good(pair, stream));
      const client = await RawClient.open(gateway.url);
      client.send(askText({ client: pair.client, model: modelOf(pair), stream }).slice(0, -10));
      await eventually(() => gateway.services.streams.count === 1);
      leave(client);
      await eventually(() => gateway.services.streams.count === 0);
      expect(faultd.served).toHaveLength(0);
      expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'client_aborted', status: 499 });
    });
  });

  test('upstream requests are cancelled at once', () => {
    expect(delays.length).toBeGreaterThan(50);
    expect(delays.toSorted((a, b) => a - b)[delays.length >> 1]).toBeLessThan(SOON_MS);
  });
});

describe('half-close', () => {
  const clock = new TestClock();
  let slow: Faultd;
  let timed: Started;

  beforeAll(async () => {
    slow = await Faultd.start(clock);
    timed = await startGateway({
      clock,
      config: { providers: providersAt(slow), limits: { heartbeat: '50ms', hold: '60ms' } },
    });
  });

  afterAll(async () => {
    await timed.close();
    await slow.stop();
  });

  test.each(waysOf(PAIRS))('a half-closed client still gets its response: $name', async ({ pair, stream }) => {
    slow.play([{ wait: 150 }, ...good(pair, stream)]);
    const client = await RawClient.open(timed.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream })).halfClose();
    expectAnswered(pair, stream, await clock.after(150, client.reply()));
    await client.closed();
  });
});

// HTTP/1.0 has no interim response to send, so a client that has closed cannot be told from one that still reads.
describe('an HTTP/1.0 client', () => {
  const request = (pair: Pair, stream: boolean): string =>
    askText({ client: pair.client, model: modelOf(pair), stream }).replace(' HTTP/1.1\r\n', ' HTTP/1.0\r\n');

  const ENDS = [...LEAVES, ['closes its sending side', (client: RawClient) => client.halfClose()]] as const;
  /** Where the protocol has heartbeats, the response would begin after `hold`: a client that has closed its sending side could be told then. */
  let patient: Started;

  beforeAll(async () => {
    patient = await startGateway({ config: { providers: providersAt(faultd), limits: { hold: '60s' } } });
  });

  afterAll(() => patient.close());

  describe.each(ENDS)('that %s before the response begins counts as disconnected', (_, leave) => {
    test.each(waysOf(PAIRS))('$name', async ({ pair, stream }) => {
      for (const script of stream ? [[], [{ send: streamHead() }]] : [[]]) {
        faultd.play([...script, { hang: true }]);
        const client = await RawClient.open(patient.url);
        client.send(request(pair, stream));
        await eventually(() => faultd.served[0]);
        const began = performance.now();
        leave(client);
        await expectCalledOff(began, patient);
        client.leave();
      }
    });
  });

  test.each(PAIRS)('that closes during a stream is detected: $name', async (pair) => {
    faultd.play([{ send: streamHead() }, { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) }, { hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(request(pair, true));
    await client.sees('two');
    const began = performance.now();
    client.leave();
    await expectCalledOff(began);
  });

  test.each(waysOf(PAIRS))('that waits gets its response: $name', async ({ pair, stream }) => {
    faultd.play(good(pair, stream));
    const client = await RawClient.open(gateway.url);
    client.send(request(pair, stream));
    await client.closed();
    const reply = await client.reply();
    expect(reply.status).toBe(200);
    expect(stream ? readStream(pair.client, reply.body).text : reply.body.toString()).toContain(TEXT);
  });
});

describe('a client that reads nothing', () => {
  const flood = ({ upstream }: Pair): Script => {
    const { before } = cutAfter(upstream, 'two');
    const word = before.at(-1) ?? '';
    return [{ send: streamHead() }, { send: chunk(before.slice(0, -1).join('')) }, { forever: chunk(word.repeat(200)) }];
  };

  test.each(PAIRS.slice(2, 6))('pauses its upstream and is disconnected after stall_timeout: $name', async (pair) => {
    faultd.play(flood(pair));
    const client = await RawClient.open(gateway.url);
    client.socket.pause();
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    await eventually(() => faultd.served[0]);
    await faultd.served[0]?.closed;
    // The buffers of the system on both sides, ours of 64 KiB, and not the whole flood.
    expect(faultd.served[0]?.sent).toBeLessThan(16 * 1024 * 1024);
    await eventually(() => gateway.services.streams.count === 0);
    expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'client_stalled', status: 499 });
    client.leave();
  });

  test.each(PAIRS.slice(3, 6))('is disconnected after stall_timeout during a whole response: $name', async (pair) => {
    const body = wholeOf(pair.upstream).replace(TEXT, 'x'.repeat(12 * 1024 * 1024));
    faultd.play([{ send: `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n` }, { send: body }]);
    const client = await RawClient.open(gateway.url);
    client.socket.pause();
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: false }));
    await eventually(() => gateway.services.streams.count === 1);
    await eventually(() => gateway.services.streams.count === 0);
    client.leave();
  });
});

const toHex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');

/**
 * What is left of the keep-alive timer of the server's end of a connection, in hundredths of a second; undefined when it is not running.
 * Both ports are compared: a closed connection of another test, which the kernel remembers for a minute, may have had one of them.
 */
function readKeepAlive({ localPort = 0, remotePort = 0 }: Socket): number | undefined {
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  const [local, remote] = [`:${toHex(remotePort)} `, `:${toHex(localPort)} `];
  const row = lines.find((line) => line.includes(local) && line.indexOf(remote) > line.indexOf(local));
  const [, left] = /\b02:([0-9A-F]{8})\b/.exec(row ?? '') ?? [];
  return left === undefined ? undefined : Number.parseInt(left, 16);
}

// A peer that vanishes cannot be made on one machine: what is held is that the kernel asks whether it is still there.
test.each(waysOf(PAIRS.slice(0, 4)))(
  'a vanished client is detected by TCP keep-alive: $name',
  needs('linux'),
  async ({ pair, stream }) => {
    faultd.play([{ hang: true }]);
    const client = await RawClient.open(gateway.url);
    try {
      client.send(askText({ client: pair.client, model: modelOf(pair), stream }));
      await eventually(() => faultd.served[0]);
      const left = await eventually(() => readKeepAlive(client.socket));
      expect(left).toBeLessThanOrEqual(30 * 100);
    } finally {
      client.leave();
    }
    await eventually(() => gateway.services.streams.count === 0);
  },
);

test.each(PAIRS.slice(3, 5))('a client that reads slowly gets everything: $name', async (pair) => {
  // More than the buffers of the system hold, read with pauses that are shorter than a stall.
  const { before, after } = cutAfter(pair.upstream, 'two');
  const words = (before.at(-1) ?? '').repeat(200);
  faultd.play([
    { send: streamHead() },
    { send: chunk(before.join('')) },
    ...Array.from({ length: 100 }, () => ({ send: chunk(words) })),
    { send: chunk(after.join('')) },
    { send: LAST_CHUNK },
  ]);
  const client = await RawClient.open(gateway.url);
  client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
  const slowly = setInterval(() => {
    client.socket.resume();
    setTimeout(() => client.socket.pause(), 2);
  }, 25);
  const reply = await client.reply(20_000);
  clearInterval(slowly);
  expect(reply.isWhole).toBe(true);
  expect(readStream(pair.client, reply.body).text).toBe(TEXT.replace(' two', ' two'.repeat(20_001)));
  client.leave();
});
