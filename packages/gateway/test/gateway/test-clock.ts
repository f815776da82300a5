import type { Clock, Timer } from '../../src/http/clock.ts';

/** A request passes about ten sockets until its response is read; each needs a turn of the event loop. */
const TURNS = 60;
/** The kernel delivers on loopback at once, but under load it may take a moment. */
const LEAST_MS = 2;

/** Lets everything that was written to sockets of this process be read, and what that causes be written and read. */
async function settle(isOver: () => boolean = () => false): Promise<void> {
  const until = performance.now() + LEAST_MS;
  for (let turn = 0; (turn < TURNS || performance.now() < until) && !isOver(); turn++)
    await new Promise((resolve) => setImmediate(resolve));
}

/** A clock for gateways and scripted upstreams: it stands still until a test advances it. Sockets stay real. */
export class TestClock implements Clock {
  readonly #timers = new Set<TestTimer>();
  readonly #settleOthers: () => Promise<boolean>;
  #now = 1;

  /** `settleOthers`: waits for threads before time passes; resolves with false when there was nothing to wait for. */
  constructor(settleOthers: () => Promise<boolean> = async () => false) {
    this.#settleOthers = settleOthers;
  }

  readonly now = (): number => this.#now;

  /** How many timers run: one more shows that what starts it has been read from a socket. */
  get running(): number {
    return this.#timers.size;
  }

  readonly setTimer = (run: () => void, ms: number): Timer => this.#start(run, ms, false);

  readonly setRepeating = (run: () => void, ms: number): Timer => this.#start(run, ms, true);

  /** Lets this much time pass. Every timer that becomes due fires at its own time, and sockets settle before and after each. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.#settle();
    for (let next = this.#next(until); next; next = this.#next(until)) {
      this.#fire(next);
      await this.#settle();
    }
    this.#now = until;
  }

  /** Lets this much time pass at once: what is due then fires once, in its order, and nothing that repeats catches up. */
  async jump(ms: number): Promise<void> {
    await this.#settle();
    this.#now += ms;
    const due = [...this.#timers].filter((timer) => timer.dueAt <= this.#now).toSorted((one, other) => one.dueAt - other.dueAt);
    for (const timer of due) if (this.#timers.has(timer)) timer.fire();
    await this.#settle();
  }

  /**
   * Lets time pass in steps until the condition holds: the timer that it waits for may start when a socket is read, which takes longer on
   * a busy machine. Fails when it does not hold after `most` milliseconds.
   */
  async advanceUntil(isDone: () => boolean, step: number, most: number): Promise<void> {
    for (let passed = 0; !isDone(); passed += step) {
      if (passed >= most) throw new Error(`nothing within ${most} ms of the test clock`);
      await this.advance(step);
    }
  }

  /** The result of a promise that must not settle before this much time has passed, and must settle then. */
  async after<T>(ms: number, pending: Promise<T>): Promise<T> {
    const isSettled = watch(pending);
    await this.advance(ms - 1);
    if (isSettled()) throw new Error(`settled before ${ms} ms had passed: ${JSON.stringify(await pending)}`);
    await this.advance(1);
    return pending;
  }

  /**
   * Lets time pass from timer to timer until the promise settles. Not for what waits for threads (name lookups, decompression): time would
   * run ahead of them.
   */
  async until<T>(pending: Promise<T>): Promise<T> {
    const isSettled = watch(pending);
    for (await this.#settle(isSettled); !isSettled(); await this.#settle(isSettled)) {
      const next = this.#next();
      if (next) this.#fire(next);
    }
    return pending;
  }

  async #settle(isOver?: () => boolean): Promise<void> {
    do await settle(isOver);
    while (await this.#settleOthers());
  }

  #next(until = Number.POSITIVE_INFINITY): TestTimer | undefined {
    let next: TestTimer | undefined;
    for (const timer of this.#timers) if (timer.dueAt <= until && (!next || timer.dueAt < next.dueAt)) next = timer;
    return next;
  }

  #fire(timer: TestTimer): void {
    this.#now = Math.max(this.#now, timer.dueAt);
    timer.fire();
  }

  #start(run: () => void, ms: number, isRepeating: boolean): Timer {
    return new TestTimer({ run, ms: Math.max(1, ms), isRepeating, timers: this.#timers, now: this.now });
  }
}

/** Tells whether a promise has settled. */
function watch(pending: Promise<unknown>): () => boolean {
  let isSettled = false;
  const mark = (): void => {
    isSettled = true;
  };
  pending.then(mark, mark);
  return () => isSettled;
}

interface TestTimerOptions {
  run: () => void;
  ms: number;
  isRepeating: boolean;
  timers: Set<TestTimer>;
  now: () => number;
}

class TestTimer implements Timer {
  readonly #options: TestTimerOptions;
  #dueAt = 0;

  constructor(options: TestTimerOptions) {
    this.#options = options;
    this.refresh();
  }

  get dueAt(): number {
    return this.#dueAt;
  }

  fire(): void {
    const { run, isRepeating } = this.#options;
    if (isRepeating) this.refresh();
    else this.close();
    run();
  }

  close(): void {
    this.#options.timers.delete(this);
  }

  refresh(): void {
    const { timers, now, ms } = this.#options;
    this.#dueAt = now() + ms;
    // Timers of the same time fire in the order in which they were started.
    timers.delete(this);
    timers.add(this);
  }

  unref(): this {
    return this;
  }
}
