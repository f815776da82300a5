/** CPU time a request, a stream and a chunk, in alternating slices; and the time that is added to a request at fixed rates. */

import { REQUESTS } from '../data/requests.js';
import { buildRow } from '../method/results.js';
import { alternate } from '../method/slices.js';
import { spend } from './fleet.js';
import { DIRECTIONS, directInstance } from './subjects.js';

/** Who takes part in which direction; the references are measured passing, and stand beside every direction. */
const PASSING = ['nginx', 'haproxy', 'undici', 'pipe', 'portkey', 'sluice', 'sluice-full'];
const CONVERTING = {
  'anthropic>chat': ['hand', 'sluice', 'sluice-full'],
  'chat>anthropic': ['portkey', 'sluice', 'sluice-full'],
  'responses>chat': ['sluice', 'sluice-full'],
  'gemini>chat': ['sluice', 'sluice-full'],
};
const REFERENCES = ['undici', 'pipe'];
const REFERENCE = 'undici';

/** The subjects of directions, with their processes. Those that are missing here are left out. */
export async function listEntries(fleet, directions, names = undefined) {
  const entries = [];
  for (const direction of directions)
    for (const name of direction === 'pass' ? PASSING : CONVERTING[direction]) {
      const subject = fleet.find(name, direction);
      if (!subject || (names && !names.includes(name))) continue;
      entries.push({ name, direction, instances: await fleet.instances(subject), wrong: 0, note: '' });
    }
  return entries;
}

/** The entries of a row: those of its direction, and the references, which pass. */
export const selectEntries = (entries, direction) =>
  entries.filter((entry) => entry.direction === direction || (entry.direction === 'pass' && REFERENCES.includes(entry.name)));

/** A row of what was found for entries: `samplesOf(entry)`. */
export function buildEntryRow(row, entries, samplesOf) {
  const found = entries.map((entry) => ({
    subject: entry.name,
    samples: samplesOf(entry),
    wrong: entry.wrong,
    ...(entry.note && { note: entry.note }),
  }));
  return buildRow({ reference: REFERENCE, ...row, found });
}

export function noteWrong(entry, { wrong, note }) {
  entry.wrong += wrong ?? 0;
  entry.note ||= note ?? '';
}

const SLICE_US = 70_000;

/**
 * CPU microseconds a unit of a load, for every entry. Every process is warmed up first; a slice has so many units that it takes 70 milliseconds.
 */
export async function measureCost(fleet, entries, { load, slices, warmSeconds }) {
  const { least, most = 2000, trial, warm } = load;
  const work = load.work(fleet);
  const run = async (entry, instance, count) => {
    const result = await work(entry, instance, count);
    noteWrong(entry, result);
    return result;
  };
  await warmUpAll(entries, { run, trial, units: warm, seconds: warmSeconds });
  for (const entry of entries) {
    const { cpu, units } = await spend(entry.instances[0], () => run(entry, entry.instances[0], trial));
    entry.count = Math.round(Math.max(least, Math.min(most, SLICE_US / (cpu / units))));
  }
  return alternate(entries, slices, async (entry, slice) => {
    // It takes ten times as long as the others: one slice of each process says enough.
    if (entry.name === 'portkey' && slice >= entry.instances.length) return undefined;
    const process = slice % entry.instances.length;
    const instance = entry.instances[process];
    // Connections and caches of the processor are as they were before other subjects had their turns.
    await run(entry, instance, entry.count);
    const { cpu, units } = await spend(instance, () => run(entry, instance, entry.count));
    return { process, value: cpu / units };
  });
}

/** How often warming up goes round all processes. */
const WARM_ROUNDS = 6;

/**
 * Between two rounds a process is idle as long as between two slices, so that its connections time out. V8 drops what it compiled for the case that no
 * connection ever closes: without rounds, the first slices of a process cost twice as much as those after.
 */
async function warmUpAll(entries, { run, trial, units, seconds }) {
  const shares = listWarmShares(entries);
  for (let round = 0; round < WARM_ROUNDS; round++)
    for (const { entry, instance, share } of shares)
      await warmUp(() => run(entry, instance, trial), (share * units) / WARM_ROUNDS, seconds / WARM_ROUNDS);
}

/** Every process of every entry; one that another direction has warmed up needs less. */
function listWarmShares(entries) {
  const seen = new Set();
  return entries.flatMap((entry) =>
    entry.instances.map((instance) => {
      const share = seen.has(instance) ? 1 / 4 : 1;
      seen.add(instance);
      return { entry, instance, share };
    }),
  );
}

/** So many units, unless they take too long. */
async function warmUp(run, units, seconds) {
  const begun = performance.now();
  for (let done = 0; done < units && performance.now() - begun < seconds * 1000; ) done += (await run()).units;
}

/** Whole responses: `request` and `model` say what is sent and what comes back. */
const wholeLoad = ({ request = '0.1k', model = 'mock-whole', connections, ...amounts }) => ({
  unit: 'request',
  ...amounts,
  work: (fleet) => async (entry, instance, count) => {
    const target = fleet.target(instance, { direction: entry.direction, request, model });
    const { requests, wrong, note } = await fleet.load('whole', { target, connections, count });
    return { units: requests, wrong, note };
  },
});

/** Streams from beginning to end, each on a connection of its own. `unit`: what is counted of them. */
const streamLoad = ({ model, atOnce, unit, ...amounts }) => ({
  unit,
  ...amounts,
  work: (fleet) => async (entry, instance, count) => {
    const target = fleet.target(instance, { direction: entry.direction, model, stream: true });
    const result = await fleet.load('streams', { target, streams: Math.max(count, amounts.least ?? 1), atOnce });
    return { ...result, units: unit === 'chunk' ? result.chunks : result.streams };
  },
});

/**
 * What is sent for each row of CPU time. Large requests are few at a time, as those of agents are. `trial`: so many at once to warm up; `warm`: so many
 * until the compiler has come to rest. A part goes on with the processes of the parts before.
 */
export const LOADS = {
  'json-0.1k': wholeLoad({ request: '0.1k', connections: 32, trial: 400, warm: 12_000, least: 400 }),
  'json-1k': wholeLoad({ request: '1k', connections: 32, trial: 400, warm: 4800, least: 400 }),
  'json-100k': wholeLoad({ request: '100k', connections: 16, trial: 40, warm: 500, least: 64 }),
  'json-1m': wholeLoad({ request: '1m', connections: 4, trial: 6, warm: 36, least: 8 }),
  'response-100k': wholeLoad({ model: 'mock-large', connections: 16, trial: 60, warm: 500, least: 100 }),
  setup: streamLoad({ model: 'mock-d0-n3', atOnce: 8, trial: 60, warm: 1200, least: 100, most: 400, unit: 'stream' }),
  unpaced: streamLoad({ model: 'mock-d0-n500', atOnce: 16, trial: 16, warm: 40_000, least: 16, most: 16, unit: 'chunk' }),
};

const title = (direction) => (direction === 'pass' ? 'passing' : direction.replace('>', ' → '));

/** At most how many times the CPU of another subject; from what a plain path in Node was shown to cost. */
const JSON_GOALS = {
  '0.1k pass': [{ subject: 'sluice', of: 'pipe', most: 1.05 }],
  '0.1k anthropic>chat': [{ subject: 'sluice', of: 'pipe', most: 1.4 }],
  '100k pass': [{ subject: 'sluice', of: 'pipe', most: 1.8 }],
  '100k anthropic>chat': [{ subject: 'sluice', of: 'pipe', most: 2.7 }],
};

export async function measureJson(fleet, size, { name, directions = DIRECTIONS.map(({ id }) => id) }) {
  const entries = await listEntries(fleet, directions);
  const { slices, warmSeconds } = size;
  const samples = await measureCost(fleet, entries, { load: LOADS[`json-${name}`], slices, warmSeconds });
  return directions.map((direction) =>
    buildEntryRow(
      {
        id: `json-${name} ${direction}`,
        group: 'json',
        title: `CPU a request of ${REQUESTS.find((request) => request.name === name).title}, ${title(direction)}`,
        unit: 'us',
        kind: 'cpu',
        goals: JSON_GOALS[`${name} ${direction}`],
      },
      selectEntries(entries, direction),
      (entry) => samples[entries.indexOf(entry)],
    ),
  );
}

const BOTH = ['pass', 'anthropic>chat'];

export async function measureResponse(fleet, size) {
  const entries = await listEntries(fleet, BOTH);
  const { slices, warmSeconds } = size;
  const samples = await measureCost(fleet, entries, { load: LOADS['response-100k'], slices, warmSeconds });
  const goals = { 'anthropic>chat': [{ subject: 'sluice', of: 'pipe', most: 2.8 }] };
  return BOTH.map((direction) =>
    buildEntryRow(
      {
        id: `response-100k ${direction}`,
        group: 'response',
        title: `CPU a response of 100 KB, ${title(direction)}`,
        unit: 'us',
        kind: 'cpu',
        goals: goals[direction],
      },
      selectEntries(entries, direction),
      (entry) => samples[entries.indexOf(entry)],
    ),
  );
}

/** What each thing that operators switch on adds to a small request. */
const EXTRAS = ['sluice', 'sluice+ledger', 'sluice+ring', 'sluice+key', 'sluice-full'];

export async function measureExtras(fleet, size) {
  const entries = [];
  for (const name of EXTRAS) {
    const subject = fleet.find(name, 'pass');
    entries.push({ name, direction: 'pass', instances: await fleet.instances(subject), wrong: 0, note: '' });
  }
  const options = { load: LOADS['json-0.1k'], slices: size.slices * 2, warmSeconds: size.warmSeconds };
  const samples = await measureCost(fleet, entries, options);
  const [bare, ...others] = samples;
  const added = others.map((own) => own.map((sample, i) => ({ ...sample, value: sample.value - bare[i].value })));
  const row = { group: 'extras', unit: 'us', kind: 'cpu' };
  const found = (list, values) => list.map((entry, i) => ({ subject: entry.name, samples: values[i], wrong: entry.wrong }));
  return [
    buildRow({
      ...row,
      id: 'extras pass',
      title: 'CPU a request of 0.1 KB, passing, with what can be switched on',
      reference: 'sluice',
      found: found(entries, samples),
    }),
    buildRow({
      ...row,
      id: 'extras-added pass',
      title: 'CPU that they add to a request of 0.1 KB',
      found: found(entries.slice(1), added),
      goals: [{ subject: 'sluice+key', most: 25 }],
    }),
  ];
}

const CAPTURE_RATE = 100;

/** Captures on disk cannot follow 32 clients in a closed loop, and would be dropped: so many requests a second are all captured. */
export async function measureCaptures(fleet, size) {
  const entries = [];
  for (const name of ['sluice-full', 'sluice+captures'])
    entries.push({ name, direction: 'pass', instances: await fleet.instances(fleet.find(name, 'pass')), wrong: 0, note: '' });
  const visit = async (entry, slice, seconds) => {
    const process = slice % entry.instances.length;
    const target = fleet.target(entry.instances[process], { direction: 'pass', model: 'mock-whole' });
    const result = await spend(entry.instances[process], () => fleet.load('rate', { target, rate: CAPTURE_RATE, seconds }));
    noteWrong(entry, result);
    return { process, value: result.cpu / result.requests };
  };
  for (const entry of entries)
    for (let i = 0; i < entry.instances.length; i++) await visit(entry, i, Math.min(4, size.warmSeconds));
  const samples = await alternate(entries, size.slices, (entry, slice) => visit(entry, slice, size.rateSeconds));
  const found = entries.map((entry, i) => ({ subject: entry.name, samples: samples[i], wrong: entry.wrong }));
  const title = `CPU a request of 0.1 KB at ${CAPTURE_RATE} a second, each stored as a capture on disk`;
  return [buildRow({ id: 'captures pass', group: 'extras', title, unit: 'us', kind: 'cpu', reference: 'sluice-full', found })];
}

const STREAM_TITLES = { setup: 'CPU a stream of 3 chunks', unpaced: 'CPU an unpaced chunk' };

/** Short streams on new connections; and long ones as fast as they are read. */
export async function measureStreams(fleet, size, { kind }) {
  const entries = await listEntries(fleet, BOTH);
  const options = { load: LOADS[kind], slices: size.slices, warmSeconds: size.warmSeconds };
  const samples = await measureCost(fleet, entries, options);
  return BOTH.map((direction) =>
    buildEntryRow(
      {
        id: `${kind} ${direction}`,
        group: 'stream',
        title: `${STREAM_TITLES[kind]}, ${title(direction)}`,
        unit: 'us',
        kind: 'cpu',
      },
      selectEntries(entries, direction),
      (entry) => samples[entries.indexOf(entry)],
    ),
  );
}

/** What a fixed rate of requests a second waits more than directly: open loop, so that a slow response delays no other request. */
export async function measureLatency(fleet, size, { rate }) {
  const names = rate > 500 ? ['nginx', 'haproxy', 'undici', 'pipe', 'hand', 'sluice', 'sluice-full'] : undefined;
  const entries = [
    { name: 'direct', direction: 'pass', instances: [directInstance()], wrong: 0, note: '' },
    ...(await listEntries(fleet, BOTH, names)),
  ];
  const visit = async (entry, slice, seconds) => {
    const process = slice % entry.instances.length;
    const target = fleet.target(entry.instances[process], { direction: entry.direction, model: 'mock-whole' });
    const result = await fleet.load('rate', { target, rate, seconds });
    noteWrong(entry, result);
    return { process, ...result };
  };
  for (const entry of entries)
    for (let i = 0; i < entry.instances.length; i++) await visit(entry, i, Math.min(1, size.warmSeconds));
  const samples = await alternate(entries, size.rateSlices, (entry, slice) => visit(entry, slice, size.rateSeconds));
  const [direct] = samples;
  return BOTH.flatMap((direction) =>
    ['p50', 'p99'].map((key) =>
      buildEntryRow(
        {
          id: `latency-${rate} ${direction} ${key}`,
          group: 'latency',
          title: `added to a request at ${rate.toLocaleString('en')} a second, ${title(direction)}, ${key}`,
          unit: 'ms',
          kind: 'clock',
        },
        selectEntries(entries.slice(1), direction),
        (entry) =>
          samples[entries.indexOf(entry)].map(({ slice, process, [key]: value }) => ({
            slice,
            process,
            value: Math.max(0, value - direct.find((other) => other.slice === slice)[key]),
          })),
      ),
    ),
  );
}
