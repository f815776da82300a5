import { Counter, Gauge, Registry } from 'prom-client';
import { type Families, LabelledSeries, type Labels } from './labelled-series.ts';
import { Counts, Distributions } from './series.ts';

/** Seconds. First bytes of models come between a tenth of a second and minutes. */
const DURATIONS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const OVERHEADS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];

const TOKEN_TIMES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** Labels of one provider for models that the configuration does not name: some servers answer for any name. */
const MAX_ANSWERED_MODELS = 200;

/** The label that all other models share. */
const OTHER = 'other';

/** Labels as an exchange knows them. `isConfigured`: the configuration file names the model. */
export interface ExchangeLabels extends Labels {
  isConfigured?: boolean;
}

/** What `/metrics` shows. */
export class Metrics {
  readonly #registry: Registry = new Registry();
  readonly shed: Counter;
  readonly droppedConnections: Counter;
  readonly #families: Families;
  readonly #upstreamErrors: Counter;
  readonly #upstreamUp: Gauge;
  readonly #series = new Map<string, LabelledSeries>();
  /** Models that a provider answered for, by provider. */
  readonly #answered = new Map<string, Set<string>>();
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
    this.droppedConnections = new Counter({
      name: 'sluice_dropped_connections_total',
      help: 'Connections of clients closed at once because there are too many, or no file descriptors are left.',
      registers,
    });
    this.#families = {
      requests: counts('requests_total', 'Exchanges that ended, by HTTP status.'),
      tokens: counts('tokens_total', 'Tokens as the upstreams reported them.'),
      notes: counts('conversion_warnings_total', 'What could not be carried over, by kind.'),
      duration: distributions('request_duration_seconds', 'From the request to the end of the answer.', DURATIONS),
      firstToken: distributions('time_to_first_token_seconds', 'From the request to the first content of the answer.', DURATIONS),
      interToken: distributions(
        'inter_token_latency_seconds',
        'Time a token took after the first, a mean a stream.',
        TOKEN_TIMES,
      ),
      overhead: distributions('overhead_seconds', 'From the request to the call of the first upstream.', OVERHEADS),
    };
    this.#upstreamErrors = new Counter({
      name: 'sluice_upstream_errors_total',
      help: 'Attempts that failed, by kind.',
      labelNames: ['provider', 'code'],
      registers,
    });
    this.#upstreamUp = new Gauge({
      name: 'sluice_upstream_up',
      help: '0 while the target last tried at this provider is paused after failures: it gets requests only if no other target is available, as one probe at a time without retries; else 1.',
      labelNames: ['provider'],
      registers,
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All of it, in the words of Prometheus. */
  async text(): Promise<string> {
    const families = Object.values(this.#families).map(({ text }) => `${text}\n`);
    return `${families.join('\n')}\n${await this.#registry.metrics()}`;
  }

  /** A provider answered for a model: from now on the model has its own label, up to the maximum. */
  answeredFor(provider: string, model: string): void {
    const models = this.#answered.get(provider) ?? new Set();
    this.#answered.set(provider, models);
    if (models.size < MAX_ANSWERED_MODELS) models.add(model);
  }

  /** The series of these labels. A client can invent model names, so only models that exist get a label of their own. */
  of({ provider, model: name, client_protocol, upstream_protocol, isConfigured = false }: ExchangeLabels): LabelledSeries {
    const isNamed = isConfigured || name === '' || this.#answered.get(provider)?.has(name);
    const model = isNamed ? name : OTHER;
    const key = `${provider}\n${model}\n${client_protocol}\n${upstream_protocol}`;
    const known = this.#series.get(key);
    if (known) return known;
    const created = new LabelledSeries({ provider, model, client_protocol, upstream_protocol }, this.#families);
    this.#series.set(key, created);
    return created;
  }

  upstreamFailed(provider: string, code: string): void {
    this.#upstreamErrors.inc({ provider, code });
  }

  upstreamUp(provider: string, isUp: boolean): void {
    if (this.#up.get(provider) === isUp) return;
    this.#up.set(provider, isUp);
    this.#upstreamUp.set({ provider }, isUp ? 1 : 0);
  }
}
