// Real clients that rely on stored responses, with every upstream protocol: three turns, whose last request must reach the upstream with all that was said before.
//
//   npm run build && INST=<folder of the clients> node scripts/clients/state.js
//
// Writes the results to .cache/clients/state.json, and their section of docs/clients-tested.md.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderState, replaceState } from './page-state.js';
import { versionOf } from './run-client.js';
import { providerOf, setStage } from './stage.js';
import { STATE_CLIENTS, UPSTREAMS } from './table.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const clients = `${process.env.SLUICE_SHARED ?? `${root}../shared`}/clients`;
const folder = `${root}.cache/clients`;
const inst = process.env.INST;
const SECONDS = 60;

if (!inst) {
  console.error(
    `INST must name the folder where the clients are installed:\n  INST=<folder outside the repository> ${clients}/install.sh`,
  );
  process.exit(2);
}
mkdirSync(`${folder}/state`, { recursive: true });
const stage = await setStage({ clients, folder: `${folder}/state` });
const results = { versions: {}, cells: {} };
try {
  for (const client of STATE_CLIENTS) {
    results.versions[client.name] = versionOf(client, inst);
    if (!results.versions[client.name]) console.log(`${client.name}: not installed`);
    else for (const upstream of Object.keys(UPSTREAMS)) await runCell(client, upstream);
  }
} finally {
  await stage.close();
}
writeFileSync(`${folder}/state.json`, JSON.stringify(results, null, 1));
const page = `${root}docs/clients-tested.md`;
writeFileSync(page, replaceState(readFileSync(page, 'utf8'), renderState(results)));
process.exitCode = Object.values(results.cells).every(({ passed }) => passed) ? 0 : 1;

async function runCell(client, upstream) {
  const box = mkdtempSync(join(tmpdir(), 'sluice-state-'));
  const word = () => randomBytes(4).toString('hex');
  const note = join(box, 'note.txt');
  const magic = `MAGIC-${word()}`;
  writeFileSync(note, `secret=${magic}\n`);
  copyFileSync(new URL(`./state/${client.driver}.mjs`, import.meta.url), join(box, 'driver.mjs'));
  symlinkSync(join(inst, client.inst, client.folder, 'node_modules'), join(box, 'node_modules'));
  const words = [word(), word(), word()];
  const turns = [
    client.hasTools ? `${words[0]}: read the file ${note} and then tell me the magic word.` : `${words[0]}: say hello.`,
    `${words[1]}: again.`,
    `${words[2]}: and again.`,
  ];
  const before = readLog().length;
  const { code, output } = await runDriver(box, { MODEL: `${providerOf(upstream)}/mock-model`, TURNS: JSON.stringify(turns) });
  const requests = readLog().slice(before);
  const missing = [...words, ...(client.hasTools ? [magic] : [])].filter((text) => !requests.at(-1)?.includes(text));
  const passed = code === 0 && missing.length === 0;
  console.log(
    `${client.name} > ${upstream}: ${passed ? 'ok' : `FAIL (${code}), the last of ${requests.length} requests lacks [${missing}]\n${output}`}`,
  );
  results.cells[`${client.name} > ${upstream}`] = { passed };
  rmSync(box, { recursive: true });
}

/** Requests that the upstream received. */
function readLog() {
  const lines = readFileSync(`${folder}/state/mock.jsonl`, { encoding: 'utf8', flag: 'a+' }).split('\n');
  return lines.filter((line) => line.includes('"body"'));
}

async function runDriver(box, env) {
  const child = spawn(process.execPath, ['driver.mjs'], {
    cwd: box,
    env: { PATH: process.env.PATH, HOME: box, BASE_URL: stage.url, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: SECONDS * 1000,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output = (output + data).slice(-4000)));
  const [code] = await once(child, 'exit');
  return { code, output };
}
