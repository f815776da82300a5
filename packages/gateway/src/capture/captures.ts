/** Captures of exchanges: which are kept, where, and how they are read again. */

import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { CaptureOptions, Limits } from '../config/options.ts';
import type { SecretRegistry } from '../config/secrets.ts';
import type { ResponseLimits } from '../exchange/limits.ts';
import type { ExchangeObserver, ExchangeObservers, ObservedRequest } from '../exchange/observer.ts';
import type { Clock, Timer } from '../http/clock.ts';
import { matchesAny } from '../providers/wildcard.ts';
import { FileLock } from '../store/index.ts';
import { FOLDER_MODE } from '../tape/write.ts';
import { Allowance, BytePool } from './byte-log.ts';
import { type Capture, type CaptureSummary, measure, summarize } from './capture.ts';
import { cleanRecording } from './clean.ts';
import { writeTape } from './files.ts';
import { CaptureFolder } from './folder.ts';
import { Recording } from './recording.ts';
import { RING_LIMITS, Ring } from './ring.ts';

/** What captures need of the gateway. */
export interface CapturesOptions {
  options: CaptureOptions;
  /** Where captures are stored; null where only memory is used. */
  folder: string | null;
  secrets: SecretRegistry;
  limits: Limits;
  clock: Clock;
  /** Milliseconds since 1970; for tests. */
  wallClock?: () => number;
  /** An exchange that should have been captured was not. Called for each. */
  onFailure: (reason: string) => void;
}

/** The captures of a gateway. */
export class Captures implements ExchangeObservers {
  readonly #settings: CapturesOptions;
  readonly #wallClock: () => number;
  readonly #limits: ResponseLimits;
  readonly #ring = new Ring();
  readonly #pool = new BytePool(MAX_RUNNING_BYTES);
  readonly #sweep: Timer | undefined;
  #options: CaptureOptions;
  /** Clients need keys since a reload. */
  #hasKeys = false;
  #folder: CaptureFolder | undefined;
  #lock: FileLock | undefined;
  /** It was reported that the folder cannot be used. */
  #isReported = false;
  /** Captures that wait to be written. */
  #waitingBytes = 0;
  /** Exchanges for the ring with their secrets, oldest first: most are dropped before anybody reads them. */
  readonly #unread = new Set<Recording>();
  #unreadBytes = 0;
  #work: Promise<void> = Promise.resolve();

  private constructor(settings: CapturesOptions) {
    this.#settings = settings;
    this.#options = settings.options;
    this.#wallClock = settings.wallClock ?? Date.now;
    this.#limits = pickLimits(settings.limits);
    this.#sweep = settings.folder === null ? undefined : settings.clock.setRepeating(() => this.#enqueueSweep(), SWEEP_MS);
    this.#sweep?.unref();
  }

  /** Opens the captures of earlier runs. A folder that cannot be used is reported, and tried again with every sweep. */
  static async open(settings: CapturesOptions): Promise<Captures> {
    const captures = new Captures(settings);
    await captures.#openFolder();
    captures.#enqueueSweep();
    return captures;
  }

  /**
   * A folder has one writer: each knows the captures that it has written itself, and removes what looks unfinished to it.
   * Another gateway may have the folder for a while, as when it still serves its last requests.
   */
  async #openFolder(): Promise<void> {
    const { folder } = this.#settings;
    if (folder === null || this.#folder) return;
    try {
      await mkdir(dirname(folder), { recursive: true, mode: FOLDER_MODE });
      this.#lock = FileLock.take(`${folder}.lock`, 0);
      if (this.#lock) this.#folder = await CaptureFolder.open(folder, this.#wallClock);
      else if (this.#isStoring) this.#reportFolder(describeInUse(folder));
    } catch (error) {
      this.#lock?.release();
      this.#lock = undefined;
      this.#reportFolder(String(error));
    }
  }

  /** Once: until the folder can be used, every sweep finds the same. */
  #reportFolder(reason: string): void {
    if (!this.#isReported) this.#settings.onFailure(reason);
    this.#isReported = true;
  }

  /** Whether the options name anything that is to be stored. */
  get #isStoring(): boolean {
    const { models, providers, keys } = this.#options;
    return models.length + providers.length + keys.length > 0;
  }

  /** Applies changed options. With client keys, the captures in memory are dropped. */
  configure(options: CaptureOptions, hasKeys: boolean): void {
    this.#options = options;
    this.#hasKeys = hasKeys;
    if (hasKeys || !options.ring) {
      for (const recording of this.#unread) this.#drop(recording);
      this.#ring.clear();
    }
    this.#enqueueSweep();
  }

  begin(request: ObservedRequest): ExchangeObserver | undefined {
    const { providers } = this.#options;
    // Which provider responds is not known yet.
    if (!this.#usesRing(request) && providers.length === 0 && !this.#isChosen(request)) return undefined;
    const limit = Math.min(this.#options.exchangeBytes, RING_LIMITS.bytes);
    return new Recording(request, {
      allowance: new Allowance(this.#pool, limit),
      now: this.#settings.clock.now,
      wallClock: this.#wallClock,
      onEnd: (recording) => this.#finish(recording),
    });
  }

  /** One capture, by the id of the exchange, or of a request that is still in memory. */
  async get(id: string): Promise<Capture | undefined> {
    await this.#cleanAll();
    return this.#ring.get(id) ?? this.#folder?.get(id);
  }

  /** The ids of all captures, newest first. */
  listIds(): string[] {
    const unread = [...this.#unread].map(({ request }) => request.id || request.requestId);
    const ids = new Set([...unread, ...this.#ring.list().map(({ id }) => id), ...(this.#folder?.listIds() ?? [])]);
    return [...ids].toSorted((a, b) => (a < b ? 1 : -1));
  }

  /** The newest captures, newest first. */
  async list(limit = 100): Promise<CaptureSummary[]> {
    await this.#cleanAll();
    const kept = this.#ring.list().slice(0, limit);
    const known = new Set(kept.map(({ id }) => id));
    const stored: CaptureSummary[] = [];
    for (const id of this.#folder?.listIds().slice(0, limit) ?? []) {
      const summary = known.has(id) ? undefined : await this.#folder?.getSummary(id);
      if (summary) stored.push(summary);
    }
    const all = [...kept.map((capture) => summarize(capture, 'memory')), ...stored];
    return all.toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)).slice(0, limit);
  }

  /** Writes a tape to a new folder: what the client sent and received, or an attempt by its number. False if unknown. */
  async exportTape(id: string, folder: string, attempt?: number): Promise<boolean> {
    const capture = await this.get(id);
    if (capture) await writeTape(folder, capture, attempt);
    return capture !== undefined;
  }

  /** What is kept at the moment. */
  status(): { memoryBytes: number; folderBytes: number; stored: number } {
    return { memoryBytes: this.#ring.bytes, folderBytes: this.#folder?.bytes ?? 0, stored: this.#folder?.count ?? 0 };
  }

  /** Waits until finished exchanges are stored. */
  async settled(): Promise<void> {
    for (let work: Promise<void> | undefined; work !== this.#work; ) {
      work = this.#work;
      await work;
    }
  }

  async close(): Promise<void> {
    this.#sweep?.close();
    await this.settled();
    this.#lock?.release();
    this.#lock = undefined;
  }

  #usesRing({ isOpen }: ObservedRequest): boolean {
    return isOpen && this.#options.ring && !this.#hasKeys;
  }

  /** Whether the options name the model or the key of a request. */
  #isChosen({ model, key }: ObservedRequest): boolean {
    const { models, keys } = this.#options;
    return (model !== undefined && matchesAny(models, model)) || (key !== undefined && matchesAny(keys, key));
  }

  /** Whether an exchange is stored, by its request and its attempts. */
  #isStored({ request, attempts }: Recording): boolean {
    const { models, providers } = this.#options;
    const isNamed = attempts.some(
      ({ provider, options }) =>
        matchesAny(providers, provider.id) ||
        (options?.model !== undefined && matchesAny(models, `${provider.id}/${options.model}`)),
    );
    return isNamed || this.#isChosen(request);
  }

  /** After the response: removing secrets takes 4 ms per MB, so that each capture gets a turn of the event loop. */
  #finish(recording: Recording): void {
    const isStored = this.#isStored(recording);
    if (!isStored && !this.#usesRing(recording.request)) {
      recording.allowance.release();
      return;
    }
    if (!isStored) {
      this.#addUnread(recording);
      return;
    }
    this.#enqueue(async () => {
      await nextTurn();
      this.#clean(recording, isStored);
    });
  }

  /** The ring keeps the last ones only, so their secrets are removed when somebody looks. */
  #addUnread(recording: Recording): void {
    this.#unread.add(recording);
    this.#unreadBytes += recording.allowance.used;
    const [oldest] = this.#unread;
    if (oldest && this.#unread.size > RING_LIMITS.count) this.#drop(oldest);
    else if (this.#unreadBytes > MAX_UNREAD_BYTES) this.#enqueue(() => this.#cleanAll());
  }

  /** False when another caller has taken it. */
  #takeUnread(recording: Recording): boolean {
    if (!this.#unread.delete(recording)) return false;
    this.#unreadBytes -= recording.allowance.used;
    return true;
  }

  #drop(recording: Recording): void {
    if (this.#takeUnread(recording)) recording.allowance.release();
  }

  async #cleanAll(): Promise<void> {
    for (const recording of [...this.#unread]) {
      await nextTurn();
      try {
        if (this.#takeUnread(recording)) this.#clean(recording, false);
      } catch (error) {
        this.#settings.onFailure(String(error));
      }
    }
  }

  #clean(recording: Recording, isStored: boolean): void {
    try {
      const capture = cleanRecording(recording, this.#settings.secrets, this.#limits);
      if (this.#usesRing(recording.request) || (isStored && !this.#folder)) this.#ring.add(capture);
      if (isStored && this.#folder) this.#store(capture, this.#folder);
    } finally {
      recording.allowance.release();
    }
  }

  #store(capture: Capture, folder: CaptureFolder): void {
    const bytes = measure(capture);
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#settings.onFailure('captures arrive faster than they can be written');
      return;
    }
    this.#waitingBytes += bytes;
    this.#enqueue(() => folder.save(capture, this.#options).finally(() => (this.#waitingBytes -= bytes)));
  }

  #enqueueSweep(): void {
    if (this.#settings.folder === null) return;
    this.#enqueue(async () => {
      await this.#openFolder();
      await this.#folder?.sweep(this.#options);
    });
  }

  /** One task at a time, in order. A task that fails is reported and does not stop the next. */
  #enqueue(task: () => Promise<void>): void {
    this.#work = this.#work.then(task).catch((error: unknown) => this.#settings.onFailure(String(error)));
  }
}

/** What all running exchanges may hold together; recordings above it are truncated. */
const MAX_RUNNING_BYTES = 64_000_000;

/** What exchanges may hold together until they are read. */
const MAX_UNREAD_BYTES = 16_000_000;

/** What may wait to be written; captures above it are dropped. */
const MAX_WAITING_BYTES = 32_000_000;

const SWEEP_MS = 600_000;

const describeInUse = (folder: string): string =>
  `another gateway stores its captures in "${folder}"; give each gateway a data folder of its own. Until the other ends, captures are kept in memory`;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const pickLimits = ({ choices, toolCalls, contentBlocks, argumentBytes, argumentDepth }: Limits): ResponseLimits => ({
  choices,
  toolCalls,
  contentBlocks,
  argumentBytes,
  argumentDepth,
});
