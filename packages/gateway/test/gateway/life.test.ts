import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { pace, takeTurns } from '../../../../test/wait.ts';
import { MemoryGuard, measureMemoryShare } from '../../src/exchange/load.ts';
import { type Clock, REAL_CLOCK } from '../../src/http/clock.ts';
import { Deadline } from '../../src/upstream/deadline.ts';
import { brokenOffAt, expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, framesOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/reliability.md, Promises: shutdown, overload, and the damage that one fault of the gateway may do.

const clock = new TestClock();
let faultd: Faultd;

beforeAll(async () => {
  faultd = await Faultd.start(clock);
});

afterAll(() => faultd.stop());

const start = (limits: object = {}, change?: Parameters<typeof startGateway>[0]['services']): Promise<Started> =>
  startGateway({ clock, config: { providers: providersAt(faultd), limits }, ...(change && { services: change }) });

const asking = (pair: Pair, stream: boolean) => ({ client: pair.client, model: modelOf(pair), stream });

describe('a gateway that stops', () => {
  test.each(PAIRS)('lets streams finish: $name', async (pair) => {
    const gateway = await start();
    const { before, after } = cutAfter(pair.upstream, 'two');
    faultd.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { wait: 200 },
      { send: chunk(after.join('')) },
      { send: LAST_CHUNK },
    ]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(pair, true)));
    await client.sees('two');
    const stopped = gateway.close(5000);
    expectAnswered(pair, true, await clock.after(200, client.reply()));
    await clock.until(stopped);
    await expect(RawClient.open(gateway.url)).rejects.toThrow('ECONNREFUSED');
  });

  test('after a drain delay, serves a request that comes on an idle connection after the listener has closed', async () => {
    const gateway = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const visit = async (): Promise<[reused: boolean, status: number | undefined, connection: string | undefined]> => {
      const sent = get(`${gateway.url}/health/live`, { agent });
      const [reply]: IncomingMessage[] = await once(sent, 'response');
      await once(reply?.resume() ?? sent, 'end');
      return [sent.reusedSocket, reply?.statusCode, reply?.headers.connection];
    };
    expect(await visit()).toEqual([false, 200, 'keep-alive']);
    const stopped = gateway.close(5000, 100);
    await clock.advance(101);
    const connect = () => RawClient.open(gateway.url).catch(() => 'refused');
    await expect.poll(connect).toBe('refused');
    expect(await visit()).toEqual([true, 200, 'close']);
    await clock.until(stopped);
  });

  test.each(PAIRS)('sends an error to clients that still read at the deadline: $name', async (pair) => {
    const gateway = await start();
    faultd.play([{ send: streamHead() }, { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) }, { hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(pair, true)));
    await client.sees('two');
    const stopped = gateway.close(100);
    const reply = await clock.after(brokenOffAt(pair.client, 100), client.reply());
    expectBrokenOff(pair.client, reply, 'One two', 'the gateway is shutting down');
    await clock.until(stopped);
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'stopped' });
  });

  test.each(waysOf(PAIRS))('sends an error to clients that have received nothing yet: $name', async ({ pair, stream }) => {
    const gateway = await start();
    faultd.play([{ hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(pair, stream)));
    await eventually(() => faultd.served[0]);
    const stopped = gateway.close(50);
    const reply = await clock.after(50, client.reply());
    expectRefused(pair.client, reply, reply.status, 'the gateway is shutting down');
    expect([503, 529]).toContain(reply.status);
    await clock.until(stopped);
  });

  test('serves requests on open connections until then, and closes them', async () => {
    const gateway = await start();
    const pair = PAIRS[0] as Pair;
    faultd.play([{ hang: true }]);
    const busy = await RawClient.open(gateway.url);
    busy.send(askText(asking(pair, true)));
    const other = await RawClient.open(gateway.url);
    other.send(askText(asking(pair, true)).slice(0, -5));
    // The first request must have reached the upstream before the script changes.
    await eventually(() => gateway.services.streams.count === 2 && faultd.served.length === 1);
    const stopped = gateway.close(300);
    faultd.play(good(pair, true));
    other.send(askText(asking(pair, true)).slice(-5));
    const reply = await other.reply();
    expectAnswered(pair, true, reply);
    expect(reply.headers['connection']).toBe('close');
    await clock.after(300, stopped);
  });

  test('does not wait for clients that neither send nor read', async () => {
    const gateway = await start();
    const pair = PAIRS[0] as Pair;
    const { before } = cutAfter(pair.upstream, 'two');
    faultd.play([{ send: streamHead() }, { forever: chunk(before.join('').repeat(100)) }]);
    const deaf = await RawClient.open(gateway.url);
    deaf.socket.pause();
    deaf.send(askText(asking(pair, true)));
    const idle = await RawClient.open(gateway.url);
    await idle.send(requestText('GET', '/health/live')).reply();
    const half = await RawClient.open(gateway.url);
    half.send('POST /v1/messages HTTP/1.1\r\n');
    await eventually(() => gateway.services.streams.count === 1);
    // Two seconds after the deadline, whatever is left is closed.
    await clock.after(2100, gateway.close(100));
    deaf.leave();
  });
});

/** The real thing: a process, and signals. */
describe('a process', () => {
  const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'));

  async function serve(limits: object): Promise<{ child: ChildProcess; url: string }> {
    const file = join(folder, 'sluice.json');
    writeFileSync(file, JSON.stringify({ listen: { port: 0 }, providers: providersAt(faultd), limits }));
    const child = spawn(process.execPath, [bin, 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    child.stdout?.on('data', (piece) => (text += String(piece)));
    const url = await eventually(() => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0]);
    return { child, url };
  }

  test('ends streams at the deadline after SIGTERM with an error of each protocol, and exits with 0', async () => {
    const { child, url } = await serve({ drain: '500ms' });
    const ways = PAIRS.slice(0, 4);
    const answer = cutAfter('openai-chat', 'two').before.join('');
    faultd.play([{ send: streamHead() }, { send: chunk(answer) }, { hang: true }]);
    const reading = await Promise.all(
      ways.map(async ({ client }) => {
        const reader = await RawClient.open(url);
        reader.send(askText({ client, model: 'mend-openai-chat/m', stream: true }));
        await reader.sees('two');
        return reader;
      }),
    );
    // And one each that has read nothing yet.
    faultd.play([{ hang: true }]);
    const waiting = await Promise.all(
      ways.map(async ({ client }, i) => {
        const waiter = await RawClient.open(url);
        return waiter.send(askText({ client, model: 'mend-openai-chat/m', stream: i % 2 === 0 }));
      }),
    );
    await eventually(() => faultd.served.length === ways.length);
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    for (const [i, { client }] of ways.entries()) {
      expectBrokenOff(client, await (reading[i] as RawClient).reply(), 'One two', 'the gateway is shutting down');
      const reply = await (waiting[i] as RawClient).reply();
      expectRefused(client, reply, client === 'anthropic-messages' ? 529 : 503, 'the gateway is shutting down');
      expect(reply.headers['connection']).toBe('close');
    }
    expect(await exit).toEqual([0, null]);
  });

  test('accepts requests after SIGTERM during drain_delay, and reports that it is not ready', async () => {
    const { child, url } = await serve({ drain_delay: '1s' });
    const ready = async (): Promise<number> => (await fetch(`${url}/health/ready`)).status;
    expect(await ready()).toBe(200);
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    await eventually(async () => (await ready()) !== 200);
    const reply = await fetch(`${url}/health/live`);
    expect([await ready(), reply.status, reply.headers.get('connection')]).toEqual([503, 200, 'close']);
    expect(await exit).toEqual([0, null]);
    await expect(fetch(url)).rejects.toThrow();
  });

  test('exits at once on a second signal', async () => {
    const { child, url } = await serve({});
    faultd.play([{ hang: true }]);
    const client = await RawClient.open(url);
    client.send(askText(asking(PAIRS[0] as Pair, true)));
    await eventually(() => faultd.served[0]);
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    // Two signals at once are one. New connections are refused when the first has had its effect.
    await eventually(() =>
      RawClient.open(url).then(
        (other) => other.leave(),
        () => true,
      ),
    );
    child.kill('SIGTERM');
    expect(await exit).toEqual([1, null]);
  });
});

describe('overload', () => {
  test('more requests than limits.streams get 503 with Retry-After', async () => {
    const gateway = await start({ streams: 2 });
    const pair = PAIRS[4] as Pair;
    faultd.play([{ hang: true }]);
    const clients = await Promise.all([1, 2].map(() => RawClient.open(gateway.url)));
    for (const client of clients) client.send(askText(asking(pair, true)));
    await eventually(() => gateway.services.streams.count === 2);
    for (const { pair: way, stream } of waysOf(PAIRS.slice(0, 4))) {
      const reply = await ask(gateway.url, asking(way, stream));
      expectRefused(way.client, reply, way.client === 'anthropic-messages' ? 529 : 503, 'too many requests');
      expect(reply.headers['retry-after']).toBe('1');
    }
    for (const client of clients) client.leave();
    // The gateway writes to a client that has closed its sending side twice before it knows.
    await clock.advanceUntil(() => gateway.services.streams.count === 0, 100, 10_000);
    faultd.play(good(pair, true));
    expectAnswered(pair, true, await ask(gateway.url, asking(pair, true)));
    await gateway.close();
  });

  test('a gateway that has rejected requests for ten seconds is not ready until it accepts them again', async () => {
    const gateway = await start({ streams: 1 });
    const ready = async (): Promise<string> => {
      const reply = await fetch(`${gateway.url}/health/ready`);
      return `${reply.status} ${(await reply.text()).trim()}`;
    };
    const pair = PAIRS[0] as Pair;
    faultd.play([{ hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(pair, true)));
    await eventually(() => gateway.services.streams.count === 1);
    await clock.advance(10_000);
    expect(await ready()).toBe('200 ready');
    await clock.advance(1000);
    expect(await ready()).toBe('503 overloaded');
    expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200);
    client.reset();
    await clock.advanceUntil(() => gateway.services.streams.count === 0, 100, 10_000);
    await clock.advance(1000);
    expect(await ready()).toBe('200 ready');
    await gateway.close();
  });

  test('when memory is tight, new requests get 503; when it is scarce, the stream that stalled longest is cancelled', async () => {
    let share = 0;
    const gateway = await start({ stall_timeout: '1m' }, (made) => ({
      ...made,
      memory: new MemoryGuard({
        limits: { heapShed: 0.85, heapCancel: 0.95 },
        onScarce: () => made.streams.cancelLongestStalled(),
        measure: () => share,
        clock,
      }),
    }));
    const pair = PAIRS[0] as Pair;
    faultd.play([{ send: streamHead() }, { forever: chunk(cutAfter(pair.upstream, 'two').before.join('').repeat(100)) }]);
    const deaf = await RawClient.open(gateway.url);
    deaf.socket.pause();
    deaf.send(askText(asking(pair, true)));
    // It is stalled when its upstream waits for it.
    const [served] = [await eventually(() => faultd.served[0])];
    for (let before = -1; served.sent === 0 || served.sent !== before; ) {
      before = served.sent;
      await pace(300);
    }
    share = 0.8499;
    await clock.advance(1000);
    expect(gateway.services.memory.isTight).toBe(false);
    share = 0.85;
    await clock.advance(1000);
    expect(gateway.services.memory.isTight).toBe(true);
    for (const { pair: way, stream } of waysOf(PAIRS.slice(0, 4))) {
      const reply = await ask(gateway.url, asking(way, stream));
      expectRefused(way.client, reply, way.client === 'anthropic-messages' ? 529 : 503, 'too many requests');
      expect(reply.headers['retry-after']).toBe('1');
    }
    expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200);
    expect(gateway.services.streams.count).toBe(1);
    share = 0.96;
    await clock.advance(1000);
    await eventually(() => gateway.services.streams.count === 0);
    expect(gateway.log().findLast(({ msg, status }) => msg === 'answered' && status === 499)).toBeDefined();
    share = 0.1;
    await clock.advance(1000);
    expect(gateway.services.memory.isTight).toBe(false);
    faultd.play(good(pair, true));
    expectAnswered(pair, true, await ask(gateway.url, asking(pair, true)));
    deaf.leave();
    await gateway.close();
  });

  test('the memory share is between 0 and 1', () => {
    expect(measureMemoryShare()).toBeGreaterThan(0);
    expect(measureMemoryShare()).toBeLessThan(1);
  });
});

describe('an internal error', () => {
  const fault = (): never => {
    throw new TypeError('a fault at /srv/secret/path.ts:1');
  };

  test.each(waysOf(PAIRS.slice(3, 6)))('ends only its own request: $name', async ({ pair, stream }) => {
    const gateway = await start({}, (made) => ({ ...made, directory: () => ({ ...made.directory(), resolve: fault }) }));
    const reply = await ask(gateway.url, asking(pair, stream));
    expectRefused(pair.client, reply, 500, 'internal gateway error');
    expect(reply.body.toString()).not.toContain('secret');
    expect(gateway.log().find(({ msg }) => msg === 'failed')).toMatchObject({ error: expect.stringContaining('TypeError') });
    expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200);
    await gateway.close();
  });

  test.each(PAIRS.slice(0, 3))('in a timer ends only its own request: $name', async (pair) => {
    const gateway = await start({ hold: '30ms' }, (made) => {
      const enter = made.streams.enter.bind(made.streams);
      made.streams.enter = (connection) => {
        connection.response.writeHead = fault;
        enter(connection);
      };
      return made;
    });
    faultd.play([{ hang: true }]);
    const client = await RawClient.open(gateway.url);
    client.send(askText(asking(pair, true)));
    await clock.after(30, client.closed());
    expect(gateway.log().find(({ msg }) => msg === 'failed')).toMatchObject({ error: expect.stringContaining('TypeError') });
    expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200);
    await gateway.close();
  });

  test.each(PAIRS)('in a started stream ends it with an error: $name', async (pair) => {
    let calls = 0;
    const gateway = await start({ hold: '30ms' }, (made) => {
      const { metrics } = made;
      const seriesOf = metrics.of.bind(metrics);
      metrics.of = (labels) => Object.assign(seriesOf(labels), { firstToken: fault });
      return { ...made, now: () => performance.now() + calls++ };
    });
    faultd.play([{ send: streamHead() }, { wait: 100 }, { send: chunk(framesOf(pair.upstream).join('')) }, { send: LAST_CHUNK }]);
    const reply = await clock.after(100, ask(gateway.url, asking(pair, true)));
    if (pair.client === 'gemini') expectRefused(pair.client, reply, 500, 'internal gateway error');
    else expectBrokenOff(pair.client, reply, '', 'internal gateway error');
    await eventually(() => gateway.services.streams.count === 0);
    await gateway.close();
  });
});

test('a blocked event loop does not time out requests', needs('posix'), async () => {
  // A UNIX socket: what is written can be read at once, which TCP does not promise on a busy machine.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const server = createServer().listen(join(folder, 'socket'));
  const reader = connect(String(server.address()));
  const [writer] = (await once(server, 'connection')) as [Socket];
  let now = 0;
  let fire = (): void => undefined;
  const setTimer: Clock['setTimer'] = (run) => {
    fire = run;
    return setTimeout(() => undefined, 0);
  };
  const silences: number[] = [];
  const deadline = new Deadline({
    totalMs: 60_000,
    clock: { ...REAL_CLOCK, now: () => now, setTimer },
    onSilence: () => silences.push(now),
    onTotal: () => expect.unreachable(),
  });
  reader.on('data', () => deadline.recordData());
  deadline.expect(50);
  // After 100 ms without a turn, timers fire before what has come in the meantime is read.
  setTimeout(() => {
    writer.write('hello');
    now = 100;
    fire();
  }, 0);
  await once(reader, 'data');
  await takeTurns();
  expect(silences).toEqual([]);
  now = 200;
  fire();
  await eventually(() => silences.length > 0);
  expect(silences).toEqual([200]);
  reader.destroy();
  server.close();
});
