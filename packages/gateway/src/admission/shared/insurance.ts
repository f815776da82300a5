/**
 * The limits of one node while the shared ones cannot be used: its part of every limit, of which what it already holds is
 * deducted. All nodes together stay below each limit if no more nodes run than were expected.
 */

import type { Clock } from '../../http/clock.ts';
import type { AccountLimit, Claim, Correction, RateState, Shortage, Taken } from '../backend.ts';
import { MemoryBackend, type ReadSpending } from '../memory.ts';

/** What a running request holds. */
export interface Held {
  readonly slots: string | undefined;
  micros: number;
  readonly accounts: readonly AccountLimit[];
  /** Names of the accounts' windows. */
  readonly keys: readonly string[];
}

/** Names one window of an account. */
export const nameWindow = ({ by, period, of, window }: AccountLimit): string => JSON.stringify([by, period, of, window.start]);

/** The part of limits that one node may use. */
export class Insurance {
  readonly #options: InsuranceOptions;
  readonly #rates: MemoryBackend;
  /** Windows of accounts, since the shared limits cannot be used. */
  readonly #windows = new Map<string, InsuredWindow>();

  constructor(options: InsuranceOptions) {
    this.#options = options;
    this.#rates = new MemoryBackend(options.clock, options.readSpending);
  }

  /** The shared limits can be used again. */
  reset(): void {
    this.#windows.clear();
  }

  /** Reads from the ledger what accounts have spent, before `take` and `raise`. */
  async prepare(accounts: readonly AccountLimit[]): Promise<void> {
    await Promise.all(accounts.map((account) => this.#load(account)));
  }

  /** Takes what a request needs from the part of this node. Synchronous: the caller adds it to what is held at once. */
  take({ member, slots, rates: claims, money }: Claim): Taken {
    if (slots && this.#countSlots(slots.name) >= this.#share(slots.limit)) return { result: 'no slot', rates: [] };
    const rates = claims.map((rate) => ({ ...rate, limit: this.#share(rate.limit), amount: this.#fit(rate) }));
    const taken = this.#rates.takeNow({ member, rates });
    const states = taken.rates.map((state, index) => scaleUp(state, claims[index]?.limit ?? 0, rates[index]?.limit ?? 0));
    const shortage = taken.result === 'taken' && money ? this.findShortage(money.micros, money.accounts) : undefined;
    if (!shortage) return { ...taken, rates: states };
    this.correct(rates.map(({ counter, amount }, index) => ({ counter, period: states[index]?.period ?? 0, by: -amount })));
    return { result: shortage, rates: states };
  }

  /** Corrects rates. */
  correct(corrections: readonly Correction[]): void {
    this.#rates.end({ member: '', corrections });
  }

  /** A request was charged: the ledger did not have it when its windows were read. */
  charge({ keys }: Held, micros: number): void {
    for (const key of keys) {
      const window = this.#windows.get(key);
      if (window) window.charged += micros;
    }
  }

  /** At least 1: a limit of fewer requests than nodes would otherwise refuse everything. */
  #share(limit: number): number {
    return Math.max(1, Math.floor(limit / this.#options.countNodes()));
  }

  /** A request that needs more tokens than the part of this node is admitted when nothing else was used. */
  #fit({ amount, limit }: { amount: number; limit: number }): number {
    return Math.min(amount, this.#share(limit));
  }

  #countSlots(name: string): number {
    let count = 0;
    for (const { slots } of this.#options.held.values()) if (slots === name) count++;
    return count;
  }

  async #load(account: AccountLimit): Promise<void> {
    const key = nameWindow(account);
    if (this.#windows.has(key)) return;
    const spent = await this.#options.readSpending(account, account.window.start);
    if (!this.#windows.has(key)) this.#windows.set(key, { spent, charged: 0 });
  }

  /** The first account whose part is too small for this much more. */
  findShortage(micros: number, accounts: readonly AccountLimit[]): Shortage | undefined {
    if (micros <= 0) return undefined;
    for (const account of accounts) {
      const key = nameWindow(account);
      const { spent, charged } = this.#windows.get(key) ?? { spent: 0, charged: 0 };
      const share = Math.floor((account.micros - spent) / this.#options.countNodes());
      const left = share - charged - this.#sumHeld(key);
      // What is left for other nodes counts as reserved.
      if (micros > left)
        return { account, spent: spent + charged, reserved: account.micros - spent - charged - Math.max(0, left) };
    }
    return undefined;
  }

  #sumHeld(key: string): number {
    let sum = 0;
    for (const { keys, micros } of this.#options.held.values()) if (keys.includes(key)) sum += micros;
    return sum;
  }
}

interface InsuredWindow {
  /** As the ledger had it. */
  readonly spent: number;
  /** By this node since then. */
  charged: number;
}

interface InsuranceOptions {
  readonly clock: Clock;
  readonly readSpending: ReadSpending;
  /** How many nodes share the limits. */
  readonly countNodes: () => number;
  /** Running requests of this node. */
  readonly held: ReadonlyMap<string, Held>;
}

/** Shown as part of the whole limit, which headers name: the parts of other nodes count as used. */
const scaleUp = (state: RateState, limit: number, share: number): RateState => ({ ...state, used: state.used + limit - share });
