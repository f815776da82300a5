import type { Count, Counts, Distribution, Distributions } from './series.ts';

/** The series of one set of labels. Each is created when its first value is added. */
export class LabelledSeries {
  readonly #labels: Readonly<Record<keyof Labels, string>>;
  readonly #families: Families;
  readonly #requests = new Map<number, Count>();
  readonly #tokens = new Map<string, Count>();
  readonly #notes = new Map<string, Count>();
  #duration: Distribution | undefined;
  #firstToken: Distribution | undefined;
  #interToken: Distribution | undefined;
  #overhead: Distribution | undefined;
  #cost: Count | undefined;

  constructor(labels: Labels, families: Families) {
    this.#labels = { ...labels };
    this.#families = families;
  }

  /** Counts a finished exchange and its duration. */
  answered(status: number, seconds: number): void {
    const { requests, duration } = this.#families;
    findOrCreate(this.#requests, status, () => requests.series({ ...this.#labels, status: String(status) })).value++;
    this.#duration ??= duration.series(this.#labels);
    this.#duration.add(seconds);
  }

  firstToken(seconds: number): void {
    this.#firstToken ??= this.#families.firstToken.series(this.#labels);
    this.#firstToken.add(seconds);
  }

  interToken(seconds: number): void {
    this.#interToken ??= this.#families.interToken.series(this.#labels);
    this.#interToken.add(seconds);
  }

  overhead(seconds: number): void {
    this.#overhead ??= this.#families.overhead.series(this.#labels);
    this.#overhead.add(seconds);
  }

  /** Adds tokens. Those of a kind that is never reported have no series. */
  tokens(type: TokenType, count: number): void {
    // Upstreams may report anything as a token count.
    if (!Number.isSafeInteger(count) || count < 0) return;
    if (count === 0 && type !== 'input' && type !== 'output') return;
    findOrCreate(this.#tokens, type, () => this.#families.tokens.series({ ...this.#labels, type })).value += count;
  }

  /** Adds the cost of an attempt, in millionths of a dollar. */
  spent(micros: number): void {
    this.#cost ??= this.#families.cost(this.#labels);
    this.#cost.value += micros;
  }

  /** Counts a note of a conversion. */
  noted(code: string): void {
    findOrCreate(this.#notes, code, () => this.#families.notes.series({ ...this.#labels, code })).value++;
  }
}

/** Kinds of tokens: `cached` and `cache_write` are parts of `input`, `reasoning` of `output`. */
type TokenType = 'input' | 'output' | 'cached' | 'cache_write' | 'reasoning';

/** Labels that all series of an exchange share. */
export interface Labels {
  provider: string;
  model: string;
  client_protocol: string;
  upstream_protocol: string;
}

/** The counters and histograms that have these labels. */
export interface Families {
  requests: Counts;
  tokens: Counts;
  notes: Counts;
  duration: Distributions;
  firstToken: Distributions;
  interToken: Distributions;
  overhead: Distributions;
  /** The cost of a model of a provider, whatever the protocols. */
  cost(labels: Labels): Count;
}

function findOrCreate<K>(counts: Map<K, Count>, key: K, create: () => Count): Count {
  const known = counts.get(key);
  if (known) return known;
  const created = create();
  counts.set(key, created);
  return created;
}
