/** Memory of many streams in fresh processes, and what a gateway costs before the first request. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cpuOf, memoryOf } from '../method/machine.js';
import { buildRow } from '../method/results.js';
import { alternate } from '../method/slices.js';
import { median } from '../method/statistics.js';
import { buildEntryRow, noteWrong, selectEntries } from './costs.js';
import { CORES, findPort, here, sleep, startNode, stop, waitForPort } from './processes.js';
import { FOLDER } from './subjects.js';

const HELD = 2000;
const DELAY_MS = 500;
const KILOBYTE = 1024;
const PROBE = ['--expose-gc', '--import', pathToFileURL(here('./heap-probe.mjs')).href];

const HOLDING = {
  pass: ['nginx', 'haproxy', 'undici', 'pipe', 'portkey', 'sluice', 'sluice-full'],
  'anthropic>chat': ['hand', 'sluice', 'sluice-full'],
};
const IS_NODE = (name) => name !== 'nginx' && name !== 'haproxy';

/** The live heap of an instance in bytes, after garbage collection. */
async function readHeap({ child, heapFile }) {
  rmSync(heapFile, { force: true });
  child.kill('SIGUSR2');
  for (let i = 0; i < 400 && !existsSync(heapFile); i++) await sleep(25);
  return JSON.parse(readFileSync(heapFile, 'utf8')).bytes;
}

/** One fresh process with 2,000 streams: bytes a stream, resident at the plateau and live in the heap. */
export async function holdMany(fleet, entry, size) {
  const heapFile = join(FOLDER, `heap-${Math.random().toString(36).slice(2)}`);
  const flags = IS_NODE(entry.name) ? PROBE : [];
  const instance = {
    ...(await fleet.launch(entry.subject, { flags, env: { HEAP_FILE: heapFile }, isColdLater: true })),
    heapFile,
  };
  const send = (model) => fleet.target(instance, { direction: entry.direction, model, stream: true });
  try {
    noteWrong(entry, await fleet.load('streams', { target: send('mock-d0-n3'), streams: 300, atOnce: 20 }));
    await sleep(300);
    const heapBefore = IS_NODE(entry.name) ? await readHeap(instance) : undefined;
    const before = memoryOf(instance.pid);
    const target = send(`mock-d${DELAY_MS}-n999999`);
    await fleet.load('hold', { target, streams: HELD, ramp: 2000, settle: 2 * DELAY_MS });
    const plateau = [];
    for (let i = 0; i < size.plateauSamples; i++) {
      await sleep(200);
      plateau.push(memoryOf(instance.pid));
    }
    const heap = IS_NODE(entry.name) ? ((await readHeap(instance)) - heapBefore) / HELD / KILOBYTE : undefined;
    noteWrong(entry, await fleet.load('window'));
    return { rss: (median(plateau) - before) / HELD / KILOBYTE, heap };
  } finally {
    await fleet.drop();
    await instance.end();
  }
}

const MEMORY_GOALS = { rss: { of: 'pipe', most: 1.25 }, heap: { most: 24 } };

export async function measureMemory(fleet, size) {
  await fleet.clear();
  const entries = Object.entries(HOLDING).flatMap(([direction, names]) =>
    names.flatMap((name) => {
      const subject = fleet.find(name, direction);
      return subject ? [{ name, direction, subject, wrong: 0, note: '' }] : [];
    }),
  );
  const samples = await alternate(entries, size.processes, async (entry, slice) => {
    // Those that are no JavaScript do not differ from process to process.
    if (slice > 0 && (!IS_NODE(entry.name) || entry.name === 'portkey')) return undefined;
    return { process: slice, ...(await holdMany(fleet, entry, size)) };
  });
  return Object.keys(HOLDING).flatMap((direction) =>
    ['rss', 'heap'].map((key) =>
      buildEntryRow(
        {
          id: `${key} ${direction}`,
          group: 'memory',
          title: `${key === 'rss' ? 'memory' : 'live heap'} a stream at ${HELD.toLocaleString('en')} streams, ${direction === 'pass' ? 'passing' : 'anthropic → chat'}`,
          unit: 'KB',
          kind: 'memory',
          goals: [{ subject: 'sluice', ...MEMORY_GOALS[key] }],
        },
        selectEntries(entries, direction).filter(({ name }) => key === 'rss' || IS_NODE(name)),
        (entry) =>
          samples[entries.indexOf(entry)].map(({ slice, process, [key]: value }) => ({
            slice,
            process,
            value: Math.max(0, value),
          })),
      ),
    ),
  );
}

const BARE_SERVER = (port) => ['-e', `require('node:http').createServer().listen(${port}, '127.0.0.1')`];
const START_ROWS = [
  {
    id: 'start',
    key: 'cpu',
    title: 'CPU until it listens',
    unit: 'ms',
    kind: 'cpu',
    goals: [{ subject: 'sluice-full', most: 400 }],
  },
  { id: 'start-clock', key: 'clock', title: 'time until it listens', unit: 'ms', kind: 'clock', goals: [] },
  {
    id: 'idle',
    key: 'memory',
    title: 'memory while idle',
    unit: 'MB',
    kind: 'memory',
    goals: [{ subject: 'sluice-full', most: 95 }],
  },
  { id: 'idle-cpu', key: 'idle', title: 'CPU a second while idle', unit: 'ms', kind: 'cpu', goals: [] },
];

/** Starts with an empty data folder, apart from the key that was created before. */
export async function measureStart(fleet, size) {
  await fleet.clear();
  const entries = [
    { name: 'server' },
    { name: 'sluice', subject: fleet.find('sluice', 'pass') },
    { name: 'sluice-full', subject: fleet.find('sluice-full', 'pass') },
  ];
  const samples = await alternate(entries, size.starts, async ({ subject }, slice) => ({
    process: slice,
    ...(await timeStart(fleet, subject, size)),
  }));
  return START_ROWS.map(({ key, ...row }) =>
    buildRow({
      ...row,
      group: 'start',
      reference: 'server',
      found: entries.map(({ name }, i) => ({
        subject: name,
        samples: samples[i].map(({ slice, process, [key]: value }) => ({ slice, process, value })),
      })),
    }),
  );
}

export async function timeStart(fleet, subject, { idleSeconds }) {
  const port = await findPort();
  const begin = subject ? fleet.prepare(subject, port) : () => startNode(BARE_SERVER(port), { core: CORES.gateway });
  const begun = performance.now();
  const child = begin();
  await waitForPort(port, child, 4);
  const clock = performance.now() - begun;
  const cpu = cpuOf(child.pid) / 1000;
  await sleep(1500);
  const before = cpuOf(child.pid);
  await sleep(idleSeconds * 1000);
  const idle = (cpuOf(child.pid) - before) / 1000 / idleSeconds;
  const memory = memoryOf(child.pid) / 1024 / 1024;
  await stop(child);
  return { clock, cpu, memory, idle };
}

const STALLED = 500;
/** The other references give the upstream that sends without end all their time, and all their memory to what nobody reads. */
const STALLED_NAMES = { pass: ['pipe', 'sluice', 'sluice-full'], 'anthropic>chat': ['sluice', 'sluice-full'] };

/** Clients that request a stream without end and read nothing, in fresh processes: memory, and how long others wait beside them. */
export async function measureStalled(fleet, size) {
  await fleet.clear();
  const entries = Object.keys(STALLED_NAMES).flatMap((direction) =>
    STALLED_NAMES[direction].map((name) => ({
      name,
      direction,
      subject: fleet.find(name, direction),
      wrong: 0,
      note: '',
    })),
  );
  const samples = await alternate(entries, 1, async (entry, slice) => ({
    process: slice,
    ...(await stall(fleet, entry, size)),
  }));
  return Object.keys(HOLDING).flatMap((direction) =>
    STALLED_ROWS.map(({ key, what, unit, kind }) =>
      buildEntryRow(
        {
          id: `stalled ${direction} ${key}`,
          group: 'stalled',
          title: `${what} ${STALLED} clients that do not read, ${direction === 'pass' ? 'passing' : 'anthropic → chat'}`,
          unit,
          kind,
          reference: 'pipe',
        },
        selectEntries(entries, direction),
        (entry) => samples[entries.indexOf(entry)].map(({ slice, process, [key]: value }) => ({ slice, process, value })),
      ),
    ),
  );
}

const STALLED_ROWS = [
  { key: 'memory', what: 'memory of the process with', unit: 'MB', kind: 'memory' },
  { key: 'first', what: 'the first small request beside', unit: 'ms', kind: 'clock' },
  { key: 'p50', what: 'a later small request beside', unit: 'ms', kind: 'clock' },
  { key: 'max', what: 'the slowest small request beside', unit: 'ms', kind: 'clock' },
];

async function stall(fleet, entry, { stalledSeconds }) {
  const instance = await fleet.launch(entry.subject, { isColdLater: true });
  const send = (model, stream) => fleet.target(instance, { direction: entry.direction, model, stream });
  try {
    const load = fleet.load('stall', {
      target: send('mock-endless', true),
      small: send('mock-whole', false),
      streams: STALLED,
      seconds: stalledSeconds,
    });
    await sleep(stalledSeconds * 900);
    const memory = memoryOf(instance.pid) / 1024 / 1024;
    const found = await load;
    noteWrong(entry, found);
    return { memory, ...found };
  } finally {
    await instance.end();
  }
}
