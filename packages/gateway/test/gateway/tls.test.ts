import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tried } from '../../../../test/tries.ts';
import { CertificateWatch, readTlsPair } from '../../src/http/tls.ts';
import { type Running, run } from '../../src/server/run.ts';
import { TestAuthority } from './certificates.ts';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, parseReply, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// The listener with a certificate. All other tests of this folder run over TLS with SLUICE_TEST_SCHEME=https.

const authority = new TestAuthority();
const clock = new TestClock();
let faultd: Faultd;

beforeAll(async () => {
  faultd = await Faultd.start(clock);
});

afterAll(async () => {
  await faultd.stop();
  authority.remove();
});

const pair = PAIRS[4] as Pair;
const asking = (stream: boolean) => ({ client: pair.client, model: modelOf(pair), stream });

const start = (limits: object = {}, timed = clock): Promise<Started> =>
  startGateway({ scheme: 'https', clock: timed, config: { providers: providersAt(faultd), limits } });

describe('connections behave as without TLS', () => {
  const { before, after } = cutAfter(pair.upstream, 'two');
  const begun = [{ send: streamHead() }, { send: chunk(before.join('')) }];

  test.each(PAIRS.slice(0, 4))('responses: $name', async (way) => {
    const gateway = await start();
    expect(gateway.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    for (const stream of [true, false]) {
      faultd.play(good(way, stream));
      expectAnswered(way, stream, await ask(gateway.url, { client: way.client, model: modelOf(way), stream }));
    }
    await gateway.close();
  });

  test('a gateway that stops lets streams finish', async () => {
    const gateway = await start();
    faultd.play([...begun, { wait: 200 }, { send: chunk(after.join('')) }, { send: LAST_CHUNK }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(true)));
    await client.sees('two');
    const stopped = gateway.close(5000);
    expectAnswered(pair, true, await clock.after(200, client.reply()));
    await clock.until(stopped);
    await expect(RawClient.open(gateway.url)).rejects.toThrow('ECONNREFUSED');
  });

  test('a gateway that stops sends an error at the deadline', async () => {
    const gateway = await start();
    faultd.play([...begun, { hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(true)));
    await client.sees('two');
    const stopped = gateway.close(100);
    expectBrokenOff(pair.client, await clock.until(client.reply()), 'One two', 'the gateway is shutting down');
    await clock.until(stopped);
  });

  test('a half-closed client still gets its response', async () => {
    const gateway = await start();
    for (const stream of [true, false]) {
      faultd.play([{ wait: 150 }, ...good(pair, stream)]);
      const client = await RawClient.open(gateway.url);
      client.send(askText(asking(stream))).halfClose();
      expectAnswered(pair, stream, await clock.after(150, client.reply()));
      await client.closed();
    }
    await gateway.close();
  });

  test('a client that leaves ends its upstream request', async () => {
    const gateway = await start();
    for (const leave of ['leave', 'reset'] as const) {
      faultd.play([...begun, { hang: true }]);
      const client = await RawClient.open(gateway.url);
      client.send(askText(asking(true)));
      await client.sees('two');
      client[leave]();
      await clock.until(faultd.served[0]?.closed ?? Promise.reject());
      await eventually(() => gateway.services.streams.count === 0);
      expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'client_aborted', status: 499 });
    }
    await gateway.close();
  });

  test('a client that does not read pauses its upstream', async () => {
    const gateway = await start({ stall_timeout: '400ms' });
    faultd.play([...begun, { forever: chunk((before.at(-1) ?? '').repeat(200)) }]);
    const client = await RawClient.open(gateway.url);
    client.pause();
    client.send(askText(asking(true)));
    await eventually(() => faultd.served[0]);
    let last = -1;
    await eventually(() => {
      const sent = faultd.served[0]?.sent ?? 0;
      const isPaused = sent > 0 && sent === last;
      last = sent;
      return isPaused;
    });
    expect(last).toBeLessThan(16 * 1024 * 1024);
    await clock.until(faultd.served[0]?.closed ?? Promise.reject());
    await eventually(() => gateway.services.streams.count === 0);
    expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'client_stalled' });
    client.leave();
    await gateway.close();
  });

  test('limits of requests', async () => {
    const gateway = await start({ header_timeout: '300ms' });
    const client = await RawClient.open(gateway.url);
    const large = requestText('POST', '/v1/chat/completions', { x: 'y'.repeat(17 * 1024) });
    expectRefused('openai-chat', await client.send(large).reply(), 431, 'too large');
    await client.closed();
    const slow = await RawClient.open(gateway.url);
    const reply = await slow.send('POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n').reply();
    expectRefused('openai-chat', reply, 408, 'timed out waiting for the request');
    await slow.closed();
    const pipelined = await RawClient.open(gateway.url);
    pipelined.send(requestText('GET', '/health/live').repeat(20));
    await eventually(() => pipelined.received.toString().split('live\n').length === 21);
    expect(parseReply(pipelined.received)?.status).toBe(200);
    pipelined.leave();
    await gateway.close();
  });
});

describe('handshakes', () => {
  let gateway: Started;

  beforeAll(async () => {
    gateway = await start({ header_timeout: '300ms' });
  });

  afterAll(() => gateway.close());

  const port = (): number => Number(new URL(gateway.url).port);

  test.each([
    ['HTTP/2 without TLS', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['noise', '\0'.repeat(1000)],
    ['SSH', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ])('%s gets no response but a closed connection', async (_, text) => {
    const client = await RawClient.open(gateway.url.replace('https', 'http'));
    await client.send(text).closed();
    // At most a TLS alert; nothing of the gateway.
    expect(client.received.length).toBeLessThan(16);
    expect(gateway.services.streams.count).toBe(0);
  });

  test('plain HTTP gets a response that names the scheme, and one line of the log does so, too', async () => {
    for (let count = 0; count < 3; count++) {
      const client = await RawClient.open(gateway.url.replace('https', 'http'));
      await client.send(requestText('GET', '/health/live')).closed();
      const reply = parseReply(client.received);
      expect([reply?.status, String(reply?.body)]).toEqual([400, expect.stringContaining('serves HTTPS; use https://')]);
    }
    const warnings = () => gateway.log().filter(({ msg }) => msg === 'a client sent plain HTTP to this port');
    await eventually(() => warnings().length > 0);
    expect(warnings()).toEqual([expect.objectContaining({ level: 'warn', hint: expect.stringContaining('use https://') })]);
  });

  test('TLS at a port without it is one line of the log', async () => {
    const plain = await startGateway({ scheme: 'http', clock, config: { providers: providersAt(faultd) } });
    const hello = async (): Promise<void> => {
      const socket = connectTls({ port: Number(new URL(plain.url).port), host: '127.0.0.1', rejectUnauthorized: false });
      await new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve));
    };
    for (let count = 0; count < 3; count++) await hello();
    const warnings = plain.log().filter(({ msg }) => msg === 'a client sent TLS to this port');
    expect(warnings).toEqual([expect.objectContaining({ level: 'warn', hint: expect.stringContaining('use http://') })]);
    await plain.close();
  });

  test('a client that sends nothing is disconnected after header_timeout', async () => {
    const client = await RawClient.open(gateway.url.replace('https', 'http'));
    // Within the time of a test; node's own limit of a handshake is two minutes.
    await client.closed();
  });

  test('a gateway that stops does not wait for handshakes', async () => {
    const own = await start();
    const client = await RawClient.open(own.url.replace('https', 'http'));
    await clock.advance(1);
    await own.close(5000);
    await client.closed();
  });

  const handshake = async (options: object): Promise<TLSSocket> => {
    const socket = connectTls({ host: '127.0.0.1', port: port(), rejectUnauthorized: false, ...options });
    await once(socket, 'secureConnect');
    return socket;
  };

  test('TLS 1.2 and 1.3 are accepted, older versions are not', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await handshake({ minVersion: version, maxVersion: version });
      expect(socket.getProtocol()).toBe(version);
      socket.destroy();
    }
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    await expect(handshake(old)).rejects.toThrow(/protocol version/);
  });

  test('HTTP/1.1 is chosen', async () => {
    const socket = await handshake({ ALPNProtocols: ['h2', 'http/1.1'] });
    expect(socket.alpnProtocol).toBe('http/1.1');
    socket.destroy();
  });
});

// One gateway, whose certificate changes from test to test.
describe('the certificate', { shuffle: false }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tls-'));
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const pairs = [authority.issue('first', '127.0.0.1'), authority.issue('second', '127.0.0.1')] as const;
  let running: Running;
  const lines: string[] = [];

  const install = (index: 0 | 1): void => {
    copyFileSync(pairs[index].cert, files.cert);
    copyFileSync(pairs[index].key, files.key);
  };

  beforeAll(async () => {
    install(0);
    const config = join(folder, 'sluice.yaml');
    // Relative paths begin at the folder of the file.
    writeFileSync(config, 'listen: { port: 0, tls: { cert: cert.pem, key: key.pem } }\n');
    const formatLog = (line: string): string => {
      lines.push(line);
      return '';
    };
    running = await run({ config, folder, env: {}, listen: {}, formatLog, watch: { pollMs: 3_600_000 } });
  });

  afterAll(async () => {
    await running.close(0);
    rmSync(folder, { recursive: true });
  });

  /** The name in the certificate, by a client that trusts the authority. */
  const readName = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const sent = request(`${running.url}/health/live`, { ca: authority.text, agent: false }, (response) => {
        response.resume();
        resolve(String((response.socket as TLSSocket).getPeerCertificate().subject.CN));
      });
      sent.once('error', reject).end();
    });

  test('is served to clients that trust its authority', async () => expect(await readName()).toBe('first'));

  test('is replaced by a reload; connections that are open stay', async () => {
    const open = await RawClient.open(running.url);
    install(1);
    await running.reload();
    expect(await readName()).toBe('second');
    expect((await open.send(requestText('GET', '/health/live')).reply()).status).toBe(200);
    open.leave();
    expect(lines.join('')).toContain('TLS certificate reloaded');
  });

  test.each([
    ['a broken certificate', () => writeFileSync(files.cert, 'SECRET-CANARY'), `${files.cert} is not a certificate in PEM`],
    ['a broken key', () => writeFileSync(files.key, 'SECRET-CANARY'), `${files.key} is not a private key in PEM`],
    [
      'a key of another certificate',
      () => copyFileSync(pairs[0].key, files.key),
      `${files.key} is not the private key of the certificate in`,
    ],
    ['no key', () => unlinkSync(files.key), `${files.key} cannot be read (ENOENT)`],
    [
      'a key that is too large',
      () => writeFileSync(files.key, 'x'.repeat(2 ** 20 + 1)),
      `${files.key} must be a file of at most 1 MiB`,
    ],
  ])('%s is rejected, and the one before stays', async (_, damage, reason) => {
    install(1);
    damage();
    lines.length = 0;
    await running.reload();
    expect(await readName()).toBe('second');
    const rejection = lines.find((line) => line.includes('TLS certificate rejected; keeping the previous one'));
    expect(rejection).toContain(reason);
    expect(lines.join('')).not.toMatch(/SECRET-CANARY|BEGIN/);
    await expect(readTlsPair(files)).rejects.toThrow(reason);
  });

  test('that cannot be used prevents a start', async () => {
    install(0);
    copyFileSync(pairs[1].key, files.key);
    const config = join(folder, 'sluice.yaml');
    await expect(run({ config, folder, env: {}, listen: {}, log: 'silent' })).rejects.toThrow(
      `listen.tls.key: ${files.key} is not the private key of the certificate in ${files.cert}`,
    );
  });

  test('is read again when its files have changed and are stable, also behind links', async () => {
    const links = { cert: join(folder, 'link-cert'), key: join(folder, 'link-key') };
    const link = (index: 0 | 1): void => {
      for (const name of ['cert', 'key'] as const) {
        rmSync(links[name], { force: true });
        symlinkSync(pairs[index][name], links[name]);
      }
    };
    link(0);
    const seen: string[] = [];
    const timer = new TestClock();
    const watch = await CertificateWatch.start({
      files: links,
      clock: timer,
      onPair: ({ cert }) => seen.push(cert.equals(readFileSync(pairs[1].cert)) ? 'second' : 'first'),
      onRefused: (reason) => seen.push(reason),
    });
    await watch.poll();
    link(1);
    await watch.poll();
    expect(seen).toEqual([]);
    await watch.poll();
    await watch.poll();
    expect(seen).toEqual(['second']);
    unlinkSync(links.key);
    for (let i = 0; i < 3; i++) await watch.poll();
    expect(seen.slice(1)).toEqual([`${links.key} cannot be read (ENOENT)`]);
    link(0);
    for (let i = 0; i < 3; i++) await watch.poll();
    expect(seen.at(-1)).toBe('first');
    watch.close();
  });

  test('commands reach the gateway with NODE_EXTRA_CA_CERTS, and report what is missing without', async () => {
    const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
    const call = (env: Record<string, string>) =>
      new Promise<{ code: number; text: string }>((resolve) => {
        const options = { env: { PATH: process.env['PATH'] ?? '', ...env } };
        execFile(process.execPath, [bin, 'log', '--json', '--url', running.url], options, (error, stdout, stderr) =>
          resolve({ code: typeof error?.code === 'number' ? error.code : 0, text: stdout + stderr }),
        );
      });
    const [trusting, other] = await Promise.all([call({ NODE_EXTRA_CA_CERTS: authority.ca }), call({})]);
    expect(trusting).toMatchObject({ code: 0, text: expect.stringContaining(`reading the gateway at ${running.url}`) });
    expect(other).toMatchObject({
      code: 2,
      text: expect.stringContaining('name the file of its authority in NODE_EXTRA_CA_CERTS'),
    });
  });
});

test('a thousand connections with plain HTTP cost little', async () => {
  tried(1000);
  const gateway = await start();
  const port = Number(new URL(gateway.url).port);
  const knock = async (): Promise<void> => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write('GET / HTTP/1.1\r\n\r\n');
    await once(socket, 'close');
  };
  const before = process.memoryUsage().heapUsed;
  for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 50 }, knock));
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024);
  expect((await ask(gateway.url, { client: 'openai-chat', model: 'nobody', stream: false })).status).toBe(404);
  await gateway.close();
});
