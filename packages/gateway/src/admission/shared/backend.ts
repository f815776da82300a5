/**
 * The limits of several gateways, in a server that they share. A request needs one round trip; without the server, each node uses its
 * part of the limits.
 */

import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../http/clock.ts';
import { sleep } from '../../http/clock.ts';
import type { Logger } from '../../observe/log.ts';
import {
  type AccountLimit,
  type AccountStatus,
  type Claim,
  type Ending,
  type Lease,
  type LimitBackend,
  RATE_MS,
  type RateState,
  type Taken,
} from '../backend.ts';
import type { ReadSpending } from '../memory.ts';
import { type ClientOptions, LimitsClient, type Reply } from './client.ts';
import { ABSENT_MS, type Operation, QUIET_MS } from './driver.ts';
import { Insurance } from './insurance.ts';
import { type Ended, type Held, KnownWindows, nameWindow } from './known-windows.ts';
import { AWAY, type Event, isInsured, type State, step } from './standing.ts';

/** Keeps limits in a server. */
export class SharedBackend implements LimitBackend {
  readonly #options: SharedOptions;
  readonly #client: LimitsClient;
  readonly #node = randomUUID();
  readonly #held = new Map<string, Held>();
  readonly #windows: KnownWindows;
  readonly #insurance: Insurance;
  /** Requests that ended while the server could not be told. */
  readonly #unsent = new Map<string, HeldEnding>();
  /** Requests that have ended, and are sent after the last batch. */
  #batch: { readonly endings: HeldEnding[]; readonly sent: Promise<void> } | undefined;
  #lastBatch: Promise<void> = Promise.resolve();
  /** Batches that were not answered yet. */
  #sending = 0;
  /** Accounts that this node has used, for lists. */
  readonly #accounts = new Map<string, AccountLimit>();
  readonly #loading = new Map<string, Promise<void>>();
  readonly #timer: Timer;
  #state: State = AWAY;
  #joining: Promise<void> | undefined;
  /** Until then, others may not have told the server what they have admitted without it. */
  #cautiousTill = Number.NEGATIVE_INFINITY;
  /** The last epoch that this node was part of, and when it joined. */
  #last: { readonly epoch: string; readonly at: number } | undefined;
  /** What was set aside for nodes that have not joined an epoch yet, by window. */
  readonly #absent = new Set<string>();
  /** Nodes that were alive when the server was last used. */
  #alive = 1;
  #isBeating = false;

  constructor(options: SharedOptions) {
    this.#options = options;
    const { clock, readSpending } = options;
    const countNodes = (): number => this.#countNodes();
    const held = this.#held;
    this.#windows = new KnownWindows({ clock, readSpending, countNodes, held });
    this.#insurance = new Insurance({ clock, readSpending, countNodes, held, windows: this.#windows });
    this.#client = new LimitsClient(options, { onReady: () => void this.#beat(), onLost: () => this.#step({ type: 'lost' }) });
    this.#timer = clock.setRepeating(() => void this.#beat(), BEAT_MS).unref();
    this.#client.connect();
  }

  async take(claim: Claim): Promise<Taken> {
    let isSent = false;
    const onSent = (): void => {
      isSent = true;
    };
    const shared = await this.#takeShared(claim, onSent);
    if (shared) return shared;
    const taken = await this.#takeInsured(claim);
    // The call may have been run although its reply was not received.
    if (isSent && taken.result !== 'taken')
      this.#postpone({
        sent: { member: claim.member, slots: claim.slots?.name, corrections: [], keys: [], charged: 0 },
        ended: undefined,
      });
    else if (isSent) void this.renew([{ member: claim.member, slots: undefined }]);
    return taken;
  }

  #step(event: Event): void {
    this.#state = step(this.#state, event);
  }

  /** The epoch that this node is part of. */
  get #epoch(): string | undefined {
    return this.#state.name === 'shared' || this.#state.name === 'insured' ? this.#state.epoch : undefined;
  }

  /** `sharedAt`: the time of the server when it reserved this. */
  #hold({ member, slots, money }: Claim, sharedAt?: number): void {
    if (!slots && !money) return;
    const accounts = money?.accounts ?? [];
    const keys = accounts.map(nameWindow);
    this.#held.set(member, { slots: slots?.name, micros: money?.micros ?? 0, accounts, keys, sharedAt });
  }

  /** Undefined when the shared limits cannot be used. `onSent`: a call without a reply was sent. */
  async #takeShared(claim: Claim, onSent: () => void): Promise<Taken | undefined> {
    const { member, slots, rates, money } = claim;
    const accounts = money?.accounts ?? [];
    for (const account of accounts) this.#remember(account);
    const request = {
      node: this.#node,
      member,
      slots: slots?.name,
      slot_limit: slots?.limit,
      rates,
      micros: money?.micros,
      keys: accounts.map(nameWindow),
      limits: accounts.map(({ micros }) => micros),
    };
    const until = this.#options.clock.now() + MAX_REBUILD_MS;
    let ended = this.#sending > 0 ? this.#lastBatch : undefined;
    for (let loads = 0; loads < MAX_TRIES; ) {
      if (this.#options.clock.now() >= until) return undefined;
      const reply = await this.#try('take', request, { onSent, onReply: (received) => this.#see(claim, request.keys, received) });
      if (!reply) return undefined;
      if (reply.status === 'load') {
        loads++;
        await this.#load(reply.rest.flatMap((index) => accounts[Number(index)] ?? []));
      } else if (reply.status === 'rebuild')
        await sleep(this.#options.clock, Math.min(REBUILD_POLL_MS, Math.max(1, Number(reply.rest[0]) - reply.now + 1)));
      else {
        const taken = readTaken(claim, reply);
        // A client that sends its next request after a response must not be refused for the one before.
        if (taken.result !== 'taken' && ended) {
          await ended;
          ended = undefined;
          continue;
        }
        if (taken.result !== 'taken') return taken;
        if (!(await this.#isOver(reply))) return this.#accept(claim, taken, reply);
      }
    }
    throw new Error('the limits store could not be loaded with what was spent');
  }

  /** Holds what the server has reserved. */
  #accept(claim: Claim, taken: Taken, reply: Reply): Taken {
    this.#hold(claim, reply.now);
    this.#confirm(claim.member, reply);
    return this.#isCautious ? this.#keepPart(claim, taken) : taken;
  }

  /** Whether this node is part of a later epoch than that of a reply: what was reserved in its epoch is gone, and others may have it. */
  async #isOver({ epoch }: Reply): Promise<boolean> {
    if (this.#epoch !== epoch) await this.#joining?.catch(() => undefined);
    return this.#epoch !== undefined && this.#epoch !== epoch;
  }

  /** Whether other nodes may have admitted requests that the server does not know of yet. */
  get #isCautious(): boolean {
    return isInsured(this.#state) || this.#options.clock.now() < this.#cautiousTill;
  }

  /** Gives back what is more than the part of this node. */
  #keepPart(claim: Claim, { rates }: Taken): Taken {
    const { member, slots, money } = claim;
    const shortage = money && this.#insurance.findExcess(money.accounts);
    if (!shortage) return { result: 'taken', rates };
    const corrections = claim.rates.map(({ counter, amount }, index) => ({
      counter,
      period: rates[index]?.period ?? 0,
      by: -amount,
    }));
    void this.end({ member, slots: slots?.name, corrections, charged: 0 });
    return { result: shortage, rates };
  }

  /** What the server has, also when its reply comes too late for the request. */
  #see(claim: Claim, keys: readonly string[], reply: Reply): void {
    if (reply.epoch !== this.#epoch) return;
    const { at, rates } = readCounters(claim, reply);
    this.#insurance.see(claim.rates, rates);
    const numbers = reply.rest.slice(at).map(Number);
    const [short = 0, ...view] = numbers;
    if (reply.status === 'taken') this.#seeWindows(keys, numbers, reply);
    else if (reply.status === 'short') this.#seeWindows(keys.slice(short, short + 1), view, reply);
  }

  /** `numbers`: what is spent and reserved, for each window. */
  #seeWindows(keys: readonly string[], numbers: readonly number[], { now, epoch }: Reply): void {
    for (const [index, key] of keys.entries()) {
      const [spent, reserved] = [numbers[2 * index], numbers[2 * index + 1]];
      if (spent !== undefined && reserved !== undefined) this.#windows.see(key, { spent, reserved, at: now, epoch });
    }
  }

  async #takeInsured(claim: Claim): Promise<Taken> {
    const { log, onInsured } = this.#options;
    if (!isInsured(this.#state))
      log.warn({ nodes: this.#countNodes() }, 'the limits store cannot be used; this node uses its part of the limits');
    this.#step({ type: 'insure' });
    onInsured();
    await this.#windows.prepare(claim.money?.accounts ?? []);
    const taken = this.#insurance.take(claim);
    if (taken.result === 'taken') this.#hold(claim);
    // The server may have been told of everything meanwhile.
    if (taken.result === 'taken') this.#step({ type: 'insure' });
    return taken;
  }

  async raise(member: string, micros: number): Promise<boolean> {
    const held = this.#held.get(member);
    if (!held) return false;
    if (micros <= held.micros) return true;
    const limits = held.accounts.map((account) => account.micros);
    await this.#lastBatch;
    const reply = await this.#try('raise', { member, micros, keys: held.keys, limits });
    const isKnown = reply !== undefined && reply.status !== 'unknown';
    if (!isKnown) await this.#windows.prepare(held.accounts);
    const isRaised = isKnown
      ? reply.status === 'taken'
      : this.#insurance.findShortage(micros - held.micros, held.accounts) === undefined;
    if (isRaised) {
      held.micros = micros;
      // What the server was known to have before is less.
      held.sharedAt = isKnown ? reply.now : undefined;
    }
    if (isRaised && !isKnown) this.#step({ type: 'insure' });
    if (reply) this.#confirm(member, reply);
    return isRaised;
  }

  /** Another epoch may have begun before this reply was read: what is running was reserved in it without this request. */
  #confirm(member: string, { epoch }: Reply): void {
    if (this.#epoch === epoch) return;
    const held = this.#held.get(member);
    if (held) held.sharedAt = undefined;
    void this.renew([{ member, slots: undefined }]);
  }

  end(ending: Ending): Promise<void> {
    const held = this.#held.get(ending.member);
    this.#held.delete(ending.member);
    const { charged } = ending;
    const ended = held && charged !== undefined ? this.#windows.end(held, charged) : undefined;
    return this.#addEnding({ sent: { ...ending, charged: held && charged, keys: held?.keys ?? [] }, ended });
  }

  /** Requests that end while others are sent follow in one call: nobody waits for them, and a call costs more than an ending. */
  #addEnding(ending: HeldEnding): Promise<void> {
    if (!this.#batch || this.#batch.endings.length >= BATCH) {
      const endings: HeldEnding[] = [];
      this.#sending++;
      const sent = this.#lastBatch.then(() => this.#sendEndings(endings)).finally(() => this.#sending--);
      this.#lastBatch = sent;
      this.#batch = { endings, sent };
    }
    this.#batch.endings.push(ending);
    return this.#batch.sent;
  }

  async #sendEndings(endings: readonly HeldEnding[]): Promise<void> {
    if (this.#batch?.endings === endings) this.#batch = undefined;
    const onSent = (): void => markTold(endings);
    // Requests that are admitted before the reply must not use what may have been given back.
    if (this.isShared) onSent();
    const reply = await this.#try('end', { endings: endings.map(({ sent }) => sent) }, { onSent });
    if (reply) return markSettled(endings, reply);
    for (const { sent, ended } of endings) {
      const { member, slots, corrections, keys, charged } = sent;
      this.#insurance.correct(corrections);
      this.#postpone({ sent: { member, slots, corrections, keys, charged, late: true }, ended });
    }
  }

  /** Kept until the server is back. Too many are dropped: leases end by themselves, and the ledger has what was spent. */
  #postpone(ending: HeldEnding): void {
    if (this.#unsent.size < MAX_UNSENT) this.#unsent.set(ending.sent.member, ending);
    else if (ending.ended) ending.ended.settledAt = 0;
  }

  async renew(leases: Iterable<Lease>): Promise<void> {
    const members = [...leases].map(({ member }) => member);
    for (let from = 0; from < members.length; from += BATCH) {
      const batch = members.slice(from, from + BATCH);
      const described = batch.flatMap((member) => this.#describe(member));
      if (described.length === 0) continue;
      const reply = await this.#try('renew', { node: this.#node, leases: described });
      if (!reply) return;
      this.#markShared(batch, reply);
    }
  }

  #describe(member: string): object[] {
    const held = this.#held.get(member);
    if (!held) return [];
    const { slots, micros, keys } = held;
    return [{ member, slots, ...(keys.length > 0 && { micros, keys }) }];
  }

  async load(accounts: readonly AccountLimit[]): Promise<void> {
    for (const account of accounts) this.#remember(account);
    await this.#waitUntilJoined();
    const reply = await this.#try('read', { keys: accounts.map(nameWindow) });
    if (reply) await this.#load(accounts.filter((_, index) => Number(reply.rest[3 * index]) === 0));
  }

  /** A gateway that starts waits for the server, but not for long. */
  async #waitUntilJoined(): Promise<void> {
    const { clock, startMs = START_MS } = this.#options;
    const until = clock.now() + startMs;
    while ((this.#state.name === 'away' || this.#state.name === 'joining') && clock.now() < until) await sleep(clock, 5);
  }

  #remember(account: AccountLimit): void {
    const name = `${account.by} ${account.period} ${account.of}`;
    const known = this.#accounts.get(name);
    const isNewer = known ? account.window.start >= known.window.start : this.#accounts.size < MAX_ACCOUNTS;
    if (isNewer) this.#accounts.set(name, account);
  }

  /** Reads what windows have spent from the ledger, each once at a time. */
  async #load(accounts: readonly AccountLimit[]): Promise<void> {
    await Promise.all(
      accounts.map((account) => {
        const key = nameWindow(account);
        const running = this.#loading.get(key) ?? this.#loadWindow(account).finally(() => this.#loading.delete(key));
        this.#loading.set(key, running);
        return running;
      }),
    );
  }

  async #loadWindow(account: AccountLimit, isAgain = false): Promise<void> {
    const keys = [nameWindow(account)];
    if (!(await this.#try('begin', { keys }))) return;
    if (isAgain) await sleep(this.#options.clock, QUIET_MS);
    const spent = await this.#options.readSpending(account, account.window.start);
    await this.#try('commit', { keys, spent: [spent], again: isAgain || undefined });
  }

  async list(): Promise<readonly AccountStatus[]> {
    await this.#lastBatch;
    const accounts = [...this.#accounts.values()];
    const reply = await this.#try('read', { keys: accounts.map(nameWindow) });
    const read = async (account: AccountLimit, index: number): Promise<AccountStatus> => {
      if (!reply) return { ...account, spent: await this.#options.readSpending(account, account.window.start), reserved: 0 };
      return { ...account, spent: Number(reply.rest[3 * index + 1]), reserved: Number(reply.rest[3 * index + 2]) };
    };
    return Promise.all(accounts.map(read));
  }

  /** Whether requests use the server now. */
  get isShared(): boolean {
    return this.#client.isUsable && this.#epoch !== undefined;
  }

  async close(): Promise<void> {
    this.#timer.close();
    await this.#lastBatch;
    await this.#client.close();
  }

  /** Runs an operation in the current epoch. Undefined when the server cannot be used; in another epoch, the node joins it first. */
  async #try(operation: Operation, request: object, { onSent, onReply, isBeat }: TryOptions = {}): Promise<Reply | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (!(isBeat ? this.#client.isReady : this.#client.isUsable)) return undefined;
      try {
        // Its part of the limits must not be used beside the shared limits: what others hold is more than their parts.
        if (!this.#epoch) await this.#join();
        const epoch = this.#epoch;
        if (!epoch) return undefined;
        const reply = await this.#client.call(operation, request, epoch, onReply);
        if (reply.status === 'late') return undefined;
        if (reply.status === 'again') continue;
        if (reply.status !== 'epoch') return reply;
        // The server is empty, or was restarted. Other calls may have noticed it before.
        this.#step({ type: 'over', epoch });
      } catch (error) {
        onSent?.();
        this.#options.onFailure();
        this.#options.log.debug({ reason: String(error) }, 'a call of the limits store failed');
        return undefined;
      }
    }
    return undefined;
  }

  #countNodes(): number {
    return Math.max(this.#options.nodes, this.#alive);
  }

  /** Joins once at a time. */
  #join(): Promise<void> {
    this.#joining ??= this.#enter().finally(() => {
      this.#joining = undefined;
    });
    return this.#joining;
  }

  /** Takes part in the current epoch: what has ended is charged, and what is running is reserved again. */
  async #enter(): Promise<void> {
    const wasInsured = this.#state.name === 'insured';
    this.#step({ type: 'join' });
    try {
      const run = await this.#client.readRun();
      const request = { node: this.#node, run, nodes: this.#countNodes() };
      const { rest, now } = await this.#client.call('join', request, randomUUID());
      const epoch = String(rest[0]);
      const isNew = this.#last?.epoch !== epoch;
      if (isNew) this.#begin(epoch, now);
      await this.#tell(epoch);
      // Before the first admission of a new epoch, all nodes tell what they hold.
      this.#cautiousTill = isNew ? Number.NEGATIVE_INFINITY : this.#options.clock.now() + CAUTION_MS;
      this.#step({ type: 'joined', epoch });
      if (wasInsured) this.#options.log.info('the limits store is used again');
    } catch (error) {
      this.#step({ type: 'join failed' });
      throw error;
    }
  }

  /** A new epoch reads from the ledger what was spent before. */
  #begin(epoch: string, now: number): void {
    for (const { ended } of this.#unsent.values()) if (ended) ended.settledAt = now;
    this.#unsent.clear();
    this.#absent.clear();
    if (this.#last) this.#options.log.warn('the limits store was empty or restarted; budgets are read from the ledger');
    this.#last = { epoch, at: this.#options.clock.now() };
  }

  /**
   * What is running is reserved, and what has ended is charged, also what was admitted without the server. Rejects when that
   * fails, or when the epoch is over.
   */
  async #tell(epoch: string): Promise<void> {
    // First what is running: between both calls, others must not see more left than there is.
    const members = [...this.#held.keys()];
    for (let from = 0; from < members.length; from += BATCH) {
      const batch = members.slice(from, from + BATCH);
      const leases = batch.flatMap((member) => this.#describe(member));
      if (leases.length > 0) this.#markShared(batch, await this.#callIn(epoch, 'renew', { node: this.#node, leases }));
    }
    for (let batch = this.#listUnsent(); batch.length > 0; batch = this.#listUnsent()) {
      markTold(batch);
      markSettled(batch, await this.#callIn(epoch, 'end', { endings: batch.map(({ sent }) => sent) }));
      for (const { sent } of batch) this.#unsent.delete(sent.member);
    }
    await this.#watchWindows(epoch);
    this.#windows.forgetLedger();
  }

  #listUnsent(): HeldEnding[] {
    return [...this.#unsent.values()].slice(0, BATCH);
  }

  /** The server has reserved what these hold. What it was known to have before may not have them. */
  #markShared(members: readonly string[], { now }: Reply): void {
    for (const member of members) {
      const held = this.#held.get(member);
      if (held && held.sharedAt === undefined) held.sharedAt = now;
    }
  }

  /** Reads what is spent and reserved of the windows that this node uses: what others hold is kept for them when the server is lost. */
  async #watchWindows(epoch: string): Promise<void> {
    const keys = this.#windows.listNewest();
    if (keys.length === 0) return;
    const reply = await this.#callIn(epoch, 'read', { keys });
    const isLoaded = (index: number): boolean => Number(reply.rest[3 * index]) === 1;
    const loaded = keys.flatMap((key, index) => (isLoaded(index) ? [{ key, index }] : []));
    const numbers = loaded.flatMap(({ index }) => reply.rest.slice(3 * index + 1, 3 * index + 3).map(Number));
    this.#seeWindows(
      loaded.map(({ key }) => key),
      numbers,
      // Of calls that PostgreSQL runs at the same time, this one may not see what the others have done.
      { ...reply, now: reply.now - this.#options.timeoutMs },
    );
  }

  async #callIn(epoch: string, operation: Operation, request: object): Promise<Reply> {
    const reply = await this.#client.call(operation, request, epoch);
    if (reply.status !== 'taken') throw new Error(`the limits store could not be updated: ${reply.status}`);
    return reply;
  }

  /**
   * Every second: notices an empty server, joins after an outage, and reads windows again that may be wrong. Also while requests leave a
   * slow server alone: others see what this node holds.
   */
  async #beat(): Promise<void> {
    if (this.#isBeating || !this.#client.isReady) return;
    this.#isBeating = true;
    try {
      const reply = await this.#try('beat', { node: this.#node }, { isBeat: true });
      if (!reply) return;
      this.#alive = Number(reply.rest[0]);
      await this.#catchUp(reply.epoch);
      await this.#setAside(reply.epoch);
      for (const key of reply.rest.slice(1)) void this.#reload(String(key));
    } catch (error) {
      this.#options.log.debug({ reason: String(error) }, 'the limits store could not be joined');
    } finally {
      this.#isBeating = false;
    }
  }

  /** Tells the server what it does not know, or looks at what it has. */
  async #catchUp(epoch: string): Promise<void> {
    if (this.#state.name !== 'insured' && this.#unsent.size === 0) return this.#watchWindows(epoch);
    this.#step({ type: 'tell' });
    await this.#tell(epoch);
    if (this.#state.name !== 'insured' || this.#client.isPaused) return;
    this.#step({ type: 'told' });
    this.#cautiousTill = this.#options.clock.now() + CAUTION_MS;
    if (this.#isTold) this.#options.log.info('the limits store is used again');
  }

  get #isTold(): boolean {
    return this.#state.name === 'shared';
  }

  /**
   * Nodes that have not joined a new epoch yet hold something, too. What others were last known to hold, and do not hold again, is set
   * aside until all are there, at most for a lease. All nodes that do so use the same names.
   */
  async #setAside(epoch: string): Promise<void> {
    if (this.#alive >= this.#options.nodes) return this.#giveBack(epoch);
    const age = this.#last ? this.#options.clock.now() - this.#last.at : Number.POSITIVE_INFINITY;
    if (age < ABSENT_MS.from || age > ABSENT_MS.till) return;
    const leases = this.#windows.listAbsent(epoch).flatMap(({ key, micros }) => {
      if (this.#absent.has(key)) return [];
      this.#absent.add(key);
      return [{ member: nameAbsent(key), micros, keys: [key] }];
    });
    if (leases.length > 0) await this.#callIn(epoch, 'renew', { node: this.#node, leases });
  }

  async #giveBack(epoch: string): Promise<void> {
    if (this.#absent.size === 0) return;
    const endings = [...this.#absent].map((key) => ({ member: nameAbsent(key), corrections: [], keys: [], charged: 0 }));
    await this.#callIn(epoch, 'end', { endings });
    this.#absent.clear();
  }

  /** Reads a window again; when that fails, some seconds later once more. */
  async #reload(key: string): Promise<void> {
    const [by, period, of, start] = JSON.parse(key) as [AccountLimit['by'], AccountLimit['period'], string, number]; // `nameWindow`
    const account = { by, period, of, name: of, micros: 0, window: { start, end: start } };
    await this.#loadWindow(account, true).catch((error: unknown) =>
      this.#options.log.debug({ reason: String(error) }, 'what an account has spent could not be read again'),
    );
  }
}

/** What the backend works with. */
export interface SharedOptions extends ClientOptions {
  readonly readSpending: ReadSpending;
  /** How many gateways share the limits, for their parts when the server cannot be used. */
  readonly nodes: number;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn'>;
  /** How long the start waits for the server; shorter in tests. */
  readonly startMs?: number | undefined;
  /** A request was admitted or refused without the server. */
  readonly onInsured: () => void;
  readonly onFailure: () => void;
}

/** How an operation is tried. */
interface TryOptions {
  /** A call without a reply was sent. */
  readonly onSent?: () => void;
  /** The server has replied, maybe too late. */
  readonly onReply?: (reply: Reply) => void;
  /** Also while requests leave the server alone. */
  readonly isBeat?: boolean;
}

interface SentEnding extends Ending {
  readonly keys: readonly string[];
  /** The ledger may have been read since the request ended: its windows are read again. */
  readonly late?: true;
}

/** An ending, and what this node remembers of it until the server has charged it. */
interface HeldEnding {
  readonly sent: SentEnding;
  readonly ended: Ended | undefined;
}

const markSettled = (endings: readonly HeldEnding[], { now }: Reply): void => {
  for (const { ended } of endings) if (ended) ended.settledAt = now;
};

/** Until the reply is received, the server may or may not have charged them. */
const markTold = (endings: readonly HeldEnding[]): void => {
  for (const { ended } of endings) if (ended) ended.isTold = true;
};

/** The reservation for nodes that are not there, of one window. */
const nameAbsent = (key: string): string => `absent ${key}`;

const BEAT_MS = 1000;

const START_MS = 4000;

const BATCH = 200;

const MAX_TRIES = 4;

/** Other nodes notice that the server is back, and tell it what they hold, within two beats. */
const CAUTION_MS = 2500;

/** A rebuild is over early when the last node has joined. */
const REBUILD_POLL_MS = 50;

/** More than nodes have to join. */
const MAX_REBUILD_MS = 5000;

const MAX_UNSENT = 10_000;

const MAX_ACCOUNTS = 10_000;

/** The states of counters in a reply, and where they end. */
function readCounters({ rates: claims }: Claim, { status, now, rest }: Reply): { at: number; rates: RateState[] } {
  const count = status === 'taken' || status === 'short' ? claims.length : status === 'over rate' ? rest.length / 2 : 0;
  const rates: RateState[] = [];
  for (let index = 0; index < count; index++) {
    const period = Number(rest[2 * index]);
    const isAllowed = status !== 'over rate' || index < count - 1;
    rates.push({ isAllowed, used: Number(rest[2 * index + 1]), period, resetsInMs: period + RATE_MS - now });
  }
  return { at: 2 * count, rates };
}

function readTaken(claim: Claim, reply: Reply): Taken {
  const { at, rates } = readCounters(claim, reply);
  switch (reply.status) {
    case 'taken':
    case 'no slot':
    case 'over rate':
      return { result: reply.status, rates };
    case 'short': {
      const [index = 0, spent = 0, reserved = 0] = reply.rest.slice(at).map(Number);
      const account = claim.money?.accounts[index];
      if (account) return { result: { account, spent, reserved }, rates };
    }
  }
  throw new Error(`the limits store sent an unexpected reply: ${reply.status}`);
}
