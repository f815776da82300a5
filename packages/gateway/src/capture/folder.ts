/** Captures on disk: one folder each, with limits on age and size. */

import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { renameFile } from '../files/rename.ts';
import { FOLDER_MODE } from '../tape/write.ts';
import type { Capture, CaptureSummary } from './capture.ts';
import { CAPTURE_FILE, readCapture, readSummary, writeCapture } from './files.ts';

/** How much a folder keeps. */
export interface FolderLimits {
  retentionMs: number;
  maxBytes: number;
}

/** The captures of a data folder. */
export class CaptureFolder {
  readonly #folder: string;
  readonly #wallClock: () => number;
  /** By id, oldest first. */
  #entries = new Map<string, Entry>();
  #bytes = 0;

  private constructor(folder: string, wallClock: () => number) {
    this.#folder = folder;
    this.#wallClock = wallClock;
  }

  /** Finds the captures of earlier runs and removes what was not finished. */
  static async open(folder: string, wallClock: () => number): Promise<CaptureFolder> {
    const opened = new CaptureFolder(folder, wallClock);
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    await chmod(folder, FOLDER_MODE);
    await opened.#load();
    return opened;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Writes a capture: it appears complete or not at all. Captures beyond the limits are deleted, the oldest first. */
  async save(capture: Capture, limits: FolderLimits): Promise<void> {
    const { id } = capture;
    if (!ID.test(id)) throw new Error('the exchange has no valid id');
    const part = join(this.#folder, `.${id}.part`);
    try {
      await rm(part, { recursive: true, force: true });
      const bytes = await writeCapture(part, capture);
      await renameFile(part, join(this.#folder, id));
      this.#entries.set(id, { at: Date.parse(capture.at), bytes });
      this.#bytes += bytes;
    } catch (error) {
      await rm(part, { recursive: true, force: true });
      throw error;
    }
    await this.sweep(limits);
  }

  /** Deletes what is too old or too much. */
  async sweep({ retentionMs, maxBytes }: FolderLimits): Promise<void> {
    const oldest = this.#wallClock() - retentionMs;
    for (const [id, { at }] of this.#entries) {
      if (at >= oldest && this.#bytes <= maxBytes) return;
      await this.#delete(id);
    }
  }

  async get(id: string): Promise<Capture | undefined> {
    return this.#entries.has(id) ? readCapture(join(this.#folder, id)) : undefined;
  }

  async getSummary(id: string): Promise<CaptureSummary | undefined> {
    return this.#entries.has(id) ? readSummary(join(this.#folder, id)) : undefined;
  }

  /** The ids of captures, newest first. */
  listIds(): string[] {
    return [...this.#entries.keys()].toReversed();
  }

  async #delete(id: string): Promise<void> {
    const path = join(this.#folder, id);
    // Hidden first: a folder that is half deleted must not look like a capture.
    const hidden = join(this.#folder, `.${id}.gone`);
    await renameFile(path, hidden).catch(() => undefined);
    await rm(hidden, { recursive: true, force: true });
    this.#bytes -= this.#entries.get(id)?.bytes ?? 0;
    this.#entries.delete(id);
  }

  async #load(): Promise<void> {
    const found: [string, Entry][] = [];
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (UNFINISHED.test(name)) await rm(path, { recursive: true, force: true });
      const entry = ID.test(name) ? await measureEntry(path) : undefined;
      if (entry) found.push([name, entry]);
    }
    this.#entries = new Map(found.toSorted(([, a], [, b]) => a.at - b.at));
    this.#bytes = found.reduce((sum, [, { bytes }]) => sum + bytes, 0);
  }
}

interface Entry {
  /** When it was captured, or written. */
  at: number;
  bytes: number;
}

/** Ids of exchanges and requests: they name folders, so that no other text may. */
const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Names that an interrupted write or deletion leaves behind. */
const UNFINISHED = /^\.[\da-f-]{36}\.(part|gone)$/;

async function measureEntry(folder: string): Promise<Entry | undefined> {
  try {
    let bytes = 0;
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
      if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
    return { at: (await stat(join(folder, CAPTURE_FILE))).mtimeMs, bytes };
  } catch {
    return undefined;
  }
}
