/** What a response costs: its usage times the rates of its model, in whole millionths of a dollar. */

import type { CanonicalUsage, UsageDetails } from '@sluice/core';
import { BUCKET_NAMES, type Bucket, chooseTier, findRate, type Rates } from './rates.ts';

/** What was charged for one bucket. */
interface CostPart {
  /** Tokens, requests or searches. */
  readonly count: number;
  /** Millionths of a dollar. The parts add up to the whole cost. */
  readonly micros: number;
}

/** Why a cost is less certain than its price. */
type CostFlag =
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

/** No response has more tokens; larger counts are errors. With the largest price, every sum stays a safe integer. */
export const MAX_TOKENS = 1e9;

/**
 * Computes the cost of usage; undefined when something was used whose rate is unknown, or when nothing was counted
 * although tokens have a price. Never throws.
 */
export function computeCost(usage: CanonicalUsage, rates: Rates): UsageCost | undefined {
  const split = new UsageSplit(usage);
  const { counts, inputTokens } = split;
  // Some servers report zeros instead of no usage.
  if (inputTokens + split.outputTokens === 0 && !isFree(rates)) return undefined;
  const isUnpriced = counts.web_search > 0 && !rates.web_search;
  if (isUnpriced) counts.web_search = 0;
  if (!rates.request) counts.request = 0;
  const sum = new ExactSum();
  const parts: Partial<Record<Bucket, CostPart>> = {};
  let micros = 0;
  for (const bucket of BUCKET_NAMES) {
    const count = counts[bucket];
    if (count === 0) continue;
    const rate = findRate(rates, bucket);
    if (!rate) return undefined;
    sum.add(count, chooseTier(rate, inputTokens));
    // Each part is the growth of the rounded sum, so that the parts add up.
    const rounded = sum.round();
    parts[bucket] = { count, micros: rounded - micros };
    micros = rounded;
  }
  return { micros, parts, flags: listFlags(split.isClamped, usage.uncertain === true, isUnpriced) };
}

/**
 * The most that a request can cost with these counts: all input and all output at the highest rate that any token of it
 * can have. Undefined when a rate is unknown.
 */
export function computeBound(bound: TokenBound, rates: Rates): number | undefined {
  const { input, output, searches } = bound;
  const inputRate = findHighest(listInputBuckets(bound), rates, input);
  const outputRate = output === 0 ? 0 : findHighest(OUTPUT_BUCKETS, rates, input);
  if (inputRate === undefined || outputRate === undefined) return undefined;
  const sum = new ExactSum();
  sum.add(Math.min(input, MAX_TOKENS), inputRate);
  sum.add(Math.min(output, MAX_TOKENS), outputRate);
  if (rates.request) sum.add(1, chooseTier(rates.request, input));
  if (rates.web_search) sum.add(searches, chooseTier(rates.web_search, input));
  return sum.round();
}

/** The most tokens that a request can have. */
export interface TokenBound {
  readonly input: number;
  readonly output: number;
  /** Uses of tools that the provider runs. */
  readonly searches: number;
  /** Whether the input is more than text. */
  readonly hasMedia: boolean;
  /** Whether input may be written to a cache for an hour. */
  readonly isKeptLong: boolean;
}

const TEXT_BUCKETS = ['input', 'cache_write'] as const satisfies readonly Bucket[];

const MEDIA_BUCKETS = ['input_audio', 'input_image', 'input_video'] as const satisfies readonly Bucket[];

const listInputBuckets = ({ hasMedia, isKeptLong }: TokenBound): readonly Bucket[] => [
  ...TEXT_BUCKETS,
  ...(isKeptLong ? (['cache_write_1h'] as const) : []),
  ...(hasMedia ? MEDIA_BUCKETS : []),
];

const OUTPUT_BUCKETS = ['output', 'reasoning', 'output_audio', 'output_image'] as const satisfies readonly Bucket[];

function findHighest(buckets: readonly Bucket[], rates: Rates, inputTokens: number): number | undefined {
  let highest: number | undefined;
  for (const bucket of buckets) {
    const rate = findRate(rates, bucket);
    if (rate) highest = Math.max(highest ?? 0, chooseTier(rate, inputTokens));
  }
  return highest;
}

const isFree = ({ input, output }: Rates): boolean => input?.base === 0 && output?.base === 0;

const NO_FLAGS: readonly CostFlag[] = [];

function listFlags(isClamped: boolean, isUncertain: boolean, isUnpriced: boolean): readonly CostFlag[] {
  if (!isClamped && !isUncertain && !isUnpriced) return NO_FLAGS;
  const flags: CostFlag[] = [];
  if (isClamped) flags.push('usage_clamped');
  if (isUncertain) flags.push('usage_uncertain');
  if (isUnpriced) flags.push('web_search_unpriced');
  return flags;
}

const PICOS_PER_MICRO = 1_000_000;

/**
 * Adds products of counts and rates without rounding. Whole millionths and the trillionths below them are added
 * separately, so that both stay safe integers; BigInt takes ten times as long.
 */
class ExactSum {
  #micros = 0;
  #picos = 0;

  add(count: number, rate: number): void {
    const below = rate % PICOS_PER_MICRO;
    this.#micros += count * ((rate - below) / PICOS_PER_MICRO);
    this.#picos += count * below;
  }

  /** Millionths of a dollar, rounded half up. */
  round(): number {
    const picos = this.#picos + PICOS_PER_MICRO / 2;
    return this.#micros + (picos - (picos % PICOS_PER_MICRO)) / PICOS_PER_MICRO;
  }
}

/**
 * Usage as counts that do not overlap. `input_tokens` includes cached tokens and media, `output_tokens` includes
 * reasoning. Media in the cache are counted as cached.
 */
class UsageSplit {
  readonly counts: Record<Bucket, number>;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** A count was corrected. */
  isClamped = false;

  constructor(usage: CanonicalUsage) {
    const { details = NO_DETAILS } = usage;
    const input = this.#read(usage.input_tokens);
    const output = this.#read(usage.output_tokens);
    this.inputTokens = input;
    this.outputTokens = output;
    const written = this.#take(countWritten(usage, details), input);
    const cache_read = this.#take(usage.cache_read_tokens, input - written);
    // Only the hour is priced differently; tokens of unknown duration are those of five minutes.
    const cache_write_1h = this.#take(details.cache_creation_1h, written);
    const reasoning = this.#take(usage.reasoning_tokens, output);
    let left = input - written - cache_read;
    const input_audio = this.#takeOverlapping(details.input_audio, left, input);
    left -= input_audio;
    const input_image = this.#takeOverlapping(details.input_image, left, input);
    left -= input_image;
    const input_video = this.#takeOverlapping(details.input_video, left, input);
    let leftOut = output - reasoning;
    const output_audio = this.#takeOverlapping(details.output_audio, leftOut, output);
    leftOut -= output_audio;
    const output_image = this.#takeOverlapping(details.output_image, leftOut, output);
    this.counts = {
      input: left - input_video,
      cache_read,
      cache_write: written - cache_write_1h,
      cache_write_1h,
      input_audio,
      input_image,
      input_video,
      output: leftOut - output_image,
      reasoning,
      output_audio,
      output_image,
      request: 1,
      web_search: this.#read(details.web_search_requests),
    };
  }

  #read(value: number | undefined | null): number {
    if (value === undefined || value === null) return 0;
    if (Number.isSafeInteger(value) && value >= 0 && value <= MAX_TOKENS) return value;
    this.isClamped = true;
    // NaN compares false with everything.
    return typeof value === 'number' && value > 0 ? Math.min(Math.floor(value), MAX_TOKENS) : 0;
  }

  /** A part of what is left; more than that is an error. */
  #take(value: number | undefined, left: number): number {
    return this.#takeOverlapping(value, left, left);
  }

  /** A part that other parts may contain, so that only more than the whole is an error. */
  #takeOverlapping(value: number | undefined, left: number, whole: number): number {
    const count = this.#read(value);
    if (count > whole) this.isClamped = true;
    return Math.min(count, left);
  }
}

const NO_DETAILS: UsageDetails = {};

/** Some upstreams count cache writes only by their duration. */
function countWritten(
  usage: CanonicalUsage,
  { cache_creation_5m: short, cache_creation_1h: long }: UsageDetails,
): number | undefined {
  if (usage.cache_creation_tokens !== undefined) return usage.cache_creation_tokens;
  return short === undefined && long === undefined ? undefined : (short ?? 0) + (long ?? 0);
}

/** Millionths of a dollar as a decimal: `0.001234`. */
export function formatDollars(micros: number): string {
  const digits = String(micros).padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}
