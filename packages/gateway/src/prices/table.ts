/** The price table of a configuration: which rates apply to a model of a provider, and what its usage costs. */

import { createHash } from 'node:crypto';
import type { CanonicalUsage } from '@sluice/core';
import { BoundedCache } from '@sluice/core/internal';
import { PRICE_FIELDS, type PriceOptions } from '../config/options.ts';
import type { GatewayState } from '../config/resolve.ts';
import { findProfileId } from '../providers/lookup.ts';
import { compareLiterals, matches, splitPattern, type WildcardName } from '../providers/wildcard.ts';
import { type Cost, type CostSource, computeBound, computeCost, type TokenBound } from './cost.ts';
import { type Bucket, buildRates, chooseRates, type Period, parsePrice, type Rate, type Rates, readPeriod } from './rates.ts';
import { findSnapshotModel, loadSnapshot, type SnapshotModel } from './snapshot.ts';
import { findPriceSource } from './sources.ts';

/** Builds the price table of a configuration. Reads no file: the snapshot is loaded by the first lookup. */
export const createPriceTable = ({ prices, default_price, providers }: PricedState): PriceTable =>
  new PriceTable({ prices, default_price, vendorOf: (id) => providers.get(id)?.profileId ?? findProfileId(id) });

/** The parts of a configuration that prices depend on. */
type PricedState = Pick<GatewayState, 'prices' | 'default_price'> & {
  providers: ReadonlyMap<string, { readonly profileId: string }>;
};

/** Prices of the models of all providers. Immutable, except for the lookups it remembers. */
export class PriceTable {
  readonly #options: TableOptions;
  readonly #overrides: readonly Override[];
  readonly #fallback: readonly Period[] | undefined;
  readonly #known = new BoundedCache<ModelPrice>(LOOKUP_LIMITS);
  #version: string | undefined;

  constructor(options: TableOptions) {
    const { prices, default_price } = options;
    this.#options = options;
    this.#overrides = Object.entries(prices)
      .map(([name, price]) => ({ ...splitPattern(name), periods: [{ rates: readOptions(price) }] }))
      .sort(compareLiterals);
    this.#fallback = default_price === undefined ? undefined : [{ rates: readOptions(default_price) }];
  }

  /** Identifies the prices: the version of the snapshot, and a hash of the configured prices if there are any. */
  get version(): string {
    this.#version ??= `genai-prices-${loadSnapshot().version}${hashOptions(this.#options)}`;
    return this.#version;
  }

  /**
   * What a response costs, in whole millionths of a dollar; null when the price is unknown, which is not the same as 0.
   * `provider` and `model`: the provider's id in the configuration, and the name of the model there. `at`: when it was
   * sent, in milliseconds since 1970. Never throws on any usage.
   */
  cost(usage: CanonicalUsage, provider: string, model: string, at: number): Cost | null {
    const price = this.find(provider, model);
    const rates = chooseRates(price.periods, at);
    const cost = rates && price.source !== 'unknown' && computeCost(usage, rates);
    if (!cost) return null;
    // Not a spread, which creates a new hidden class per call.
    const { micros, parts, flags } = cost;
    return { micros, parts, flags, source: price.source, version: this.version };
  }

  /** The most that a request with these tokens can cost, in whole millionths of a dollar; null when the price is unknown. */
  bound(tokens: TokenBound, provider: string, model: string, at: number): number | null {
    const price = this.find(provider, model);
    const rates = chooseRates(price.periods, at);
    return (rates && price.source !== 'unknown' ? computeBound(tokens, rates) : undefined) ?? null;
  }

  /** What is known about a model of a provider. Constant time after the first lookup of a name. */
  find(provider: string, model: string): ModelPrice {
    const key = `${provider}/${model}`;
    const known = this.#known.get(key);
    if (known) return known;
    const found = this.#lookUp(provider, model);
    this.#known.set(key, found);
    return found;
  }

  #lookUp(provider: string, model: string): ModelPrice {
    const vendor = this.#options.vendorOf(provider);
    const listed = findListed(vendor, model);
    const facts = {
      ...(listed && { listedAs: listed.id }),
      ...(listed?.context_window !== undefined && { contextWindow: listed.context_window }),
    };
    // The rows of a vendor for other protocols share its prices.
    const override =
      this.#findOverride(`${provider}/${model}`) ?? (vendor === provider ? undefined : this.#findOverride(`${vendor}/${model}`));
    if (override) return { ...facts, source: 'configuration', periods: override };
    if (isFree(vendor, model)) return { ...facts, source: 'free', periods: FREE };
    const periods = listed?.periods.map(readPeriod).filter(({ rates }) => Object.keys(rates).length > 0) ?? [];
    if (periods.length > 0) return { ...facts, source: 'snapshot', periods };
    return this.#fallback
      ? { ...facts, source: 'default_price', periods: this.#fallback }
      : { ...facts, source: 'unknown', periods };
  }

  #findOverride(name: string): readonly Period[] | undefined {
    return this.#overrides.find((override) => matches(override, name))?.periods;
  }
}

/** What is known about a model. */
export interface ModelPrice {
  readonly source: CostSource | 'unknown';
  /** Empty when the price is unknown. */
  readonly periods: readonly Period[];
  /** The id of the model in the snapshot, which may have other names for it. */
  readonly listedAs?: string;
  /** Tokens of input and output together. */
  readonly contextWindow?: number;
}

interface TableOptions extends Pick<GatewayState, 'prices' | 'default_price'> {
  /** The vendor of a configured provider: the known provider that it is or extends. */
  readonly vendorOf: (provider: string) => string;
}

interface Override extends WildcardName {
  readonly periods: readonly Period[];
}

/** Clients can invent any number of model names. */
const LOOKUP_LIMITS = { entries: 1000, bytes: 256 * 1024 };

const ZERO: Rate = { base: 0, tiers: [] };

const FREE: readonly Period[] = [{ rates: { input: ZERO, output: ZERO } }];

function isFree(vendor: string, model: string): boolean {
  const source = findPriceSource(vendor);
  if (source?.is === 'free') return true;
  return source?.is === 'listed' && source.freeSuffix !== undefined && model.endsWith(source.freeSuffix);
}

/** The model in the snapshot. A model is only looked up at the provider that serves it, never at another vendor. */
function findListed(vendor: string, model: string): SnapshotModel | undefined {
  const source = findPriceSource(vendor);
  if (source?.is === 'listed')
    return source.names?.test(model) === false ? undefined : findSnapshotModel(loadSnapshot(), source.under, model);
  if (source?.is !== 'routed') return undefined;
  const colon = model.lastIndexOf(':');
  const suffix = model.slice(colon + 1);
  const under = colon >= 0 && Object.hasOwn(source.suffixes, suffix) ? source.suffixes[suffix] : undefined;
  return under === undefined ? undefined : findSnapshotModel(loadSnapshot(), [under], model.slice(0, colon));
}

/** Reads a price of the configuration, which was checked by the schema. */
function readOptions(price: PriceOptions): Rates {
  if (price === 'free') return { input: ZERO, output: ZERO };
  const fields = new Map<Bucket, string | undefined>(PRICE_FIELDS.map((field) => [FIELD_BUCKETS[field], price[field]]));
  return buildRates((bucket) => {
    const base = parsePrice(fields.get(bucket) ?? '');
    return base === undefined ? undefined : { base, tiers: [] };
  });
}

const FIELD_BUCKETS = {
  input: 'input',
  cached_input: 'cache_read',
  cache_write: 'cache_write',
  cache_write_1h: 'cache_write_1h',
  input_audio: 'input_audio',
  output: 'output',
  reasoning: 'reasoning',
  output_audio: 'output_audio',
} as const satisfies Record<(typeof PRICE_FIELDS)[number], Bucket>;

/** A part of the version: empty without configured prices. The order of entries does not matter. */
function hashOptions({ prices, default_price }: TableOptions): string {
  const entries = Object.entries(prices).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0 && default_price === undefined) return '';
  const text = JSON.stringify([entries.map(([name, price]) => [name, listFields(price)]), listFields(default_price)]);
  return `+${createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARS)}`;
}

const listFields = (price: PriceOptions | undefined): unknown =>
  typeof price === 'object' ? PRICE_FIELDS.map((field) => price[field] ?? null) : (price ?? null);

const HASH_CHARS = 12;
