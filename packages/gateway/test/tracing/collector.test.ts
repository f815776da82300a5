/** Collectors that hang, answer slowly, fail or send without end: no request, no memory and no end of the gateway depends on them. */
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { tried } from '../../../../test/tries.ts';
import { eventually } from '../../../../test/wait.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { type Span, SpanExporter } from '../../src/observe/tracing/exporter.ts';
import { readTraceSettings } from '../../src/observe/tracing/settings.ts';
import { Tracer } from '../../src/observe/tracing/tracer.ts';
import { type Running, run } from '../../src/server/run.ts';
import { openStore } from '../../src/store/index.ts';
import { chat, send } from '../admission/client.ts';
import { HeldUpstream } from '../admission/held-upstream.ts';
import { createFolder } from '../store/ledger-fixture.ts';

let running: Running | undefined;

afterEach(async () => {
  await running?.close(0);
  running = undefined;
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
}

/** What a collector does with a connection on which a request has begun. */
type Behaviour = (socket: Socket) => void;

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'never responds': () => undefined,
  'reads nothing': (socket) => void socket.pause(),
  'responds byte by byte': (socket) => {
    const timer = setInterval(() => socket.write('H'), 50);
    socket.once('close', () => clearInterval(timer));
  },
  'begins a response and sends no more': (socket) => void socket.write(`${HEAD}content-length: 100\r\n\r\n{`),
  'sends without end': (socket) => {
    socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
    const piece = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const fill = (): void => {
      while (socket.writable && socket.write(piece));
    };
    socket.on('drain', fill);
    fill();
  },
  'sends headers without end': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    const timer = setInterval(() => socket.write(`x-filler: ${'x'.repeat(10_000)}\r\n`), 10);
    socket.once('close', () => clearInterval(timer));
  },
  'responds with 500': (socket) => void socket.write('HTTP/1.1 500 Failed\r\ncontent-length: 2\r\n\r\n{}'),
  'sends to another address': (socket) =>
    void socket.write('HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n'),
  'is no server of HTTP': (socket) => void socket.write('SSH-2.0-OpenSSH_9.6\r\n'),
  'closes the connection': (socket) => void socket.destroy(),
};

/** A collector, and the most that it could send on a connection. */
async function startCollector(behave: Behaviour): Promise<{ url: string; most: () => number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('data', () => behave(socket));
  });
  const url = await listen(server);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url, most: () => Math.max(0, ...[...sockets].map(({ bytesWritten }) => bytesWritten)) };
}

let upstream: HeldUpstream | undefined;

afterAll(() => upstream?.close());

/** A gateway with a ledger on disk. */
async function start(env: Record<string, string>): Promise<{ url: string; data: string }> {
  upstream ??= await HeldUpstream.start();
  upstream.isHeld = false;
  const folder = createFolder();
  const config = join(folder, 'sluice.json');
  const provider = { protocol: 'openai-chat', base_url: `http://127.0.0.1:${upstream.port}/v1`, api_key: 'some-key-0123456789' };
  writeFileSync(config, JSON.stringify({ log: { level: 'fatal' }, providers: { up: provider } }));
  const data = join(folder, 'data');
  running = await run({ config, folder, env, listen: { port: 0 }, data });
  return { url: running.url, data };
}

describe('a collector that', () => {
  test.each(Object.entries(BEHAVIOURS))('%s delays no request, and not the end of the gateway', async (_name, behave) => {
    const REQUESTS = 40;
    tried(REQUESTS);
    const { url: collector, most } = await startCollector(behave);
    // Two spans for each request: 40 batches, which a collector may take 10 s for each.
    const { url, data } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2' });
    const replies = await Promise.all(
      Array.from({ length: REQUESTS }, () => send(url, '/v1/chat/completions', { key: 'any', body: chat('up/m') })),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    const begun = performance.now();
    await running?.close(0);
    running = undefined;
    expect(performance.now() - begun).toBeLessThan(20_000);
    const store = await openStore({ folder: data });
    const { matching } = await store.count([]);
    await store.close();
    expect(matching).toBe(REQUESTS);
    // The buffers of the system, and no more.
    expect(most()).toBeLessThan(16 * 1024 * 1024);
  });
});

const CONTENT = 'x'.repeat(64 * 1024);

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function measureHeap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const createSpan = (content: string): Span => ({
  traceId: '0'.repeat(32),
  spanId: '0'.repeat(16),
  parentId: undefined,
  state: undefined,
  name: 'POST /v1/chat/completions',
  kind: 'server',
  from: 1,
  to: 2,
  attributes: { 'gen_ai.input.messages': content, 'sluice.tags': ['a', 'b'] },
  error: undefined,
});

function createExporter(url: string): { exporter: SpanExporter; dropped: () => number } {
  const settings = readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url }, () => undefined);
  if (!settings) throw new Error('there are no settings');
  let dropped = 0;
  const onDropped = (count: number): void => {
    dropped += count;
  };
  return { exporter: new SpanExporter({ settings, clock: REAL_CLOCK, onDropped }), dropped: () => dropped };
}

describe('spans with the content of requests', () => {
  test('wait for a collector that hangs in 18 MiB at most', async () => {
    const { url } = await startCollector(() => undefined);
    const { exporter, dropped } = createExporter(url);
    const ADDED = 2000;
    tried(ADDED);
    for (let count = 0; count < ADDED; count++) exporter.add(createSpan(CONTENT));
    expect((ADDED - dropped()) * CONTENT.length).toBeLessThan(18 * 1024 * 1024);
    await exporter.close();
    expect(dropped()).toBe(ADDED);
    exporter.add(createSpan(''));
    expect(dropped()).toBe(ADDED + 1);
  });

  test('keep of a long request only what they show of it', () => {
    const settings = { sampler: { followsParent: true, ratio: 1 }, hasContent: true };
    const tracer = new Tracer({ settings, add: () => undefined, redact: (text) => text });
    const REQUESTS = 50;
    const content = 'x'.repeat(1024 * 1024);
    const before = measureHeap();
    for (let count = 0; count < REQUESTS; count++) {
      tracer.receive(`request ${count}`, { method: 'POST', path: '/v1/chat/completions', headers: {} });
      tracer.addContent(`request ${count}`, JSON.stringify({ messages: [{ role: 'user', content: `${count} ${content}` }] }));
    }
    expect(measureHeap() - before).toBeLessThan(2 * REQUESTS * CONTENT.length);
  });

  test.each(['x', '漢', '"'])('are sent in requests that collectors accept: %s', async (character) => {
    const content = JSON.stringify(character.repeat(64 * 1024)).slice(0, 64 * 1024);
    const sizes: number[] = [];
    let spans = 0;
    const server = createHttpServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (data) => pieces.push(data));
      request.on('end', () => {
        const body = Buffer.concat(pieces);
        sizes.push(body.length);
        spans += body.toString().split('"traceId"').length - 1;
        response.end('{}');
      });
    });
    const url = await listen(server);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { exporter, dropped } = createExporter(url);
    for (let count = 0; count < 80; count++) exporter.add(createSpan(content));
    for (let count = 0; count < 1000; count++) exporter.add(createSpan(''));
    await exporter.close();
    expect([spans, dropped()]).toEqual([1080, 0]);
    expect(Math.max(...sizes)).toBeLessThan(4 * 1024 * 1024);
  });
});

describe('a secret', () => {
  const CLIENT_KEY = `sluice_${'k'.repeat(16)}_${'s'.repeat(43)}`;
  const SECRETS = [CLIENT_KEY, 'some-key-0123456789', 'header-of-the-collector-0123456789'];

  const PLACES: Readonly<Record<string, (secret: string) => { path?: string; headers?: Record<string, string>; body?: object }>> =
    {
      'a user agent': (secret) => ({ headers: { 'user-agent': `agent ${secret}` } }),
      'a tag': (secret) => ({ headers: { 'x-sluice-tags': `a=${secret}` } }),
      'a session': (secret) => ({ headers: { 'x-sluice-session': secret } }),
      'the state of a trace': (secret) => ({
        headers: { traceparent: `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01`, tracestate: `a=${'x'.repeat(470)},b=${secret}` },
      }),
      'a model': (secret) => ({ body: chat(`up/${secret}`) }),
      'a path': (secret) => ({
        path: `/v1beta/models/up%2F${secret}:generateContent`,
        body: { contents: [{ parts: [{ text: 'hi' }] }] },
      }),
      'a message': (secret) => ({ body: chat('up/m', 10, { messages: [{ role: 'user', content: `my key is ${secret}` }] }) }),
    };

  test.each(Object.entries(PLACES))('that a client sends in %s is in no span', async (_place, write) => {
    tried(SECRETS.length);
    const bodies: string[] = [];
    const server = createHttpServer((request, response) => {
      request.on('data', (data) => bodies.push(String(data))).on('end', () => response.end('{}'));
    });
    const collector = await listen(server);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { url } = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector,
      OTEL_EXPORTER_OTLP_HEADERS: `x-token=${SECRETS[2]}`,
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
      OTEL_BSP_SCHEDULE_DELAY: '20',
    });
    for (const secret of SECRETS) {
      const { path = '/v1/chat/completions', headers = {}, body = chat('up/m') } = write(secret);
      await send(url, path, { key: 'any', headers, body });
    }
    await eventually(() => bodies.join('').split('"kind":2').length === SECRETS.length + 1);
    // Nor what a limit of length leaves of it.
    for (const secret of SECRETS) expect(bodies.join('')).not.toContain(secret.slice(-12));
  });
});
