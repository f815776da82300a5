/** A gateway in a process of its own, which is killed and starts again over the same data. Its time is real, and shorter than in schedules. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, pace } from '../../../../test/wait.ts';
import { type Clock, REAL_CLOCK } from '../../src/http/clock.ts';
import { type ExchangeDetail, openStore } from '../../src/store/index.ts';
import { createTestFolder } from '../real-parts/programs.js';
import { buildConfig, TestClients } from './clients.ts';
import { findLedgerProblems, sumCosts } from './model.ts';
import type { Schedule, Settings } from './schedule.ts';
import { Upstreams } from './upstreams.ts';

/** How much faster than in a schedule time passes. */
const SCALE = 10;

const KEY = 'key-of-the-client-0123456789';
const ADMIN = 'key-of-the-operator-0123456789';

const SCALED: Clock = {
  now: () => REAL_CLOCK.now() * SCALE,
  setTimer: (run, ms) => REAL_CLOCK.setTimer(run, ms / SCALE),
  setRepeating: (run, ms) => REAL_CLOCK.setRepeating(run, ms / SCALE),
};

/** Longer than the last attempt of the last request in a pipeline takes. */
const END_MS = 60_000;

/** Plays a schedule with kills, and returns what is wrong afterwards. */
export async function playWithKills(schedule: Schedule): Promise<string[]> {
  const folder = createTestFolder('killed-gateway');
  const upstreams = await Upstreams.start(SCALED);
  try {
    return await play(schedule, folder, upstreams);
  } finally {
    await upstreams.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function play(schedule: Schedule, folder: string, upstreams: Upstreams): Promise<string[]> {
  const { settings } = schedule;
  const config = join(folder, 'sluice.json');
  writeFileSync(config, JSON.stringify(buildProcessConfig(settings, upstreams)), { mode: 0o600 });
  // Imported late: without a build it cannot be loaded.
  const { startGateway } = await import('../ledger/kill-gateway.js');
  const start = (): ReturnType<typeof startGateway> => startGateway(config, '--data', join(folder, 'data'));
  const clients = new TestClients(schedule, upstreams);
  let gateway = await start();
  try {
    for (const step of schedule.steps) {
      if (step.wait > 0) await pace(step.wait / SCALE);
      if (step.do === 'kill') {
        gateway.child.kill('SIGKILL');
        await gateway.closed;
        clients.lose();
        gateway = await start();
      } else if ('visitor' in step) await clients.visit(step, gateway.url, KEY);
    }
    clients.resume();
    const problems: string[] = [];
    await eventually(() => clients.isOver, END_MS).catch(() => problems.push('clients still wait for their responses'));
    clients.leave();
    const spent = settings.budget === undefined ? undefined : await readSpent(gateway.url, problems);
    gateway.child.kill('SIGTERM');
    await gateway.closed;
    const details = await readRows(join(folder, 'data'));
    const { accounts } = upstreams;
    const observed = { settings, seen: clients.seen, accounts, mayCrash: true };
    problems.push(...clients.findProblems(), ...findLedgerProblems(details, observed));
    if (spent !== undefined && spent !== sumCosts(details))
      problems.push(`the budget has spent ${spent} micros, and the rows ${sumCosts(details)}`);
    return problems;
  } finally {
    gateway.child.kill('SIGKILL');
  }
}

const buildProcessConfig = (settings: Settings, upstreams: Upstreams): object => {
  const { budget, concurrency } = settings;
  const limits = { ...(budget !== undefined && { budget }), ...(concurrency !== undefined && { concurrency }) };
  return {
    ...buildConfig(settings, upstreams, { scale: SCALE }),
    log: { level: 'error' },
    auth: { keys: [{ name: 'client', key: KEY, ...limits }] },
    admin: { key: ADMIN },
  };
};

/** What the budget has spent when no request holds a part of it. */
async function readSpent(url: string, problems: string[]): Promise<number | undefined> {
  const read = async () => {
    const response = await fetch(`${url}/admin/v1/budgets`, { headers: { authorization: `Bearer ${ADMIN}` } });
    const { budgets } = (await response.json()) as { budgets: { spent_micros: number; reserved_micros: number }[] };
    return budgets[0];
  };
  const isFree = async (): Promise<boolean> => (await read())?.reserved_micros === 0;
  await eventually(isFree, END_MS).catch(() => problems.push('a part of the budget is still reserved'));
  return (await read())?.spent_micros;
}

async function readRows(folder: string): Promise<ExchangeDetail[]> {
  const store = await openStore({ folder, ballastBytes: 0 });
  try {
    const { exchanges } = await store.list({ limit: 200 });
    const details = await Promise.all(exchanges.map(({ id }) => store.get(id)));
    return details.flatMap((detail) => detail ?? []);
  } finally {
    await store.close();
  }
}
