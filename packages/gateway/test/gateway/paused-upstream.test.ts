import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { quietFor } from '../../../../test/wait.ts';
import { type Call, Dialer, type Line, type Receiver } from '../../src/upstream/dialer.ts';
import { cutAfter, readStream, TEXT } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { askText, eventually, startGateway } from './start.ts';

// What the gateway holds of an upstream that it does not read: bounded, however often it was paused.

/** One read of the system, and the rest of the one before. */
const MOST_BUFFERED = 96 * 1024;

let faultd: Faultd;
/** Sockets of the gateway to upstreams. */
let sockets: Socket[];

const onConnected = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket); // as undici documents it

beforeAll(async () => {
  faultd = await Faultd.start();
});

beforeEach(() => {
  sockets = [];
  subscribe('undici:client:connected', onConnected);
});

afterEach(() => unsubscribe('undici:client:connected', onConnected));

afterAll(() => faultd.stop());

const mostBuffered = (): number => Math.max(0, ...sockets.map(({ readableLength }) => readableLength));

/** Reads an answer, and pauses at every chunk until the next iteration of the event loop. */
function readWithPauses(dialer: Dialer, call: Call): Promise<{ body: Buffer; most: number }> {
  const pieces: Uint8Array[] = [];
  let most = 0;
  return new Promise((resolve, reject) => {
    const receiver: Receiver = {
      start: () => undefined,
      data: (piece) => {
        pieces.push(Buffer.from(piece));
        most = Math.max(most, mostBuffered());
        line.pause();
        setImmediate(() => line.resume());
      },
      end: () => resolve({ body: Buffer.concat(pieces), most }),
      fail: reject,
    };
    const line: Line = dialer.dial(call, receiver);
  });
}

describe('a response that is read with many pauses', () => {
  const text = Array.from({ length: 40_000 }, (_, i) => `${i} of 40000,`).join('');
  const tiny = (text.match(/.{1,500}/g) ?? []).map((piece) => chunk(piece).toString('latin1')).join('');
  const head = 'HTTP/1.1 200 OK\r\n';

  test.each([
    ['in small chunks', streamHead() + tiny + LAST_CHUNK],
    ['in one chunk', `${streamHead()}${chunk(text).toString('latin1')}${LAST_CHUNK}`],
    ['with its length', `${head}content-length: ${text.length}\r\n\r\n${text}`],
    ['up to the end of the connection', `${head}connection: close\r\n\r\n${text}`],
  ])('arrives complete, with a small buffer: %s', async (_, bytes) => {
    faultd.play(bytes.includes('connection: close') ? [{ send: bytes }, { fin: true }] : [{ send: bytes }]);
    const dialer = new Dialer({ upstreamKeepAliveMs: 1000, compressionRatio: 100 });
    const call = {
      url: `${faultd.url}/`,
      origin: faultd.url,
      method: 'GET',
      headers: {},
      connectMs: 1000,
      repeat: 'never',
    } as const;
    const { body, most } = await readWithPauses(dialer, call);
    expect(body.toString('latin1')).toBe(text);
    expect(most).toBeLessThanOrEqual(MOST_BUFFERED);
    await dialer.close();
  });
});

test.each([
  ['be closed', 'connection: close\r\n', { fin: true }],
  ['be reset', 'connection: close\r\n', { reset: true }],
  ['be reset when it would have been kept', 'content-length: 200\r\n', { reset: true }],
] as const)('the connection of a response may %s during a pause', async (_, header, last) => {
  faultd.play([{ send: `HTTP/1.1 200 OK\r\n${header}\r\n${'x'.repeat(100)}` }, last]);
  const dialer = new Dialer({ upstreamKeepAliveMs: 1000, compressionRatio: 100 });
  const call = {
    url: `${faultd.url}/`,
    origin: faultd.url,
    method: 'GET',
    headers: {},
    connectMs: 1000,
    repeat: 'never',
  } as const;
  let isOver = false;
  const finish = (): void => {
    isOver = true;
  };
  const line = await new Promise<Line>((resolve) => {
    const dialled: Line = dialer.dial(call, {
      start: () => undefined,
      data: () => {
        dialled.pause();
        resolve(dialled);
      },
      end: finish,
      fail: finish,
    });
  });
  await eventually(() => faultd.served[0]?.isDone);
  // Nothing tells that the end of the connection has arrived: in a pause it must have no effect.
  await quietFor(50);
  expect(isOver).toBe(false);
  line.resume();
  await eventually(() => isOver);
  await dialer.close();
});

describe('a client that reads slowly', () => {
  /** An upstream that sends as much as it can, in as many events as it can. */
  const flood = ({ upstream }: Pair) => {
    const { before } = cutAfter(upstream, 'two');
    const word = chunk(before.at(-1) ?? '').toString('latin1');
    return [{ send: streamHead() }, { send: chunk(before.join('')) }, { forever: word.repeat(500) }];
  };

  test.each(PAIRS.slice(4, 6))('does not make the gateway buffer more and more: $name', async (pair) => {
    const gateway = await startGateway({ config: { providers: providersAt(faultd) } });
    faultd.play(flood(pair));
    const client = await RawClient.open(gateway.url);
    let received = 0;
    client.socket.removeAllListeners('data').on('data', (piece) => {
      received += piece.length;
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 1);
    });
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    let most = 0;
    let mostWaiting = 0;
    await eventually(() => {
      most = Math.max(most, mostBuffered());
      mostWaiting = Math.max(mostWaiting, gateway.services.streams.underWay[0]?.response.writableLength ?? 0);
      return received > 12 * 1024 * 1024;
    }, 30_000);
    expect(most).toBeLessThanOrEqual(MOST_BUFFERED);
    // The write buffer, and what one turn of the upstream is converted to.
    expect(mostWaiting).toBeLessThanOrEqual((64 + 128) * 1024);
    client.leave();
    await gateway.close();
  });

  test.each(PAIRS)('gets all of a response that ends with its connection: $name', async (pair) => {
    const gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { write_buffer: '1KiB' } } });
    const { before, after } = cutAfter(pair.upstream, 'two');
    const words = (before.at(-1) ?? '').repeat(20_000);
    const head = 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n';
    faultd.play([{ send: head + before.join('') + words + after.join('') }, { fin: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    client.socket.on('data', () => {
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 1);
    });
    const reply = await client.reply(30_000);
    expect(reply.isWhole).toBe(true);
    expect(readStream(pair.client, reply.body).text).toBe(TEXT.replace(' two', ' two'.repeat(20_001)));
    client.leave();
    await gateway.close();
  });
});
