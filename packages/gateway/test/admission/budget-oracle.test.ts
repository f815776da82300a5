/** Whatever happens to the server of limits, providers are not paid more than a budget and the bound that docs/limits.md states. */
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { IS_NIGHT } from '../../../../test/night.ts';
import { MemoryBackend } from '../../src/admission/memory.ts';
import type { Driver, DriverEvents } from '../../src/admission/shared/driver.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { closeBackends, createNode, createPrefix, SERVERS, type ServerName, stopServers, useServer } from './backends.ts';
import {
  Accounts,
  createBudget,
  createRandom,
  FAULTS,
  Hearing,
  type Network,
  type OracleNode,
  type Outcome,
  spend,
  UnreliableDriver,
} from './budget-oracle.ts';

afterEach(closeBackends);
afterAll(stopServers);

/** The same schedule of requests for every run, apart from the time that servers take. A night uses new ones. */
const SEED = Number(process.env['SLUICE_SEED'] ?? (IS_NIGHT ? Date.now() : 20_261_118)) || Date.now();

const ROUNDS = IS_NIGHT ? 12 : 1;

const CLIENTS = 12;

/** The part of the budget that a node uses at most which alone has lost the server. */
const PART = 0.5;

/** How long a call may take. */
const TIMEOUT_MS = 400;

const print = (title: string, { admitted, refused, paid, most }: Outcome, budget: number, shownMs: number): void =>
  console.log(
    `${title}: ${admitted} admitted, ${refused} refused, paid ${(paid / budget).toFixed(3)}, at most ${(most / budget).toFixed(3)} of the budget; shown after ${Math.round(shownMs)} ms`,
  );

describe.each(Object.keys(SERVERS) as ServerName[])('%s', (name) => {
  describe.each(IS_NIGHT ? [1, 2] : [2])('%d nodes', (nodes) => {
    test.each(Object.entries(FAULTS))(
      '%s',
      { ...SERVERS[name].options, timeout: 60_000 * (ROUNDS + 1) },
      async (title, fault) => {
        if (nodes === 1 && title === 'a node killed') return;
        for (let round = 0; round < ROUNDS; round++) {
          const seed = SEED + round;
          const random = createRandom(seed);
          const accounts = new Accounts(random);
          const hearing = new Hearing();
          const { cluster, networks } = await startOracle(name, nodes, accounts, hearing);
          const server = await useServer(name);
          const account = createBudget(`team=${round}`);
          const last = cluster.at(-1);
          const killNode = async (): Promise<void> => {
            if (!last) return;
            last.isDead = true;
            await last.backend.close();
          };
          const outcome = await spend({
            ...{ account, nodes: cluster, accounts, hearing, random, clients: CLIENTS },
            fault: () => fault.run({ server, networks, killNode }),
          });
          const from = performance.now();
          const alive = cluster.filter(({ isDead }) => !isDead);
          if (title !== 'a node killed')
            for (const { backend } of alive)
              await expect
                .poll(async () => (await backend.list())[0], { timeout: 45_000 })
                .toMatchObject({ spent: accounts.readLedger(account.of), reserved: 0 });
          const bound = hearing.bound / account.micros;
          print(
            `${name}, ${nodes} nodes, ${title}, seed ${seed}, bound ${(1 + bound).toFixed(3)}`,
            outcome,
            account.micros,
            performance.now() - from,
          );
          expect(outcome.admitted).toBeGreaterThan(10);
          expect(outcome.most).toBeLessThanOrEqual(account.micros + Math.min(hearing.bound, account.micros * PART));
          await closeBackends();
        }
      },
    );
  });
});

test.each([1, 2])('memory, %d nodes: each has a budget of its own', async (nodes) => {
  const random = createRandom(SEED);
  const accounts = new Accounts(random);
  const account = createBudget('team=memory');
  const cluster = Array.from({ length: nodes }, () => ({
    backend: new MemoryBackend(REAL_CLOCK, accounts.readSpending),
    isDead: false,
  }));
  const fault = async (): Promise<void> => undefined;
  const hearing = new Hearing();
  const outcome = await spend({ account, nodes: cluster, accounts, hearing, random, clients: CLIENTS, fault });
  print(`memory, ${nodes} nodes`, outcome, account.micros, 0);
  expect(outcome.most).toBeLessThanOrEqual(account.micros * nodes);
});

/** Nodes on one server, each with a network of its own. */
async function startOracle(
  name: ServerName,
  count: number,
  accounts: Accounts,
  hearing: Hearing,
): Promise<{ cluster: OracleNode[]; networks: Network[] }> {
  const prefix = createPrefix();
  const server = await useServer(name);
  const networks = Array.from({ length: count }, () => ({ delayMs: 0, isLossy: false }));
  const cluster = await Promise.all(
    networks.map(async (network, index) => {
      const createDriver = (events: DriverEvents): Driver =>
        new UnreliableDriver(
          server.createDriver({ prefix, connectTimeoutMs: 1000 }, events),
          network,
          (operation, request, reply) => hearing.receive(index, operation, request, reply),
        );
      const options = { prefix, nodes: count, readSpending: accounts.readSpending, timeoutMs: TIMEOUT_MS, createDriver };
      return { backend: await createNode(name, options), isDead: false };
    }),
  );
  await cluster[0]?.backend.take({ member: 'first', rates: [] });
  return { cluster, networks };
}
