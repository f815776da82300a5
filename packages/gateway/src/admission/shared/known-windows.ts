/**
 * What this node knows of the windows of budgets while the shared limits cannot be used: what the server had when it last replied, what
 * the ledger has, and what this node has done since. Other nodes keep what they are known to hold.
 */

import type { Clock } from '../../http/clock.ts';
import type { AccountLimit } from '../backend.ts';
import type { ReadSpending } from '../memory.ts';

/** What a running request holds. */
export interface Held {
  readonly slots: string | undefined;
  micros: number;
  readonly accounts: readonly AccountLimit[];
  /** Names of the accounts' windows. */
  readonly keys: readonly string[];
  /** The time of the server when it reserved this; undefined while the server does not know of it. */
  sharedAt: number | undefined;
}

/** A request of this node that has ended, and that the server may not have charged yet. */
export interface Ended {
  readonly charged: number;
  /** What it held. */
  readonly micros: number;
  readonly sharedAt: number | undefined;
  /** By the clock of this node. */
  readonly endedAt: number;
  /** The time of the server when it charged this; undefined until it has. */
  settledAt: number | undefined;
  /** The server was told, and may have charged this although its reply was not received. */
  isTold: boolean;
}

/** A window as the server has it. */
export interface View {
  readonly spent: number;
  readonly reserved: number;
  /** The time of the server. */
  readonly at: number;
  readonly epoch: string;
}

/** Names one window of an account. */
export const nameWindow = ({ by, period, of, window }: AccountLimit): string => JSON.stringify([by, period, of, window.start]);

/** Windows that this node has used. */
export class KnownWindows {
  readonly #options: KnownOptions;
  /** In the order of their last use. */
  readonly #windows = new Map<string, KnownWindow>();
  readonly #reading = new Map<string, Promise<void>>();
  /** When the server last replied with the state of a window, by the clock of this node. */
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(options: KnownOptions) {
    this.#options = options;
  }

  /** The server has replied. Replies may arrive in another order than they were sent. */
  see(key: string, view: View): void {
    const now = this.#options.clock.now();
    this.#heardAt = now;
    const known = this.#windows.get(key);
    if (known && !isNewer(view, known)) return;
    const ended = known?.ended.filter(({ settledAt }) => settledAt === undefined || settledAt > view.at) ?? [];
    const before = known && (known.epoch === view.epoch ? known.before : this.#sumOthers(key, known));
    this.#keep(key, { ...view, seenAt: now, ended, ledger: known?.ledger, before: before ?? 0 });
  }

  /** A request has ended. The result is to be told when the server has charged it. */
  end({ keys, micros, sharedAt }: Held, charged: number): Ended {
    const ended = { charged, micros, sharedAt, endedAt: this.#options.clock.now(), settledAt: undefined, isTold: false };
    for (const key of keys) {
      const window = this.#windows.get(key);
      if (!window) continue;
      if (window.ended.length >= MAX_ENDED) window.ended = [sumUp(window)];
      window.ended.push(ended);
    }
    return ended;
  }

  /** The server knows all that this node holds and has spent: the ledger is read again before the next use without the server. */
  forgetLedger(): void {
    for (const window of this.#windows.values()) window.ledger = undefined;
  }

  /** The windows that were used last. */
  listNewest(): string[] {
    return [...this.#windows.keys()].slice(-MAX_LISTED);
  }

  /** What others held of the windows that were used last, when the epoch before ended, and do not hold in this one. */
  listAbsent(epoch: string): { readonly key: string; readonly micros: number }[] {
    return this.listNewest().flatMap((key) => {
      const window = this.#windows.get(key);
      if (!window) return [];
      const before = window.epoch === epoch ? window.before : this.#sumOthers(key, window);
      const micros = before - (window.epoch === epoch ? this.#sumOthers(key, window) : 0);
      return micros > 0 ? [{ key, micros }] : [];
    });
  }

  #sumOthers(key: string, window: KnownWindow): number {
    return Math.max(0, window.reserved - this.#sumOwn(key, window).known);
  }

  /** Makes sure that something is known of windows. What the ledger has is waited for once, and then read again every second. */
  async prepare(accounts: readonly AccountLimit[]): Promise<void> {
    const { clock } = this.#options;
    await Promise.all(
      accounts.map((account) => {
        const ledger = this.#windows.get(nameWindow(account))?.ledger;
        if (!ledger) return this.#read(account);
        // While the ledger cannot be read, what it had before is used.
        if (clock.now() - ledger.readAt >= LEDGER_MS) this.#read(account).catch(() => undefined);
        return undefined;
      }),
    );
  }

  #read(account: AccountLimit): Promise<void> {
    const key = nameWindow(account);
    const reading = this.#reading.get(key) ?? this.#readLedger(key, account).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  async #readLedger(key: string, account: AccountLimit): Promise<void> {
    const readAt = this.#options.clock.now();
    const spent = await this.#options.readSpending(account, account.window.start);
    const known = this.#windows.get(key);
    const ledger = { spent, readAt };
    // What the server had long before it was lost says less than the ledger.
    if (known && (known.at === Number.NEGATIVE_INFINITY || this.#heardAt - known.seenAt < FRESH_MS)) known.ledger = ledger;
    else
      this.#keep(key, {
        ...{ spent, reserved: 0, at: Number.NEGATIVE_INFINITY, epoch: '', seenAt: readAt, ledger, before: 0 },
        ended: known?.ended.filter(({ endedAt }) => endedAt >= readAt) ?? [],
      });
  }

  #keep(key: string, window: KnownWindow): void {
    this.#windows.delete(key);
    this.#windows.set(key, window);
    const [oldest] = this.#windows.keys();
    if (this.#windows.size > MAX_WINDOWS && oldest !== undefined) this.#windows.delete(oldest);
  }

  /**
   * What is left of the part of this node. Each node may use as much of what was not spent as any other, but none more than others leave:
   * a node that holds more keeps it, and the rest is divided among the others. All nodes together stay within the budget when they know
   * the same. With the ledger, a node also notices what others have spent since.
   */
  findLeft(account: AccountLimit): { readonly left: number; readonly spent: number; readonly isKnown: boolean } {
    const key = nameWindow(account);
    const window = this.#windows.get(key);
    if (!window) return { left: 0, spent: 0, isKnown: false };
    const { used, held, known, kept, charged } = this.#sumOwn(key, window);
    const nodes = this.#options.countNodes();
    const others = Math.max(0, window.reserved - known);
    const rest = account.micros - window.spent;
    const free = rest - others - kept;
    const part = nodes <= 1 ? rest - others : Math.min(rest / nodes, (rest - others) / (nodes - 1));
    const most = free < 0 ? kept + free : Math.max(kept, Math.floor(part));
    const spent = Math.max(window.spent, window.ledger?.spent ?? 0) + charged;
    return { left: Math.min(most - used, account.micros - spent - held), spent, isKnown: true };
  }

  /**
   * What this node has of a window: `held` now; `charged` since the ledger was read; `used`, held and charged since the state of the server that is
   * known. That state has `known` of what this node held. It keeps `kept` of it: others may have taken what it has given back.
   */
  #sumOwn(key: string, window: KnownWindow): OwnSums {
    const { at, ledger } = window;
    const sums = { held: 0, charged: 0, used: 0, known: 0, kept: 0 };
    for (const { keys, micros, sharedAt } of this.#options.held.values()) {
      if (!keys.includes(key)) continue;
      sums.held += micros;
      if (sharedAt !== undefined && sharedAt <= at) sums.known += micros;
    }
    sums.used = sums.held;
    sums.kept = sums.known;
    for (const ended of window.ended) {
      sums.used += ended.charged;
      if (ended.endedAt >= (ledger?.readAt ?? Number.POSITIVE_INFINITY)) sums.charged += ended.charged;
      if (!wasHeld(ended, window)) continue;
      sums.known += ended.micros;
      if (!isGivenBack(ended)) sums.kept += ended.micros;
    }
    return sums;
  }
}

/** What a node has of a window. */
type OwnSums = Readonly<Record<'held' | 'charged' | 'used' | 'known' | 'kept', number>>;

/** Whether the known state of the server has the reservation of a request: its end was told only after the reply. */
const wasHeld = ({ sharedAt, endedAt }: Ended, { at, seenAt }: KnownWindow): boolean =>
  sharedAt !== undefined && sharedAt <= at && endedAt >= seenAt;

/** A window as the server had it; as the ledger has it, when the server never replied or long ago. */
interface KnownWindow extends View {
  /** When the reply was received, by the clock of this node. */
  readonly seenAt: number;
  /** Read since the shared limits cannot be used. */
  ledger: { readonly spent: number; readonly readAt: number } | undefined;
  ended: Ended[];
  /** What others held when the epoch before ended. */
  readonly before: number;
}

interface KnownOptions {
  readonly clock: Clock;
  readonly readSpending: ReadSpending;
  /** How many nodes share the limits. */
  readonly countNodes: () => number;
  /** Running requests of this node. */
  readonly held: ReadonlyMap<string, Held>;
}

/** Of two replies of the same moment, the one with less left counts. */
const isNewer = (view: View, known: View): boolean =>
  view.epoch !== known.epoch ||
  view.at > known.at ||
  (view.at === known.at && view.spent + view.reserved >= known.spent + known.reserved);

/** Whether the server may have charged a request, so that others can use the rest of what it held. */
const isGivenBack = ({ settledAt, isTold }: Ended): boolean => isTold || settledAt !== undefined;

/** Many endings as one, which counts until the next reply of the server. */
function sumUp(window: KnownWindow): Ended {
  let sum = 0;
  for (const ended of window.ended) sum += ended.charged - (wasHeld(ended, window) && !isGivenBack(ended) ? ended.micros : 0);
  const last = window.ended.at(-1)?.endedAt ?? 0;
  return { charged: sum, micros: 0, sharedAt: undefined, endedAt: last, settledAt: 0, isTold: true };
}

/** How often what others have spent is read while the server is away. */
const LEDGER_MS = 1000;

/** States that are older than this when the server is lost are not used: the windows of running requests are read every second. */
const FRESH_MS = 5000;

const MAX_WINDOWS = 10_000;

/** Windows that are read every second. */
const MAX_LISTED = 200;

const MAX_ENDED = 10_000;
