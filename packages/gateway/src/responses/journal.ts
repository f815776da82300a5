/** Keeps the response store in a file, so that it survives a restart: one line for every change. */

import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { renameFile } from '../files/rename.ts';
import type { Clock, Timer } from '../http/clock.ts';
import type { Json } from './items.ts';
import { type LoadOptions, loadJournal } from './journal-loader.ts';
import { type Journal, type ResponseStore, readTurn, type Stored, type Turn } from './store.ts';

/** Opens the file of a store: loads what it contains, and writes what changes from now on. */
export async function openJournal(store: ResponseStore, options: JournalOptions): Promise<FileJournal> {
  await loadJournal(store, join(options.folder, FILE), options);
  const journal = new FileJournal(store, options);
  await journal.start();
  store.journal = journal;
  return journal;
}

/** Where and how the store is kept. */
export interface JournalOptions extends LoadOptions {
  folder: string;
  clock: Pick<Clock, 'now' | 'setRepeating'>;
  onFailure: (reason: string) => void;
  /** The file is rewritten when it exceeds twice its size after the last time, and this. */
  slackBytes?: number;
}

const FILE = 'responses.jsonl';
const FRESH = `${FILE}.new`;

/** The file contains prompts and responses. */
const PRIVATE = 0o600;

/** Removes the files of a store that is not kept on disk any more. */
export async function removeJournal(folder: string): Promise<void> {
  for (const name of [FILE, FRESH]) await rm(join(folder, name), { force: true });
}

const SLACK_BYTES = 16 * 1024 * 1024;

/** Bytes of a new file that are written before changes get their turn. */
const SLICE_BYTES = 1024 * 1024;

/** What was deleted or is too old leaves the file after this time at the latest. */
const SWEEP_MS = 3_600_000;

/**
 * Appends changes to a file. Changes that arrive while others are written are written together. From time to time the
 * file is replaced by a new one without what was removed.
 */
export class FileJournal implements Journal {
  readonly #store: ResponseStore;
  readonly #options: JournalOptions;
  #file: LineFile | undefined;
  #batch: Batch | undefined;
  #rewrite: Rewrite | undefined;
  /** The file is rewritten when it is larger. */
  #maxBytes = 0;
  /** The file contains what was removed, or lacks what could not be written. */
  #isStale = false;
  #isClosed = false;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(store: ResponseStore, options: JournalOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Replaces the file of the last run by one without what was removed. */
  async start(): Promise<void> {
    this.#rewrite = new Rewrite(this.#store, this.#options);
    while (!this.#file) await this.#continueRewrite();
    this.#timer = this.#options.clock.setRepeating(() => this.sweep(), SWEEP_MS).unref();
  }

  saved(entry: Stored): Promise<void> {
    // What is still in progress cannot be continued after a restart.
    if (isInProgress(entry)) return Promise.resolve();
    this.#rewrite?.changed.add(entry);
    return this.#add((file, lines) => file.describe(entry, this.#readTime(entry), lines));
  }

  removed(entry: Stored): void {
    this.#rewrite?.changed.add(entry);
    this.#isStale = true;
    void this.#add((_file, lines) => lines.push(describeRemoved(entry)));
  }

  /** Removes what is too old, from the file as well. */
  sweep(): void {
    this.#store.expire();
    if (this.#isStale) this.#startRewrite();
  }

  /** Resolves when everything is on disk, or could not be written. */
  async flush(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async close(): Promise<void> {
    this.#timer?.close();
    // A rewrite that is not finished is given up: the next start writes a new file in any case.
    this.#isClosed = true;
    await this.flush();
    await this.#rewrite?.abandon();
    await this.#file?.close();
  }

  #readTime(entry: Stored): number {
    return readTime(entry, this.#options);
  }

  #add(describe: (file: LineFile, lines: string[]) => void): Promise<void> {
    this.#batch ??= new Batch();
    if (this.#file) describe(this.#file, this.#batch.lines);
    this.#running ??= this.#run();
    return this.#batch.written;
  }

  #startRewrite(): void {
    if (this.#rewrite || this.#isClosed) return;
    this.#isStale = false;
    this.#rewrite = new Rewrite(this.#store, this.#options);
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // Changes of the same moment are written together.
    await Promise.resolve();
    while (this.#batch || (this.#rewrite && !this.#isClosed)) {
      await this.#writeBatch();
      if (this.#isClosed) continue;
      if (this.#rewrite) await this.#continueRewrite().catch((error: unknown) => this.#stopRewrite(error));
      else if (this.#file && this.#file.bytes > this.#maxBytes) this.#startRewrite();
    }
    this.#running = undefined;
  }

  async #writeBatch(): Promise<void> {
    const batch = this.#batch;
    if (!batch) return;
    this.#batch = undefined;
    try {
      await this.#file?.write(batch.lines);
    } catch (error) {
      this.#report(error);
      // The next sweep writes them again.
      this.#isStale = true;
    }
    batch.settle();
  }

  async #continueRewrite(): Promise<void> {
    const rewrite = this.#rewrite;
    const fresh = await rewrite?.write();
    if (!rewrite || !fresh) return;
    const before = this.#file;
    // Windows replaces no file that is open.
    await before?.close();
    await rewrite.finish(fresh).catch(async (error: unknown) => {
      await before?.open();
      throw error;
    });
    this.#file = fresh;
    this.#rewrite = undefined;
    this.#setMaxBytes(fresh.bytes);
    // What has changed since the last slice is in neither file; it was described for the old one.
    const lines = rewrite.describeChanges();
    if (this.#batch) this.#batch.lines = lines;
    else if (lines.length > 0) this.#batch = new Batch(lines);
  }

  async #stopRewrite(error: unknown): Promise<void> {
    const rewrite = this.#rewrite;
    this.#rewrite = undefined;
    this.#isStale = true;
    this.#setMaxBytes(this.#file?.bytes ?? 0);
    this.#report(error);
    await rewrite?.abandon();
  }

  #setMaxBytes(bytes: number): void {
    this.#maxBytes = 2 * bytes + (this.#options.slackBytes ?? SLACK_BYTES);
  }

  #report(error: unknown): void {
    this.#options.onFailure(error instanceof Error ? error.message : String(error));
  }
}

/** Lines that are written together. */
class Batch {
  lines: string[];
  readonly written: Promise<void>;
  settle: () => void = () => undefined;

  constructor(lines: string[] = []) {
    this.lines = lines;
    this.written = new Promise((resolve) => {
      this.settle = resolve;
    });
  }
}

/** A file of lines that is appended to. */
class LineFile {
  #path: string;
  #handle: FileHandle;
  /** Turns that the file contains, or will when the lines are written. */
  readonly #turns = new WeakSet<Turn>();
  #isDamaged = false;
  bytes = 0;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  static async create(path: string): Promise<LineFile> {
    return new LineFile(path, await open(path, 'w', PRIVATE));
  }

  /** Opens the file again after `close`. */
  async open(): Promise<void> {
    this.#handle = await open(this.#path, 'a', PRIVATE);
  }

  /** Gives the file another name. It is closed meanwhile, because Windows does not rename open files. */
  async moveTo(path: string): Promise<void> {
    await this.#handle.close();
    await renameFile(this.#path, path);
    this.#path = path;
    await this.open();
  }

  /** Adds the lines of an entry and of the turns that the file does not contain. */
  describe(entry: Stored, at: number, lines: string[]): void {
    const turn = readTurn(entry);
    const missing: Turn[] = [];
    for (let next = turn; next && !this.#turns.has(next); next = next.parent) missing.push(next);
    for (const next of missing.reverse()) {
      const { key, parent, input, body, ids, holder, maker } = next;
      this.#turns.add(next);
      lines.push(JSON.stringify({ t: 'turn', key, parent: parent?.key ?? null, input, body, ids, holder, maker }));
    }
    lines.push(JSON.stringify({ ...describeEntry(entry), turn: turn?.key ?? null, at }));
  }

  async write(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    // A write that failed may have left a part of a line.
    const text = Buffer.from(`${this.#isDamaged ? '\n' : ''}${lines.join('\n')}\n`);
    this.#isDamaged = true;
    await this.#handle.appendFile(text);
    await this.#handle.datasync();
    this.#isDamaged = false;
    this.bytes += text.length;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

/**
 * Writes all entries to a new file, in slices. Until the new file has its name, changes are written to the old one as
 * well: a crash at any moment leaves one of the two, complete.
 */
class Rewrite {
  readonly #store: ResponseStore;
  readonly #options: JournalOptions;
  readonly #entries: { entry: Stored; at: number }[];
  #next = 0;
  #file: LineFile | undefined;
  /** Entries that were saved or removed since the last slice that has them. */
  readonly changed = new Set<Stored>();

  constructor(store: ResponseStore, options: JournalOptions) {
    this.#store = store;
    this.#options = options;
    this.#entries = [];
    // The times are those of now, so that the lines are in their order.
    for (const entry of store.entries)
      if (store.isKept(entry) && !isInProgress(entry)) this.#entries.push({ entry, at: readTime(entry, options) });
  }

  /** Writes a slice. Resolves with the file when there are no more. */
  async write(): Promise<LineFile | undefined> {
    this.#file ??= await LineFile.create(join(this.#options.folder, FRESH));
    if (this.#next < this.#entries.length) {
      await this.#file.write(this.#describeSlice(this.#file));
      return undefined;
    }
    // Changes that arrive during this write are few; they follow when the file has its name.
    await this.#file.write(this.describeChanges());
    return this.#file;
  }

  /** Gives the file its name. */
  async finish(file: LineFile): Promise<void> {
    const { folder } = this.#options;
    await file.moveTo(join(folder, FILE));
    await syncFolder(folder);
  }

  /** Lines of what has changed. */
  describeChanges(): string[] {
    const lines: string[] = [];
    for (const entry of this.changed) {
      if (!this.#store.has(entry)) lines.push(describeRemoved(entry));
      else this.#file?.describe(entry, readTime(entry, this.#options), lines);
    }
    this.changed.clear();
    return lines;
  }

  async abandon(): Promise<void> {
    await this.#file?.close().catch(() => undefined);
    await rm(join(this.#options.folder, FRESH), { force: true }).catch(() => undefined);
  }

  #describeSlice(file: LineFile): string[] {
    const lines: string[] = [];
    for (let bytes = 0; bytes < SLICE_BYTES && this.#next < this.#entries.length; this.#next++) {
      const place = this.#entries[this.#next];
      if (!place || !this.#store.has(place.entry)) continue;
      const before = lines.length;
      file.describe(place.entry, place.at, lines);
      for (const line of lines.slice(before)) bytes += line.length;
    }
    return lines;
  }
}

/** Makes the new name of a file survive a crash of the system. Not all systems open folders; their files are safe without. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

const isInProgress = (entry: Stored): boolean => entry.kind === 'response' && !entry.turn && entry.events !== undefined;

/** When the entry was last used, in milliseconds since 1970. */
const readTime = ({ usedAt }: Stored, { clock, wallClock }: JournalOptions): number => wallClock() - (clock.now() - usedAt);

const describeRemoved = ({ kind, caller, id }: Stored): string => JSON.stringify({ t: 'removed', kind, caller, id });

function describeEntry(entry: Stored): Json {
  const { kind, id, caller } = entry;
  switch (entry.kind) {
    case 'response':
      return { t: kind, id, caller, holder: entry.holder };
    case 'conversation':
      return { t: kind, id, caller, created: entry.createdAt, metadata: entry.metadata, deleted: [...entry.deleted] };
    case 'object':
      return { t: kind, id, caller, provider: entry.provider };
    default:
      return entry satisfies never;
  }
}
