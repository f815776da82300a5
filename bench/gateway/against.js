/**
 * The gateway of this build beside that of another commit: both as operators run it, several processes each, which take turns. CPU time and memory
 * only: they can be told apart on a machine that is not quiet.
 */
import { lookUntilSure } from '../method/compare.js';
import { alternate } from '../method/slices.js';
import { compareProcesses } from '../method/statistics.js';
import { LOADS, measureCost } from './costs.js';
import { Fleet } from './fleet.js';
import { holdMany, timeStart } from './memory.js';
import { visitPaced } from './streams.js';
import { FULL, launch, serve, sluice } from './subjects.js';

/** Each build has so many processes; they differ from each other by some percent. */
const PROCESSES = 5;
/** Memory and starts have a fresh process for every sample, which takes seconds. */
const FRESH = 4;
const SLICES_OF_PROCESS = 3;
const PACED = { settleMs: 500, windows: 2, windowMs: 500 };
const HELD = { plateauSamples: 3 };
const IDLE = { idleSeconds: 0.1 };

const COST_ROWS = ['json-0.1k', 'json-100k', 'json-1m', 'response-100k', 'setup', 'unpaced'];
const DIRECTIONS = ['pass', 'anthropic>chat'];

const listRows = () =>
  DIRECTIONS.flatMap((direction) => [
    ...COST_ROWS.map((load) => ({ id: `${load} ${direction}`, direction, measure: measureLoad(load), unit: 'us' })),
    { id: `paced ${direction}`, direction, measure: measurePaced, unit: 'us' },
    { id: `rss ${direction}`, direction, measure: measureHeld, unit: 'KB' },
    ...(direction === 'pass' ? [{ id: 'start', direction, measure: measureStart, unit: 'ms' }] : []),
  ]);

/** The processes of both builds for a direction, with the compiler in the state that this direction leads to. */
class Builds {
  #checkouts;
  #fleet;
  #entries = [];

  constructor(fleet, checkouts) {
    this.#fleet = fleet;
    this.#checkouts = checkouts;
  }

  /** The running processes, with counters of wrong responses that begin at 0. */
  get entries() {
    return this.#entries.map((entry) => ({ ...entry, wrong: 0, note: '' }));
  }

  /** Without processes, for rows that start their own. */
  describe(direction) {
    return Object.entries(this.#checkouts).map(([name, checkout]) => ({
      name,
      direction,
      subject: { name: 'sluice-full', ...sluice('pass', () => serve({ ...FULL, checkout })) },
      wrong: 0,
      note: '',
    }));
  }

  /** Started by turns, so that neither build has the older processes. */
  async start(direction, processes) {
    await this.end();
    this.#entries = this.describe(direction).map((entry) => ({ ...entry, instances: [] }));
    for (let i = 0; i < processes; i++)
      for (const entry of i % 2 === 0 ? this.#entries : this.#entries.toReversed())
        entry.instances.push(await launch(entry.subject));
  }

  async end() {
    const all = this.#entries.flatMap(({ instances }) => instances);
    this.#entries = [];
    await Promise.all(all.map((instance) => instance.end()));
    await this.#fleet.clear();
  }
}

const measureLoad = (load) => (fleet, entries) =>
  measureCost(fleet, entries, { load: LOADS[load], slices: SLICES_OF_PROCESS * entries[0].instances.length, warmSeconds: 10 });

async function measurePaced(fleet, entries) {
  const visits = await alternate(entries, entries[0].instances.length, async (entry, visit) => {
    const instance = entry.instances[visit];
    return { found: await visitPaced(fleet, entry, { instance, process: visit, visit, streams: 500, delay: 50, size: PACED }) };
  });
  return visits.map((own) =>
    own.flatMap(({ found }) => found.map(({ slice, process, cpu }) => ({ slice, process, value: cpu }))),
  );
}

const measureHeld = (fleet, entries, factor) =>
  alternate(entries, FRESH * factor, async (entry, slice) => ({
    process: slice,
    value: (await holdMany(fleet, entry, HELD)).rss,
  }));

const measureStart = (fleet, entries, factor) =>
  alternate(entries, FRESH * factor, async (entry, slice) => ({
    process: slice,
    value: (await timeStart(fleet, entry.subject, IDLE)).cpu,
  }));

const needsProcesses = ({ measure }) => measure !== measureHeld && measure !== measureStart;

/** Rows with a verdict each; `folder`: a checkout that is built. */
export async function compareGateway(folder, { noise, say }) {
  const fleet = await Fleet.start({ hasSubjects: false });
  const builds = new Builds(fleet, { before: folder, after: undefined });

  async function lookAt(row, entries, factor) {
    say(`${row.id}${factor > 1 ? ', once more' : ''}`);
    noise.addSpeed(await fleet.readSpeed('speed'));
    const [before, after] = await row.measure(fleet, entries, factor);
    const wrong = entries.flatMap((entry) => (entry.wrong > 0 ? [`${entry.name}: ${entry.wrong} wrong (${entry.note})`] : []));
    return wrong.length > 0 ? { note: wrong.join(', ') } : { before, after, ...compareProcesses(before, after) };
  }

  const look = async (rows, factor) => {
    const found = new Map();
    for (const direction of DIRECTIONS) {
      const own = rows.filter((row) => row.direction === direction);
      if (own.some(needsProcesses)) await builds.start(direction, PROCESSES * factor);
      for (const row of own.filter(needsProcesses)) found.set(row, await lookAt(row, builds.entries, factor));
      await builds.end();
      for (const row of own.filter((one) => !needsProcesses(one)))
        found.set(row, await lookAt(row, builds.describe(direction), factor));
    }
    return rows.map((row) => found.get(row));
  };
  try {
    return await lookUntilSure(listRows(), look);
  } finally {
    await builds.end();
    await fleet.end();
  }
}
