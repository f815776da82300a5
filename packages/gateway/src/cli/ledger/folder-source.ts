/** The ledger of a data folder or PostgreSQL database, also while gateways write to it. */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ExchangeDetail,
  type ExchangePage,
  type ExchangeRow,
  matchesFilter,
  openStoreReader,
  type StoreReader,
  type UsageQuery,
  type UsageRow,
} from '../../store/index.ts';
import { describeAddress, isPostgres } from '../../store/postgres/address.ts';
import type { LedgerSource, LogFilter, Notify, PageQuery } from './source.ts';

const POLL_MS = 500;

const PAGE_ROWS = 1000;

/** Running exchanges that are waited for; each is looked up at every poll. */
const MAX_PENDING = 500;

/** Reads a data folder. */
export class FolderSource implements LedgerSource {
  readonly name: string;
  readonly #reader: StoreReader;

  private constructor(name: string, reader: StoreReader) {
    this.name = name;
    this.#reader = reader;
  }

  /** Opens a folder that has a database; `why` says why the gateway was not used. */
  static async open(folder: string, why: string | undefined): Promise<FolderSource> {
    const name = isPostgres(folder) ? describeAddress(folder) : folder;
    return new FolderSource(`${name}${why === undefined ? '' : ` (${why})`}`, await openStoreReader(folder));
  }

  list({ filter, cursor, limit }: PageQuery): Promise<ExchangePage> {
    return this.#reader.list({ filter: filter.parsed, cursor, limit });
  }

  get(id: string): Promise<ExchangeDetail | null> {
    return this.#reader.get(id);
  }

  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#reader.usage(query);
  }

  async keyNames(): Promise<ReadonlyMap<string, string>> {
    return new Map((await this.#reader.listKeys()).map(({ id, name }) => [id, name]));
  }

  async follow(filter: LogFilter, signal: AbortSignal, onNotice: Notify): Promise<AsyncIterable<ExchangeRow>> {
    const { exchanges } = await this.#reader.list({ limit: PAGE_ROWS });
    const open = exchanges.filter(({ state }) => state === 'open').map(({ id }) => id);
    return this.#poll(filter, { newest: exchanges[0]?.id ?? '', pending: new Set(open.reverse()) }, signal, onNotice);
  }

  async *#poll(
    { parsed }: LogFilter,
    { newest: start, pending }: { newest: string; pending: Set<string> },
    signal: AbortSignal,
    onNotice: Notify,
  ): AsyncGenerator<ExchangeRow, void, undefined> {
    let newest = start;
    while (!signal.aborted) {
      yield* (await this.#takeSettled(pending)).filter((row) => matchesFilter(parsed, row));
      for await (const row of this.#readAbove(newest)) {
        newest = row.id;
        if (row.state === 'open') pending.add(row.id);
        else if (matchesFilter(parsed, row)) yield row;
      }
      if (dropOldest(pending, MAX_PENDING) > 0)
        await onNotice(`more than ${MAX_PENDING} exchanges run; the oldest are not shown`);
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Removes the exchanges that have settled, and returns them in the order of their ends. */
  async #takeSettled(pending: Set<string>): Promise<ExchangeRow[]> {
    const settled: ExchangeRow[] = [];
    for (const id of [...pending]) {
      const exchange = (await this.#reader.get(id))?.exchange;
      if (exchange?.state === 'open') continue;
      pending.delete(id);
      if (exchange) settled.push(exchange);
    }
    return settled.sort((a, b) => (a.settled_ts ?? 0) - (b.settled_ts ?? 0));
  }

  /** The exchanges after an id, oldest first. Pages are newest first, so all but one are read twice instead of being kept. */
  async *#readAbove(id: string): AsyncGenerator<ExchangeRow, void, undefined> {
    const first = await this.#reader.list({ limit: PAGE_ROWS });
    const cursors: string[] = [];
    let page = first;
    while (page.next !== null && page.next > id) {
      cursors.push(page.next);
      page = await this.#reader.list({ limit: PAGE_ROWS, cursor: page.next });
    }
    for (const cursor of cursors.reverse())
      yield* takeAbove(id, (await this.#reader.list({ limit: PAGE_ROWS, cursor })).exchanges);
    yield* takeAbove(id, first.exchanges);
  }

  close(): Promise<unknown> {
    return this.#reader.close();
  }
}

const takeAbove = (id: string, rows: readonly ExchangeRow[]): ExchangeRow[] => rows.filter((row) => row.id > id).reverse();

function dropOldest(ids: Set<string>, max: number): number {
  const surplus = [...ids].slice(0, Math.max(0, ids.size - max));
  for (const id of surplus) ids.delete(id);
  return surplus.length;
}
