/** What a model costs: rates in whole trillionths of a dollar (safe integers), so that sums are exact. */

import type { SnapshotPeriod, SnapshotRate } from './snapshot.ts';

/**
 * What is charged separately. `key`: its name in the snapshot. `unit`: what one price is for. `within`: the bucket whose
 * rate applies when there is no own one.
 */
export const BUCKETS = {
  input: { key: 'input_mtok', unit: 'token' },
  cache_read: { key: 'cache_read_mtok', unit: 'token', within: 'input' },
  cache_write: { key: 'cache_write_mtok', unit: 'token', within: 'input' },
  cache_write_1h: { key: 'cache_write_1h_mtok', unit: 'token', within: 'cache_write' },
  input_audio: { key: 'input_audio_mtok', unit: 'token', within: 'input' },
  input_image: { key: 'input_image_mtok', unit: 'token', within: 'input' },
  input_video: { key: 'input_video_mtok', unit: 'token', within: 'input' },
  output: { key: 'output_mtok', unit: 'token' },
  reasoning: { key: 'output_reasoning_mtok', unit: 'token', within: 'output' },
  output_audio: { key: 'output_audio_mtok', unit: 'token', within: 'output' },
  output_image: { key: 'output_image_mtok', unit: 'token', within: 'output' },
  request: { key: 'requests_kcount', unit: 'event' },
  web_search: { key: 'web_searches_kcount', unit: 'event' },
} as const satisfies Record<string, { key: string; unit: keyof typeof PICOS; within?: string }>;

/** Name of something that is charged separately. */
export type Bucket = keyof typeof BUCKETS;

/** All buckets, in the order in which they are listed. */
export const BUCKET_NAMES: readonly Bucket[] = Object.keys(BUCKETS) as Bucket[]; // the type has exactly these keys

/**
 * Trillionths of a dollar per unit for a millionth of a dollar in the price. Tokens are priced by the million, requests
 * and searches by the thousand.
 */
const PICOS = { token: 1, event: 1000 } as const;

/** What one unit costs. */
export interface Rate {
  /** Trillionths of a dollar per unit. */
  readonly base: number;
  /** Rates of the whole request when its input is longer; ascending. */
  readonly tiers: readonly { readonly above: number; readonly picos: number }[];
}

/** The rates of a model; a bucket without one has the rate of the bucket it is within. */
export type Rates = Readonly<Partial<Record<Bucket, Rate>>>;

/** The rate of a bucket; undefined when it is unknown. */
export function findRate(rates: Rates, bucket: Bucket): Rate | undefined {
  const row: { unit: string; within?: Bucket } = BUCKETS[bucket];
  return rates[bucket] ?? (row.within && findRate(rates, row.within));
}

/** Trillionths of a dollar per unit, for a request with this many input tokens. */
export function chooseTier({ base, tiers }: Rate, inputTokens: number): number {
  let picos = base;
  for (const tier of tiers) if (inputTokens > tier.above) picos = tier.picos;
  return picos;
}

/** Prices with their time. */
export interface Period {
  /** Milliseconds since 1970. */
  readonly from?: number;
  /** Seconds since midnight UTC. */
  readonly between?: readonly [start: number, end: number];
  readonly rates: Rates;
}

const SECONDS_PER_DAY = 86_400;

/** The rates at a moment (milliseconds since 1970). */
export function chooseRates(periods: readonly Period[], at: number): Rates | undefined {
  return (periods.find((period) => applies(period, at)) ?? periods.at(-1))?.rates;
}

function applies({ from, between }: Period, at: number): boolean {
  if (from !== undefined) return at >= from;
  if (between === undefined) return true;
  const [start, end] = between;
  const second = (at / 1000) % SECONDS_PER_DAY;
  return end < start ? second >= start || second < end : second >= start && second < end;
}

/** Reads the prices of the snapshot. */
export const readPeriod = ({ from, between, prices }: SnapshotPeriod): Period => ({
  ...(from !== undefined && { from: Date.parse(from) }),
  ...(between && { between }),
  rates: buildRates((bucket) => {
    const rate = prices[BUCKETS[bucket].key];
    return rate === undefined ? undefined : readRate(rate, PICOS[BUCKETS[bucket].unit]);
  }),
});

/** Rates for the buckets that have one. */
export function buildRates(find: (bucket: Bucket) => Rate | undefined): Rates {
  return Object.fromEntries(
    BUCKET_NAMES.flatMap((bucket) => {
      const rate = find(bucket);
      return rate ? [[bucket, rate]] : [];
    }),
  );
}

function readRate(rate: SnapshotRate, scale: number): Rate {
  if (typeof rate === 'number') return { base: readSnapshotPrice(rate) * scale, tiers: [] };
  const tiers = rate.tiers.map(({ above, price }) => ({ above, picos: readSnapshotPrice(price) * scale }));
  return { base: readSnapshotPrice(rate.base) * scale, tiers: tiers.toSorted((a, b) => a.above - b.above) };
}

/** A number of the snapshot has at most six decimals, which its shortest decimal form shows. */
const readSnapshotPrice = (price: number): number => parsePrice(price.toFixed(PRICE_DECIMALS)) ?? 0;

/** Dollars per million tokens with more decimals would be less than a trillionth per token. */
const PRICE_DECIMALS = 6;

/** Millionths of a dollar of a decimal text such as `0.075`; undefined when it is not a price. */
export function parsePrice(text: string): number | undefined {
  const [, whole, decimals = ''] = PRICE.exec(text) ?? [];
  return whole === undefined ? undefined : Number(whole + decimals.padEnd(PRICE_DECIMALS, '0'));
}

const PRICE = /^(\d{1,7})(?:\.(\d{1,6}))?$/;

/** A rate as dollars per million tokens, or per thousand requests: `0.075`. */
export const formatRate = (picos: number, bucket: Bucket): string =>
  formatDecimal(picos / PICOS[BUCKETS[bucket].unit], PRICE_DECIMALS);

/** A rate as dollars per token or request: `0.00000125`. */
export const formatDollarsPerUnit = (picos: number): string => formatDecimal(picos, 12);

/** A whole number of the last decimal place, without trailing zeros. */
function formatDecimal(value: number, places: number): string {
  const digits = String(value).padStart(places + 1, '0');
  const decimals = digits.slice(-places).replace(/0+$/, '');
  return digits.slice(0, -places) + (decimals === '' ? '' : `.${decimals}`);
}
