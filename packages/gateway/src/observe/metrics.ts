import { Counter, Gauge, Registry } from 'prom-client';
import { type Count, Counts, type Distribution, Distributions } from './series.ts';

/** Seconds. First bytes of models come between a tenth of a second and minutes. */
const DURATIONS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const OVERHEADS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];
const TOKEN_TIMES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** Series are bounded: a client can make up model names, and each would be one. */
const MAX_MODELS = 200;

export interface Labels {
  provider: string;
  model: string;
  client_protocol: string;
  upstream_protocol: string;
}

/** The series of one set of labels. Each begins with the first that is added to it. */
interface LabelledSeries {
  labels: Readonly<Record<keyof Labels, string>>;
  requests: Map<number, Count>;
  tokens: Map<string, Count>;
  notes: Map<string, Count>;
  duration?: Distribution;
  firstToken?: Distribution;
  interToken?: Distribution;
  overhead?: Distribution;
}

/** What `/metrics` shows. */
export class Metrics {
  readonly #registry: Registry = new Registry();
  readonly shed: Counter;
  readonly #requests: Counts;
  readonly #tokens: Counts;
  readonly #notes: Counts;
  readonly #upstreamErrors: Counter;
  readonly #upstreamUp: Gauge;
  readonly #duration: Distributions;
  readonly #firstToken: Distributions;
  readonly #interToken: Distributions;
  readonly #overhead: Distributions;
  readonly #series = new Map<string, LabelledSeries>();
  readonly #models = new Set<string>();
  /** What was told of each upstream last. */
  readonly #up = new Map<string, boolean>();

  /** `active`: how many exchanges are under way. Asked when somebody wants to know. */
  constructor(active: () => number = () => 0) {
    const registers = [this.#registry];
    const counts = (name: string, help: string): Counts => new Counts({ name: `sluice_${name}`, help });
    const distributions = (name: string, help: string, bounds: readonly number[]): Distributions =>
      new Distributions({ name: `sluice_${name}`, help }, bounds);

    new Gauge({
      name: 'sluice_active_requests',
      help: 'Exchanges under way.',
      registers,
      collect() {
        this.set(active());
      },
    });
    this.shed = new Counter({
      name: 'sluice_shed_requests_total',
      help: 'Requests refused because too much is under way.',
      registers,
    });
    this.#requests = counts('requests_total', 'Exchanges that ended, by HTTP status.');
    this.#tokens = counts('tokens_total', 'Tokens as the upstreams reported them.');
    this.#notes = counts('conversion_warnings_total', 'What could not be carried over, by kind.');
    this.#upstreamErrors = new Counter({
      name: 'sluice_upstream_errors_total',
      help: 'Attempts that failed, by kind.',
      labelNames: ['provider', 'code'],
      registers,
    });
    this.#upstreamUp = new Gauge({
      name: 'sluice_upstream_up',
      help: 'Whether the upstream is asked: 0 while it rests after failures.',
      labelNames: ['provider'],
      registers,
    });
    this.#duration = distributions('request_duration_seconds', 'From the request to the end of the answer.', DURATIONS);
    this.#firstToken = distributions(
      'time_to_first_token_seconds',
      'From the request to the first content of the answer.',
      DURATIONS,
    );
    this.#interToken = distributions(
      'inter_token_latency_seconds',
      'Time a token took after the first, a mean a stream.',
      TOKEN_TIMES,
    );
    this.#overhead = distributions('overhead_seconds', 'From the request to the call of the first upstream.', OVERHEADS);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All of it, in the words of Prometheus. */
  async text(): Promise<string> {
    const counted = [this.#requests, this.#tokens, this.#notes];
    const timed = [this.#duration, this.#firstToken, this.#interToken, this.#overhead];
    const families = [...counted, ...timed].map(({ text }) => `${text}\n`);
    return `${families.join('\n')}\n${await this.#registry.metrics()}`;
  }

  answered(labels: Labels, status: number, seconds: number): void {
    const series = this.#seriesOf(labels);
    counted(series.requests, status, () => this.#requests.series({ ...series.labels, status: String(status) })).value++;
    series.duration ??= this.#duration.series(series.labels);
    series.duration.add(seconds);
  }

  firstToken(labels: Labels, seconds: number): void {
    const series = this.#seriesOf(labels);
    series.firstToken ??= this.#firstToken.series(series.labels);
    series.firstToken.add(seconds);
  }

  interToken(labels: Labels, seconds: number): void {
    const series = this.#seriesOf(labels);
    series.interToken ??= this.#interToken.series(series.labels);
    series.interToken.add(seconds);
  }

  overhead(labels: Labels, seconds: number): void {
    const series = this.#seriesOf(labels);
    series.overhead ??= this.#overhead.series(series.labels);
    series.overhead.add(seconds);
  }

  tokens(labels: Labels, type: 'input' | 'output', count: number): void {
    // What upstreams report is not always a number of tokens.
    if (!Number.isSafeInteger(count) || count < 0) return;
    const series = this.#seriesOf(labels);
    counted(series.tokens, type, () => this.#tokens.series({ ...series.labels, type })).value += count;
  }

  noted(labels: Labels, code: string): void {
    const series = this.#seriesOf(labels);
    counted(series.notes, code, () => this.#notes.series({ ...series.labels, code })).value++;
  }

  upstreamFailed(provider: string, code: string): void {
    this.#upstreamErrors.inc({ provider, code });
  }

  upstreamUp(provider: string, isUp: boolean): void {
    if (this.#up.get(provider) === isUp) return;
    this.#up.set(provider, isUp);
    this.#upstreamUp.set({ provider }, isUp ? 1 : 0);
  }

  #seriesOf(labels: Labels): LabelledSeries {
    const { provider, model: asked, client_protocol, upstream_protocol } = labels;
    if (this.#models.size < MAX_MODELS) this.#models.add(asked);
    const model = this.#models.has(asked) ? asked : 'other';
    const key = `${provider}\n${model}\n${client_protocol}\n${upstream_protocol}`;
    const known = this.#series.get(key);
    if (known) return known;
    const created: LabelledSeries = {
      labels: { provider, model, client_protocol, upstream_protocol },
      requests: new Map(),
      tokens: new Map(),
      notes: new Map(),
    };
    this.#series.set(key, created);
    return created;
  }
}

function counted<K>(counts: Map<K, Count>, key: K, create: () => Count): Count {
  const known = counts.get(key);
  if (known) return known;
  const created = create();
  counts.set(key, created);
  return created;
}
