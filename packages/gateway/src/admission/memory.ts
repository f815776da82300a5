/** The limits of one gateway, in memory. What was spent before it started comes from its ledger. */

import type { Clock } from '../http/clock.ts';
import {
  type Account,
  type AccountLimit,
  type AccountStatus,
  type Claim,
  type Ending,
  type Lease,
  type LimitBackend,
  type Maybe,
  RATE_MS,
  type Taken,
} from './backend.ts';
import { createState, end, type LimitsState, openWindow, raise, renew, take } from './model.ts';
import type { Window } from './windows.ts';

/** What an account has spent since a time, in millionths of a dollar. */
export type ReadSpending = (account: Account, since: number) => Promise<number>;

/** Keeps limits in memory. Everything is synchronous, apart from the first use of an account. */
export class MemoryBackend implements LimitBackend {
  readonly #clock: Clock;
  /** Reservations end with their requests: nobody else holds any. */
  readonly #state = createState(Number.POSITIVE_INFINITY);
  readonly #book: AccountBook;
  /** Windows and limits of running requests. */
  readonly #held = new Map<string, { readonly keys: readonly string[]; readonly limits: readonly number[] }>();

  /** `readSpending`: what the ledger has of an account. */
  constructor(clock: Clock, readSpending: ReadSpending) {
    this.#clock = clock;
    this.#book = new AccountBook(readSpending, this.#state.windows);
  }

  take(claim: Claim): Maybe<Taken> {
    const { money } = claim;
    if (!money || money.accounts.every((account) => this.#book.has(account))) return this.takeNow(claim);
    return this.load(money.accounts).then(() => this.takeNow(claim));
  }

  /** Takes at once. All accounts must have been loaded. */
  takeNow({ member, slots, rates, money }: Claim): Taken {
    const accounts = money?.accounts ?? NO_ACCOUNTS;
    const keys = accounts.map((account) => this.#book.findWindow(account));
    const limits = accounts.map(({ micros }) => micros);
    const request = { member, slots: slots?.name, slotLimit: slots?.limit, rates, micros: money?.micros, keys, limits };
    const result = take(this.#state, request, this.#clock.now());
    if (result.status === 'load') throw new Error('an account was not loaded');
    if (result.status === 'short') {
      const account = accounts[result.index];
      if (!account) throw new Error('an account was not claimed');
      return { result: { account, spent: result.spent, reserved: result.reserved }, rates: result.rates };
    }
    if (money && result.status === 'taken') this.#held.set(member, { keys, limits });
    return { result: result.status, rates: result.rates };
  }

  renew(leases: Iterable<Lease>): void {
    const now = this.#clock.now();
    for (const lease of leases) renew(this.#state, lease, now);
    const { counters } = this.#state;
    for (const [name, { start }] of counters) if (now - start >= RATE_MS) counters.delete(name);
  }

  end(ending: Ending): void {
    // Without a reservation, nothing is charged.
    this.#held.delete(ending.member);
    end(this.#state, { ...ending, keys: NO_KEYS }, this.#clock.now());
  }

  raise(member: string, micros: number): boolean {
    const held = this.#held.get(member);
    return held !== undefined && raise(this.#state, { member, micros, ...held }) === 'taken';
  }

  async load(accounts: readonly AccountLimit[]): Promise<void> {
    await Promise.all(accounts.map((account) => this.#book.load(account)));
  }

  list(): readonly AccountStatus[] {
    return this.#book.list();
  }

  close(): void {
    // Nothing is open.
  }
}

const NO_ACCOUNTS: readonly AccountLimit[] = [];

const NO_KEYS: readonly string[] = [];

/** Accounts and their windows. */
class AccountBook {
  readonly #readSpending: ReadSpending;
  readonly #windows: LimitsState['windows'];
  readonly #accounts = new Map<string, OpenAccount>();
  readonly #loading = new Map<string, Promise<void>>();

  constructor(readSpending: ReadSpending, windows: LimitsState['windows']) {
    this.#readSpending = readSpending;
    this.#windows = windows;
  }

  /** Whether it is known what the account has spent. */
  has(account: Account): boolean {
    return this.#accounts.has(buildName(account));
  }

  /** Reads what an account has spent, once. */
  load(account: AccountLimit): Promise<void> {
    const name = buildName(account);
    if (this.#accounts.has(name)) return Promise.resolve();
    const running = this.#loading.get(name);
    if (running) return running;
    const load = this.#open(name, account).finally(() => this.#loading.delete(name));
    this.#loading.set(name, load);
    return load;
  }

  async #open(name: string, account: AccountLimit): Promise<void> {
    const spent = await this.#readSpending(account, account.window.start);
    this.#accounts.set(name, new OpenAccount(name, account, this.#windows, spent));
  }

  /** The name of the window that a request counts in. */
  findWindow(limit: AccountLimit): string {
    const account = this.#accounts.get(buildName(limit));
    if (!account) throw new Error('an account was not loaded');
    return account.find(limit);
  }

  list(): readonly AccountStatus[] {
    return [...this.#accounts.values()].map((account) => account.status);
  }
}

const buildName = ({ by, of, period }: Account): string => `${by} ${period} ${of}`;

/** A window of an account, and its name. */
interface NamedWindow {
  readonly key: string;
  readonly window: Window;
}

/** An account with its last windows: a request may still be charged to the window before, and clocks are set back. */
class OpenAccount {
  readonly #name: string;
  readonly #windows: LimitsState['windows'];
  /** Oldest first, without the newest. */
  #older: NamedWindow[] = [];
  #newest: NamedWindow;
  /** As of the last request. */
  #limit: AccountLimit;

  constructor(name: string, limit: AccountLimit, windows: LimitsState['windows'], spent: number) {
    this.#name = name;
    this.#windows = windows;
    this.#limit = limit;
    this.#newest = this.#open(limit.window, spent);
  }

  #open(window: Window, spent: number): NamedWindow {
    const key = `${this.#name} ${window.start}`;
    this.#windows.set(key, openWindow(true, spent));
    return { key, window };
  }

  get status(): AccountStatus {
    const { key, window } = this.#newest;
    const { spent = 0, reserved = 0 } = this.#windows.get(key) ?? {};
    return { ...this.#limit, window, spent, reserved };
  }

  /**
   * The name of a window. A new one is empty. What a window before the first known one has spent is not known, so that
   * one is charged instead: a clock that is set back does not refill a budget.
   */
  find(limit: AccountLimit): string {
    this.#limit = limit;
    const { start } = limit.window;
    if (this.#newest.window.start === start) return this.#newest.key;
    if (start > this.#newest.window.start) return this.#advance(limit.window);
    return (this.#older.findLast(({ window }) => window.start <= start) ?? this.#older[0] ?? this.#newest).key;
  }

  /** Keeps the window before, and older ones with running requests. */
  #advance(window: Window): string {
    const isIdle = ({ key }: NamedWindow): boolean => (this.#windows.get(key)?.reserved ?? 0) <= 0;
    for (const { key } of this.#older.filter(isIdle)) this.#windows.delete(key);
    this.#older = [...this.#older.filter(({ key }) => this.#windows.has(key)), this.#newest];
    this.#newest = this.#open(window, 0);
    return this.#newest.key;
  }
}
