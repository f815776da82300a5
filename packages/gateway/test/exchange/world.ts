/** A gateway in this process, with real sockets and a real store, whose time passes when a schedule says so. */
import { eventually } from '../../../../test/wait.ts';
import { MemoryBackend } from '../../src/admission/memory.ts';
import { Captures } from '../../src/capture/captures.ts';
import { loadConfig } from '../../src/config/load.ts';
import { resolveConfig } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import type { ExchangeObserver, ExchangeObservers, ObservedRequest } from '../../src/exchange/observer.ts';
import { type Directory, REVOKED, type Services } from '../../src/exchange/types.ts';
import type { Caller } from '../../src/keys/caller.ts';
import { KeyBook } from '../../src/keys/key-book.ts';
import { createDirectory } from '../../src/server/directory.ts';
import { createKeeping, createReadSpending } from '../../src/server/records.ts';
import { type ExchangeDetail, openStore, type Store } from '../../src/store/index.ts';
import { DemoTransport } from '../../src/upstream/demo.ts';
import { countOpenRows } from '../gateway/leaks.ts';
import { type Started, type StartOptions, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { buildConfig, TestClients } from './clients.ts';
import { FarLimits } from './far-limits.ts';
import { findExcess, findLedgerProblems, type Held, listHeld, sumCosts } from './model.ts';
import { OutageLedger } from './outage.ts';
import type { Schedule, Settings, Step } from './schedule.ts';
import { Upstreams } from './upstreams.ts';

/** Upstreams and a store, for one schedule after the other. Each has a gateway and a key of its own. */
export class World {
  readonly #clock: TestClock;
  readonly #upstreams: Upstreams;
  readonly #store: Store;
  readonly #book: KeyBook;
  #services: Services | undefined;
  #played = 0;

  private constructor(clock: TestClock, upstreams: Upstreams, store: Store, book: KeyBook) {
    this.#clock = clock;
    this.#upstreams = upstreams;
    this.#store = store;
    this.#book = book;
    book.listen(({ record, endsRequests }) => {
      if (endsRequests) this.#services?.streams.stopKey(record.id, REVOKED);
    });
  }

  static async open(): Promise<World> {
    const store = await openStore({ folder: null, batchMs: 0 });
    // The store writes in a thread: time waits for it.
    const clock = new TestClock(async () => {
      if (store.status().queued_rows === 0) return false;
      await store.flush();
      return true;
    });
    const book = await KeyBook.open({ store, pepperFile: null, requiresPepper: true });
    return new World(clock, await Upstreams.start(clock), store, book);
  }

  async close(): Promise<void> {
    await this.#upstreams.stop();
    await this.#book.close();
    await this.#store.close();
  }

  /** Plays a schedule, and returns what is wrong afterwards. */
  async play(schedule: Schedule): Promise<string[]> {
    this.#upstreams.reset();
    const { settings } = schedule;
    const { record, text } = await this.#book.create(`k${++this.#played}`, buildKeySettings(settings), 'cli');
    const ledger = new OutageLedger(this.#store);
    const captures = await CountedCaptures.open(this.#clock);
    const clients = new TestClients(schedule, this.#upstreams);
    const limits = this.#createLimits(settings);
    let directory: Directory | undefined;
    const options: StartOptions = {
      config: buildConfig(settings, this.#upstreams),
      clock: this.#clock,
      book: this.#book,
      store: this.#store,
      hasBreakers: settings.hasBreakers,
      limitBackend: limits,
      services: (made) => {
        const first = made.directory();
        const { log, metrics, clock } = made;
        // Its timer never ends, and each of its turns would take time.
        made.memory.close();
        const keeping = createKeeping(ledger, { durability: 'strict', clock, log, metrics });
        return { ...made, keeping, observers: captures, random: () => 0, directory: () => directory ?? first };
      },
    };
    const gateway = await startGateway(options);
    const { services } = gateway;
    this.#services = services;
    let isReversed = false;
    const reload = (): void => {
      isReversed = !isReversed;
      directory = this.#load(settings, isReversed);
    };
    const callers = [...this.#book.listCallers()].filter(({ id }) => id === record.id);
    const key = { id: record.id, text };
    const parts = { options, clients, gateway, ledger, limits, captures, key, callers, reload };
    const stage: Stage = { ...parts, closing: undefined, problems: [] };
    await services.gate.list([], callers);
    for (const step of schedule.steps) {
      await this.#clock.advance(step.wait);
      await this.#act(step, stage);
      await this.#clock.advance(0);
      stage.problems.push(...findExcess({ services }, settings));
    }
    await this.#finish(stage);
    return stage.problems;
  }

  async #act(step: Step, stage: Stage): Promise<void> {
    const { clients, gateway, ledger, limits, key, reload, problems } = stage;
    switch (step.do) {
      case 'reload':
        return reload();
      case 'revoke':
        clients.disturb();
        await this.#book.revoke(key.id, true, 'cli');
        return;
      case 'drain':
        clients.disturb();
        stage.closing ??= gateway.close(step.ms).catch((error: unknown) => void problems.push(String(error)));
        return;
      case 'store':
        ledger.state = step.state;
        return;
      case 'limits':
        if (limits) limits.state = step.state;
        return;
      // Only a process can be killed.
      case 'kill':
        return;
      default:
        return clients.visit(step, gateway.url, key.text);
    }
  }

  /** Undefined for limits in the memory of the gateway. */
  #createLimits({ limitsMs }: Settings): FarLimits | undefined {
    if (limitsMs === undefined) return undefined;
    const backend = new MemoryBackend(this.#clock, createReadSpending(this.#store, this.#clock));
    return new FarLimits(backend, this.#clock, limitsMs);
  }

  /** The configuration after a reload. */
  #load(settings: Settings, isReversed: boolean): Directory {
    const env = {};
    const source = loadConfig('sluice.json', JSON.stringify(buildConfig(settings, this.#upstreams, { isReversed })), env);
    return createDirectory(resolveConfig(source, { env, secrets: new SecretRegistry() }), new DemoTransport(0), this.#book);
  }

  /** Lets everything end that can end, and compares. */
  async #finish(stage: Stage): Promise<void> {
    const { clients, gateway, ledger, limits, captures, callers, key, problems } = stage;
    ledger.state = 'well';
    if (limits) limits.state = 'well';
    clients.resume();
    const isQuiet = (): boolean => clients.isOver && listHeld(this.#count(stage)).length === 0;
    for (let passed = 0, ms = 1000; passed < END_MS && !isQuiet(); passed += ms) {
      if (passed > 60_000) ms = 10_000;
      await this.#clock.advance(ms);
    }
    problems.push(...listHeld({ ...this.#count(stage), openRows: await countOpenRows(gateway.services) }));
    // The detector of leaks would wait for what is known to stay.
    if (problems.length > 0) stage.options.leavesOpen = 'it is known what is held';
    const budgets = await gateway.services.gate.list([], callers);
    clients.leave();
    stage.closing ??= gateway.close().catch((error: unknown) => void problems.push(String(error)));
    await this.#clock.until(stage.closing);
    await eventually(() => this.#upstreams.openSockets === 0, SOCKETS_MS).catch(() =>
      problems.push(`${this.#upstreams.openSockets} connections to upstreams are still open`),
    );
    const details = await this.#readRows(key.id);
    const { accounts } = this.#upstreams;
    problems.push(
      ...captures.problems,
      ...listFailures(gateway),
      ...clients.findProblems(),
      ...findLedgerProblems(details, { settings: clients.settings, seen: clients.seen, accounts, mayCrash: false }),
      ...(await this.#compareMoney(details, budgets, key.id)),
    );
  }

  /** What is held now, without the rows. */
  #count({ gateway, captures }: Stage): Held {
    return { services: gateway.services, sockets: this.#upstreams.running.length, captures: captures.open, openRows: 0 };
  }

  /** The rows of the last schedule. */
  async #readRows(key: string): Promise<ExchangeDetail[]> {
    await this.#store.flush();
    const { exchanges } = await this.#store.list({ limit: 50 });
    const own = exchanges.filter(({ key_id: id }) => id === key);
    const details = await Promise.all(own.map(({ id }) => this.#store.get(id)));
    return details.flatMap((detail) => detail ?? []);
  }

  /** Budgets, roll-ups and rows have the same sums. */
  async #compareMoney(
    details: readonly ExchangeDetail[],
    budgets: Awaited<ReturnType<Services['gate']['list']>>,
    key: string,
  ): Promise<string[]> {
    const sum = sumCosts(details);
    const spent = await this.#store.spending({ by: 'key', of: key, since: 0 });
    return [
      ...(spent === sum ? [] : [`the roll-ups have ${spent} micros, and the rows ${sum}`]),
      ...budgets
        .filter(({ id }) => id === key)
        .flatMap((budget) => [
          ...(budget.reserved === 0 ? [] : [`${budget.reserved} micros of the budget are still reserved`]),
          ...(budget.spent === sum ? [] : [`the budget has spent ${budget.spent} micros, and the rows ${sum}`]),
        ]),
    ];
  }
}

/** One schedule under way. */
interface Stage {
  readonly options: StartOptions;
  readonly clients: TestClients;
  readonly gateway: Started;
  readonly ledger: OutageLedger;
  /** Where limits are kept; undefined for the memory of the gateway. */
  readonly limits: FarLimits | undefined;
  readonly captures: CountedCaptures;
  readonly key: { readonly id: string; readonly text: string };
  /** The holder of the key. */
  readonly callers: readonly Caller[];
  readonly reload: () => void;
  /** The gateway stops. */
  closing: Promise<void> | undefined;
  readonly problems: string[];
}

const buildKeySettings = ({ budget, concurrency }: Settings): object => ({
  ...(budget !== undefined && { budget }),
  ...(concurrency !== undefined && { concurrency }),
});

/** Longer than the last attempt of the last request in a pipeline can take. */
const END_MS = 900_000;

const SOCKETS_MS = 5000;

/** Errors of the gateway itself. */
const listFailures = (gateway: Started): string[] =>
  gateway
    .log()
    .flatMap(({ msg, error }) =>
      msg === 'failed' ? [`the gateway failed: ${String(error).split('\n').slice(0, 12).join(' ')}`] : [],
    );

/** Captures, and how many of them have not ended. */
class CountedCaptures implements ExchangeObservers {
  readonly #captures: Captures;
  open = 0;
  readonly problems: string[] = [];

  private constructor(captures: Captures) {
    this.#captures = captures;
  }

  static async open(clock: TestClock): Promise<CountedCaptures> {
    const { options } = loadConfig('sluice.json', JSON.stringify({ capture: { ring: 'on' } }), {});
    const { capture, limits } = options;
    const settings = { options: capture, limits, folder: null, secrets: new SecretRegistry(), clock };
    const problems: string[] = [];
    return new CountedCaptures(await Captures.open({ ...settings, onFailure: (reason) => void problems.push(reason) }));
  }

  begin(request: ObservedRequest): ExchangeObserver | undefined {
    // As without client keys: only then, exchanges are captured in memory.
    const observer = this.#captures.begin({ ...request, isOpen: true });
    if (!observer) {
      this.problems.push('an exchange was not captured');
      return undefined;
    }
    this.open++;
    let isEnded = false;
    const ended = observer.ended.bind(observer);
    observer.ended = (end) => {
      if (isEnded) this.problems.push('a capture has ended twice');
      else this.open--;
      isEnded = true;
      ended(end);
    };
    return observer;
  }
}
