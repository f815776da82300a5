/**
 * The limits of one node while the shared ones cannot be used: its part of every limit, of which what it already holds is
 * deducted, and what others are known to hold.
 */

import type { Clock } from '../../http/clock.ts';
import type { AccountLimit, Claim, Correction, RateClaim, RateState, Shortage, Taken } from '../backend.ts';
import { MemoryBackend, type ReadSpending } from '../memory.ts';
import type { Held, KnownWindows } from './known-windows.ts';

/** The part of limits that one node may use. */
export class Insurance {
  readonly #options: InsuranceOptions;
  readonly #rates: MemoryBackend;
  /** Counters as the server last told them, by name. */
  readonly #counters = new Map<string, KnownCounter>();

  constructor(options: InsuranceOptions) {
    this.#options = options;
    this.#rates = new MemoryBackend(options.clock, options.readSpending);
  }

  /** The server has told the states of these counters. */
  see(claims: readonly RateClaim[], states: readonly RateState[]): void {
    const now = this.#options.clock.now();
    if (this.#counters.size >= MAX_COUNTERS)
      for (const [name, { endsAt }] of this.#counters) if (endsAt <= now) this.#counters.delete(name);
    for (const [index, { counter }] of claims.entries()) {
      const state = states[index];
      if (state && (this.#counters.has(counter) || this.#counters.size < MAX_COUNTERS))
        this.#counters.set(counter, { used: state.used, endsAt: now + state.resetsInMs });
    }
  }

  /** Takes what a request needs from the part of this node. Synchronous: the caller adds it to what is held at once. */
  take({ member, slots, rates: claims, money }: Claim): Taken {
    if (slots && this.#countSlots(slots.name) >= this.#share(slots.limit)) return { result: 'no slot', rates: [] };
    const rates = claims.map((claim) => this.#shareRate(claim));
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

  /** At least 1: a limit of fewer requests than nodes would otherwise refuse everything. */
  #share(limit: number): number {
    return Math.max(1, Math.floor(limit / this.#options.countNodes()));
  }

  /**
   * The part of what was left of a period when the server last replied. A request that needs more tokens than that is admitted when
   * nothing else was used.
   */
  #shareRate({ counter, amount, limit }: RateClaim): RateClaim {
    const known = this.#counters.get(counter);
    const used = known && this.#options.clock.now() < known.endsAt ? known.used : 0;
    if (used > 0 && used >= limit) return { counter, amount, limit: 0 };
    const share = this.#share(limit - used);
    return { counter, amount: Math.min(amount, share), limit: share };
  }

  #countSlots(name: string): number {
    let count = 0;
    for (const { slots } of this.#options.held.values()) if (slots === name) count++;
    return count;
  }

  /** The first account of which this node uses more than its part, as far as it is known. */
  findExcess(accounts: readonly AccountLimit[]): Shortage | undefined {
    for (const account of accounts) {
      const { left, spent, isKnown } = this.#options.windows.findLeft(account);
      if (isKnown && left < 0) return { account, spent, reserved: account.micros - spent };
    }
    return undefined;
  }

  /** The first account whose part is too small for this much more. */
  findShortage(micros: number, accounts: readonly AccountLimit[]): Shortage | undefined {
    if (micros <= 0) return undefined;
    for (const account of accounts) {
      const { left, spent } = this.#options.windows.findLeft(account);
      // What is left for other nodes counts as reserved.
      if (micros > left) return { account, spent, reserved: account.micros - spent - Math.max(0, left) };
    }
    return undefined;
  }
}

/** A counter as the server has told it. */
interface KnownCounter {
  readonly used: number;
  /** When its period ends, by the clock of this node. */
  readonly endsAt: number;
}

interface InsuranceOptions {
  readonly clock: Clock;
  readonly readSpending: ReadSpending;
  /** How many nodes share the limits. */
  readonly countNodes: () => number;
  /** Running requests of this node. */
  readonly held: ReadonlyMap<string, Held>;
  readonly windows: KnownWindows;
}

const MAX_COUNTERS = 10_000;

/** Shown as part of the whole limit, which headers name: the parts of other nodes count as used. */
const scaleUp = (state: RateState, limit: number, share: number): RateState => ({ ...state, used: state.used + limit - share });
