/** The limits of one gateway, in memory. What was spent before it started comes from its ledger. */

import type { Clock } from '../http/clock.ts';
import {
  type Account,
  type AccountLimit,
  type AccountStatus,
  type Claim,
  type Correction,
  type Ending,
  LEASE_MS,
  type Lease,
  type LimitBackend,
  type Maybe,
  RATE_MS,
  type RateClaim,
  type RateState,
  type Shortage,
  type Taken,
} from './backend.ts';
import type { Window } from './windows.ts';

/** What an account has spent since a time, in millionths of a dollar. */
export type ReadSpending = (account: Account, since: number) => Promise<number>;

/** Keeps limits in memory. Everything is synchronous, apart from the first use of an account. */
export class MemoryBackend implements LimitBackend {
  readonly #clock: Clock;
  readonly #slots = new Map<string, Map<string, number>>();
  readonly #counters = new Map<string, Counter>();
  readonly #book: AccountBook;

  /** `readSpending`: what the ledger has of an account. */
  constructor(clock: Clock, readSpending: ReadSpending) {
    this.#clock = clock;
    this.#book = new AccountBook(readSpending);
  }

  take(claim: Claim): Maybe<Taken> {
    const { money } = claim;
    if (!money || money.accounts.every((account) => this.#book.has(account))) return this.takeNow(claim);
    return this.load(money.accounts).then(() => this.takeNow(claim));
  }

  /** Takes at once. All accounts must have been loaded. */
  takeNow({ member, slots, rates: claims, money }: Claim): Taken {
    const rates: RateState[] = [];
    if (slots && !this.#hasSlot(slots.name, slots.limit)) return { result: 'no slot', rates };
    for (const claim of claims) {
      const state = this.#check(claim);
      rates.push(state);
      if (!state.isAllowed) return { result: 'over rate', rates };
    }
    const shortage = money && this.#book.reserve(member, money.micros, money.accounts);
    if (shortage) return { result: shortage, rates };
    for (const { counter, amount } of claims) this.#findCounter(counter).used += amount;
    if (slots) this.#hold(slots.name, member);
    return { result: 'taken', rates };
  }

  #hasSlot(slots: string, limit: number): boolean {
    const members = this.#slots.get(slots);
    if (!members || members.size < limit) return limit > 0;
    const now = this.#clock.now();
    for (const [name, expiry] of members) if (expiry <= now) members.delete(name);
    return members.size < limit;
  }

  #hold(slots: string, member: string): void {
    const members = this.#slots.get(slots) ?? new Map<string, number>();
    members.set(member, this.#clock.now() + LEASE_MS);
    this.#slots.set(slots, members);
  }

  renew(leases: Iterable<Lease>): void {
    const now = this.#clock.now();
    for (const { slots, member } of leases) if (slots !== undefined) this.#hold(slots, member);
    for (const [name, { startedAt }] of this.#counters) if (now - startedAt >= RATE_MS) this.#counters.delete(name);
  }

  /** The state of a counter with the amount, if that is allowed. */
  #check({ counter: name, amount, limit }: RateClaim): RateState {
    const { used, startedAt } = this.#findCounter(name);
    const isAllowed = used + amount <= limit;
    const resetsInMs = startedAt + RATE_MS - this.#clock.now();
    return { isAllowed, used: isAllowed ? used + amount : used, period: startedAt, resetsInMs };
  }

  end({ member, slots, corrections, charged }: Ending): void {
    if (slots !== undefined) this.#release(slots, member);
    for (const correction of corrections) this.#correct(correction);
    if (charged !== undefined) this.#book.settle(member, charged);
  }

  #release(slots: string, member: string): void {
    const members = this.#slots.get(slots);
    members?.delete(member);
    if (members?.size === 0) this.#slots.delete(slots);
  }

  #correct({ counter: name, period, by }: Correction): void {
    const counter = this.#findCounter(name);
    // What was saved in a period that is over cannot be used any more.
    if (counter.startedAt === period || by > 0) counter.used = Math.max(0, counter.used + by);
  }

  /** A period begins with the first request after the last one. */
  #findCounter(name: string): Counter {
    const now = this.#clock.now();
    const known = this.#counters.get(name);
    if (known && now - known.startedAt < RATE_MS) return known;
    const counter = { startedAt: now, used: 0 };
    this.#counters.set(name, counter);
    return counter;
  }

  raise(member: string, micros: number): boolean {
    return this.#book.raise(member, micros);
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

interface Counter {
  /** By the monotonic clock. */
  readonly startedAt: number;
  used: number;
}

/** Accounts and reservations. */
class AccountBook {
  readonly #readSpending: ReadSpending;
  readonly #accounts = new Map<string, OpenAccount>();
  readonly #loading = new Map<string, Promise<void>>();
  readonly #reservations = new Map<string, Reservation>();

  constructor(readSpending: ReadSpending) {
    this.#readSpending = readSpending;
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
    this.#accounts.set(name, new OpenAccount(account, spent));
  }

  reserve(name: string, micros: number, limits: readonly AccountLimit[]): Shortage | undefined {
    const parts = limits.map((limit) => this.#findPart(limit));
    const short = parts.filter(({ balance, limit }) => exceeds(balance, micros, limit));
    // A budget that is spent says more than one that running requests hold.
    const worst = short.find(({ balance, limit }) => balance.spent + micros > limit.micros) ?? short[0];
    if (worst) return { account: worst.limit, spent: worst.balance.spent, reserved: worst.balance.reserved };
    for (const { balance } of parts) balance.reserved += micros;
    this.#reservations.set(name, { micros, parts });
    return undefined;
  }

  #findPart(limit: AccountLimit): Part {
    const account = this.#accounts.get(buildName(limit));
    if (!account) throw new Error('an account was not loaded');
    return { balance: account.find(limit), limit };
  }

  raise(name: string, micros: number): boolean {
    const reservation = this.#reservations.get(name);
    if (!reservation) return false;
    const more = micros - reservation.micros;
    if (more <= 0) return true;
    if (reservation.parts.some(({ balance, limit }) => exceeds(balance, more, limit))) return false;
    for (const { balance } of reservation.parts) balance.reserved += more;
    reservation.micros = micros;
    return true;
  }

  settle(name: string, charged: number): void {
    const reservation = this.#reservations.get(name);
    if (!reservation) return;
    this.#reservations.delete(name);
    for (const { balance } of reservation.parts) {
      balance.reserved -= reservation.micros;
      balance.spent += charged;
    }
  }

  list(): readonly AccountStatus[] {
    return [...this.#accounts.values()].map((account) => account.status);
  }
}

/** Settled costs and open reservations never exceed the limit at admission. What costs nothing is always admitted. */
const exceeds = ({ spent, reserved }: Balance, micros: number, limit: AccountLimit): boolean =>
  micros > 0 && spent + reserved + micros > limit.micros;

const buildName = ({ by, of, period }: Account): string => `${by} ${period} ${of}`;

/** The money of one window. */
interface Balance {
  readonly window: Window;
  spent: number;
  reserved: number;
}

interface Part {
  readonly balance: Balance;
  readonly limit: AccountLimit;
}

interface Reservation {
  micros: number;
  readonly parts: readonly Part[];
}

/** An account with its last windows: a request may still be charged to the window before, and clocks are set back. */
class OpenAccount {
  /** Oldest first, without the newest. */
  #older: Balance[] = [];
  #newest: Balance;
  /** As of the last request. */
  #limit: AccountLimit;

  constructor(limit: AccountLimit, spent: number) {
    this.#limit = limit;
    this.#newest = { window: limit.window, spent, reserved: 0 };
  }

  get status(): AccountStatus {
    const { window, spent, reserved } = this.#newest;
    return { ...this.#limit, window, spent, reserved };
  }

  /**
   * The balance of a window. A new one is empty. What a window before the first known one has spent is not known, so that
   * one is charged instead: a clock that is set back does not refill a budget.
   */
  find(limit: AccountLimit): Balance {
    this.#limit = limit;
    const { start } = limit.window;
    if (this.#newest.window.start === start) return this.#newest;
    if (start > this.#newest.window.start) return this.#advance(limit.window);
    return this.#older.findLast(({ window }) => window.start <= start) ?? this.#older[0] ?? this.#newest;
  }

  /** Keeps the window before, and older ones with running requests. */
  #advance(window: Window): Balance {
    this.#older = [...this.#older.filter(({ reserved }) => reserved > 0), this.#newest];
    this.#newest = { window, spent: 0, reserved: 0 };
    return this.#newest;
  }
}
