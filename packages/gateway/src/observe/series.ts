/**
 * Counters and histograms whose series are held by their users. prom-client looks up a series by its labels on every
 * update, which is 5 % of the cost of a small request. The output is Prometheus' exposition format 0.0.4.
 */

type Labels = Readonly<Record<string, string>>;

/** One series of a counter. */
export interface Count {
  readonly labels: Labels;
  value: number;
}

/** Name and help text of a metric. */
interface Family {
  readonly name: string;
  readonly help: string;
}

/** A counter: one series per set of labels. */
export class Counts {
  readonly #family: Family;
  readonly #unit: number;
  readonly #series: Count[] = [];

  /** `unit`: how many of the values that are added make one of the metric, so that sums are exact integers. */
  constructor(family: Family, unit = 1) {
    this.#family = family;
    this.#unit = unit;
  }

  series(labels: Labels): Count {
    const count = { labels, value: 0 };
    this.#series.push(count);
    return count;
  }

  get text(): string {
    const lines = this.#series.map(({ labels, value }) => formatLine(this.#family.name, labels, value / this.#unit));
    return formatFamily(this.#family, 'counter', lines);
  }
}

/** One series of a histogram. */
export class Distribution {
  readonly labels: Labels;
  readonly bounds: readonly number[];
  /** Values per bucket, not cumulative; the last bucket has no upper bound. */
  readonly counts: number[];
  sum = 0;

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.bounds = bounds;
    this.counts = [...bounds, Number.POSITIVE_INFINITY].map(() => 0);
  }

  add(value: number): void {
    const at = this.bounds.findIndex((bound) => value <= bound);
    const bucket = at < 0 ? this.bounds.length : at;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += value;
  }
}

/** A histogram: one series per set of labels. */
export class Distributions {
  readonly #family: Family;
  readonly #bounds: readonly number[];
  readonly #series: Distribution[] = [];

  constructor(family: Family, bounds: readonly number[]) {
    this.#family = family;
    this.#bounds = bounds;
  }

  series(labels: Labels): Distribution {
    const distribution = new Distribution(labels, this.#bounds);
    this.#series.push(distribution);
    return distribution;
  }

  get text(): string {
    return formatFamily(
      this.#family,
      'histogram',
      this.#series.flatMap((series) => this.#formatLines(series)),
    );
  }

  /** Buckets are cumulative in the output. */
  #formatLines({ labels, bounds, counts, sum }: Distribution): string[] {
    const { name } = this.#family;
    let total = 0;
    const buckets = counts.map((count, i) => {
      total += count;
      return formatLine(`${name}_bucket`, { le: String(bounds[i] ?? '+Inf'), ...labels }, total);
    });
    return [...buckets, formatLine(`${name}_sum`, labels, sum), formatLine(`${name}_count`, labels, total)];
  }
}

const formatFamily = ({ name, help }: Family, type: string, lines: readonly string[]): string =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join('\n');

const formatLine = (name: string, labels: Labels, value: number): string => {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  return `${name}{${pairs.join(',')}} ${value}`;
};

const LABEL_ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

const escapeLabel = (text: string): string => text.replace(/[\\"\n]/g, (char) => LABEL_ESCAPES[char] ?? char);
