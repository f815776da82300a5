import type { Count, Counts, Distribution, Distributions } from './series.ts';

export interface Labels {
  provider: string;
  model: string;
  client_protocol: string;
  upstream_protocol: string;
}

/** What is counted and timed for each set of labels. */
export interface Families {
  requests: Counts;
  tokens: Counts;
  notes: Counts;
  duration: Distributions;
  firstToken: Distributions;
  interToken: Distributions;
  overhead: Distributions;
}

/** The series of one set of labels. Each begins with the first that is added to it. */
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

  constructor(labels: Labels, families: Families) {
    this.#labels = { ...labels };
    this.#families = families;
  }

  answered(status: number, seconds: number): void {
    const { requests, duration } = this.#families;
    counted(this.#requests, status, () => requests.series({ ...this.#labels, status: String(status) })).value++;
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

  tokens(type: 'input' | 'output', count: number): void {
    // What upstreams report is not always a number of tokens.
    if (!Number.isSafeInteger(count) || count < 0) return;
    counted(this.#tokens, type, () => this.#families.tokens.series({ ...this.#labels, type })).value += count;
  }

  noted(code: string): void {
    counted(this.#notes, code, () => this.#families.notes.series({ ...this.#labels, code })).value++;
  }
}

function counted<K>(counts: Map<K, Count>, key: K, create: () => Count): Count {
  const known = counts.get(key);
  if (known) return known;
  const created = create();
  counts.set(key, created);
  return created;
}
