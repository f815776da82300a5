/**
 * The operations of limits as functions of a small state, without a clock or a server of their own. Limits in memory run them; the
 * scripts for Redis and the functions of PostgreSQL are tested against them. Each operation changes the state wholly or not at all.
 */

import { LEASE_MS, RATE_MS, type RateClaim, type RateState } from './backend.ts';
import { CRASH_MS, DONE_MS, RELOAD_MS } from './shared/driver.ts';

/** All limits. */
export interface LimitsState {
  /** Until when members hold a slot, by the name of the slots. */
  readonly slots: Map<string, Map<string, number>>;
  readonly counters: Map<string, Counter>;
  readonly windows: Map<string, WindowState>;
  /** The next to expire first. */
  readonly reservations: Map<string, Reservation>;
  /** How long reservations are held that nobody renews. */
  readonly leaseMs: number;
  /** Until when ended requests are recognised. */
  readonly done: Map<string, number>;
}

/** What was consumed in a period. */
interface Counter {
  readonly start: number;
  readonly used: number;
}

/** One window of an account. */
export interface WindowState {
  /** Whether it is known what was spent before. */
  isLoaded: boolean;
  spent: number;
  reserved: number;
  /** What was charged since the ledger is being read; undefined when it is not. */
  delta: number | undefined;
  /** The ledger is read again, at least until then; undefined when it need not be. */
  dirtyTill: number | undefined;
  /** When the ledger may be read again. */
  reloadAt: number;
}

interface Reservation {
  micros: number;
  readonly keys: readonly string[];
  expires: number;
}

/** What a request needs. */
export interface TakeRequest {
  readonly member: string;
  readonly slots?: string | undefined;
  readonly slotLimit?: number | undefined;
  readonly rates: readonly RateClaim[];
  readonly micros?: number | undefined;
  /** Windows, and the limits of their accounts. */
  readonly keys: readonly string[];
  readonly limits: readonly number[];
}

/** `rates`: the counters that were checked. */
export type TakeResult =
  | { readonly status: 'taken' | 'no slot' | 'over rate'; readonly rates: readonly RateState[] }
  /** These windows, by their index, are not loaded. */
  | { readonly status: 'load'; readonly missing: readonly number[] }
  | {
      readonly status: 'short';
      readonly rates: readonly RateState[];
      readonly index: number;
      readonly spent: number;
      readonly reserved: number;
    };

/** A request that has ended. */
export interface EndRequest {
  readonly member: string;
  readonly slots?: string | undefined;
  readonly corrections: readonly { readonly counter: string; readonly period: number; readonly by: number }[];
  readonly charged?: number | undefined;
  readonly keys: readonly string[];
  readonly late?: boolean | undefined;
}

/** What a running request holds. */
export interface LeaseRequest {
  readonly member: string;
  readonly slots?: string | undefined;
  readonly micros?: number | undefined;
  readonly keys?: readonly string[] | undefined;
}

/** Nothing is held or counted. `leaseMs`: infinite where nobody but this process holds anything. */
export const createState = (leaseMs: number = LEASE_MS): LimitsState => ({
  leaseMs,
  slots: new Map(),
  counters: new Map(),
  windows: new Map(),
  reservations: new Map(),
  done: new Map(),
});

/** A window without any money. `isLoaded`: nothing was spent before. */
export const openWindow = (isLoaded: boolean, spent = 0): WindowState => ({
  isLoaded,
  spent,
  reserved: 0,
  delta: undefined,
  dirtyTill: undefined,
  reloadAt: 0,
});

/** Admits a request: a slot, counters and reservations, all or none. */
export function take(state: LimitsState, request: TakeRequest, now: number): TakeResult {
  const { member, slots, slotLimit = 0, rates: claims, micros, keys } = request;
  prune(state, now);
  const rates: RateState[] = [];
  if (slots !== undefined && !hasSlot(state, slots, slotLimit, now)) return { status: 'no slot', rates };
  for (const claim of claims) {
    const rate = checkRate(state, claim, now);
    rates.push(rate);
    if (!rate.isAllowed) return { status: 'over rate', rates };
  }
  if (micros !== undefined) {
    const missing = [...keys.keys()].filter((index) => !state.windows.get(keys[index] ?? '')?.isLoaded);
    if (missing.length > 0) return { status: 'load', missing };
    const short = findShort(state, request, micros);
    if (short) return { status: 'short', rates, ...short };
    state.reservations.set(member, { micros, keys, expires: now + state.leaseMs });
    reserve(state, keys, micros);
  }
  for (const [index, { counter }] of claims.entries()) {
    const { period: start = now, used = 0 } = rates[index] ?? {};
    state.counters.set(counter, { start, used });
  }
  if (slots !== undefined) holdSlot(state, slots, member, now);
  return { status: 'taken', rates };
}

function hasSlot({ slots }: LimitsState, name: string, limit: number, now: number): boolean {
  const members = slots.get(name);
  if (!members || members.size < limit) return limit > 0;
  for (const [member, expires] of members) if (expires <= now) members.delete(member);
  return members.size < limit;
}

function holdSlot({ slots }: LimitsState, name: string, member: string, now: number): void {
  const members = slots.get(name) ?? new Map<string, number>();
  members.set(member, now + LEASE_MS);
  slots.set(name, members);
}

/** The state of a counter with the amount, if that is allowed. */
function checkRate(state: LimitsState, { counter, amount, limit }: RateClaim, now: number): RateState {
  const { used, start } = readCounter(state, counter, now);
  const isAllowed = used + amount <= limit;
  return { isAllowed, used: isAllowed ? used + amount : used, period: start, resetsInMs: RATE_MS - (now - start) };
}

/** A period begins with the first request after the last one. */
function readCounter({ counters }: LimitsState, name: string, now: number): Counter {
  const known = counters.get(name);
  return known && now - known.start < RATE_MS ? known : { start: now, used: 0 };
}

/** Settled costs and open reservations never exceed the limit at admission. What costs nothing is always admitted. */
function findShort(
  { windows }: LimitsState,
  { keys, limits }: TakeRequest,
  micros: number,
): { index: number; spent: number; reserved: number } | undefined {
  let first: { index: number; spent: number; reserved: number } | undefined;
  for (const [index, key] of keys.entries()) {
    const { spent = 0, reserved = 0 } = windows.get(key) ?? {};
    const limit = limits[index] ?? 0;
    if (micros <= 0 || spent + reserved + micros <= limit) continue;
    // A budget that is spent comes before one that running requests hold.
    if (spent + micros > limit) return { index, spent, reserved };
    first ??= { index, spent, reserved };
  }
  return first;
}

function reserve({ windows }: LimitsState, keys: readonly string[], by: number): void {
  for (const key of keys) findWindow(windows, key).reserved += by;
}

function findWindow(windows: LimitsState['windows'], key: string): WindowState {
  const window = windows.get(key) ?? openWindow(false);
  windows.set(key, window);
  return window;
}

/** Removes reservations that nobody renews: the windows of a gateway that has crashed are read again. */
export function prune(state: LimitsState, now: number): void {
  const { reservations, windows } = state;
  for (const [member, { micros, keys, expires }] of reservations) {
    if (expires > now) break;
    reservations.delete(member);
    reserve(state, keys, -micros);
    for (const key of keys) mark(findWindow(windows, key), now + CRASH_MS);
  }
}

function mark(window: WindowState, till: number): void {
  window.dirtyTill = Math.max(window.dirtyTill ?? till, till);
}

/** Raises a reservation, if that fits. */
export function raise(
  { reservations, windows }: LimitsState,
  { member, micros, keys, limits }: Pick<TakeRequest, 'member' | 'keys' | 'limits'> & { readonly micros: number },
): 'taken' | 'short' | 'unknown' {
  const reservation = reservations.get(member);
  if (!reservation) return 'unknown';
  const more = micros - reservation.micros;
  if (more <= 0) return 'taken';
  for (const [index, key] of keys.entries()) {
    const window = windows.get(key);
    if (!window?.isLoaded || window.spent + window.reserved + more > (limits[index] ?? 0)) return 'short';
  }
  reservation.micros = micros;
  for (const key of keys) findWindow(windows, key).reserved += more;
  return 'taken';
}

/** A request has ended: its slot is free, its counters are corrected, and its cost replaces its reservation. Only the first charge counts. */
export function end(state: LimitsState, { member, slots, corrections, charged, keys, late }: EndRequest, now: number): void {
  if (slots !== undefined) freeSlot(state, slots, member);
  for (const { counter: name, period, by } of corrections) {
    const { start, used } = readCounter(state, name, now);
    // What was saved in a period that is over cannot be used any more.
    if (start === period || by > 0) state.counters.set(name, { start, used: Math.max(0, used + by) });
  }
  if (charged === undefined || (state.done.get(member) ?? 0) > now) return;
  const reservation = state.reservations.get(member);
  if (reservation) reserve(state, reservation.keys, -reservation.micros);
  for (const key of reservation?.keys ?? keys) {
    const window = findWindow(state.windows, key);
    window.spent += charged;
    if (window.delta !== undefined) window.delta += charged;
    // The ledger may have had it already when it was read.
    if (!reservation || late || (charged !== 0 && window.reloadAt > now)) mark(window, now);
  }
  state.reservations.delete(member);
  for (const [ended, till] of state.done) {
    if (till > now) break;
    state.done.delete(ended);
  }
  state.done.set(member, now + DONE_MS);
}

function freeSlot({ slots }: LimitsState, name: string, member: string): void {
  const members = slots.get(name);
  members?.delete(member);
  if (members?.size === 0) slots.delete(name);
}

/** Keeps what a running request holds, and adds what is missing: after a restart, or when it was admitted without the server. */
export function renew(state: LimitsState, { member, slots, micros, keys = [] }: LeaseRequest, now: number): void {
  if ((state.done.get(member) ?? 0) > now) return;
  if (slots !== undefined) holdSlot(state, slots, member, now);
  if (micros === undefined) return;
  const reservation = state.reservations.get(member) ?? { micros: 0, keys, expires: 0 };
  reservation.expires = now + state.leaseMs;
  reserve(state, reservation.keys, micros - reservation.micros);
  reservation.micros = micros;
  state.reservations.delete(member);
  state.reservations.set(member, reservation);
}

/** Windows to read from the ledger again. Each is listed once in some seconds. */
export function listDue({ windows }: LimitsState, now: number): string[] {
  const due: string[] = [];
  for (const [key, window] of windows) {
    if (window.dirtyTill === undefined || window.reloadAt > now) continue;
    if (!window.isLoaded) window.dirtyTill = undefined;
    else {
      window.reloadAt = now + RELOAD_MS;
      due.push(key);
    }
  }
  return due;
}

/** Before a window is read from the ledger: from here on, what is charged is noted. */
export function begin({ windows }: LimitsState, key: string): void {
  findWindow(windows, key).delta ??= 0;
}

/**
 * What the ledger has of a window. What was charged meanwhile is added, though the ledger may have it already: a budget is never too
 * high, and such a window is read again later. `isEarly`: what ended before an epoch began may be missing in its first read.
 */
export function commit(
  { windows }: LimitsState,
  { key, spent, isAgain = false, isEarly = false }: CommitRequest,
  now: number,
): void {
  const window = windows.get(key);
  if (window?.delta === undefined) return;
  const { delta, isLoaded } = window;
  window.delta = undefined;
  if (isLoaded && !isAgain) return;
  window.spent = spent + delta;
  window.isLoaded = true;
  if (isEarly && !isLoaded) mark(window, now + RELOAD_MS);
  else if (delta !== 0) mark(window, now);
  else if (window.dirtyTill !== undefined && window.dirtyTill <= now) window.dirtyTill = undefined;
}

interface CommitRequest {
  readonly key: string;
  readonly spent: number;
  readonly isAgain?: boolean;
  readonly isEarly?: boolean;
}
