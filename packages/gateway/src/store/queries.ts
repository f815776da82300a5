/** The queries of the ledger, for any dialect of Kysely. Each reads a bounded number of rows. */
import { type Kysely, type SqlBool, sql } from 'kysely';
import { StoreError } from './errors.ts';
import type { Filter } from './filter.ts';
import { compileFilter, findIdRange } from './filter-sql.ts';
import { floorId, MAX_ID_LEAD_MS } from './ids.ts';
import {
  DIMENSION_COLUMNS,
  type Dimension,
  GRAIN_MS,
  type Grain,
  planUsage,
  SUM_COLUMNS,
  type Sums,
  type UsageSegment,
} from './rollups.ts';
import type { AttemptRow, ExchangeRow } from './rows.ts';
import type { StoredAttempt, StoredExchange, Tables } from './schema.ts';

/** Which exchanges to list, newest first. */
export interface ListQuery {
  readonly filter?: Filter;
  /** `next` of the page before. */
  readonly cursor?: string | null;
  /** Rows of a page; 100 by default, 1,000 at most. */
  readonly limit?: number;
}

/** A page of exchanges. */
export interface ExchangePage {
  readonly exchanges: ExchangeRow[];
  /**
   * The cursor of the next page, or null at the end. A page may have fewer rows than its limit, or none, and still have a next one:
   * a query reads at most `MAX_SCANNED_ROWS` rows that do not pass the filter.
   */
  readonly next: string | null;
}

/** How many exchanges there are. */
export interface ExchangeCount {
  /** Those that pass the filter, among the newest `MAX_SCANNED_ROWS`. */
  readonly matching: number;
  /** False when there are more rows than were looked at. */
  readonly is_exact: boolean;
  /** All exchanges of the ledger, up to `MAX_COUNTED_ROWS`. */
  readonly total: number;
}

/** An exchange with its attempts, in their order. */
export interface ExchangeDetail {
  readonly exchange: ExchangeRow;
  readonly attempts: AttemptRow[];
}

/** A session: the exchanges that a client marked as one conversation. */
export interface SessionSummary {
  readonly session_id: string;
  readonly first_ts: number;
  readonly last_ts: number;
  readonly exchanges: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_micros: number;
}

/** A session and its newest exchanges. */
export interface SessionDetail extends ExchangePage {
  readonly session: SessionSummary;
}

/** What usage to sum. Times are milliseconds since 1970; `since` is rounded down to the hour, `until` up. */
export interface UsageQuery {
  readonly by: Dimension | 'day';
  readonly since?: number;
  readonly until?: number;
  /** Also splits by time; `day` when `by` is `day`. */
  readonly bucket?: Grain;
  /** Exact values to select. */
  readonly where?: Readonly<Partial<Record<Dimension, string>>>;
}

/** Whose spending to sum: that of one key, or of one tag. */
export interface SpendingQuery {
  readonly by: 'key' | 'tag';
  /** The id of the key, or the tag. */
  readonly of: string;
  /** Milliseconds since 1970; exact, not rounded to the hour. */
  readonly since: number;
}

/** Usage of one group. */
export interface UsageRow extends Sums {
  /** The value of `by`; empty where there is none, such as requests without a key. Null for usage by day. */
  group: string | null;
  /** The start of the bucket; null without one. */
  ts: number | null;
}

const DEFAULT_LIMIT = 100;

const MAX_LIMIT = 1000;

/** Rows that one step of a filtered list looks at. */
const WINDOW_ROWS = 20_000;

/** Rows that a filtered list looks at before it returns what it has. */
const MAX_SCANNED_ROWS = 200_000;

/** A million ids take about 50 ms. */
const MAX_COUNTED_ROWS = 1_000_000;

const MAX_USAGE_ROWS = 50_000;

/** Rows that the list of sessions is gathered from. */
const MAX_SESSION_ROWS = 50_000;

/** Queries on one connection. */
export class Queries {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** A page of exchanges, newest first. */
  async list({ filter = [], cursor = null, limit = DEFAULT_LIMIT }: ListQuery): Promise<ExchangePage> {
    const size = readLimit(limit);
    const range = findIdRange(filter);
    let below = cursor !== null && (range.to === null || cursor < range.to) ? cursor : range.to;
    const found: StoredExchange[] = [];
    for (let scanned = 0; scanned < MAX_SCANNED_ROWS; scanned += WINDOW_ROWS) {
      const floor = filter.length === 0 ? null : await this.#findFloor(range.from, below);
      const rows = await this.#select(filter, floor ?? range.from, below, size + 1 - found.length);
      found.push(...rows);
      if (found.length > size) return toPage(found.slice(0, size), found[size - 1]?.id ?? null);
      if (floor === null) return toPage(found, null);
      below = floor;
    }
    return toPage(found, below);
  }

  /** How many exchanges pass a filter, as far as a list looks. */
  async count(filter: Filter): Promise<ExchangeCount> {
    const all = this.#db.selectFrom('exchanges').select('id').limit(MAX_COUNTED_ROWS).as('counted');
    const { total } = await this.#db.selectFrom(all).select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow();
    if (filter.length === 0) return { matching: total, is_exact: total < MAX_COUNTED_ROWS, total };
    const range = findIdRange(filter);
    let below = range.to;
    let matching = 0;
    for (let scanned = 0; scanned < MAX_SCANNED_ROWS; scanned += WINDOW_ROWS) {
      const floor = await this.#findFloor(range.from, below);
      const row = await this.#within(floor ?? range.from, below)
        .select(sql<number>`count(*)`.as('count'))
        .where((eb) => compileFilter(filter, eb))
        .executeTakeFirstOrThrow();
      matching += row.count;
      if (floor === null) return { matching, is_exact: true, total };
      below = floor;
    }
    return { matching, is_exact: false, total };
  }

  /** The id that has a window's rows at and above it; null when fewer are left. */
  async #findFloor(from: string | null, below: string | null): Promise<string | null> {
    const row = await this.#within(from, below)
      .select('id')
      .orderBy('id', 'desc')
      .limit(1)
      .offset(WINDOW_ROWS - 1)
      .executeTakeFirst();
    return row?.id ?? null;
  }

  #select(filter: Filter, from: string | null, below: string | null, limit: number): Promise<StoredExchange[]> {
    return this.#within(from, below)
      .selectAll()
      .where((eb) => compileFilter(filter, eb))
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
  }

  #within(from: string | null, below: string | null) {
    return this.#db
      .selectFrom('exchanges')
      .$if(from !== null, (query) => query.where('id', '>=', from ?? ''))
      .$if(below !== null, (query) => query.where('id', '<', below ?? ''));
  }

  /** One exchange with its attempts. */
  async get(id: string): Promise<ExchangeDetail | null> {
    const exchange = await this.#db.selectFrom('exchanges').selectAll().where('id', '=', id).executeTakeFirst();
    if (!exchange) return null;
    const attempts = await this.#db.selectFrom('attempts').selectAll().where('exchange_id', '=', id).orderBy('number').execute();
    return { exchange: toExchange(exchange), attempts: attempts.map(toAttempt) };
  }

  /** The sessions of the newest exchanges, newest first. */
  sessions(limit: number = DEFAULT_LIMIT): Promise<SessionSummary[]> {
    const newest = this.#db.selectFrom('exchanges').selectAll().orderBy('id', 'desc').limit(MAX_SESSION_ROWS).as('newest');
    return this.#db
      .selectFrom(newest)
      .where('session_id', 'is not', null)
      .select(SESSION_SUMS)
      .groupBy('session_id')
      .orderBy(sql`max(id)`, 'desc')
      .limit(readLimit(limit))
      .execute();
  }

  /** One session with a page of its exchanges, newest first. */
  async session(
    id: string,
    { cursor = null, limit = DEFAULT_LIMIT }: Omit<ListQuery, 'filter'> = {},
  ): Promise<SessionDetail | null> {
    const ofSession = this.#db.selectFrom('exchanges').where('session_id', '=', id);
    const session = await ofSession.select(SESSION_SUMS).groupBy('session_id').executeTakeFirst();
    if (!session) return null;
    const size = readLimit(limit);
    const rows = await ofSession
      .$if(cursor !== null, (query) => query.where('id', '<', cursor ?? ''))
      .selectAll()
      .orderBy('id', 'desc')
      .limit(size + 1)
      .execute();
    return { session, ...toPage(rows.slice(0, size), rows.length > size ? (rows[size - 1]?.id ?? null) : null) };
  }

  /** Sums by group and time, from roll-ups alone. Ordered by time, then by cost and requests. */
  async usage(query: UsageQuery): Promise<UsageRow[]> {
    const { by, since = 0, until = MAX_TIME, where = {} } = query;
    const bucket = query.bucket ?? (by === 'day' ? 'day' : undefined);
    const chosen = [...Object.keys(where), ...(by === 'day' ? [] : [by])].map(readDimension);
    const groups = new Map<string, UsageRow>();
    for (const segment of planUsage(new Set(chosen), Math.max(0, since), Math.min(MAX_TIME, until), bucket)) {
      for (const row of await this.#sumSegment(segment, by, bucket, where)) addTo(groups, row);
      if (groups.size > MAX_USAGE_ROWS)
        throw new StoreError('query', `usage has more than ${MAX_USAGE_ROWS} rows; use a shorter range or no bucket`);
    }
    return [...groups.values()].sort(
      (a, b) =>
        (a.ts ?? 0) - (b.ts ?? 0) || b.cost_micros - a.cost_micros || b.requests - a.requests || compareText(a.group, b.group),
    );
  }

  /**
   * What a key or tag has spent since a time, in millionths of a dollar: known costs, and what attempts without usage may
   * have cost. The rest of the first hour comes from its rows, everything later from roll-ups.
   */
  async spending({ by, of, since }: SpendingQuery): Promise<number> {
    const where = { [by]: of };
    const hour = Math.ceil(Math.max(0, since) / GRAIN_MS.hour) * GRAIN_MS.hour;
    let micros = await this.#sumRows(by, of, since, hour);
    for (const segment of planUsage(new Set([by]), hour, MAX_TIME))
      for (const row of await this.#sumSegment(segment, by, undefined, where)) micros += row.cost_micros + row.assumed_micros;
    return micros;
  }

  async #sumRows(by: SpendingQuery['by'], of: string, since: number, until: number): Promise<number> {
    if (since >= until) return 0;
    // An element of a list stands between quotes. LIKE would ignore case, and the dialects share no function to search.
    const condition = by === 'key' ? sql<SqlBool>`key_id = ${of}` : sql<SqlBool>`replace(tags, ${`"${of}"`}, '') <> tags`;
    const row = await this.#within(floorId(since), floorId(until + MAX_ID_LEAD_MS))
      .select(sql<number>`coalesce(sum(coalesce(cost_micros, 0) + assumed_micros), 0)`.as('micros'))
      .where('ts', '>=', since)
      .where('ts', '<', until)
      .where('state', '<>', 'open')
      .where(condition)
      .executeTakeFirstOrThrow();
    return row.micros;
  }

  async #sumSegment(
    { rollup, grain, from, to }: UsageSegment,
    by: UsageQuery['by'],
    bucket: Grain | undefined,
    where: NonNullable<UsageQuery['where']>,
  ): Promise<UsageRow[]> {
    const group = by === 'day' ? sql<string | null>`null` : sql.ref<string | null>(DIMENSION_COLUMNS[by]);
    const perBucket = bucket === undefined ? 1 : GRAIN_MS[bucket] / GRAIN_MS[grain];
    // Division of integers rounds down in both dialects.
    const ts =
      bucket === undefined
        ? sql<number | null>`null`
        : sql<number | null>`bucket / ${sql.lit(perBucket)} * ${sql.lit(GRAIN_MS[bucket])}`;
    const conditions = Object.entries(where).map(
      ([name, value]) => sql<SqlBool>`${sql.ref(DIMENSION_COLUMNS[name as Dimension])} = ${value}`,
    );
    return this.#db
      .selectFrom('usage_rollups')
      .select([group.as('group'), ts.as('ts')])
      .select(SUM_COLUMNS.map((column) => sql<number>`sum(${sql.ref(column)})`.as(column)))
      .where('rollup', '=', rollup)
      .where('bucket', '>=', from)
      .where('bucket', '<', to)
      .where((eb) => eb.and(conditions))
      .groupBy([sql`1`, sql`2`])
      .limit(MAX_USAGE_ROWS + 1)
      .execute() as Promise<UsageRow[]>;
  }
}

const readLimit = (limit: number): number =>
  Number.isNaN(limit) ? DEFAULT_LIMIT : Math.max(1, Math.min(MAX_LIMIT, Math.floor(limit)));

/** Queries come from URLs. */
function readDimension(name: string): Dimension {
  if (Object.hasOwn(DIMENSION_COLUMNS, name)) return name as Dimension;
  const known = ['day', ...Object.keys(DIMENSION_COLUMNS)].join(', ');
  throw new StoreError('query', `usage has no dimension ${JSON.stringify(name)}; known: ${known}`);
}

/** The year 10889, within the hours that fit an id. */
const MAX_TIME = 2 ** 48 - 1;

const compareText = (a: string | null, b: string | null): number => ((a ?? '') < (b ?? '') ? -1 : 1);

const SESSION_SUMS = [
  sql<string>`session_id`.as('session_id'),
  sql<number>`min(ts)`.as('first_ts'),
  sql<number>`max(ts)`.as('last_ts'),
  sql<number>`count(*)`.as('exchanges'),
  sql<number>`coalesce(sum(input_tokens), 0)`.as('input_tokens'),
  sql<number>`coalesce(sum(output_tokens), 0)`.as('output_tokens'),
  sql<number>`coalesce(sum(cost_micros), 0)`.as('cost_micros'),
];

function addTo(groups: Map<string, UsageRow>, row: UsageRow): void {
  const key = `${row.ts}\0${row.group}`;
  const known = groups.get(key);
  if (!known) groups.set(key, { ...row });
  else for (const column of SUM_COLUMNS) known[column] += row[column];
}

const toPage = (rows: StoredExchange[], next: string | null): ExchangePage => ({ exchanges: rows.map(toExchange), next });

const toExchange = (row: StoredExchange): ExchangeRow => ({
  ...row,
  is_stream: row.is_stream === 1,
  possibly_billed: row.possibly_billed === 1,
  tags: JSON.parse(row.tags),
  notes: JSON.parse(row.notes),
  note_codes: JSON.parse(row.note_codes),
  rules: JSON.parse(row.rules),
});

const toAttempt = (row: StoredAttempt): AttemptRow => ({ ...row, possibly_billed: row.possibly_billed === 1 });
