/** Finds the prices that `sluice prices` shows, and prints them. */

import { didYouMean, oneLine, safeJson } from '@sluice/lab/text';
import { createDefaultSource, findConfig } from '../config/load.ts';
import type { Options } from '../config/options.ts';
import { ConfigError } from '../config/problems.ts';
import { loadWhole } from '../config/shared.ts';
import {
  BUCKET_NAMES,
  BUCKETS,
  type Bucket,
  chooseRates,
  chooseTier,
  findRate,
  formatRate,
  type Rates,
} from '../prices/rates.ts';
import { listSnapshotNames, loadSnapshot } from '../prices/snapshot.ts';
import { findPriceSource, PRICED_VENDORS } from '../prices/sources.ts';
import { createPriceTable, type ModelPrice, type PriceTable } from '../prices/table.ts';
import { findProfileId, PROVIDER_IDS } from '../providers/lookup.ts';
import { toUnreadable, UsageError } from '../terminal/errors.ts';
import { readFileBytes } from '../terminal/inputs.ts';
import type { CliIo } from '../terminal/io.ts';
import { type Colors, chooseColors } from '../terminal/text.ts';

/** What is asked for. */
interface PriceQuery {
  model: string | undefined;
  provider: string | undefined;
  config: string | undefined;
  json: boolean;
}

/** Shows prices and returns the exit code: 1 when none is known. */
export async function showPrices({ model, provider, config, json }: PriceQuery, io: CliIo): Promise<number> {
  const book = new PriceBook(await readOptions(config, io));
  const { problem } = loadSnapshot();
  if (problem !== undefined) await io.stderr.write(`sluice: the price snapshot cannot be read: ${oneLine(problem)}\n`);
  if (provider !== undefined) book.checkProvider(provider);
  if (model === undefined && provider === undefined) return showProviders(book, json, io);
  const rows = book.find(model, provider);
  const isKnown = rows.some(({ price }) => price.source !== 'unknown');
  const colors = chooseColors(io.stdout, io.env);
  if (json) await io.stdout.write(formatJson({ version: book.version, models: rows.map(describeRow) }));
  else if (rows.length > 0) await io.stdout.write(formatTable(rows, book.version, { colors, isDetailed: model !== undefined }));
  if (!isKnown) await io.stderr.write(`sluice: ${book.explainUnknown(model, provider)}\n`);
  return isKnown ? 0 : 1;
}

/** The options of the configuration file; the defaults without one. Keys and other variables need not be set. */
async function readOptions(config: string | undefined, io: CliIo): Promise<Options> {
  const file = config ?? findConfig(io.folder);
  if (file === undefined) return createDefaultSource().options;
  try {
    return (await loadWhole(file, (await readFileBytes(file, io)).toString('utf8'), io.env)).options;
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw toUnreadable(error, file);
  }
}

/** A model of a provider, and its price. */
interface PriceRow {
  provider: string;
  model: string;
  price: ModelPrice;
}

/** The prices of a configuration, by what users type. */
class PriceBook {
  readonly #options: Options;
  readonly #vendors: ReadonlyMap<string, { profileId: string }>;
  readonly #table: PriceTable;

  constructor(options: Options) {
    this.#options = options;
    this.#vendors = new Map(
      Object.entries(options.providers).map(([id, settings]) => [
        id,
        { profileId: findProfileId(settings === false ? id : (settings.extends ?? id)) },
      ]),
    );
    this.#table = createPriceTable({ prices: options.prices, default_price: options.default_price, providers: this.#vendors });
  }

  get version(): string {
    return this.#table.version;
  }

  /** Known and configured providers; those of one vendor share their prices, so only the first is listed. */
  get providers(): readonly string[] {
    return [...new Set([...PRICED_VENDORS, ...this.#vendors.keys()])];
  }

  checkProvider(id: string): void {
    const known = [...this.providers, ...PROVIDER_IDS];
    if (!known.includes(id)) throw new UsageError(`unknown provider "${oneLine(id)}"${didYouMean(id, known)}`);
  }

  find(model: string | undefined, provider: string | undefined): PriceRow[] {
    if (model === undefined) return this.listModels(provider ?? '');
    if (provider !== undefined) return [this.#buildRow(provider, model)];
    const targets = this.#expandName(model, new Set());
    if (targets.length > 0) return targets;
    const rows = this.providers.map((id) => this.#buildRow(id, model));
    return rows.filter(({ price }) => price.source === 'snapshot' || price.source === 'configuration');
  }

  /** All models of a provider that the snapshot lists. */
  listModels(provider: string): PriceRow[] {
    return this.#listNames(provider).map((name) => this.#buildRow(provider, name));
  }

  /** What is wrong, and what to do. */
  explainUnknown(model: string | undefined, provider: string | undefined): string {
    const [, prefix = provider, name = ''] = /^(?:([^/]+)\/)?(.*)$/s.exec(model ?? '') ?? [];
    const owner = provider ?? (prefix !== undefined && this.#isProvider(prefix) ? prefix : undefined);
    const source = owner === undefined ? undefined : findPriceSource(this.#findVendor(owner));
    const why = source?.is === 'unlisted' ? ` (${source.why})` : '';
    if (model === undefined) return `no prices are known for provider "${owner}"${why}; set them under "prices"`;
    const names = owner === undefined ? new Set(this.providers.flatMap((id) => this.#listNames(id))) : this.#listNames(owner);
    const guess = didYouMean(owner === undefined || provider !== undefined ? model : name, names);
    return `no price is known for "${oneLine(model)}"${why}${guess === '' ? '; set one under "prices"' : guess}`;
  }

  /** `provider/model`, or a name of the configuration, which may stand for other names. */
  #expandName(name: string, seen: Set<string>): PriceRow[] {
    const targets = (Object.hasOwn(this.#options.models, name) ? this.#options.models[name]?.targets : undefined) ?? [];
    if (targets.length > 0 && !seen.has(name)) {
      seen.add(name);
      return targets.flatMap(({ target }) => this.#expandName(target, seen));
    }
    const slash = name.indexOf('/');
    const provider = name.slice(0, Math.max(0, slash));
    return this.#isProvider(provider) ? [this.#buildRow(provider, name.slice(slash + 1))] : [];
  }

  #buildRow(provider: string, model: string): PriceRow {
    return { provider, model, price: this.#table.find(provider, model) };
  }

  #isProvider(id: string): boolean {
    return this.providers.includes(id) || PROVIDER_IDS.some((row) => row === id);
  }

  #findVendor(id: string): string {
    return this.#vendors.get(id)?.profileId ?? findProfileId(id);
  }

  #listNames(provider: string): readonly string[] {
    const source = findPriceSource(this.#findVendor(provider));
    if (source?.is === 'listed')
      return listSnapshotNames(loadSnapshot(), source.under).filter((name) => source.names?.test(name) !== false);
    if (source?.is !== 'routed') return [];
    return Object.entries(source.suffixes).flatMap(([suffix, under]) =>
      listSnapshotNames(loadSnapshot(), [under]).map((name) => `${name}:${suffix}`),
    );
  }
}

// ---- output

/** The providers, with the number of their priced models or the reason why there are none. */
async function showProviders(book: PriceBook, json: boolean, io: CliIo): Promise<number> {
  const entries = book.providers.map((id) => {
    const rows = book.listModels(id);
    const count = rows.filter(({ price }) => price.periods.length > 0).length;
    return { id, models: count, source: count > 0 ? 'listed' : describeSource(id) };
  });
  if (json) {
    await io.stdout.write(formatJson({ version: book.version, providers: entries }));
    return 0;
  }
  const { bold } = chooseColors(io.stdout, io.env);
  const lines = entries.map(
    ({ id, models, source }) => `${id.slice(0, 24).padEnd(24)}  ${models > 0 ? String(models).padStart(6) : `     –  ${source}`}`,
  );
  await io.stdout.write(
    [
      bold(`${'PROVIDER'.padEnd(24)}  MODELS`),
      ...lines,
      '',
      formatFooter(book.version),
      'Run "sluice prices --provider P" for its models.',
      '',
    ].join('\n'),
  );
  return 0;
}

function describeSource(id: string): string {
  const source = findPriceSource(id);
  return source?.is === 'free' ? `free: ${source.why}` : source?.is === 'unlisted' ? source.why : 'only configured prices';
}

const formatJson = (value: object): string => `${safeJson(JSON.stringify(value))}\n`;

/** A row for a program. */
function describeRow({ provider, model, price }: PriceRow): object {
  const rates = chooseRates(price.periods, Date.now());
  return {
    provider,
    model,
    source: price.source,
    listed_as: price.listedAs ?? null,
    context_window: price.contextWindow ?? null,
    prices: rates ? pickPrices(rates, 0) : null,
    tiers: listTiers(rates ?? {}).map((above) => ({ above, prices: pickPrices(rates ?? {}, above + 1) })),
  };
}

/** The own rates of a model, for a request with this many input tokens. */
function pickPrices(rates: Rates, inputTokens: number): Partial<Record<Bucket, string>> {
  return Object.fromEntries(
    BUCKET_NAMES.flatMap((bucket) => {
      const rate = rates[bucket];
      return rate ? [[bucket, formatRate(chooseTier(rate, inputTokens), bucket)]] : [];
    }),
  );
}

/** The input lengths above which other rates apply. */
function listTiers(rates: Rates): number[] {
  const starts = Object.values(rates).flatMap(({ tiers }) => tiers.map(({ above }) => above));
  return [...new Set(starts)].toSorted((a, b) => a - b);
}

interface TableStyle {
  colors: Colors;
  /** Rates beside those of the columns, and the context window. */
  isDetailed: boolean;
}

const COLUMNS = ['input', 'cache_read', 'cache_write', 'output'] as const satisfies readonly Bucket[];

const NAME_WIDTH = 34;

const PRICE_WIDTH = 9;

function formatTable(rows: readonly PriceRow[], version: string, { colors, isDetailed }: TableStyle): string {
  const head = formatLine('MODEL', ['INPUT', 'CACHED', 'CACHE W.', 'OUTPUT'], 'SOURCE');
  const lines = rows.flatMap((row) => formatRow(row, isDetailed ? (text) => colors.dim(text) : undefined));
  return [...head.map((line) => colors.bold(line)), ...lines, '', formatFooter(version), ''].join('\n');
}

const formatFooter = (version: string): string => `US dollars per million tokens; estimates by ${version}.`;

function formatRow({ provider, model, price }: PriceRow, formatDetail: ((text: string) => string) | undefined): string[] {
  const rates = chooseRates(price.periods, Date.now());
  const name = oneLine(`${provider}/${model}`);
  if (!rates) return formatLine(name, ['unknown', '–', '–', 'unknown'], '–');
  return [
    ...formatLine(name, formatCells(rates, 0), SOURCES[price.source]),
    ...listTiers(rates).flatMap((above) => formatLine(`  above ${above} input tokens`, formatCells(rates, above + 1), '')),
    ...(formatDetail ? listDetails(price, rates).map((line) => formatDetail(`  ${line}`)) : []),
  ];
}

const SOURCES = {
  configuration: 'config',
  default_price: 'default',
  free: 'free',
  snapshot: 'snapshot',
  unknown: '–',
} as const satisfies Record<ModelPrice['source'], string>;

const formatCells = (rates: Rates, inputTokens: number): string[] =>
  COLUMNS.map((bucket) => {
    const rate = findRate(rates, bucket);
    return rate ? formatRate(chooseTier(rate, inputTokens), bucket) : 'unknown';
  });

/** A line of the table; a name that is too long has a line of its own. */
function formatLine(name: string, cells: readonly string[], last: string): string[] {
  const prices = cells.map((cell) => cell.padStart(PRICE_WIDTH)).join('');
  const isLong = name.length > NAME_WIDTH;
  const line = `${(isLong ? '' : name).padEnd(NAME_WIDTH)}${prices}  ${last}`.trimEnd();
  return isLong ? [name, line] : [line];
}

function listDetails({ listedAs, contextWindow, periods }: ModelPrice, rates: Rates): string[] {
  const others = BUCKET_NAMES.filter((bucket) => !COLUMNS.some((column) => column === bucket)).flatMap((bucket) => {
    const rate = rates[bucket];
    const unit = BUCKETS[bucket].unit === 'event' ? ' per 1000' : '';
    return rate ? [`${bucket.replaceAll('_', ' ')} ${formatRate(rate.base, bucket)}${unit}`] : [];
  });
  return [
    ...(others.length > 0 ? [others.join(', ')] : []),
    ...(contextWindow === undefined ? [] : [`context window ${contextWindow} tokens`]),
    ...(periods.some(({ between }) => between) ? ['the price depends on the time of day'] : []),
    ...(listedAs === undefined ? [] : [`listed as ${listedAs}`]),
  ];
}
