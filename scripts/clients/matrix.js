// Real clients through the gateway: every client of the table with every upstream protocol, then with upstreams that misbehave, alone and through the gateway.
//
//   npm run build && INST=<folder of the clients> node scripts/clients/matrix.js [pairs|variants|alone|page] [--only PATTERN] [--again | --missing] [--jobs N]
//
// Results are kept in .cache/clients/results.json; a cell that has passed is not run again (--again: every cell is; --missing: only cells without a result are).
// `alone` runs the variants without the gateway. `page` writes docs/clients-tested.md from the results, as does a run of all parts.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { renderPage } from './page.js';
import { readState, replaceState } from './page-state.js';
import { runClient, versionOf } from './run-client.js';
import { providerOf, setStage } from './stage.js';
import { CLIENTS, UPSTREAMS, VARIANTS } from './table.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const clients = `${process.env.SLUICE_SHARED ?? `${root}../shared`}/clients`;
const folder = `${root}.cache/clients`;
const store = `${folder}/results.json`;
const { values: options, positionals } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    again: { type: 'boolean', default: false },
    missing: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '1' },
  },
  allowPositionals: true,
});
const part = positionals[0];
const only = new RegExp(options.only);

mkdirSync(`${folder}/output`, { recursive: true });
const results = existsSync(store) ? JSON.parse(readFileSync(store, 'utf8')) : { versions: {}, cells: {} };

if (part !== 'page') await runAll(cellsOf(part));
// A part of the results would make a page of holes out of a whole one.
const isWhole = part === undefined && options.only === '';
if (part === 'page' || isWhole) writePage();

function writePage() {
  const reactions = existsSync(`${folder}/errors.json`) ? JSON.parse(readFileSync(`${folder}/errors.json`, 'utf8')) : {};
  const page = `${root}docs/clients-tested.md`;
  // state.js writes a section of its own.
  const state = readState(readFileSync(page, 'utf8'));
  const text = renderPage(results, reactions);
  writeFileSync(page, state === undefined ? text : replaceState(text, state));
}

/** A cell has a name, which is its key in the results. `through`: by the gateway, or alone. */
function cellsOf(wanted) {
  const pairs = CLIENTS.flatMap((client) =>
    Object.keys(UPSTREAMS).map((upstream) => ({ key: `${client.name} > ${upstream}`, client, upstream, through: true })),
  );
  const variants = VARIANTS.flatMap((variant) =>
    CLIENTS.filter(({ protocol }) => variant.in.includes(protocol)).flatMap((client) =>
      [false, true].map((through) => ({
        key: `${client.name} > ${variant.id} ${through ? 'through' : 'alone'}`,
        client,
        upstream: client.protocol,
        variant,
        through,
      })),
    ),
  );
  const alone = variants.filter(({ through }) => !through);
  const cells = { pairs, variants, alone }[wanted] ?? [...pairs, ...variants];
  return cells.filter(({ key }) => only.test(key) && isDue(results.cells[key]));
}

function isDue(result) {
  if (options.again) return true;
  return options.missing ? result === undefined : !result?.passed;
}

async function runAll(cells) {
  const inst = process.env.INST;
  if (!inst || !existsSync(inst)) {
    console.error(
      `INST must name the folder where the clients are installed:\n  INST=<folder outside the repository> ${clients}/install.sh`,
    );
    process.exit(2);
  }
  const queue = cells.map((cell, i) => ({ cell, place: `${i + 1}/${cells.length}` }));
  const stages = [];
  const closeAll = () => Promise.all(stages.map((stage) => stage.close()));
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => closeAll().then(() => process.exit(1)));
  try {
    for (let job = 0; job < Number(options.jobs); job++) stages.push(await openStage(`${folder}/stage-${job}`));
    await Promise.all(stages.map((stage) => runJob(queue, inst, stage)));
  } finally {
    await closeAll();
  }
}

/** Each job has its own upstream and gateway: a cell reads the gateway's log, and restarts the upstream. */
function openStage(place) {
  mkdirSync(place, { recursive: true });
  return setStage({ clients, folder: place });
}

async function runJob(queue, inst, stage) {
  for (let next = queue.shift(); next; next = queue.shift()) await runCell(next.cell, { inst, stage, place: next.place });
}

async function runCell({ key, client, upstream, variant, through }, { inst, stage, place }) {
  const version = versionOf(client, inst);
  if (version === undefined) {
    console.log(`${place} ${key}: not installed`);
    return;
  }
  if (variant?.once) await stage.mock.renew();
  const askedSince = stage.watch();
  const url = through ? stage.url : `${stage.mock.url}/_v/${variant.id}`;
  const model = through ? `${providerOf(upstream, variant?.id)}/mock-model` : 'mock-model';
  const { output, ...ran } = await runClient(client, { clients, inst, url, model, seconds: variant?.seconds });
  const wanted = through ? [providerOf(upstream, variant?.id)] : [];
  const asked = askedSince();
  const isRight = asked.length === wanted.length && asked.every((provider) => wanted.includes(provider));
  const result = isRight ? ran : { ...ran, passed: false, asked };
  console.log(
    `${place} ${key}: ${result.passed ? 'ok' : `FAIL (${result.code})${isRight ? '' : ` asked: ${asked.join(', ') || 'nobody'}`}`} ${result.seconds} s`,
  );
  if (!result.passed) writeFileSync(`${folder}/output/${key.replace(/[^\w.-]+/g, '_')}.txt`, output);
  results.versions[client.name] = version;
  results.cells[key] = result;
  writeFileSync(store, JSON.stringify(results, null, 1));
}
