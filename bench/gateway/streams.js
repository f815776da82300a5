/** Many streams at their own pace: what a chunk costs and waits in steady state; and the first byte after so many streams served before. */
import { alternate } from '../method/slices.js';
import { median } from '../method/statistics.js';
import { buildEntryRow, listEntries, noteWrong, selectEntries } from './costs.js';
import { spend } from './fleet.js';
import { sleep } from './processes.js';
import { directInstance } from './subjects.js';

const BOTH = ['pass', 'anthropic>chat'];
const NAMES = { pass: 'passing', 'anthropic>chat': 'anthropic → chat' };
const ENDLESS = 1_000_000;

/**
 * Windows of steady state, without the ramp: a visit opens the streams, lets them settle, and reads a few windows. A chunk's delay is from the upstream's
 * write to the client's read.
 */
export async function visitPaced(fleet, entry, { instance, process, visit, streams, delay, size }) {
  const target = fleet.target(instance, { direction: entry.direction, model: `mock-d${delay}-n${ENDLESS - 1}`, stream: true });
  await fleet.load('hold', { target, streams, ramp: Math.max(700, streams), settle: size.settleMs });
  const samples = [];
  for (let i = 0; i < size.windows; i++) {
    await fleet.load('window');
    const { cpu, chunks, ...found } = await spend(instance, async () => {
      await sleep(size.windowMs);
      return fleet.load('window');
    });
    noteWrong(entry, found);
    if (chunks > 0) samples.push({ slice: visit * size.windows + i, process, cpu: cpu / chunks, ...found });
    else noteWrong(entry, { wrong: streams, note: `no chunk in ${size.windowMs} ms` });
  }
  await fleet.drop();
  return samples;
}

const PACED_GOALS = {
  'pass cpu': [{ subject: 'sluice', of: 'pipe', most: 1.15 }],
  'anthropic>chat cpu': [{ subject: 'sluice', of: 'pipe', most: 1.2 }],
  'pass p99': [{ subject: 'sluice', of: 'pipe', most: 1.5 }],
  'anthropic>chat p99': [{ subject: 'sluice', of: 'pipe', most: 1.5 }],
};
const PACED_ROWS = [
  { key: 'cpu', suffix: '', what: 'CPU a paced chunk', unit: 'us', kind: 'cpu' },
  { key: 'p50', suffix: ' p50', what: 'delay of a paced chunk, p50', unit: 'ms', kind: 'clock' },
  { key: 'p99', suffix: ' p99', what: 'delay of a paced chunk, p99', unit: 'ms', kind: 'clock' },
];

/** 500 streams of 20 chunks a second. */
export async function measurePaced(fleet, size) {
  const entries = await listEntries(fleet, BOTH);
  const visits = await alternate(entries, size.visits, async (entry, visit) => {
    const process = visit % entry.instances.length;
    const instance = entry.instances[process];
    return { found: await visitPaced(fleet, entry, { instance, process, visit, streams: 500, delay: 50, size }) };
  });
  const samples = visits.map((own) => own.flatMap(({ found }) => found));
  return BOTH.flatMap((direction) =>
    PACED_ROWS.map(({ key, suffix, what, unit, kind }) =>
      buildEntryRow(
        {
          id: `paced ${direction}${suffix}`,
          group: 'stream',
          title: `${what}, 500 streams, ${NAMES[direction]}`,
          unit,
          kind,
          goals: PACED_GOALS[`${direction} ${key}`],
        },
        selectEntries(entries, direction),
        (entry) => samples[entries.indexOf(entry)].map(({ slice, process, [key]: value }) => ({ slice, process, value })),
      ),
    ),
  );
}

const FIRST_NAMES = ['undici', 'pipe', 'hand', 'portkey', 'sluice', 'sluice-full'];
const LEVELS = [30, 300, 1000, 3000];
const BLOCK = 40;
const FIRST_GOALS = { 30: 2, 3000: 1.5 };
/** It waits 25 ms before the first event of every stream, so that thousands of them take minutes. */
const SLOW = { portkey: 300 };

/** Fresh processes: the code of streams is cold, and becomes warm by the streams that they serve. */
export async function measureFirst(fleet, size) {
  await fleet.clear();
  const direct = { name: 'direct', direction: 'pass', instances: [directInstance()], served: [0], wrong: 0, note: '' };
  const entries = [direct, ...(await listEntries(fleet, BOTH, FIRST_NAMES))].map((entry) => ({
    ...entry,
    served: entry.instances.map(() => 0),
  }));
  const rows = [];
  for (const level of LEVELS) {
    const taking = entries.filter(({ name }) => level <= (SLOW[name] ?? Infinity));
    const samples = await alternate(taking, size.processes, async (entry, slice) => {
      const process = slice % entry.instances.length;
      const target = fleet.target(entry.instances[process], { direction: entry.direction, model: 'mock-d0-n3', stream: true });
      const run = async (streams, atOnce) => {
        const result = await fleet.load('streams', { target, streams, atOnce });
        noteWrong(entry, result);
        entry.served[process] += streams;
        return result;
      };
      if (entry.served[process] < level) await run(level - entry.served[process], level > 30 ? 4 : 1);
      return { process, value: median((await run(BLOCK, 1)).firsts) };
    });
    rows.push(...BOTH.map((direction) => buildFirstRow(level, direction, taking, samples)));
  }
  await fleet.clear();
  return rows;
}

function buildFirstRow(level, direction, [, ...entries], [direct, ...samples]) {
  const most = FIRST_GOALS[level];
  return buildEntryRow(
    {
      id: `first-${level} ${direction}`,
      group: 'first',
      title: `added to the first byte after ${level.toLocaleString('en')} streams, ${NAMES[direction]}`,
      unit: 'ms',
      kind: 'clock',
      goals: most === undefined ? [] : [{ subject: 'sluice', of: 'pipe', most }],
    },
    selectEntries(entries, direction),
    (entry) =>
      samples[entries.indexOf(entry)].map(({ slice, process, value }) => ({
        slice,
        process,
        value: Math.max(0.001, value - direct.find((other) => other.slice === slice).value),
      })),
  );
}
