/** What is measured, each for one subject. `process` is that of the gateway; whoever is asked directly has none. */
import { answering, CORES, cpuOf, load, loopCpuOf, memoryOf, sleep, start, stop } from './processes.js';

/** The sizes of a run. */
export const SIZES = {
  full: {
    rounds: 5,
    requests: 3000,
    lone: 100,
    firsts: 60,
    pacedChunks: 60,
    fastChunks: 1000,
    heldChunks: 12,
    stalledSeconds: 20,
  },
  quick: { rounds: 1, requests: 1000, lone: 100, firsts: 20, pacedChunks: 20, fastChunks: 200, heldChunks: 6, stalledSeconds: 6 },
};

export const HELD = 2000;
export const STALLED = 500;
const PACED = 500;

export async function begin(subject) {
  const process = subject.argv && start(subject.argv, subject.env, CORES.gateway);
  await answering(subject.port);
  return process;
}

function ask(script, { port, client, model, headers = '' }, name, stream, env) {
  const body = JSON.stringify(client.body(model(name), stream));
  return load(script, { PORT: String(port), PATH_: client.path, BODY: body, HEADERS: headers, ...env });
}

/** What a load says, and what it cost the gateway. */
async function spend(process, work) {
  if (!process) return work();
  const before = { cpu: cpuOf(process), loop: loopCpuOf(process) };
  const result = await work();
  return { ...result, cpu: cpuOf(process) - before.cpu, loop: loopCpuOf(process) - before.loop };
}

/** One round: whole answers, and streams as fast as they are read by people and as fast as they can be. */
export async function round(subject, process, size) {
  // V8 drops code that was not used for a while, and other subjects had their turns since.
  await ask('./json-load.js', subject, 'mock-d0-n0', false, { CONNECTIONS: '32', COUNT: String(size.requests * 2) });
  const whole = await spend(process, () =>
    ask('./json-load.js', subject, 'mock-d0-n0', false, { CONNECTIONS: '32', COUNT: String(size.requests) }),
  );
  const paced = await spend(process, () =>
    ask('./stream-load.js', subject, `mock-d50-n${size.pacedChunks}`, true, {
      STREAMS: String(PACED),
      CHUNKS: String(size.pacedChunks),
      RAMP: '1000',
    }),
  );
  const fast = await spend(process, () =>
    ask('./stream-load.js', subject, `mock-d0-n${size.fastChunks}`, true, { STREAMS: '32', CHUNKS: String(size.fastChunks) }),
  );
  return {
    requestCpu: process && whole.cpu / whole.requests,
    requestLoop: process && whole.loop / whole.requests,
    rps: whole.requests / whole.seconds,
    chunkCpu: process && paced.cpu / paced.chunks,
    chunkLoop: process && paced.loop / paced.chunks,
    chunk50: paced.delay50,
    chunk99: paced.delay99,
    fastCpu: process && fast.cpu / fast.chunks,
    fastLoop: process && fast.loop / fast.chunks,
    lost: whole.failures + paced.missing + paced.errors + fast.missing + fast.errors,
    odd: paced.odd || fast.odd,
  };
}

/** One client alone: what it waits. */
export async function latency(subject, size) {
  const whole = await ask('./json-load.js', subject, 'mock-d0-n0', false, { CONNECTIONS: '1', COUNT: String(size.lone) });
  const stream = await ask('./stream-load.js', subject, 'mock-d5-n3', true, { STREAMS: String(size.firsts), AT_ONCE: '1' });
  return { whole50: whole.p50, first50: stream.first50 };
}

/** Many streams at a time in a process of its own: what each holds, and whether each says what was sent. */
export async function held(subject, size) {
  const process = await begin(subject);
  await ask('./stream-load.js', subject, 'mock-d5-n3', true, { STREAMS: '100', RAMP: '500' });
  await sleep(500);
  const before = process && memoryOf(process);
  let peak = before;
  const watch = setInterval(() => {
    if (process) peak = Math.max(peak, memoryOf(process));
  }, 100);
  const { missing, errors, wrong, delay99 } = await ask('./stream-load.js', subject, `mock-d500-n${size.heldChunks}-k%k`, true, {
    STREAMS: String(HELD),
    CHUNKS: String(size.heldChunks),
    RAMP: '2000',
  });
  clearInterval(watch);
  if (process) await stop(process);
  return { bytes: process && (peak - before) / HELD, missing, errors, wrong, delay99 };
}

/**
 * Clients that read nothing while the upstream sends without end: the memory of the gateway, second by second, and how long a small request
 * beside them takes.
 */
export async function stalled(subject, size) {
  const process = await begin(subject);
  const small = JSON.stringify(subject.client.body(subject.model('mock-d0-n0'), false));
  const clients = ask('./stalled-load.js', subject, 'mock-endless', true, {
    STREAMS: String(STALLED),
    SECONDS: String(size.stalledSeconds),
    SMALL_BODY: small,
  });
  const series = [];
  for (let second = 0; second < size.stalledSeconds; second++) {
    await sleep(1000);
    series.push(memoryOf(process));
  }
  const waits = await clients;
  await stop(process);
  return { series, waits };
}
