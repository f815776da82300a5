// What real clients do when a stream fails in the middle: every client of the table with every way to end a stream (faults.js), without the gateway.
//
//   INST=<folder of the clients> node scripts/clients/errors.js [--only PATTERN] [--again] [--jobs N]
//
// Results are kept in .cache/clients/errors.json; `node scripts/clients/matrix.js page` writes them into docs/clients-tested.md.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { FAULTS, MARK, startFaultyProxy } from './faults.js';
import { runClient, versionOf } from './run-client.js';
import { Mock } from './stage.js';
import { CLIENTS } from './table.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const clients = `${process.env.SLUICE_SHARED ?? `${root}../shared`}/clients`;
const folder = `${root}.cache/clients`;
const store = `${folder}/errors.json`;
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    again: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '1' },
  },
});
const only = new RegExp(options.only);
const inst = process.env.INST ?? '';

mkdirSync(`${folder}/output`, { recursive: true });
mkdirSync(`${folder}/errors`, { recursive: true });
const results = existsSync(store) ? JSON.parse(readFileSync(store, 'utf8')) : {};
const queue = CLIENTS.filter(({ isWhole }) => !isWhole)
  .flatMap((client) =>
    FAULTS.filter((fault) => fault.in.includes(client.protocol)).map((fault) => ({
      key: `${client.name} > ${fault.id}`,
      client,
      fault,
    })),
  )
  .filter(({ key }) => only.test(key) && (options.again || results[key] === undefined));

const mock = await Mock.start(`${clients}/mock/mock.mjs`, `${folder}/errors`);
try {
  await Promise.all(Array.from({ length: Number(options.jobs) }, runJob));
} finally {
  await mock.close();
}

async function runJob() {
  for (let cell = queue.shift(); cell; cell = queue.shift()) await runCell(cell);
}

async function runCell({ key, client, fault }) {
  if (versionOf(client, inst) === undefined) return;
  const proxy = await startFaultyProxy({ upstream: mock.url, protocol: client.protocol, fault });
  const { passed, output, seconds } = await runClient(client, { clients, inst, url: proxy.url, model: 'mock-model' });
  const reaction = proxy.hasFailed() ? reactionOf(passed, output) : undefined;
  await proxy.close();
  console.log(`${key}: ${reaction ?? 'no stream'} ${seconds} s`);
  if (reaction !== 'retries') writeFileSync(`${folder}/output/${key.replace(/[^\w.-]+/g, '_')}.txt`, output);
  if (reaction === undefined) return;
  results[key] = reaction;
  writeFileSync(store, JSON.stringify(results, null, 1));
}

/** The runner prints the exit code of the client as `rc=`. */
function reactionOf(passed, output) {
  if (passed) return 'retries';
  if (output.includes(MARK)) return 'reports';
  const code = /\brc=(\d+)/.exec(output)?.[1];
  return code === '0' ? 'silent' : 'fails';
}
