import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { tried } from '../../../../test/tries.ts';
import { pace } from '../../../../test/wait.ts';
import { readTlsPair, type TlsPair, TlsServer } from '../../src/http/tls.ts';
import { TestAuthority } from './certificates.ts';
import { expectAnswered } from './check.ts';
import { cutAfter } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, parseReply, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';

// Strangers and clients that use TLS against the listener: nothing stays behind, and others are served.

const PAIR = PAIRS.find(({ client, upstream }) => client === 'openai-chat' && upstream === 'openai-chat') as Pair; // it exists
const asking = (stream: boolean) => ({ client: PAIR.client, model: modelOf(PAIR), stream });

const authority = new TestAuthority();
let faultd: Faultd;
let gateway: Started;
let hello: Buffer;

beforeAll(async () => {
  faultd = await Faultd.start();
  hello = await readHello();
  const limits = { header_timeout: '1s', stall_timeout: '500ms' };
  gateway = await startGateway({ scheme: 'https', config: { providers: providersAt(faultd), limits } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  authority.remove();
});

/** The first message of a client. */
async function readHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connectTls({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', servername: 'localhost' }); // it listens on TCP
  client.on('error', () => undefined);
  const [socket]: Socket[] = await once(server, 'connection');
  const [data]: Buffer[] = await once(socket as Socket, 'data');
  socket?.destroy();
  server.close();
  return data as Buffer;
}

/** A connection below TLS. */
async function open(): Promise<Socket> {
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function handshake(options: ConnectionOptions, port = Number(new URL(gateway.url).port)): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

/** Nothing is held, and another client is served. */
async function expectServes(): Promise<void> {
  await eventually(() => gateway.services.streams.count === 0);
  faultd.play(good(PAIR, false));
  expectAnswered(PAIR, false, await ask(gateway.url, asking(false)));
}

describe('handshakes that do not end', () => {
  const BEGINNINGS: readonly (readonly [name: string, send: (socket: Socket) => void])[] = [
    ['nothing', () => undefined],
    ['the header of a record', (socket) => socket.write(hello.subarray(0, 5))],
    ['half of a first message', (socket) => socket.write(hello.subarray(0, 100))],
    ['a first message', (socket) => socket.write(hello)],
    ['a first message twice', (socket) => socket.write(Buffer.concat([hello, hello]))],
    ['a first message, and the end', (socket) => socket.end(hello)],
    ['half of a first message, and the end', (socket) => socket.end(hello.subarray(0, 100))],
    [
      'a first message with changed bytes',
      (socket) => socket.write(hello.map((byte, at) => (at > 40 && at % 7 === 0 ? 255 - byte : byte))),
    ],
    [
      'a record of 16 KiB of zeros',
      (socket) => socket.write(Buffer.concat([Buffer.from([22, 3, 1, 64, 0]), Buffer.alloc(16_384)])),
    ],
  ];

  test.each(BEGINNINGS)('100 connections with %s are closed, and others are served meanwhile', async (_name, send) => {
    tried(100);
    const sockets = await Promise.all(Array.from({ length: 100 }, open));
    const closed = sockets.map((socket) => once(socket, 'close'));
    for (const socket of sockets) {
      // The peer closes its side first.
      socket.once('end', () => socket.end()).resume();
      send(socket);
    }
    await expectServes();
    await Promise.all(closed);
    await expectServes();
  });

  test('a first message that arrives byte by byte does not outlast the limit', async () => {
    const socket = await open();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    // The gateway may reset the connection while a byte is on its way.
    socket.on('error', () => undefined);
    socket.once('end', () => socket.end()).resume();
    for (const byte of hello) {
      if (socket.destroyed) break;
      socket.write(Buffer.from([byte]));
      await pace(20);
    }
    await closed;
    await expectServes();
  });
});

test('a client with a connection and half of a request is disconnected', async () => {
  for (const text of ['', 'POST /v1/chat/completions HTTP/1.1\r\nhost:']) {
    const client = await RawClient.open(gateway.url);
    await client.send(text).closed();
  }
  await expectServes();
});

describe('a second handshake on a connection (renegotiation)', () => {
  let pairs: readonly TlsPair[];

  beforeAll(async () => {
    pairs = await Promise.all(['one', 'two'].map((name) => readTlsPair(authority.issue(name, '127.0.0.1'))));
  });

  async function listen(): Promise<{ tls: TlsServer; port: number }> {
    const [first] = pairs;
    if (!first) throw new Error('there is no certificate');
    const tls = new TlsServer({}, first, { handshakeMs: 5000, onFailed: () => undefined });
    const { server } = tls;
    server.on('request', (_, response) => response.end('ok'));
    server.on('clientError', (_, socket) => socket.destroy());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return { tls, port: (server.address() as AddressInfo).port }; // it listens on TCP
  }

  test.each([
    ['of the start', 0],
    ['that was replaced', 1],
  ])('is refused with the certificate %s', async (_, index) => {
    const { tls, port } = await listen();
    const pair = pairs[index];
    if (index > 0 && pair) tls.use(pair);
    const socket = await handshake({ maxVersion: 'TLSv1.2' }, port);
    const refused = once(socket, 'error');
    socket.renegotiate({ rejectUnauthorized: false }, () => undefined);
    expect((await refused)[0]).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' });
    socket.destroy();
  });

  test('a certificate that changes during handshakes fails none of them', async () => {
    const { tls, port } = await listen();
    let connected = 0;
    const clients = Array.from({ length: 5 }, async () => {
      for (let count = 0; count < 20; count++) {
        const socket = await handshake({}, port);
        connected++;
        socket.destroy();
      }
    });
    for (let change = 0; connected < 100; change++) {
      const pair = pairs[change % 2];
      if (pair) tls.use(pair);
      await pace(1);
    }
    await Promise.all(clients);
    tried(connected);
    expect(connected).toBe(100);
  });
});

describe('names and protocols of a handshake', () => {
  const NAMES = [
    'other.example',
    `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}`,
    'x'.repeat(255),
    '..example..',
    '*.example',
    'a b.example',
    "'; --.example",
    '%00.example',
    'jndi:ldap://x.example',
    'xn--80ak6aa92e.com',
  ];

  test.each(NAMES)('the server name %j changes nothing', async (servername) => {
    const lines = gateway.lines.length;
    const socket = await handshake({ servername }).catch(() => undefined);
    if (socket) {
      socket.write(requestText('GET', '/health/live'));
      const [data]: Buffer[] = await once(socket, 'data');
      expect(parseReply(data as Buffer)?.status).toBe(200);
      socket.destroy();
    }
    expect(gateway.lines.slice(lines).join()).not.toContain(servername);
    await expectServes();
  });

  test.each([[['h2']], [['h3', 'spdy/1']], [['x'.repeat(255)]], [Array.from({ length: 250 }, (_, i) => `p${i}`)]])(
    'a client that offers only other protocols does not connect: %j',
    async (ALPNProtocols) => {
      await expect(handshake({ ALPNProtocols })).rejects.toThrow();
      await expectServes();
    },
  );
});

describe('a client that has connected', () => {
  const { before } = cutAfter(PAIR.upstream, 'two');

  /** A stream that goes on, and the connection below its TLS. */
  async function stream(): Promise<{ socket: TLSSocket; below: Socket }> {
    faultd.play([{ send: streamHead() }, { send: chunk(before.join('')) }, { hang: true }]);
    const below = await open();
    const socket = connectTls({ socket: below, rejectUnauthorized: false });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    socket.write(askText(asking(true)));
    let text = '';
    await new Promise<void>((resolve) =>
      socket.on('data', (data) => {
        text += data;
        if (text.includes('two')) resolve();
      }),
    );
    return { socket, below };
  }

  test.each([
    ['bytes that are no TLS', () => Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a record that was not encrypted', () => Buffer.from([23, 3, 3, 0, 5, 1, 2, 3, 4, 5])],
    ['another first message', () => hello],
    ['a fatal alert', () => Buffer.from([21, 3, 3, 0, 2, 2, 40])],
  ])('and sends %s ends its stream and the request to the upstream', async (_, bytes) => {
    const { socket, below } = await stream();
    below.write(bytes());
    await faultd.served[0]?.closed;
    await expectServes();
    socket.destroy();
    below.destroy();
  });

  test('and cuts it off without the end of TLS leaves nothing behind', async () => {
    const { socket, below } = await stream();
    below.resetAndDestroy();
    await faultd.served[0]?.closed;
    socket.destroy();
    await expectServes();
  });

  test('and sends requests ahead without reading leaves nothing behind', async () => {
    faultd.play(good(PAIR, false));
    tried(10);
    const clients = await Promise.all(Array.from({ length: 10 }, () => RawClient.open(gateway.url)));
    for (const client of clients) {
      client.pause();
      client.send(askText(asking(false)).repeat(30));
    }
    await eventually(() => gateway.services.streams.count > 0 || gateway.log().some(({ msg }) => msg === 'answered'));
    for (const client of clients) client.leave();
    await expectServes();
  });
});
