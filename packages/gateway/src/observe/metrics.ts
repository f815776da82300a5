import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds. First bytes of models come between a tenth of a second and minutes. */
const DURATIONS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const OVERHEADS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];
const TOKEN_TIMES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

const LABELS = ['provider', 'model', 'client_protocol', 'upstream_protocol'] as const;
/** Series are bounded: a client can make up model names, and each would be one. */
const MAX_MODELS = 200;

export interface Labels {
  provider: string;
  model: string;
  client_protocol: string;
  upstream_protocol: string;
}

/** What `/metrics` shows. */
export class Metrics {
  readonly registry: Registry = new Registry();
  readonly shed: Counter;
  readonly #requests: Counter;
  readonly #tokens: Counter;
  readonly #notes: Counter;
  readonly #upstreamErrors: Counter;
  readonly #upstreamUp: Gauge;
  readonly #duration: Histogram;
  readonly #firstToken: Histogram;
  readonly #interToken: Histogram;
  readonly #overhead: Histogram;
  readonly #models = new Set<string>();
  /** What was told of each upstream last. */
  readonly #up = new Map<string, boolean>();

  /** `active`: how many exchanges are under way. Asked when somebody wants to know. */
  constructor(active: () => number = () => 0) {
    const counter = (name: string, help: string, ...labelNames: string[]): Counter =>
      new Counter({ name: `sluice_${name}`, help, labelNames, registers: [this.registry] });
    const gauge = (name: string, help: string, ...labelNames: string[]): Gauge =>
      new Gauge({ name: `sluice_${name}`, help, labelNames, registers: [this.registry] });
    const histogram = (name: string, help: string, buckets: number[]): Histogram =>
      new Histogram({ name: `sluice_${name}`, help, labelNames: LABELS, buckets, registers: [this.registry] });

    new Gauge({
      name: 'sluice_active_requests',
      help: 'Exchanges under way.',
      registers: [this.registry],
      collect() {
        this.set(active());
      },
    });
    this.shed = counter('shed_requests_total', 'Requests refused because too much is under way.');
    this.#requests = counter('requests_total', 'Exchanges that ended, by HTTP status.', ...LABELS, 'status');
    this.#tokens = counter('tokens_total', 'Tokens as the upstreams reported them.', ...LABELS, 'type');
    this.#notes = counter('conversion_warnings_total', 'What could not be carried over, by kind.', ...LABELS, 'code');
    this.#upstreamErrors = counter('upstream_errors_total', 'Attempts that failed, by kind.', 'provider', 'code');
    this.#upstreamUp = gauge('upstream_up', 'Whether the upstream is asked: 0 while it rests after failures.', 'provider');
    this.#duration = histogram('request_duration_seconds', 'From the request to the end of the answer.', DURATIONS);
    this.#firstToken = histogram(
      'time_to_first_token_seconds',
      'From the request to the first content of the answer.',
      DURATIONS,
    );
    this.#interToken = histogram(
      'inter_token_latency_seconds',
      'Time a token took after the first, a mean a stream.',
      TOKEN_TIMES,
    );
    this.#overhead = histogram('overhead_seconds', 'From the request to the call of the first upstream.', OVERHEADS);
  }

  answered(labels: Labels, status: number, seconds: number): void {
    const bounded = this.#bound(labels);
    const { provider, model, client_protocol, upstream_protocol } = bounded;
    this.#requests.inc({ provider, model, client_protocol, upstream_protocol, status: String(status) });
    this.#duration.observe(bounded, seconds);
  }

  firstToken(labels: Labels, seconds: number): void {
    this.#firstToken.observe(this.#bound(labels), seconds);
  }

  interToken(labels: Labels, seconds: number): void {
    this.#interToken.observe(this.#bound(labels), seconds);
  }

  overhead(labels: Labels, seconds: number): void {
    this.#overhead.observe(this.#bound(labels), seconds);
  }

  tokens(labels: Labels, type: 'input' | 'output', count: number): void {
    // What upstreams report is not always a number of tokens.
    if (!Number.isSafeInteger(count) || count < 0) return;
    const { provider, model, client_protocol, upstream_protocol } = this.#bound(labels);
    this.#tokens.inc({ provider, model, client_protocol, upstream_protocol, type }, count);
  }

  noted(labels: Labels, code: string): void {
    this.#notes.inc({ ...this.#bound(labels), code });
  }

  upstreamFailed(provider: string, code: string): void {
    this.#upstreamErrors.inc({ provider, code });
  }

  upstreamUp(provider: string, isUp: boolean): void {
    if (this.#up.get(provider) === isUp) return;
    this.#up.set(provider, isUp);
    this.#upstreamUp.set({ provider }, isUp ? 1 : 0);
  }

  #bound(labels: Labels): Record<keyof Labels, string> {
    if (this.#models.size < MAX_MODELS) this.#models.add(labels.model);
    const { provider, model, client_protocol, upstream_protocol } = labels;
    return { provider, model: this.#models.has(model) ? model : 'other', client_protocol, upstream_protocol };
  }
}
