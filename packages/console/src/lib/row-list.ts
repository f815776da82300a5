/**
 * The rows of a list that may have any length: pages of the server, newest first, of which only those near the view are in
 * memory, and new rows on top. Ids sort by time, and the cursor of a page is the id that all its rows are below.
 */

interface Identified {
  readonly id: string;
}

/** One page. */
interface Page<Row> {
  /** The rows are below this id; null for the newest. */
  readonly cursor: string | null;
  /** Null when they were dropped from memory. */
  rows: Row[] | null;
  count: number;
  /** When it was last in view. */
  used: number;
}

/** A page to request from the server. */
export interface PageRequest {
  readonly cursor: string | null;
  readonly limit: number;
}

/** Rows of a page of the server. */
export const PAGE_ROWS = 500;

/** Rows in memory. */
const MAX_ROWS = 5000;

/** When the newest page is split. */
const MAX_HEAD_ROWS = 2 * PAGE_ROWS;

/** A list of rows in pages. */
export class RowList<Row extends Identified> {
  #pages: Page<Row>[] = [];
  /** The cursor of the page after the last one; null at the end, undefined before the first page. */
  #next: string | null | undefined;
  #clock = 0;

  /** Rows that are known, in memory or not. */
  get length(): number {
    return this.#pages.reduce((sum, { count }) => sum + count, 0);
  }

  /** Rows in memory. */
  get kept(): number {
    return this.#pages.reduce((sum, { rows }) => sum + (rows?.length ?? 0), 0);
  }

  /** Whether all rows are known. */
  get isComplete(): boolean {
    return this.#next === null;
  }

  /** Whether nothing was loaded yet. */
  get isNew(): boolean {
    return this.#next === undefined;
  }

  /** The rows from an index on; undefined for those that are not in memory. */
  slice(from: number, to: number): (Row | undefined)[] {
    const found: (Row | undefined)[] = [];
    let start = 0;
    for (const page of this.#pages) {
      const end = start + page.count;
      if (end > from && start < to) {
        page.used = ++this.#clock;
        for (let at = Math.max(from, start); at < Math.min(to, end); at++) found.push(page.rows?.[at - start]);
      }
      start = end;
    }
    return found;
  }

  /** The index of a row; -1 when it is not in memory. */
  indexOf(id: string): number {
    let start = 0;
    for (const { rows, count } of this.#pages) {
      const at = rows ? findPlace(rows, id) : -1;
      if (at >= 0 && rows?.[at]?.id === id) return start + at;
      start += count;
    }
    return -1;
  }

  /** The page that has to be requested to show these rows; undefined when all are there. */
  findRequest(from: number, to: number): PageRequest | undefined {
    let start = 0;
    for (const { rows, count, cursor } of this.#pages) {
      // More than the rows it had: others may match the filter by now.
      if (!rows && start + count > from && start < to) return { cursor, limit: MAX_HEAD_ROWS };
      start += count;
    }
    if (to <= start || this.#next === null) return undefined;
    return { cursor: this.#next ?? null, limit: PAGE_ROWS };
  }

  /** Adds the response to a request. A response to an outdated one changes nothing. */
  addPage({ cursor }: PageRequest, rows: Row[], next: string | null): void {
    const index = this.#pages.findIndex((page) => page.cursor === cursor);
    const page = this.#pages[index];
    if (page) {
      if (!page.rows) this.#restore(page, rows, this.#pages[index + 1]?.cursor ?? this.#next ?? null);
    } else if (this.#next === undefined || this.#next === cursor) {
      this.#pages.push({ cursor, rows, count: rows.length, used: ++this.#clock });
      this.#next = next;
    }
    this.#dropFar();
  }

  /** Puts a new row into its place, or replaces the row that has its id. Returns whether the rows above moved by one. */
  put(row: Row): 'added' | 'changed' | 'ignored' {
    const page = this.#findPage(row.id);
    if (!page?.rows) return 'ignored';
    const at = findPlace(page.rows, row.id);
    if (page.rows[at]?.id === row.id) {
      page.rows[at] = row;
      return 'changed';
    }
    page.rows.splice(at, 0, row);
    page.count++;
    this.#splitHead();
    return 'added';
  }

  /** Removes a row that no longer belongs to the list. */
  remove(id: string): boolean {
    const page = this.#findPage(id);
    const at = page?.rows ? findPlace(page.rows, id) : -1;
    if (!page?.rows || page.rows[at]?.id !== id) return false;
    page.rows.splice(at, 1);
    page.count--;
    return true;
  }

  /** The page that an id belongs to; undefined when it is older than everything that is known. */
  #findPage(id: string): Page<Row> | undefined {
    const index = this.#pages.findLastIndex(({ cursor }) => cursor === null || id < cursor);
    const isOlder = index === this.#pages.length - 1 && typeof this.#next === 'string' && id < this.#next;
    return isOlder ? undefined : this.#pages[index];
  }

  #restore(page: Page<Row>, rows: Row[], floor: string | null): void {
    page.rows = floor === null ? rows : rows.filter(({ id }) => id >= floor);
    page.count = page.rows.length;
    page.used = ++this.#clock;
  }

  /** New rows are added to the first page; when it is too long, its older half becomes a page. */
  #splitHead(): void {
    const [head] = this.#pages;
    if (!head?.rows || head.rows.length <= MAX_HEAD_ROWS) return;
    const rows = head.rows.splice(PAGE_ROWS);
    head.count = head.rows.length;
    const cursor = head.rows.at(-1)?.id ?? null;
    this.#pages.splice(1, 0, { cursor, rows, count: rows.length, used: head.used });
    this.#dropFar();
  }

  /** Drops the pages that were in view longest ago; never the first, which new rows are added to. */
  #dropFar(): void {
    while (this.kept > MAX_ROWS) {
      const oldest = this.#pages
        .slice(1)
        .filter(({ rows }) => rows !== null)
        .sort((a, b) => a.used - b.used)[0];
      if (!oldest) return;
      oldest.rows = null;
    }
  }
}

/** Where an id is, or belongs, in rows that are sorted by id, newest first. */
function findPlace(rows: readonly Identified[], id: string): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.id ?? '') > id) low = middle + 1;
    else high = middle;
  }
  return low;
}
