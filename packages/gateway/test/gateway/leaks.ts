/** What requests hold must be given back when they end: checked whenever a test closes a gateway. */
import { eventually } from '../../../../test/wait.ts';
import type { Services } from '../../src/exchange/types.ts';
import type { Clock, Timer } from '../../src/http/clock.ts';
import type { Store } from '../../src/store/index.ts';

/** A clock that knows which of its timers run and keep the process alive. Those of a gateway itself are `unref`ed. */
export class WatchedClock implements Clock {
  readonly #clock: Clock;
  readonly #running = new Map<WatchedTimer, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly now = (): number => this.#clock.now();

  readonly setTimer = (run: () => void, ms: number): Timer => {
    const once = (): void => {
      this.#running.delete(timer);
      run();
    };
    const timer = new WatchedTimer(this.#clock.setTimer(once, ms), this.#running);
    return timer;
  };

  readonly setRepeating = (run: () => void, ms: number): Timer =>
    new WatchedTimer(this.#clock.setRepeating(run, ms), this.#running);

  /** Where the running timers were started. */
  get running(): string[] {
    return [...this.#running.values()];
  }
}

class WatchedTimer implements Timer {
  readonly #timer: Timer;
  readonly #running: Map<WatchedTimer, string>;
  readonly #place: string;
  #isUnreferenced = false;

  constructor(timer: Timer, running: Map<WatchedTimer, string>) {
    this.#timer = timer;
    this.#running = running;
    this.#place = findPlace();
    running.set(this, this.#place);
  }

  close(): void {
    this.#timer.close();
    this.#running.delete(this);
  }

  refresh(): void {
    this.#timer.refresh();
    if (!this.#isUnreferenced) this.#running.set(this, this.#place);
  }

  unref(): this {
    this.#timer.unref();
    this.#isUnreferenced = true;
    this.#running.delete(this);
    return this;
  }
}

/** The line of the gateway's code that started a timer. */
const findPlace = (): string => /\/src\/[^)]+/.exec(new Error('place').stack ?? '')?.[0] ?? 'a test';

/** How many exchanges of a store are open; 0 when its rows cannot be read. */
export async function countOpenRows(services: Services): Promise<number> {
  const { flush, count }: Partial<Store> = services.keeping?.ledger ?? {};
  if (!flush || !count) return 0;
  const store = services.keeping?.ledger as Store; // it has what a store has
  try {
    await store.flush();
    return (await store.count([{ kind: 'status', anyOf: [{ outcome: 'live' }], negated: false }])).matching;
  } catch {
    return 0;
  }
}

/** Throws what is still held by a gateway that has no connections any more. `rowsBefore`: open rows that it began with. */
export async function expectNothingHeld(services: Services, clock: WatchedClock, rowsBefore: number): Promise<void> {
  const held = async (): Promise<string[]> => [
    ...nameCount('active', services.streams.count),
    ...nameCount('at the gate', services.gate.held.requests),
    ...nameCount('reserved micros', services.gate.held.micros),
    ...nameCount('pending bytes', services.pending.total),
    ...nameCount('running idempotency keys', services.idempotency?.running ?? 0),
    ...nameCount('open rows', (await countOpenRows(services)) - rowsBefore),
    ...clock.running.map((place) => `timer of ${place}`),
  ];
  let left: string[] = [];
  const isEmpty = async (): Promise<boolean> => {
    left = await held();
    return left.length === 0;
  };
  await eventually(isEmpty, LEAK_MS).catch(() => {
    throw new Error(`the gateway has closed, and requests still hold: ${left.join(', ')}`);
  });
}

const nameCount = (name: string, count: number): string[] => (count > 0 ? [`${count} ${name}`] : []);

/** What ends after the last connection has until then. */
const LEAK_MS = 10_000;
