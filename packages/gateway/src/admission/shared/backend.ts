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
import { type Operation, QUIET_MS } from './driver.ts';
import { type Held, Insurance, nameWindow } from './insurance.ts';

/** Keeps limits in a server. */
export class SharedBackend implements LimitBackend {
  readonly #options: SharedOptions;
  readonly #client: LimitsClient;
  readonly #node = randomUUID();
  readonly #held = new Map<string, Held>();
  readonly #insurance: Insurance;
  /** Requests that ended while the server could not be told. */
  readonly #unsent = new Map<string, SentEnding>();
  /** Requests that have ended, and are sent after the last batch. */
  #batch: { readonly endings: SentEnding[]; readonly sent: Promise<void> } | undefined;
  #lastBatch: Promise<void> = Promise.resolve();
  /** Batches that were not answered yet. */
  #sending = 0;
  /** Accounts that this node has used, for lists. */
  readonly #accounts = new Map<string, AccountLimit>();
  readonly #loading = new Map<string, Promise<void>>();
  readonly #timer: Timer;
  /** Undefined until this node has joined. */
  #epoch: string | undefined;
  /** The last epoch that this node was part of. */
  #last: string | undefined;
  #joining: Promise<void> | undefined;
  /** Nodes that were alive when the server was last used. */
  #alive = 1;
  #isBeating = false;
  #isInsured = false;

  constructor(options: SharedOptions) {
    this.#options = options;
    const { clock, readSpending } = options;
    const countNodes = (): number => this.#countNodes();
    this.#insurance = new Insurance({ clock, readSpending, countNodes, held: this.#held });
    this.#client = new LimitsClient(options, { onReady: () => void this.#beat(), onLost: () => this.#leave() });
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
      this.#postpone({ member: claim.member, slots: claim.slots?.name, corrections: [] }, [], 0);
    else if (isSent) void this.renew([{ member: claim.member, slots: undefined }]);
    return taken;
  }

  #hold({ member, slots, money }: Claim): void {
    if (!slots && !money) return;
    const accounts = money?.accounts ?? [];
    this.#held.set(member, { slots: slots?.name, micros: money?.micros ?? 0, accounts, keys: accounts.map(nameWindow) });
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
      const reply = await this.#try('take', request, onSent);
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
        if (taken.result === 'taken') this.#hold(claim);
        this.#confirm(member, reply);
        return taken;
      }
    }
    throw new Error('the limits store could not be loaded with what was spent');
  }

  async #takeInsured(claim: Claim): Promise<Taken> {
    const { log, onInsured } = this.#options;
    if (!this.#isInsured)
      log.warn({ nodes: this.#countNodes() }, 'the limits store cannot be used; this node uses its part of the limits');
    this.#isInsured = true;
    onInsured();
    await this.#insurance.prepare(claim.money?.accounts ?? []);
    const taken = this.#insurance.take(claim);
    if (taken.result === 'taken') this.#hold(claim);
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
    if (!isKnown) await this.#insurance.prepare(held.accounts);
    const isRaised = isKnown
      ? reply.status === 'taken'
      : this.#insurance.findShortage(micros - held.micros, held.accounts) === undefined;
    if (isRaised) held.micros = micros;
    if (reply) this.#confirm(member, reply);
    return isRaised;
  }

  /** Another epoch may have begun before this reply was read: what is running was reserved in it without this request. */
  #confirm(member: string, { epoch }: Reply): void {
    if (this.#epoch !== epoch) void this.renew([{ member, slots: undefined }]);
  }

  end(ending: Ending): Promise<void> {
    const held = this.#held.get(ending.member);
    this.#held.delete(ending.member);
    const { charged } = ending;
    if (held && charged !== undefined && this.#isInsured) this.#insurance.charge(held, charged);
    return this.#addEnding({ ...ending, charged: held && charged, keys: held?.keys ?? [] });
  }

  /** Requests that end while others are sent follow in one call: nobody waits for them, and a call costs more than an ending. */
  #addEnding(ending: SentEnding): Promise<void> {
    if (!this.#batch || this.#batch.endings.length >= BATCH) {
      const endings: SentEnding[] = [];
      this.#sending++;
      const sent = this.#lastBatch.then(() => this.#sendEndings(endings)).finally(() => this.#sending--);
      this.#lastBatch = sent;
      this.#batch = { endings, sent };
    }
    this.#batch.endings.push(ending);
    return this.#batch.sent;
  }

  async #sendEndings(endings: readonly SentEnding[]): Promise<void> {
    if (this.#batch?.endings === endings) this.#batch = undefined;
    if (await this.#try('end', { endings })) return;
    for (const ending of endings) {
      this.#insurance.correct(ending.corrections);
      this.#postpone(ending, ending.keys, ending.charged);
    }
  }

  /** Kept until the server is back. Too many are dropped: leases end by themselves, and the ledger has what was spent. */
  #postpone({ member, slots, corrections }: Ending, keys: readonly string[], charged: number | undefined): void {
    if (this.#unsent.size < MAX_UNSENT) this.#unsent.set(member, { member, slots, corrections, keys, charged });
  }

  async renew(leases: Iterable<Lease>): Promise<void> {
    const members = [...leases].map(({ member }) => member);
    for (let from = 0; from < members.length; from += BATCH) {
      const batch = members.slice(from, from + BATCH).flatMap((member) => this.#describe(member));
      if (batch.length > 0 && !(await this.#try('renew', { node: this.#node, leases: batch }))) return;
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
    while (!this.#epoch && !this.#isInsured && clock.now() < until) await sleep(clock, 5);
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
  async #try(operation: Operation, request: object, onSent?: () => void): Promise<Reply | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (!this.#client.isUsable) return undefined;
      try {
        // Its part of the limits must not be used beside the shared limits: what others hold is more than their parts.
        if (!this.#epoch) await this.#join();
        if (!this.#epoch) return undefined;
        const epoch = this.#epoch;
        const reply = await this.#client.call(operation, request, epoch);
        if (reply.status === 'late') return undefined;
        if (reply.status === 'again') continue;
        if (reply.status !== 'epoch') return reply;
        // The server is empty, or was restarted. Other calls may have noticed it before.
        if (this.#epoch === epoch) this.#epoch = undefined;
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

  #leave(): void {
    this.#epoch = undefined;
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
    const { log } = this.#options;
    const before = this.#last;
    const run = await this.#client.readRun();
    const { rest } = await this.#client.call('join', { node: this.#node, run, nodes: this.#countNodes() }, randomUUID());
    const epoch = String(rest[0]);
    // A new epoch reads from the ledger what was spent before.
    if (before !== epoch) this.#unsent.clear();
    if (before !== undefined && before !== epoch)
      log.warn('the limits store was empty or restarted; budgets are read from the ledger');
    this.#last = epoch;
    await this.#recover(epoch);
    this.#epoch = epoch;
  }

  /**
   * What has ended is charged, and what is running is reserved, also what was admitted without the server. Rejects when that
   * fails, or when the epoch is over.
   */
  async #recover(epoch: string): Promise<void> {
    for (let batch = this.#listUnsent(); batch.length > 0; batch = this.#listUnsent()) {
      await this.#callIn(epoch, 'end', { endings: batch });
      for (const { member } of batch) this.#unsent.delete(member);
    }
    const leases = [...this.#held.keys()].flatMap((member) => this.#describe(member));
    for (let from = 0; from < leases.length; from += BATCH)
      await this.#callIn(epoch, 'renew', { node: this.#node, leases: leases.slice(from, from + BATCH) });
    this.#insurance.reset();
    if (this.#isInsured) this.#options.log.info('the limits store is used again');
    this.#isInsured = false;
  }

  #listUnsent(): SentEnding[] {
    return [...this.#unsent.values()].slice(0, BATCH);
  }

  async #callIn(epoch: string, operation: Operation, request: object): Promise<void> {
    const { status } = await this.#client.call(operation, request, epoch);
    if (status !== 'taken') throw new Error(`the limits store could not be updated: ${status}`);
  }

  /** Every second: notices an empty server, joins after an outage, and reads windows again that may be wrong. */
  async #beat(): Promise<void> {
    if (this.#isBeating || !this.#client.isUsable) return;
    this.#isBeating = true;
    try {
      const reply = await this.#try('beat', { node: this.#node });
      if (reply) this.#alive = Number(reply.rest[0]);
      if (this.#epoch && (this.#isInsured || this.#unsent.size > 0)) await this.#recover(this.#epoch);
      for (const key of reply?.rest.slice(1) ?? []) void this.#reload(String(key));
    } catch (error) {
      this.#options.log.debug({ reason: String(error) }, 'the limits store could not be joined');
    } finally {
      this.#isBeating = false;
    }
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

interface SentEnding extends Ending {
  readonly keys: readonly string[];
}

const BEAT_MS = 1000;

const START_MS = 4000;

const BATCH = 200;

const MAX_TRIES = 4;

/** A rebuild is over early when the last node has joined. */
const REBUILD_POLL_MS = 50;

/** More than nodes have to join. */
const MAX_REBUILD_MS = 5000;

const MAX_UNSENT = 10_000;

const MAX_ACCOUNTS = 10_000;

function readTaken({ rates: claims, money }: Claim, { status, now, rest }: Reply): Taken {
  const numbers = rest.map(Number);
  const rates: RateState[] = [];
  const count = status === 'no slot' ? 0 : status === 'short' ? claims.length : numbers.length / 2;
  for (let index = 0; index < count; index++) {
    const period = numbers[2 * index] ?? 0;
    const isAllowed = status !== 'over rate' || index < count - 1;
    rates.push({ isAllowed, used: numbers[2 * index + 1] ?? 0, period, resetsInMs: period + RATE_MS - now });
  }
  switch (status) {
    case 'taken':
    case 'no slot':
    case 'over rate':
      return { result: status, rates };
    case 'short': {
      const [index = 0, spent = 0, reserved = 0] = numbers.slice(2 * count);
      const account = money?.accounts[index];
      if (account) return { result: { account, spent, reserved }, rates };
    }
  }
  throw new Error(`the limits store sent an unexpected reply: ${status}`);
}
