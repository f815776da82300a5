/**
 * Clients that spend a budget on one or several nodes while something happens to the server of limits or to a node, and what they have
 * really spent: an oracle that does not know how limits work.
 */
import { eventually, pace } from '../../../../test/wait.ts';
import type { AccountLimit, LimitBackend } from '../../src/admission/backend.ts';
import type { Driver, Operation } from '../../src/admission/shared/driver.ts';
import type { LimitsServer } from './backends.ts';

const BUDGET = 1_000_000;

/** A budget that nothing was spent of yet. */
export const createBudget = (of: string): AccountLimit => ({
  ...{ by: 'tag', of, name: of, period: 'total', micros: BUDGET },
  window: { start: 0, end: Number.POSITIVE_INFINITY },
});

/** Numbers from 0 to 1, the same for a seed. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What the providers were paid, and what the ledger knows of it, which is a little later. */
export class Accounts {
  readonly #ledger = new Map<string, number>();
  readonly #paid = new Map<string, number>();
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  readonly readSpending = async ({ of }: { of: string }): Promise<number> => this.readLedger(of);

  readLedger(of: string): number {
    return this.#ledger.get(of) ?? 0;
  }

  readPaid(of: string): number {
    return this.#paid.get(of) ?? 0;
  }

  /** A request has ended at its provider. Resolves when the ledger has it, as a gateway waits for its record. */
  async pay(of: string, micros: number): Promise<void> {
    this.#paid.set(of, this.readPaid(of) + micros);
    await pace(this.#random() * 30);
    this.#ledger.set(of, this.readLedger(of) + micros);
  }
}

/** One node of an oracle: it can be killed, and its server can be slow or lose replies for it alone. */
export interface OracleNode {
  readonly backend: LimitBackend;
  isDead: boolean;
}

/**
 * What nodes have done through the server, and what each of them has heard of it. While a node admits requests without the server, it does not know
 * what the others reserve and are charged after its last reply: by so much a budget can be exceeded.
 */
export class Hearing {
  readonly #done: { readonly node: number; readonly at: number; readonly micros: number }[] = [];
  /** When the server had the states that each node has received, by the clock of the server. */
  readonly #heard = new Map<number, number[]>();
  /** Requests that were admitted with the server. */
  readonly #shared = new Set<string>();
  /** How much each node had heard when it admitted requests without the server. */
  readonly #deaf = new Map<number, Set<number>>();

  /** A node has received the reply to a call, perhaps late. Only admissions wait for each other: reads may lack those that run beside them. */
  receive(node: number, operation: Operation, request: string, reply: unknown): void {
    if ((operation !== 'take' && operation !== 'end') || !Array.isArray(reply)) return;
    const [status, time] = reply as unknown[]; // an array of unknown values
    const at = Number(time);
    if (operation === 'take' && (status === 'taken' || status === 'short')) this.#listHeard(node).push(at);
    if (status !== 'taken') return;
    // A claim or the endings of these tests.
    const {
      member,
      micros,
      endings = [],
    } = JSON.parse(request) as { member: string; micros?: number; endings?: { charged?: number }[] };
    if (operation === 'take') this.#shared.add(member);
    this.#done.push({ node, at, micros: (micros ?? 0) + endings.reduce((sum, { charged }) => sum + (charged ?? 0), 0) });
  }

  /** A node has admitted a request: without the server, unless it has received a reply to it. */
  admit(node: number, member: string): void {
    if (this.#shared.has(member)) return;
    const times = this.#deaf.get(node) ?? new Set();
    times.add(this.#listHeard(node).length);
    this.#deaf.set(node, times);
  }

  /** By how much the nodes together may exceed a budget; known when they have ended. */
  get bound(): number {
    const most = [...this.#deaf].map(([node, times]) => Math.max(...[...times].map((heard) => this.#sumUnheard(node, heard))));
    return most.reduce((sum, micros) => sum + micros, 0);
  }

  /** What others have reserved and were charged between two replies to a node. In the same millisecond, it may not have heard of it. */
  #sumUnheard(node: number, heard: number): number {
    const replies = this.#listHeard(node);
    const from = Math.max(0, ...replies.slice(0, heard));
    const till = replies[heard] ?? Number.POSITIVE_INFINITY;
    const unheard = this.#done.filter((one) => one.node !== node && one.at >= from && one.at <= till);
    return unheard.reduce((sum, { micros }) => sum + micros, 0);
  }

  #listHeard(node: number): number[] {
    const known = this.#heard.get(node) ?? [];
    this.#heard.set(node, known);
    return known;
  }
}

/** What clients have done with a budget. */
export interface Outcome {
  readonly admitted: number;
  readonly refused: number;
  readonly paid: number;
  /** The most that was spent or reserved at one moment. */
  readonly most: number;
}

export interface SpendOptions {
  readonly account: AccountLimit;
  readonly nodes: readonly OracleNode[];
  readonly accounts: Accounts;
  readonly hearing: Hearing;
  readonly random: () => number;
  readonly clients: number;
  /** What happens while they spend. */
  readonly fault: () => Promise<unknown>;
}

/** How long clients spend before the fault and after it. */
const BEFORE_MS = 150;
const AFTER_MS = 1500;

/** Lets clients spend a budget until some time after the fault. */
export async function spend(options: SpendOptions): Promise<Outcome> {
  const { clients, fault } = options;
  const sums = { admitted: 0, refused: 0, paid: 0, most: 0, running: 0 };
  const state = { isOver: false };
  const spending = Array.from({ length: clients }, (_, client) => spendAs(client, options, sums, state));
  // Every node has heard of the budget.
  await eventually(() => sums.admitted + sums.refused >= 3 * clients);
  await pace(BEFORE_MS);
  await fault();
  await pace(AFTER_MS);
  state.isOver = true;
  await Promise.all(spending);
  return { ...sums, paid: options.accounts.readPaid(options.account.of) };
}

let count = 0;

async function spendAs(
  client: number,
  { account, nodes, accounts, hearing, random }: SpendOptions,
  sums: { admitted: number; refused: number; most: number; running: number },
  state: { readonly isOver: boolean },
): Promise<void> {
  for (let turn = client; !state.isOver; turn++) {
    const index = turn % nodes.length;
    const node = nodes[index];
    if (!node || node.isDead) {
      await pace(5);
      continue;
    }
    const member = `oracle-${process.pid}-${count++}`;
    const micros = Math.ceil(BUDGET * (0.005 + random() * 0.1));
    const claim = { member, rates: [], money: { micros, accounts: [account] } };
    const { result } = await Promise.resolve(node.backend.take(claim)).catch(REFUSED);
    if (result !== 'taken') {
      sums.refused++;
      await pace(10);
      continue;
    }
    hearing.admit(index, member);
    sums.admitted++;
    sums.running += micros;
    sums.most = Math.max(sums.most, accounts.readPaid(account.of) + sums.running);
    await pace(5 + random() * 40);
    const charged = Math.ceil(micros * random() ** 2);
    sums.running -= micros;
    await accounts.pay(account.of, charged);
    // A node that was killed charges nothing any more: another one closes its exchanges in the ledger.
    if (!node.isDead) await node.backend.end({ member, corrections: [], charged });
  }
}

/** What was spent cannot be read. */
const REFUSED = (): { result: 'unread' } => ({ result: 'unread' });

/** A driver whose calls are run, and whose replies are late or lost while a test wants that. */
export class UnreliableDriver implements Driver {
  readonly #driver: Driver;
  readonly #network: Network;
  readonly #onReply: ((operation: Operation, request: string, reply: unknown) => void) | undefined;

  /** `onReply`: a reply was received, perhaps late. */
  constructor(driver: Driver, network: Network, onReply?: (operation: Operation, request: string, reply: unknown) => void) {
    this.#driver = driver;
    this.#network = network;
    this.#onReply = onReply;
  }

  get name(): string {
    return this.#driver.name;
  }

  get prefix(): string {
    return this.#driver.prefix;
  }

  get isReady(): boolean {
    return this.#driver.isReady;
  }

  connect(): void {
    this.#driver.connect();
  }

  async send(operation: Operation, request: string): Promise<unknown> {
    const reply = await this.#driver.send(operation, request);
    const { delayMs, isLossy } = this.#network;
    if (isLossy) throw new Error('the reply was lost');
    if (delayMs > 0) await pace(delayMs);
    this.#onReply?.(operation, request, reply);
    return reply;
  }

  readRun(): Promise<string> {
    return this.#driver.readRun();
  }

  reconnect(): void {
    this.#driver.reconnect();
  }

  close(): void | Promise<void> {
    return this.#driver.close();
  }
}

/** What is wrong with the way to the server. */
export interface Network {
  /** How much later replies arrive. */
  delayMs: number;
  /** Whether replies are lost. */
  isLossy: boolean;
}

/** What a fault may do. */
export interface FaultContext {
  readonly server: LimitsServer;
  readonly networks: readonly Network[];
  /** Kills the last node. */
  readonly killNode: () => Promise<void>;
}

const during = async (ms: number, begin: () => unknown, end: () => unknown): Promise<void> => {
  await begin();
  try {
    await pace(ms);
  } finally {
    await end();
  }
};

const disturb = (networks: readonly Network[], network: Network, ms: number): Promise<void> =>
  during(
    ms,
    () => networks.map((one) => Object.assign(one, network)),
    () => networks.map((one) => Object.assign(one, { delayMs: 0, isLossy: false })),
  );

/** Everything that happens to a server of limits, and to nodes. */
export const FAULTS: Record<string, { readonly run: (context: FaultContext) => Promise<unknown> }> = {
  none: { run: () => pace(500) },
  'killed and restarted': {
    run: ({ server }) =>
      during(
        800,
        () => server.kill(),
        () => server.restart(),
      ),
  },
  emptied: { run: ({ server }) => server.flush() },
  frozen: {
    run: ({ server }) =>
      during(
        1200,
        () => server.freeze(),
        () => server.thaw(),
      ),
  },
  'slow for all nodes': { run: ({ networks }) => disturb(networks, { delayMs: 700, isLossy: false }, 1200) },
  'slow for one node': {
    run: ({ networks }) => disturb(networks.slice(1), { delayMs: 700, isLossy: false }, 1200),
  },
  'replies lost': { run: ({ networks }) => disturb(networks, { delayMs: 0, isLossy: true }, 1200) },
  'connections ended': { run: ({ server }) => server.cut() },
  'read-only': {
    run: ({ server }) =>
      during(
        1000,
        () => server.setWritable(false),
        () => server.setWritable(true),
      ),
  },
  'a node killed': { run: ({ killNode }) => killNode() },
};
