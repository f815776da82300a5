/** What a response costs: its usage times the rates of its model, in whole millionths of a dollar. */

import type { CanonicalUsage } from '@sluice/core';
import { BUCKET_NAMES, type Bucket, chooseTier, findRate, type Rates } from './rates.ts';

/** What was charged for one bucket. */
export interface CostPart {
  /** Tokens, requests or searches. */
  readonly count: number;
  /** Millionths of a dollar. The parts add up to the whole cost. */
  readonly micros: number;
}

/** Why a cost is less certain than its price. */
export type CostFlag =
  /** A count was negative, not a number, too large, or a part exceeded its whole; it was corrected. */
  | 'usage_clamped'
  /** The upstream's counts contradict each other. */
  | 'usage_uncertain'
  /** Searches were made whose price is unknown; they are not included. */
  | 'web_search_unpriced';

/** The cost of usage by rates. */
interface UsageCost {
  /** Whole millionths of a dollar, rounded once, half up. */
  readonly micros: number;
  readonly parts: Readonly<Partial<Record<Bucket, CostPart>>>;
  readonly flags: readonly CostFlag[];
}

/** Where a price comes from; `free`: the provider charges nothing, by a rule. */
export type CostSource = 'configuration' | 'free' | 'snapshot' | 'default_price';

/** The cost of a response, and the prices it was computed with. */
export interface Cost extends UsageCost {
  readonly source: CostSource;
  /** The version of the price table. */
  readonly version: string;
}

/** No response has more; larger counts are errors. Keeps every product within the safe integers. */
export const MAX_TOKENS = 1e9;

/** Computes the cost of usage; undefined when something was used whose rate is unknown. Never throws. */
export function computeCost(usage: CanonicalUsage, rates: Rates): UsageCost | undefined {
  const flags = new Set<CostFlag>();
  if (usage.uncertain) flags.add('usage_uncertain');
  const { counts, inputTokens } = splitUsage(usage, () => flags.add('usage_clamped'));
  if (counts.web_search > 0 && !rates.web_search) {
    flags.add('web_search_unpriced');
    counts.web_search = 0;
  }
  if (!rates.request) counts.request = 0;
  const parts: Partial<Record<Bucket, CostPart>> = {};
  let picos = 0n;
  let micros = 0;
  for (const bucket of BUCKET_NAMES) {
    const count = counts[bucket];
    if (count === 0) continue;
    const rate = findRate(rates, bucket);
    if (!rate) return undefined;
    picos += BigInt(count) * chooseTier(rate, inputTokens);
    // Each part is the growth of the rounded sum, so that the parts add up.
    const sum = roundToMicros(picos);
    parts[bucket] = { count, micros: sum - micros };
    micros = sum;
  }
  return { micros, parts, flags: [...flags] };
}

const PICOS_PER_MICRO = 1_000_000n;

/** Rounds half up. */
const roundToMicros = (picos: bigint): number => Number((picos + PICOS_PER_MICRO / 2n) / PICOS_PER_MICRO);

type Counts = Record<Bucket, number>;

/**
 * Splits usage into counts that do not overlap. `input_tokens` includes cached tokens and media, `output_tokens`
 * includes reasoning. Media in the cache are counted as cached.
 */
function splitUsage(usage: CanonicalUsage, onClamp: () => void): { counts: Counts; inputTokens: number } {
  const { details = {} } = usage;
  const read = (value: number | undefined): number => readCount(value, onClamp);
  const inputTokens = read(usage.input_tokens);
  const outputTokens = read(usage.output_tokens);
  const input = new Remainder(inputTokens, onClamp);
  const output = new Remainder(outputTokens, onClamp);
  const written = input.take(read(usage.cache_creation_tokens ?? sum(details.cache_creation_5m, details.cache_creation_1h)));
  const cache_read = input.take(read(usage.cache_read_tokens));
  // Only the hour is priced differently; tokens of unknown duration are those of five minutes.
  const cache_write_1h = new Remainder(written, onClamp).take(read(details.cache_creation_1h));
  const reasoning = output.take(read(usage.reasoning_tokens));
  return {
    inputTokens,
    counts: {
      cache_read,
      cache_write: written - cache_write_1h,
      cache_write_1h,
      input_audio: input.takeOverlapping(read(details.input_audio), inputTokens),
      input_image: input.takeOverlapping(read(details.input_image), inputTokens),
      input_video: input.takeOverlapping(read(details.input_video), inputTokens),
      input: input.left,
      reasoning,
      output_audio: output.takeOverlapping(read(details.output_audio), outputTokens),
      output_image: output.takeOverlapping(read(details.output_image), outputTokens),
      output: output.left,
      request: 1,
      web_search: read(details.web_search_requests),
    },
  };
}

const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);

function readCount(value: number | undefined, onClamp: () => void): number {
  if (value === undefined || value === null) return 0;
  if (Number.isSafeInteger(value) && value >= 0 && value <= MAX_TOKENS) return value;
  onClamp();
  // NaN compares false with everything.
  return typeof value === 'number' && value > 0 ? Math.min(Math.floor(value), MAX_TOKENS) : 0;
}

/** The tokens of a whole that no part has taken yet. */
class Remainder {
  left: number;
  readonly #onClamp: () => void;

  constructor(whole: number, onClamp: () => void) {
    this.left = whole;
    this.#onClamp = onClamp;
  }

  /** Takes a part; what exceeds the rest is an error. */
  take(count: number): number {
    if (count > this.left) this.#onClamp();
    return this.#subtract(count);
  }

  /** Takes a part that other parts may contain; only what exceeds the whole is an error. */
  takeOverlapping(count: number, whole: number): number {
    if (count > whole) this.#onClamp();
    return this.#subtract(count);
  }

  #subtract(count: number): number {
    const taken = Math.min(count, this.left);
    this.left -= taken;
    return taken;
  }
}

/** Millionths of a dollar as a decimal: `0.001234`. */
export function formatDollars(micros: number): string {
  const digits = String(micros).padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}
