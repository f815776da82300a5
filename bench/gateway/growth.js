/** What grows with use: client keys, rows of the ledger, streams, and worker processes. All sizes are alive at once and take turns. */
import { join } from 'node:path';
import { openWriter } from '../../packages/gateway/out/store/sqlite/database.js';
import { findPostgres, PostgresServer } from '../../packages/gateway/test/real-parts/postgres.js';
import { fillLedger } from '../data/ledger.js';
import { ROOT } from '../method/commits.js';
import { buildRow } from '../method/results.js';
import { alternate } from '../method/slices.js';
import { LOADS, measureCost, noteWrong } from './costs.js';
import { spend } from './fleet.js';
import { CORES } from './processes.js';
import { visitPaced } from './streams.js';
import { createDataFolder, FULL, launch, serve, sluice } from './subjects.js';

const KEYS = [1, 10_000, 100_000];
const LEDGER_ROWS = [1000, 100_000, 1_000_000];
/** Always 10,000 chunks a second: `[streams, milliseconds between two chunks of one]`. */
const STREAMS = [
  [100, 10],
  [500, 50],
  [2000, 200],
  [5000, 500],
];
/** Without it, the first 5,000 streams would be opened by cold code. */
const WARM_STREAMS = 500;
const WORKERS = [1, 2];
/** At most how many times the smallest. */
const MOST_GROWTH = 1.1;

/** A data folder with so many keys: the one that the load uses, and copies of it with other names and digests. */
function createKeys(count) {
  const data = createDataFolder(ROOT, true);
  const db = openWriter(join(data.folder, 'sluice.db'));
  const columns = ['pepper', 'policy', 'tags', 'created_ts'].join(', ');
  db.exec(`
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count - 1})
    insert into client_keys (id, name, digest, ${columns})
    select printf('bench%07d', n), printf('key %d', n), printf('%064x', n), ${columns} from client_keys, numbers
    where name = 'bench' and ${count} > 1`);
  db.close();
  return data;
}

async function createLedger(rows) {
  const data = createDataFolder(ROOT, true);
  await fillLedger(data.folder, rows);
  return data;
}

/** Three processes of `sluice serve` as operators run it, each on a data folder of this kind. */
async function launchOn(createData, { processes, more = [], core = CORES.gateway }) {
  const instances = [];
  for (let i = 0; i < processes; i++) {
    const data = await createData();
    const subject = { name: 'sluice-full', ...sluice('pass', () => serve({ ...FULL, data, more })) };
    instances.push(await launch(subject, { core }));
  }
  return instances;
}

const createEntry = (name, instances) => ({ name, direction: 'pass', instances, wrong: 0, note: '' });
const endAll = (entries) => Promise.all(entries.flatMap(({ instances }) => instances.map((instance) => instance.end())));

/** A row for every size, whose reference is the smallest: the ratio is in the slices of all sizes. */
function buildGrowthRow({ id, title, unit = 'us', kind = 'cpu' }, entries, samples) {
  const [smallest] = entries;
  const found = entries.map(({ name, wrong, note }, i) => ({ subject: name, samples: samples[i], wrong, ...(note && { note }) }));
  const goals = entries.slice(1).map(({ name }) => ({ subject: name, of: smallest.name, most: MOST_GROWTH }));
  return buildRow({ id, group: 'growth', title, unit, kind, reference: smallest.name, found, goals });
}

const measureRequests = async (fleet, size, entries) => {
  const options = { load: LOADS['json-0.1k'], slices: size.slices, warmSeconds: size.warmSeconds };
  const samples = await measureCost(fleet, entries, options);
  await endAll(entries);
  return samples;
};

export async function measureKeys(fleet, size) {
  await fleet.clear();
  const entries = [];
  for (const count of KEYS)
    entries.push(createEntry(`${count.toLocaleString('en')} keys`, await launchOn(() => createKeys(count), size)));
  const samples = await measureRequests(fleet, size, entries);
  return [buildGrowthRow({ id: 'growth-keys', title: 'CPU a request of 0.1 KB, by client keys' }, entries, samples)];
}

export async function measureLedger(fleet, size) {
  await fleet.clear();
  const entries = [];
  for (const count of LEDGER_ROWS) {
    // A million rows take half a minute: one process of each size is enough to see whether it grows.
    const instances = await launchOn(() => createLedger(count), { processes: 1 });
    entries.push(createEntry(`${count.toLocaleString('en')} rows`, instances));
  }
  const samples = await measureRequests(fleet, size, entries);
  return [buildGrowthRow({ id: 'growth-ledger', title: 'CPU a request of 0.1 KB, by rows of the ledger' }, entries, samples)];
}

const STREAM_NAMES = { undici: 'node:http + undici', 'sluice-full': 'Sluice, full' };

/** Of the reference and of Sluice: chunks cost more when they come to more sockets. */
export async function measureStreamGrowth(fleet, size) {
  await fleet.clear();
  const rows = [];
  for (const name of Object.keys(STREAM_NAMES)) {
    const subject = fleet.find(name, 'pass');
    const instances = await fleet.instances(subject);
    for (const instance of instances) {
      const target = fleet.target(instance, { direction: 'pass', model: 'mock-d0-n3', stream: true });
      await fleet.load('streams', { target, streams: WARM_STREAMS, atOnce: 8 });
    }
    const entries = STREAMS.map(([streams, delay]) => ({
      ...createEntry(`${streams.toLocaleString('en')} streams`, instances),
      streams,
      delay,
    }));
    const visits = await alternate(entries, size.processes, async (entry, visit) => {
      const process = visit % instances.length;
      const { streams, delay } = entry;
      const found = await visitPaced(fleet, entry, {
        instance: instances[process],
        process,
        visit,
        streams,
        delay,
        size: { ...size, windows: 3 },
      });
      return { found };
    });
    const samples = visits.map((own) =>
      own.flatMap(({ found }) => found.map(({ slice, process, cpu }) => ({ slice, process, value: cpu }))),
    );
    const row = { id: `growth-streams ${name}`, title: `CPU a paced chunk, by streams, ${STREAM_NAMES[name]}` };
    rows.push(buildGrowthRow(row, entries, samples));
  }
  await fleet.clear();
  return rows;
}

/**
 * Both cores for everything: clients, upstream and database need a part of them, so that two workers cannot be twice as fast. Workers need PostgreSQL;
 * without it the row is left out.
 */
export async function measureWorkers(fleet, size) {
  if (findPostgres() === undefined) {
    fleet.missing.workers = 'PostgreSQL is not installed (apt-get install postgresql)';
    return [];
  }
  await fleet.clear();
  const postgres = await PostgresServer.start({ isDurable: true });
  try {
    return await measureOn(postgres, fleet, size);
  } finally {
    await postgres.stop();
  }
}

async function measureOn(postgres, fleet, size) {
  const entries = [];
  for (const workers of WORKERS) {
    const config = `log: { level: silent }\ncapture: { ring: off }\nstore: ${await postgres.createDatabase()}\n`;
    const subject = { name: 'sluice-full', ...sluice('pass', () => serve({ config, more: ['--workers', String(workers)] })) };
    entries.push(createEntry(`${workers} worker${workers > 1 ? 's' : ''}`, [await launch(subject, { core: CORES.all })]));
  }
  const visit = async (entry, count) => {
    const [instance] = entry.instances;
    const target = fleet.target(instance, { direction: 'pass', model: 'mock-whole' });
    const result = await spend(instance, () => fleet.load('whole', { target, connections: 32, count }));
    noteWrong(entry, result);
    return { process: 0, cpu: result.cpu / result.requests, rate: result.requests / result.seconds };
  };
  for (const entry of entries) await visit(entry, 8000);
  const samples = await alternate(entries, size.slices, (entry) => visit(entry, 2000));
  await endAll(entries);
  const pick = (key) => samples.map((own) => own.map(({ slice, process, [key]: value }) => ({ slice, process, value })));
  const cpu = { id: 'growth-workers cpu', title: 'CPU a request of 0.1 KB, by worker processes, ledger in PostgreSQL' };
  const rate = {
    id: 'growth-workers',
    title: 'requests a second, by worker processes, ledger in PostgreSQL',
    unit: '1/s',
    kind: 'clock',
  };
  return [
    { ...buildGrowthRow(cpu, entries, pick('cpu')), goals: [] },
    { ...buildGrowthRow(rate, entries, pick('rate')), goals: [] },
  ];
}
