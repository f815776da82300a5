import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { below, pick, type Random, seededRandom } from '../../src/mutate/random.ts';
import { expectWholeFrames } from './check.ts';
import { framesOf, readStream, readWhole, TEXT, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, parseReply, streamHead, whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { askText, eventually, startGateway } from './start.ts';

// Upstreams, clients and the gateway itself go away at any point. Nothing crashes, nothing hangs, nothing is left behind.

const GENERATIONS = 20;
const EXCHANGES = 10;

const [first, ...others] = waysOf(PAIRS);
if (!first) throw new Error('there are pairs');
const WAYS = [first, ...others] as const;
type Way = typeof first;

let faultd: Faultd;
let spare: Faultd;
const warnings: string[] = [];
const onWarning = ({ message }: Error): void => void warnings.push(message);

beforeAll(async () => {
  faultd = await Faultd.start();
  spare = await Faultd.start();
  process.on('warning', onWarning);
});

afterEach(() => expect(warnings).toEqual([]));

afterAll(async () => {
  process.off('warning', onWarning);
  await faultd.stop();
  await spare.stop();
});

/** Sockets and timers of the process, by kind. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = { TCPSocketWrap: 0, TCPServerWrap: 0, Timeout: 0, Immediate: 0, Zlib: 0 };
  for (const kind of process.getActiveResourcesInfo()) if (kind in counts) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** The bytes of a good answer in a few pieces, up to a point where something may happen. */
function script({ pair, stream }: Way, random: Random): Script {
  const bytes = stream
    ? Buffer.concat([Buffer.from(streamHead()), ...framesOf(pair.upstream).map((frame) => chunk(frame)), Buffer.from(LAST_CHUNK)])
    : whole(200, wholeOf(pair.upstream));
  const end = below(random, 3) === 0 ? bytes.length : below(random, bytes.length);
  const steps: Script[number][] = [{ wait: below(random, 20) }];
  for (let at = 0; at < end; ) {
    const size = 1 + below(random, 400);
    steps.push({ send: bytes.subarray(at, Math.min(end, at + size)) }, { wait: below(random, 8) });
    at += size;
  }
  return end === bytes.length
    ? steps
    : [...steps, pick<Script[number]>(random, [{ reset: true }, { fin: true }, { hang: true }])];
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

/** One exchange; a third of the clients leaves somewhere in it. */
async function exchange(url: string, way: Way, random: Random): Promise<string> {
  const model = pick(random, [modelOf(way.pair), sparedModelOf(way.pair)]);
  const leave = pick<((client: RawClient) => void) | undefined>(random, [
    undefined,
    undefined,
    undefined,
    undefined,
    (client) => client.leave(),
    (client) => client.reset(),
  ]);
  const leavesAfter = below(random, 150);
  const client = await RawClient.open(url).catch(() => undefined);
  if (!client) return 'refused';
  client.send(askText({ client: way.pair.client, model, stream: way.stream }));
  if (leave) {
    await sleep(leavesAfter);
    leave(client);
    return 'left';
  }
  await client.reply().catch(() => undefined);
  client.leave();
  return outcomeOf(way, client);
}

const LIMITS = {
  idle_timeout: '300ms',
  first_event_timeout: '300ms',
  response_timeout: '300ms',
  heartbeat: '20ms',
  hold: '30ms',
};

test.each(Array.from({ length: GENERATIONS }, (_, seed) => seed + 1))('seed %i', async (seed) => {
  const random = seededRandom(seed);
  const before = resources();
  const way = pick(random, WAYS);
  const gateway = await startGateway({
    config: { providers: providersAt(faultd, spare), models: modelsWithSpare(), limits: LIMITS },
  });
  faultd.play(...Array.from({ length: EXCHANGES }, () => script(way, random)), [{ reset: true }]);
  spare.play(...Array.from({ length: EXCHANGES }, () => script(way, random)), [{ fin: true }]);
  const running = Array.from({ length: EXCHANGES }, () => exchange(gateway.url, way, random));
  // Every other gateway is stopped while they run.
  const isKilled = seed % 2 === 0;
  const closing = isKilled ? sleep(below(random, 200)).then(() => gateway.close(below(random, 60))) : undefined;
  const outcomes = await Promise.all(running);
  if (!isKilled) expect(outcomes).not.toContain('cut');
  await (closing ?? gateway.close(0));

  expect(gateway.services.streams.count).toBe(0);
  expect(gateway.log().filter(({ msg }) => msg === 'failed')).toEqual([]);
  await eventually(() => faultd.openSockets + spare.openSockets === 0);
  const isBack = (): boolean => Object.entries(resources()).every(([kind, count]) => count <= (before[kind] ?? 0));
  await eventually(isBack).catch(() => expect(resources()).toEqual(before));
});
