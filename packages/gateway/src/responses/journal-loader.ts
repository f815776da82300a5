/** Reads the file of a response store, line by line: it may be larger than the longest text of the runtime. */

import { createReadStream } from 'node:fs';
import type { Clock } from '../http/clock.ts';
import { isJson, type Json, parse } from './items.ts';
import { createResponseEntry } from './request-state.ts';
import { ENTRY_BYTES, measureConversation, type ResponseStore } from './store.ts';
import { createField, createTurn, type ItemFacts, type SharedField, type Turn } from './turns.ts';

/** Loads a file into a store. A file that does not exist is empty. */
export async function loadJournal(store: ResponseStore, path: string, options: LoadOptions): Promise<void> {
  const loader = new Loader(store, options);
  try {
    // The last line may be incomplete after a crash; it is not valid JSON then.
    for await (const line of readLines(path)) loader.read(parse(line));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}

/** What decides which entries are too old. */
export interface LoadOptions {
  retentionMs: number;
  clock: Pick<Clock, 'now'>;
  /** Milliseconds since 1970: the clock of the store starts with the process. */
  wallClock: () => number;
}

/** A longer line is skipped. No entry within the limits of a store has one. */
const LINE_BYTES = 256 * 1024 * 1024;

const NEWLINE = 0x0a;

/** Lines end at a newline only: texts in them contain other separators. */
async function* readLines(path: string): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer): void => {
    length += part.length;
    if (length <= LINE_BYTES) parts.push(part);
    else parts = [];
  };
  const take = (): string => {
    const line = Buffer.concat(parts).toString();
    parts = [];
    length = 0;
    return line;
  };
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    const data: Buffer = chunk;
    let start = 0;
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE, start)) {
      add(data.subarray(start, end));
      yield take();
      start = end + 1;
    }
    add(data.subarray(start));
  }
  yield take();
}

class Loader {
  readonly #store: ResponseStore;
  readonly #options: LoadOptions;
  readonly #turns = new Map<string, Turn>();
  readonly #fields = new Map<string, SharedField>();

  constructor(store: ResponseStore, options: LoadOptions) {
    this.#store = store;
    this.#options = options;
  }

  read(line: unknown): void {
    if (!isJson(line)) return;
    const { t: type, id, caller, key } = line;
    if (type === 'turn' && typeof key === 'string') this.#readTurn(key, line);
    else if (type === 'field') this.#readField(line);
    else if (type === 'removed') this.#remove(line);
    else if (typeof id === 'string' && typeof caller === 'string') this.#readEntry(line, id, caller);
  }

  #readField({ name, text }: Json): void {
    if (typeof name !== 'string' || typeof text !== 'string') return;
    const field = createField(name, text);
    this.#fields.set(field.digest, field);
  }

  #readTurn(key: string, { parent, input, body, fields, ids, sizes, references, holder, maker }: Json): void {
    // A line may be there twice: the first time, it was not known whether it had been written.
    if (this.#isMissing(parent) || this.#turns.has(key)) return;
    const turn = createTurn({
      key,
      parent: this.#findTurn(parent),
      input: toText(input),
      body: toText(body),
      fields: Array.isArray(fields) ? fields.flatMap((digest) => this.#fields.get(toText(digest)) ?? []) : [],
      ids: Array.isArray(ids) ? ids.map(toText) : [],
      ...readFacts(sizes, references),
      holder: toText(holder),
      maker: toText(maker),
    });
    this.#turns.set(key, turn);
  }

  #findTurn(key: unknown): Turn | undefined {
    return typeof key === 'string' ? this.#turns.get(key) : undefined;
  }

  /** A conversation whose beginning could not be written is unknown, rather than continued without it. */
  #isMissing(key: unknown): boolean {
    return typeof key === 'string' && !this.#turns.has(key);
  }

  #remove({ kind, caller, id }: Json): void {
    if (kind !== 'response' && kind !== 'conversation' && kind !== 'object') return;
    const known = this.#store.find(kind, toText(id), toText(caller));
    if (known) this.#store.remove(known);
  }

  #readEntry(line: Json, id: string, caller: string): void {
    const { t: type, holder, provider, created, metadata, deleted, at } = line;
    const age = typeof at === 'number' ? this.#options.wallClock() - at : Number.POSITIVE_INFINITY;
    if (age > this.#options.retentionMs || this.#isMissing(line['turn'])) return;
    const turn = this.#findTurn(line['turn']);
    const usedAt = this.#options.clock.now() - Math.max(0, age);
    const common = { id, caller, usedAt, isPinned: false };
    if (type === 'response')
      this.#store.restore({ ...createResponseEntry({ id, caller, holder: toText(holder), body: '', turn }), usedAt });
    else if (type === 'object')
      this.#store.restore({ ...common, kind: 'object', provider: toText(provider), bytes: ENTRY_BYTES });
    else if (type === 'conversation')
      this.#store.restore({
        ...common,
        kind: 'conversation',
        createdAt: typeof created === 'number' ? created : 0,
        metadata,
        head: turn,
        deleted: new Set(Array.isArray(deleted) ? deleted.map(toText) : []),
        bytes: measureConversation(metadata),
      });
  }
}

const toText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Nothing for files of earlier versions, which have no such fields. */
function readFacts(sizes: unknown, references: unknown): Partial<ItemFacts> {
  if (!Array.isArray(sizes) || !sizes.every((size) => typeof size === 'number') || !isJson(references)) return {};
  return { sizes, references: new Map(Object.entries(references).map(([place, id]) => [Number(place), toText(id)])) };
}
