import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { below, pick, type Random, seededRandom } from '@sluice/lab/mutate';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { IS_NIGHT } from '../../../../test/night.ts';
import { pace } from '../../../../test/wait.ts';
import { expectAnswered, expectWholeFrames } from './check.ts';
import { framesOf, readStream, readWhole, TEXT, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, parseReply, streamHead, whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, startGateway } from './start.ts';

// Upstreams, clients and the gateway itself are killed at any point. Nothing crashes, nothing hangs, nothing is left behind.

/** Another number brings other points; the name of a test says which seed it had. */
const FIRST_SEED = Number(process.env['SLUICE_SEED'] ?? 1);
const GENERATIONS = IS_NIGHT ? 12 : 4;
const EXCHANGES = 34;
const LEAST_KILLS = 18 * GENERATIONS;

type Way = ReturnType<typeof waysOf>[number];
const [FIRST, ...OTHERS] = waysOf(PAIRS);
if (!FIRST) throw new Error('there are pairs');
const WAYS: readonly [Way, ...Way[]] = [FIRST, ...OTHERS];

let faultd: Faultd;
let spare: Faultd;
const kills = { upstream: 0, client: 0, gateway: 0 };
const faults: string[] = [];
const onFault = (fault: unknown): void => void faults.push(String(fault));

beforeAll(async () => {
  faultd = await Faultd.start();
  spare = await Faultd.start();
  for (const event of ['warning', 'unhandledRejection', 'uncaughtException']) process.on(event, onFault);
});

afterEach(() => expect(faults).toEqual([]));

afterAll(async () => {
  for (const event of ['warning', 'unhandledRejection', 'uncaughtException']) process.off(event, onFault);
  await faultd.stop();
  await spare.stop();
});

/** What keeps the process alive, by kind. */
function resources(...kinds: string[]): Record<string, number> {
  const active = process.getActiveResourcesInfo();
  return Object.fromEntries(kinds.map((kind) => [kind, active.filter((name) => name === kind).length]));
}
const SOCKETS = ['TCPSocketWrap'];
const ALL = ['TCPSocketWrap', 'TCPServerWrap', 'TCPConnectWrap', 'Timeout', 'Immediate', 'Zlib'];

async function expectBack(before: Record<string, number>): Promise<void> {
  const kinds = Object.keys(before);
  const isBack = (): boolean => Object.entries(resources(...kinds)).every(([kind, count]) => count <= (before[kind] ?? 0));
  await eventually(isBack).catch(() => expect(resources(...kinds)).toEqual(before));
}

/** A good answer in a few pieces; every other upstream is killed in it, and some fall silent. */
function script({ pair, stream }: Way, random: Random): Script {
  const bytes = stream
    ? Buffer.concat([Buffer.from(streamHead()), ...framesOf(pair.upstream).map((frame) => chunk(frame)), Buffer.from(LAST_CHUNK)])
    : whole(200, wholeOf(pair.upstream));
  const fate = pick(random, ['killed', 'killed', 'silent', 'good'] as const);
  const end = fate === 'good' ? bytes.length : below(random, bytes.length);
  const steps: Script[number][] = [{ wait: below(random, 20) }];
  for (let at = 0; at < end; ) {
    const size = 1 + below(random, 400);
    steps.push({ send: bytes.subarray(at, Math.min(end, at + size)) }, { wait: below(random, 8) });
    at += size;
  }
  if (fate === 'good') return steps;
  if (fate === 'silent') return [...steps, { hang: true }];
  return [...steps, { run: () => kills.upstream++ }, below(random, 2) === 0 ? { reset: true } : { fin: true }];
}

/** What a client that stayed has read is whole, or says that it is not. */
function outcomeOf({ pair, stream }: Way, client: RawClient): 'whole' | 'told' | 'cut' {
  const reply = parseReply(client.received);
  if (!reply?.isWhole) return 'cut';
  if (reply.status !== 200) return 'told';
  if (!stream) {
    expect(readWhole(pair.client, reply.body).content).toMatchObject([{ text: TEXT }]);
    return 'whole';
  }
  expectWholeFrames(reply.body);
  const { text, error, complete } = readStream(pair.client, reply.body);
  expect(TEXT.startsWith(text)).toBe(true);
  if (error !== null) return 'told';
  expect({ text, complete }).toEqual({ text: TEXT, complete: true });
  return 'whole';
}

/** One exchange; every other client is killed in it, behind so many bytes or milliseconds. */
async function exchange(url: string, way: Way, random: Random): Promise<string> {
  const model = pick(random, [modelOf(way.pair), sparedModelOf(way.pair)]);
  const stays = below(random, 2) === 0;
  const [bytes, ms, isReset] = [below(random, 1500), below(random, 250), below(random, 2) === 0];
  const client = await RawClient.open(url).catch(() => undefined);
  if (!client) return 'refused';
  client.send(askText({ client: way.pair.client, model, stream: way.stream }));
  if (stays) {
    await client.reply(50_000).catch(() => undefined);
    client.leave();
    return outcomeOf(way, client);
  }
  await eventually(() => client.received.length > bytes || client.isClosed, ms).catch(() => undefined);
  if (!client.isClosed) kills.client++;
  if (isReset) client.reset();
  else client.leave();
  return 'left';
}

const LIMITS = {
  idle_timeout: '300ms',
  first_event_timeout: '300ms',
  response_timeout: '300ms',
  upstream_keep_alive: '100ms',
  heartbeat: '20ms',
  hold: '30ms',
};

// The last test counts what the others did.
describe('kills at any point', { shuffle: false }, () => {
  describe('in one process', () => {
    test.each(Array.from({ length: GENERATIONS }, (_, i) => FIRST_SEED + i))('seed %i', async (seed) => {
      const random = seededRandom(seed);
      const before = resources(...ALL);
      const way = pick(random, WAYS);
      const gateway = await startGateway({
        config: { providers: providersAt(faultd, spare), models: modelsWithSpare(), limits: LIMITS },
      });
      faultd.play(...Array.from({ length: EXCHANGES }, () => script(way, random)), [{ reset: true }]);
      spare.play(...Array.from({ length: EXCHANGES }, () => script(way, random)), [{ fin: true }]);
      const running = Array.from({ length: EXCHANGES }, () => exchange(gateway.url, way, random));
      // Every other gateway is stopped while they run.
      const isKilled = seed % 2 === 0;
      const closing = isKilled ? pace(below(random, 200)).then(() => gateway.close(below(random, 60))) : undefined;
      if (isKilled) kills.gateway++;
      const outcomes = await Promise.all(running);
      if (!isKilled) {
        expect(outcomes).not.toContain('cut');
        // While it lives, too: connections that nobody needs are given back, on both sides.
        await eventually(() => gateway.services.streams.count === 0);
        await expectBack(Object.fromEntries(SOCKETS.map((kind) => [kind, before[kind] ?? 0])));
      }
      await (closing ?? gateway.close(0));

      expect(gateway.services.streams.count).toBe(0);
      expect(gateway.log().filter(({ msg }) => msg === 'failed')).toEqual([]);
      await eventually(() => faultd.openSockets + spare.openSockets === 0);
      await expectBack(before);
    });
  });

  describe('a process that is killed by SIGKILL', () => {
    const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
    const folder = mkdtempSync(join(tmpdir(), 'sluice-chaos-'));
    afterAll(() => rmSync(folder, { recursive: true }));

    async function serve(port: number): Promise<{ child: ChildProcess; url: string }> {
      const file = join(folder, 'sluice.json');
      writeFileSync(
        file,
        JSON.stringify({ listen: { port }, providers: providersAt(faultd, spare), models: modelsWithSpare(), limits: LIMITS }),
      );
      const child = spawn(process.execPath, [bin, 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'ignore'] });
      let text = '';
      child.stdout?.on('data', (piece) => (text += String(piece)));
      return { child, url: await eventually(() => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0]) };
    }

    test('leaves no client and no upstream waiting, and a new process can start', async () => {
      const random = seededRandom(FIRST_SEED);
      let { child, url } = await serve(0);
      const { port } = new URL(url);
      for (let round = 0; round < 2; round++) {
        const way = pick(random, WAYS);
        faultd.play(...Array.from({ length: EXCHANGES }, () => script(way, random)), [{ hang: true }]);
        spare.play([{ hang: true }]);
        const running = Array.from({ length: EXCHANGES }, () => exchange(url, way, random));
        await pace(below(random, 150));
        const exit = once(child, 'exit');
        child.kill('SIGKILL');
        kills.gateway++;
        await exit;
        await Promise.all(running);
        await eventually(() => faultd.openSockets + spare.openSockets === 0);
        ({ child, url } = await serve(Number(port)));
        faultd.play(good(way.pair, way.stream));
        const asking = { client: way.pair.client, model: modelOf(way.pair), stream: way.stream };
        expectAnswered(way.pair, way.stream, await ask(url, asking));
      }
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
    });
  });

  test(`there were ${LEAST_KILLS} kills or more, of all three`, () => {
    expect(kills.upstream + kills.client + kills.gateway).toBeGreaterThanOrEqual(LEAST_KILLS);
    expect(Math.min(kills.upstream, kills.client, kills.gateway)).toBeGreaterThanOrEqual(GENERATIONS / 2 + 2);
  });
});
