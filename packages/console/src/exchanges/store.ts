/** The state of the list: rows of the server that pass the filter, kept current by the live stream. */

import type { AdminResponses } from '@gateway/admin/types';
import { type Filter, matchesFilter, parseSearch } from '@gateway/store/filter';
import { signal } from '@preact/signals';
import { call } from '../lib/data.ts';
import { type LiveState, listenLive } from '../lib/live.ts';
import { RowList } from '../lib/row-list.ts';
import { describeError } from '../lib/session.ts';
import { ROW_FIELDS, type Row } from './columns.tsx';

/** The list of one filter, from its first row to its end. */
export class ExchangeList {
  readonly rows: RowList<Row>;
  /** Rises whenever something must be drawn again. */
  readonly version = signal(0);
  readonly live = signal<LiveState>('connecting');
  readonly isPaused = signal(false);
  /** Rows that arrived while the list was paused. */
  readonly waiting = signal(0);
  readonly failure = signal<string | undefined>(undefined);
  /** Rows that were added on top since the list was drawn: the view stays where it is. */
  added = 0;
  /** All rows that were ever added on top: with it, an element stays with its row when others are added above. */
  shift = 0;
  /** The filter has text, which the server searches for in captured bodies. New exchanges are not searched. */
  readonly isSearch: boolean;
  /** What was searched; undefined before, and without text. */
  readonly searched = signal<Searched | undefined>(undefined);
  readonly #text: string;
  readonly #abort = new AbortController();
  readonly #filter: Filter;
  #paused: Row[] = [];
  #isLoading = false;
  #stop: (() => void) | undefined;
  #isClosed = false;

  constructor(text: string, rows: RowList<Row> = new RowList()) {
    this.#text = text;
    const { filter, texts } = parseSearch(text, Date.now());
    this.#filter = filter;
    this.isSearch = texts.length > 0;
    this.rows = rows;
  }

  /** Connects the live stream, then loads the first page: so no exchange is missed in between. */
  open(): void {
    this.#stop = listenLive<Row>({
      fields: ROW_FIELDS,
      onRows: (rows) => this.#receive(rows),
      onGap: () => this.reload(),
      onState: (state) => {
        this.live.value = state;
      },
    });
    this.load(0, 1);
  }

  /** Ends everything. */
  close(): void {
    this.#isClosed = true;
    this.#abort.abort();
    this.#stop?.();
  }

  /** Set by the owner: replaces this list by a new one. */
  reload: () => void = () => undefined;

  /** Loads what is missing of these rows, one page after the other. */
  load(from: number, to: number): void {
    const wanted = this.rows.findRequest(from, to);
    if (!wanted || this.#isLoading || this.#isClosed) return;
    this.#isLoading = true;
    const query = { filter: this.#text, fields: ROW_FIELDS.join(','), limit: wanted.limit, cursor: wanted.cursor ?? undefined };
    call('GET exchanges', { query, signal: this.#abort.signal })
      .then(
        ({ exchanges, next, searched }) => {
          if (searched) this.searched.value = addSearched(this.searched.value, searched);
          // The response has the requested fields.
          this.rows.addPage(wanted, exchanges as Row[], next);
          this.failure.value = undefined;
        },
        (error: unknown) => {
          this.failure.value = describeError(error);
        },
      )
      .finally(() => {
        this.#isLoading = false;
        this.version.value++;
      });
  }

  /** Stops and continues to show new rows. */
  togglePause(): void {
    this.isPaused.value = !this.isPaused.value;
    if (this.isPaused.value) return;
    const rows = this.#paused;
    this.#paused = [];
    this.waiting.value = 0;
    if (rows.length >= MAX_PAUSED) this.reload();
    else this.#receive(rows);
  }

  #receive(rows: readonly Row[]): void {
    if (this.rows.isNew) {
      // The first page is being loaded, and may be older than these.
      setTimeout(() => !this.#isClosed && this.#receive(rows), RETRY_MS);
      return;
    }
    if (this.isPaused.value) {
      if (this.#paused.length < MAX_PAUSED) this.#paused.push(...rows);
      this.waiting.value = this.#paused.length;
      return;
    }
    for (const row of rows) this.#apply(row);
    this.version.value++;
  }

  #move(by: number): void {
    this.added += by;
    this.shift += by;
  }

  #apply(row: Row): void {
    if (this.isSearch) return;
    if (!matchesFilter(this.#filter, toFiltered(row))) {
      if (this.rows.remove(row.id)) this.#move(-1);
    } else if (this.rows.put(row) === 'added') this.#move(1);
  }
}

/** What was searched for text. */
type Searched = NonNullable<AdminResponses['GET exchanges']['searched']>;

/** The sum over the pages of a list. */
const addSearched = (before: Searched | undefined, page: Searched): Searched =>
  before ? { ...page, captures: before.captures + page.captures, bytes: before.bytes + page.bytes } : page;

/** More are not kept while the list is paused; it is loaded again. */
const MAX_PAUSED = 5000;

const RETRY_MS = 50;

/** A row as filters see it. */
const toFiltered = (row: Row) => ({
  ...row,
  ts: Date.parse(row.created_at),
  note_codes: row.notes.map(({ code }) => code.toLowerCase()),
});
