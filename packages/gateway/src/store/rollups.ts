/** Sums of settled exchanges by time, key, model, provider and tag: which exist, how they grow, and which one answers a query. */
import { StoreError } from './errors.ts';
import { type AttemptRow, classify, type ExchangeRow, type SqlValue, TOKEN_COLUMNS } from './rows.ts';

/** What usage can be grouped and selected by, beside time. */
export type Dimension = 'key' | 'model' | 'provider' | 'tag';

/** The column of each dimension. A roll-up without a dimension has an empty text there. */
export const DIMENSION_COLUMNS = { tag: 'tag', key: 'key_id', model: 'model', provider: 'provider' } as const satisfies Record<
  Dimension,
  string
>;

/** The length of a bucket. */
export type Grain = 'hour' | 'day';

/** Milliseconds of a bucket. Days are those of UTC. */
export const GRAIN_MS = { hour: 3_600_000, day: 86_400_000 } as const satisfies Record<Grain, number>;

interface Rollup {
  /** The value of the column `rollup`; never reused. */
  readonly id: number;
  readonly grain: Grain;
  readonly dimensions: readonly Dimension[];
}

/**
 * Coarse ones first: a query takes the first that has its dimensions. A year by day or model reads about 6,000 rows here instead
 * of the 180,000 of all combinations.
 */
const ROLLUPS: readonly Rollup[] = [
  { id: 1, grain: 'day', dimensions: ['model', 'provider'] },
  { id: 2, grain: 'day', dimensions: ['key'] },
  { id: 3, grain: 'day', dimensions: ['key', 'model', 'provider'] },
  { id: 4, grain: 'hour', dimensions: ['key', 'model', 'provider'] },
  { id: 5, grain: 'day', dimensions: ['tag'] },
  { id: 6, grain: 'day', dimensions: ['tag', 'key', 'model', 'provider'] },
  { id: 7, grain: 'hour', dimensions: ['tag', 'key', 'model', 'provider'] },
];

/** The sums of a roll-up; all are exact integers. */
export const SUM_COLUMNS = [
  'requests',
  'errors',
  'aborted',
  'attempts',
  /** Exchanges that reached an upstream, and whose cost is not known, or only in part. */
  'unpriced',
  /** Exchanges whose tokens are estimated or uncertain. */
  'uncertain',
  ...TOKEN_COLUMNS,
  'cost_micros',
  /** What attempts without usage may have cost; not part of `cost_micros`. */
  'assumed_micros',
  'total_ms',
] as const;

/** Sums over exchanges. */
export type Sums = Record<(typeof SUM_COLUMNS)[number], number>;

/** The columns of an exchange that its sums are computed from. */
export type SummedRow = Pick<
  ExchangeRow,
  | (typeof TOKEN_COLUMNS)[number]
  | 'id'
  | 'ts'
  | 'state'
  | 'ending'
  | 'http_status'
  | 'attempts'
  | 'provenance'
  | 'cost_micros'
  | 'assumed_micros'
  | 'total_ms'
  | 'key_id'
  | 'model'
  | 'provider'
> & { tags: string };

/** The sums that belong to the model and provider of an attempt; all others belong to those of its exchange. */
export const SHARED_COLUMNS = [...TOKEN_COLUMNS, 'cost_micros'] as const;

/** What one attempt of an exchange has used, and where. */
export type Share = Pick<AttemptRow, (typeof SHARED_COLUMNS)[number] | 'model' | 'provider'>;

const SHARED_PLACES = SHARED_COLUMNS.map((column) => ({ column, place: SUM_COLUMNS.indexOf(column) }));

/** Whether an attempt has used something whose price is not known. */
const isUnpriced = ({ input_tokens: input, output_tokens: output, cost_micros: cost }: Share): boolean =>
  cost === null && (input !== null || output !== null);

/** What one exchange adds to its roll-ups. `shares`: its attempts, when there are several. */
function computeSums(row: SummedRow, shares: readonly Share[]): number[] {
  const outcome = classify(row);
  return [
    1,
    outcome === 'error' ? 1 : 0,
    outcome === 'aborted' ? 1 : 0,
    row.attempts,
    row.attempts > 0 && (row.cost_micros === null || shares.some(isUnpriced)) ? 1 : 0,
    row.provenance === 'estimated' || row.provenance === 'uncertain' ? 1 : 0,
    ...TOKEN_COLUMNS.map((column) => row[column] ?? 0),
    row.cost_micros ?? 0,
    row.assumed_micros,
    row.total_ms ?? 0,
  ];
}

/** The key columns of a roll-up row. */
export const ROLLUP_KEY = ['rollup', 'bucket', 'tag', 'key_id', 'model', 'provider'] as const;

/** Key columns of a roll-up row, and what is added to it. */
interface Change {
  readonly key: SqlValue[];
  readonly sums: number[];
}

/**
 * Collects what the exchanges of one transaction add, so that each roll-up row is written once. Exchanges that belong to the same rows
 * are summed first: a batch has few combinations of hour, key, model, provider and tags.
 */
export class RollupChanges {
  readonly #combinations = new Map<string, { row: SummedRow; sums: number[] }>();

  /**
   * Adds a settled exchange. `shares`: its attempts, when there are several. What one at another model or provider has used is
   * counted there, so that the sums of all are those of the exchange.
   */
  add(row: SummedRow, shares: readonly Share[] = []): void {
    const sums = computeSums(row, shares);
    for (const share of shares) {
      if (share.model === row.model && share.provider === row.provider) continue;
      const moved = moveShare(sums, share);
      if (moved.some((sum) => sum > 0)) this.#addTo({ ...row, model: share.model, provider: share.provider }, moved);
    }
    this.#addTo(row, sums);
  }

  #addTo(row: SummedRow, sums: number[]): void {
    const name = [Math.floor(row.ts / GRAIN_MS.hour), row.key_id, row.model, row.provider, row.tags].join('\0');
    const known = this.#combinations.get(name);
    if (known) addSums(known.sums, sums);
    else this.#combinations.set(name, { row, sums });
  }

  /** The rows to add to the table: key columns, then sums. */
  *rows(): Iterable<SqlValue[]> {
    const changes = new Map<string, Change>();
    for (const { row, sums } of this.#combinations.values())
      for (const key of listKeys(row)) {
        const name = key.join('\0');
        const known = changes.get(name);
        if (known) addSums(known.sums, sums);
        else changes.set(name, { key, sums: [...sums] });
      }
    for (const { key, sums } of changes.values()) yield [...key, ...sums];
  }
}

/** Takes the share of an attempt out of the sums of its exchange, and returns it. Never more than is there. */
function moveShare(sums: number[], share: Share): number[] {
  const moved = sums.map(() => 0);
  for (const { column, place } of SHARED_PLACES) {
    const part = Math.min(share[column] ?? 0, sums[place] ?? 0);
    moved[place] = part;
    sums[place] = (sums[place] ?? 0) - part;
  }
  return moved;
}

function addSums(to: number[], sums: readonly number[]): void {
  for (const [index, value] of sums.entries()) to[index] = (to[index] ?? 0) + value;
}

/** The keys of all roll-up rows that an exchange belongs to. */
function listKeys(row: SummedRow): SqlValue[][] {
  const tags: string[] = row.tags === '[]' ? [] : JSON.parse(row.tags);
  return ROLLUPS.flatMap((rollup) => (rollup.dimensions.includes('tag') ? tags : ['']).map((tag) => buildKey(rollup, row, tag)));
}

function buildKey({ id, grain, dimensions }: Rollup, row: SummedRow, tag: string): SqlValue[] {
  const pick = (dimension: Dimension, value: string | null): string => (dimensions.includes(dimension) ? (value ?? '') : '');
  const bucket = Math.floor(row.ts / GRAIN_MS[grain]);
  return [id, bucket, tag, pick('key', row.key_id), pick('model', row.model), pick('provider', row.provider)];
}

/** A part of a query: the rows of one roll-up in a range of its buckets. */
export interface UsageSegment {
  readonly rollup: number;
  readonly grain: Grain;
  /** First bucket. */
  readonly from: number;
  /** The bucket after the last. */
  readonly to: number;
}

/**
 * Splits a range of time: whole days come from daily roll-ups, the hours at both ends from hourly ones. `since` is rounded down
 * and `until` up to the hour.
 */
export function planUsage(dimensions: ReadonlySet<Dimension>, since: number, until: number, bucket?: Grain): UsageSegment[] {
  const firstHour = Math.floor(since / GRAIN_MS.hour);
  const endHour = Math.ceil(until / GRAIN_MS.hour);
  const firstDay = Math.ceil(firstHour / 24);
  const endDay = Math.floor(endHour / 24);
  const build = (grain: Grain, from: number, to: number): UsageSegment => ({ rollup: find(dimensions, grain), grain, from, to });
  const segments =
    bucket === 'hour' || firstDay >= endDay
      ? [build('hour', firstHour, endHour)]
      : [build('hour', firstHour, firstDay * 24), build('day', firstDay, endDay), build('hour', endDay * 24, endHour)];
  return segments.filter(({ from, to }) => from < to);
}

/** Exchanges without tags are in no roll-up by tag, so those serve only queries about tags. */
function find(dimensions: ReadonlySet<Dimension>, grain: Grain): number {
  const found = ROLLUPS.find(
    (rollup) =>
      rollup.grain === grain &&
      rollup.dimensions.includes('tag') === dimensions.has('tag') &&
      [...dimensions].every((dimension) => rollup.dimensions.includes(dimension)),
  );
  if (!found) throw new StoreError('query', `usage by ${grain} cannot be grouped by ${[...dimensions].join(', ')}`);
  return found.id;
}
