/** Keeps the response store in a file, so that it survives a restart: one line for every change. */

import { existsSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { renameFile } from '../files/rename.ts';
import type { Clock, Timer } from '../http/clock.ts';
import { FileLock } from '../store/index.ts';
import type { Json } from './items.ts';
import { type LoadOptions, loadJournal } from './journal-loader.ts';
import { type Journal, type ResponseStore, readTurn, type Stored } from './store.ts';
import type { SharedField, Turn } from './turns.ts';

/** Opens the file of a store: loads what it contains, and writes what changes from now on. */
export async function openJournal(store: ResponseStore, options: JournalOptions): Promise<FileJournal> {
  const lock = takeLock(options.folder);
  if (!lock) throw new JournalInUse(options.folder);
  try {
    await loadJournal(store, join(options.folder, FILE), options);
    const journal = new FileJournal(store, options, lock);
    await journal.start();
    store.journal = journal;
    return journal;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Another process writes the file. Each would replace the file of the other at its next rewrite, and lose what that wrote. */
export class JournalInUse extends Error {
  override readonly name = 'JournalInUse';

  constructor(folder: string) {
    super(
      `another gateway keeps its responses in the data folder "${folder}"; stop it first, give each gateway a data folder of its own, or set responses.store: memory`,
    );
  }
}

const takeLock = (folder: string): FileLock | undefined => FileLock.take(join(folder, LOCK));

/** Where and how the store is kept. */
export interface JournalOptions extends LoadOptions {
  folder: string;
  clock: Pick<Clock, 'now' | 'setTimer' | 'setRepeating'>;
  /** Called for each failure in a row of failures. */
  onFailure: (reason: string) => void;
  /** Everything is on disk again after a failure. */
  onRecovered?: () => void;
  /** The file is rewritten when it exceeds twice its size after the last time, and this. */
  slackBytes?: number;
}

const FILE = 'responses.jsonl';
const FRESH = `${FILE}.new`;
const LOCK = 'responses.lock';

/** The file contains prompts and responses. */
const PRIVATE = 0o600;

/** Removes the files of a store that is not kept on disk any more. Those of another gateway in the same folder stay. */
export async function removeJournal(folder: string): Promise<void> {
  if (!existsSync(join(folder, FILE)) && !existsSync(join(folder, LOCK))) return;
  const lock = takeLock(folder);
  if (!lock) return;
  for (const name of [FILE, FRESH]) await rm(join(folder, name), { force: true });
  lock.release();
}

const SLACK_BYTES = 16 * 1024 * 1024;

/** Bytes of a new file that are written before changes get their turn. */
const SLICE_BYTES = 1024 * 1024;

/** The wait before the second attempt to write what could not be written, and the longest one: it doubles. */
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;

/** How much of the age of an entry may come from uses that were not written: at most this, and a part of the retention. */
const MAX_USE_MS = 3_600_000;
const USES_IN_RETENTION = 24;

/** What was deleted or is too old leaves the file after this time at the latest. */
const SWEEP_MS = 3_600_000;

/**
 * Appends changes to a file. Changes that arrive while others are written are written together. From time to time the
 * file is replaced by a new one without what was removed.
 */
export class FileJournal implements Journal {
  readonly #store: ResponseStore;
  readonly #options: JournalOptions;
  readonly #lock: FileLock;
  #file: LineFile | undefined;
  #batch: Batch | undefined;
  #rewrite: Rewrite | undefined;
  /** The file is rewritten when it is larger. */
  #maxBytes = 0;
  /** The file contains what was removed. */
  #isStale = false;
  /** The file lacks what could not be written: a rewrite is under way, or waits for the timer. */
  #isBehind = false;
  #retryMs = 0;
  #retryTimer: Timer | undefined;
  #isClosed = false;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(store: ResponseStore, options: JournalOptions, lock: FileLock) {
    this.#store = store;
    this.#options = options;
    this.#lock = lock;
  }

  /** Replaces the file of the last run by one without what was removed. */
  async start(): Promise<void> {
    this.#rewrite = new Rewrite(this.#store, this.#options);
    while (!this.#file) await this.#continueRewrite();
    this.#timer = this.#options.clock.setRepeating(() => this.sweep(), SWEEP_MS).unref();
  }

  saved(entry: Stored): Promise<void> {
    // What is still in progress cannot be continued after a restart.
    return isInProgress(entry) ? Promise.resolve() : this.#add(entry);
  }

  /** Writes the time of a use when the file has an older one by more than a restart may forget. */
  used(entry: Stored): void {
    const known = this.#file?.findUse(entry);
    const { retentionMs } = this.#options;
    if (known === undefined || readTime(entry, this.#options) - known >= Math.min(MAX_USE_MS, retentionMs / USES_IN_RETENTION))
      void this.saved(entry);
  }

  removed(entry: Stored): void {
    this.#isStale = true;
    void this.#add(entry);
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
    if (this.#isBehind) await this.#writeAtLast();
    // A rewrite that is not finished is given up: the next start writes a new file in any case.
    this.#isClosed = true;
    await this.flush();
    await this.#rewrite?.abandon();
    await this.#file?.close();
    this.#lock.release();
  }

  /** The last chance to write what could not be written. */
  async #writeAtLast(): Promise<void> {
    this.#startRewrite();
    await this.flush();
    this.#retryTimer?.close();
  }

  #add(entry: Stored): Promise<void> {
    this.#batch ??= new Batch();
    this.#batch.changed.add(entry);
    this.#rewrite?.changed.add(entry);
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
      const file = this.#file;
      await file?.write(describeChanges(batch.changed, file, this.#store, this.#options));
    } catch (error) {
      this.#report(error);
      this.#retry();
    }
    batch.settle();
  }

  /** Writes all entries again: at once, and then with growing pauses until it succeeds. */
  #retry(): void {
    this.#isBehind = true;
    if (this.#rewrite || this.#retryTimer || this.#isClosed) return;
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, 2 * waitMs));
    const start = (): void => {
      this.#retryTimer = undefined;
      this.#startRewrite();
    };
    if (waitMs === 0) start();
    else this.#retryTimer = this.#options.clock.setTimer(start, waitMs).unref();
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
    this.#recover();
  }

  #recover(): void {
    if (!this.#isBehind) return;
    this.#isBehind = false;
    this.#retryMs = 0;
    this.#retryTimer?.close();
    this.#retryTimer = undefined;
    this.#options.onRecovered?.();
  }

  async #stopRewrite(error: unknown): Promise<void> {
    const rewrite = this.#rewrite;
    this.#rewrite = undefined;
    this.#isStale = true;
    this.#setMaxBytes(this.#file?.bytes ?? 0);
    this.#report(error);
    await rewrite?.abandon();
    if (this.#isBehind) this.#retry();
  }

  #setMaxBytes(bytes: number): void {
    this.#maxBytes = 2 * bytes + (this.#options.slackBytes ?? SLACK_BYTES);
  }

  #report(error: unknown): void {
    this.#options.onFailure(error instanceof Error ? error.message : String(error));
  }
}

/** Changes that are written together. They are described when they are written: what the file has is known then. */
class Batch {
  readonly changed = new Set<Stored>();
  readonly written: Promise<void>;
  settle: () => void = () => undefined;

  constructor() {
    this.written = new Promise((resolve) => {
      this.settle = resolve;
    });
  }
}

/** Something that entries share, and that a file contains once. */
type Part = Turn | SharedField;

/** Lines for one file, and the parts that it contains when they are written. */
class Lines {
  readonly texts: string[] = [];
  readonly parts = new Set<Part>();
  characters = 0;

  add(line: Json): void {
    const text = JSON.stringify(line);
    this.texts.push(text);
    this.characters += text.length;
  }

  addPart(part: Part, line: Json): void {
    this.parts.add(part);
    this.add(line);
  }
}

/** A file of lines that is appended to. */
class LineFile {
  #path: string;
  #handle: FileHandle;
  /** What the file contains for certain: a write that failed adds nothing. */
  readonly #parts = new WeakSet<Part>();
  /** When entries were last used by their latest lines. After a write that failed, another file takes the place of this one. */
  readonly #uses = new WeakMap<Stored, number>();
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

  /** Adds the lines of an entry, and of what it needs and the file does not contain. */
  describe(entry: Stored, at: number, lines: Lines): void {
    const turn = readTurn(entry);
    const missing: Turn[] = [];
    for (let next = turn; next && !this.#has(next, lines); next = next.parent) missing.push(next);
    for (const next of missing.reverse()) {
      for (const field of next.fields)
        if (!this.#has(field, lines)) lines.addPart(field, { t: 'field', name: field.name, text: field.text });
      lines.addPart(next, describeTurn(next));
    }
    lines.add({ ...describeEntry(entry), turn: turn?.key ?? null, at });
    this.#uses.set(entry, at);
  }

  /** When the entry was last used, as the file has it, in milliseconds since 1970; undefined when it has no line. */
  findUse(entry: Stored): number | undefined {
    return this.#uses.get(entry);
  }

  #has(part: Part, lines: Lines): boolean {
    return this.#parts.has(part) || lines.parts.has(part);
  }

  async write({ texts, parts }: Lines): Promise<void> {
    if (texts.length === 0) return;
    // A write that failed may have left a part of a line.
    const text = Buffer.from(`${this.#isDamaged ? '\n' : ''}${texts.join('\n')}\n`);
    this.#isDamaged = true;
    await this.#handle.appendFile(text);
    await this.#handle.datasync();
    this.#isDamaged = false;
    this.bytes += text.length;
    for (const part of parts) this.#parts.add(part);
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
    // Changes that arrive during this write wait for the next batch, which is written when the file has its name.
    const changed = [...this.changed];
    this.changed.clear();
    await this.#file.write(describeChanges(changed, this.#file, this.#store, this.#options));
    return this.#file;
  }

  /** Gives the file its name. */
  async finish(file: LineFile): Promise<void> {
    const { folder } = this.#options;
    await file.moveTo(join(folder, FILE));
    await syncFolder(folder);
  }

  async abandon(): Promise<void> {
    await this.#file?.close().catch(() => undefined);
    await rm(join(this.#options.folder, FRESH), { force: true }).catch(() => undefined);
  }

  #describeSlice(file: LineFile): Lines {
    const lines = new Lines();
    for (; lines.characters < SLICE_BYTES && this.#next < this.#entries.length; this.#next++) {
      const place = this.#entries[this.#next];
      if (place && this.#store.has(place.entry)) file.describe(place.entry, place.at, lines);
    }
    return lines;
  }
}

/** Lines of entries that were saved or removed. */
function describeChanges(changed: Iterable<Stored>, file: LineFile, store: ResponseStore, options: JournalOptions): Lines {
  const lines = new Lines();
  for (const entry of changed)
    if (!store.has(entry)) lines.add(describeRemoved(entry));
    else file.describe(entry, readTime(entry, options), lines);
  return lines;
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

const describeRemoved = ({ kind, caller, id }: Stored): Json => ({ t: 'removed', kind, caller, id });

const describeTurn = ({ key, parent, input, body, fields, ids, sizes, references, holder, maker }: Turn): Json => ({
  ...{ t: 'turn', key, parent: parent?.key ?? null, input, body, fields: fields.map(({ digest }) => digest) },
  ...{ ids, sizes, references: Object.fromEntries(references), holder, maker },
});

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
