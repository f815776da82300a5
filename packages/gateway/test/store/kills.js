/**
 * Kills a gateway's store with SIGKILL, again and again, in the middle of acknowledged writes, and compares the ledger with what was
 * acknowledged. Plain JavaScript on the build, because the nightly proof runs it, too. As a script it is the process that is killed.
 */
import { spawn } from 'node:child_process';
import { openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from '@photostructure/sqlite';
import { openStore } from '../../out/store/index.js';

const STREAMS = 200;

/** Kills the store `kills` times and returns what was found. `violations` must be empty. */
export async function proveKills(folder, kills, random = Math.random) {
  const acknowledged = new Map();
  for (let kill = 0; kill < kills; kill++) await runUntilKilled(folder, 20 + random() * 250, acknowledged);
  const store = await openStore({ folder, ballastBytes: 0 });
  await store.close();
  const db = new DatabaseSync(join(folder, 'sluice.db'), { readOnly: true });
  const violations = [...findViolations(db, acknowledged), ...findWrongSums(db)];
  const { rows, crashed } = db.prepare("SELECT count(*) AS rows, sum(state = 'crashed') AS crashed FROM exchanges").get();
  db.close();
  const writes = [...acknowledged.values()].reduce((sum, steps) => sum + steps.size, 0);
  return { kills, exchanges: acknowledged.size, writes, rows, crashed, violations };
}

/** Runs the process until this time after its first acknowledged step, and reads the steps that it wrote as `id step`. */
function runUntilKilled(folder, ms, acknowledged) {
  const file = join(folder, 'acknowledged');
  rmSync(file, { force: true });
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), folder, file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.once('data', () => setTimeout(() => child.kill('SIGKILL'), ms));
    child.once('close', (code, signal) => {
      if (signal !== 'SIGKILL') return reject(new Error(`the store ended with ${code ?? signal} before it was killed`));
      for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
        const [id, step] = line.split(' ');
        acknowledged.set(id, (acknowledged.get(id) ?? new Set()).add(step));
      }
      resolve(undefined);
    });
  });
}

/** The tokens of an exchange follow from its id, so that the reader knows them, too. */
const tokensOf = (id) => Number.parseInt(id.slice(-5), 16);

function* findViolations(db, acknowledged) {
  const readExchange = db.prepare('SELECT * FROM exchanges WHERE id = ?');
  const readAttempt = db.prepare('SELECT * FROM attempts WHERE exchange_id = ? AND number = 1');
  for (const [id, steps] of acknowledged) {
    const exchange = readExchange.get(id);
    const attempt = readAttempt.get(id);
    if (!exchange) yield `${id} was acknowledged and is lost`;
    else if (steps.has('attempt') && !attempt) yield `the attempt of ${id} was acknowledged and is lost`;
    else if (steps.has('progress') && (exchange.input_tokens ?? 0) < tokensOf(id))
      yield `usage of ${id} was acknowledged and is lost`;
    else if (steps.has('settled') && (exchange.state !== 'settled' || exchange.input_tokens !== tokensOf(id)))
      yield `${id} was settled and is ${exchange.state} with ${exchange.input_tokens} tokens`;
  }
  const open = db
    .prepare("SELECT id FROM exchanges WHERE state = 'open' UNION ALL SELECT exchange_id FROM attempts WHERE state = 'open'")
    .all();
  for (const { id } of open) yield `${id} is still open`;
}

/** Every settled and crashed exchange is in the roll-ups, once. */
function* findWrongSums(db) {
  // Without a settled row there is no sum, which roll-ups have as 0.
  const sums = 'coalesce(sum(input_tokens), 0) AS input, coalesce(sum(cost_micros), 0) AS cost';
  const rows = db.prepare(`SELECT count(*) AS requests, ${sums} FROM exchanges`).get();
  for (const rollup of [1, 2, 3, 4]) {
    const stored = db.prepare(`SELECT sum(requests) AS requests, ${sums} FROM usage_rollups WHERE rollup = ?`).get(rollup);
    if (JSON.stringify(stored) !== JSON.stringify(rows))
      yield `roll-up ${rollup} has ${JSON.stringify(stored)}, the rows ${JSON.stringify(rows)}`;
  }
}

/** Runs exchanges for ever and writes down each step when it is durable. */
async function write(folder, file) {
  const store = await openStore({ folder, ballastBytes: 0 });
  const steps = openSync(file, 'a');
  let isFirst = true;
  const acknowledge = (id, step) => {
    writeSync(steps, `${id} ${step}\n`);
    if (isFirst) process.stdout.write('begun\n');
    isFirst = false;
  };
  const runExchange = async () => {
    const { id, ts } = store.createId();
    const usage = { input_tokens: tokensOf(id), ending: 'answered', http_status: 200, cost_micros: 3 };
    await store.openExchange({ id, ts, key_id: 'k' });
    acknowledge(id, 'open');
    await store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'p', model: 'm' });
    acknowledge(id, 'attempt');
    await store.reportProgress({ exchange_id: id, number: 1, input_tokens: tokensOf(id) });
    acknowledge(id, 'progress');
    await Promise.all([
      store.settleAttempt({ exchange_id: id, number: 1, ...usage }),
      store.settleExchange({ id, ts, ...usage }),
    ]);
    acknowledge(id, 'settled');
  };
  for (let stream = 0; stream < STREAMS; stream++) void repeat(runExchange);
}

async function repeat(run) {
  for (;;) await run();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await write(process.argv[2], process.argv[3]);
