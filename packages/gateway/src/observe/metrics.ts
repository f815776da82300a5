import { Counter, Gauge, Registry } from 'prom-client';
import { type Families, LabelledSeries, type Labels } from './labelled-series.ts';
import { ProcessMetrics } from './process-metrics.ts';
import { type Count, Counts, Distributions } from './series.ts';

/** The metrics of `/metrics`. */
export class Metrics {
  readonly #registry: Registry = new Registry();
  readonly shed: Counter;
  readonly droppedConnections: Counter;
  readonly reused: Counter<'source'>;
  readonly lateRecords: Counter;
  readonly failedCaptures: Counter;
  readonly #families: Families;
  readonly #texts: readonly { readonly text: string }[];
  #process: ProcessMetrics | undefined;
  #join: ((own: string) => Promise<string>) | undefined;
  readonly #upstreamErrors: Counter;
  readonly insuredRequests: Counter;
  readonly droppedSpans: Counter;
  readonly limitsStoreFailures: Counter;
  readonly #limitRefusals: Counter;
  readonly #overruns: Counter;
  readonly #overrunCost: Counter;
  readonly #upstreamUp: Gauge;
  readonly #series = new Map<string, LabelledSeries>();
  /** Models that a provider has responded for, by provider. */
  readonly #servedModels = new Map<string, Set<string>>();
  /** The last value of `sluice_upstream_up` by provider. */
  readonly #up = new Map<string, boolean>();

  readonly #cost = new Counts(
    { name: 'sluice_cost_usd_total', help: 'Cost of all attempts in US dollars, as far as prices are known.' },
    MICROS_PER_DOLLAR,
  );
  readonly #costSeries = new Map<string, Count>();

  /** `active` returns the number of running exchanges, `ledger` the state of the store; called on every scrape. */
  constructor(active: () => number = () => 0, ledger?: () => LedgerStatus) {
    const registers = [this.#registry];
    if (ledger) addLedgerMetrics(registers, ledger);
    const counts = (name: string, help: string): Counts => new Counts({ name: `sluice_${name}`, help });
    const distributions = (name: string, help: string, bounds: readonly number[]): Distributions =>
      new Distributions({ name: `sluice_${name}`, help }, bounds);

    new Gauge({
      name: 'sluice_active_requests',
      help: 'Requests in progress.',
      registers,
      collect() {
        this.set(active());
      },
    });
    this.shed = new Counter({
      name: 'sluice_shed_requests_total',
      help: 'Requests rejected because too many are in progress.',
      registers,
    });
    this.droppedConnections = new Counter({
      name: 'sluice_dropped_connections_total',
      help: 'Client connections closed immediately because there are too many or no file descriptors are left.',
      registers,
    });
    this.reused = new Counter({
      name: 'sluice_reused_responses_total',
      help: 'Requests that needed no upstream, by where their response is from.',
      labelNames: ['source'],
      registers,
    });
    this.lateRecords = new Counter({
      name: 'sluice_ledger_late_total',
      help: 'Responses that were sent before their usage was recorded, because the store was slow or failing.',
      registers,
    });
    this.failedCaptures = new Counter({
      name: 'sluice_capture_failed_total',
      help: 'Exchanges that should have been captured and were not, because writing failed or was too slow.',
      registers,
    });
    const requests = counts('requests_total', 'Completed requests, by HTTP status.');
    const tokens = counts('tokens_total', 'Tokens as reported by the upstreams.');
    const notes = counts('conversion_warnings_total', 'Conversion losses and repairs, by code.');
    const duration = distributions(
      'request_duration_seconds',
      'Time from the request to the end of the response.',
      DURATION_BOUNDS,
    );
    const firstToken = distributions(
      'time_to_first_token_seconds',
      'Time from the request to the first content of the response.',
      DURATION_BOUNDS,
    );
    const interToken = distributions(
      'inter_token_latency_seconds',
      'Mean time per output token after the first, per stream.',
      TOKEN_TIME_BOUNDS,
    );
    const overhead = distributions('overhead_seconds', 'Time from the request to the first upstream request.', OVERHEAD_BOUNDS);
    const cost = (labels: Labels): Count => this.#findCost(labels);
    this.#families = { requests, tokens, notes, duration, firstToken, interToken, overhead, cost };
    this.#texts = [requests, tokens, notes, duration, firstToken, interToken, overhead, this.#cost];
    this.#upstreamErrors = new Counter({
      name: 'sluice_upstream_errors_total',
      help: 'Failed upstream attempts, by kind.',
      labelNames: ['provider', 'code'],
      registers,
    });
    this.#limitRefusals = new Counter({
      name: 'sluice_limit_refusals_total',
      help: 'Requests refused by a limit of their key or a budget, by kind of limit.',
      labelNames: ['limit'],
      registers,
    });
    this.insuredRequests = new Counter({
      name: 'sluice_limits_insured_requests_total',
      help: "Requests that were checked against this node's part of the limits, because the limits store could not be used.",
      registers,
    });
    this.droppedSpans = new Counter({
      name: 'sluice_trace_spans_dropped_total',
      help: 'Spans that were not exported, because the collector failed or the queue was full.',
      registers,
    });
    this.limitsStoreFailures = new Counter({
      name: 'sluice_limits_store_failures_total',
      help: 'Calls of the limits store that failed or took too long.',
      registers,
    });
    this.#overruns = new Counter({
      name: 'sluice_budget_overruns_total',
      help: 'Requests that cost more than was reserved for them.',
      registers,
    });
    this.#overrunCost = new Counter({
      name: 'sluice_budget_overrun_usd_total',
      help: 'What requests cost beyond what was reserved for them, in US dollars.',
      registers,
    });
    this.#upstreamUp = new Gauge({
      name: 'sluice_upstream_up',
      help: '0 while the target last tried at this provider is paused after failures (it then gets one probe at a time, without retries, and only if no other target is available); otherwise 1.',
      labelNames: ['provider'],
      registers,
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The page of `/metrics`, in the exposition format of Prometheus. */
  async text(): Promise<string> {
    const own = await this.ownText();
    return this.#join?.(own) ?? own;
  }

  /** Adds the metrics of other processes to the page. */
  joinWith(join: (own: string) => Promise<string>): void {
    this.#join = join;
  }

  /** The metrics of this process. */
  async ownText(): Promise<string> {
    const families = this.#texts.map(({ text }) => `${text}\n`);
    return `${families.join('\n')}\n${await this.#registry.metrics()}`;
  }

  /** Adds the metrics of the process: CPU, memory and event loop. Only one gateway of a process needs them. */
  watchProcess(): void {
    this.#process ??= new ProcessMetrics([this.#registry]);
  }

  close(): void {
    this.#process?.close();
  }

  #findCost({ provider, model }: Labels): Count {
    const key = `${provider}\n${model}`;
    const known = this.#costSeries.get(key);
    if (known) return known;
    const created = this.#cost.series({ provider, model });
    this.#costSeries.set(key, created);
    return created;
  }

  /** Gives a model that a provider has responded for its own label, up to the maximum. */
  answeredFor(provider: string, model: string): void {
    const models = this.#servedModels.get(provider) ?? new Set();
    this.#servedModels.set(provider, models);
    if (models.size < MAX_SERVED_MODELS) models.add(model);
  }

  /** The series of these labels. Clients can invent model names, so only models that exist get their own label. */
  of({ provider, model: name, client_protocol, upstream_protocol, isConfigured = false }: ExchangeLabels): LabelledSeries {
    const isNamed = isConfigured || name === '' || this.#servedModels.get(provider)?.has(name);
    const model = isNamed ? name : OTHER_MODELS;
    const key = `${provider}\n${model}\n${client_protocol}\n${upstream_protocol}`;
    const known = this.#series.get(key);
    if (known) return known;
    const created = new LabelledSeries({ provider, model, client_protocol, upstream_protocol }, this.#families);
    this.#series.set(key, created);
    return created;
  }

  /** A limit refused a request. `limit`: one of few names. */
  limitRefused(limit: string): void {
    this.#limitRefusals.inc({ limit });
  }

  /** A request cost this much more than was reserved for it, in millionths of a dollar. */
  overran(micros: number): void {
    this.#overruns.inc();
    this.#overrunCost.inc(micros / MICROS_PER_DOLLAR);
  }

  /** Shows which version of the configuration in the database is in force; read on every scrape. */
  watchConfig(readVersion: () => number): void {
    new Gauge({
      name: 'sluice_config_version',
      help: 'Version of the configuration in the database that this node uses.',
      registers: [this.#registry],
      collect() {
        this.set(readVersion());
      },
    });
  }

  /** Shows whether the limits store can be used; read on every scrape. */
  watchLimitsStore(isUsed: () => boolean): void {
    new Gauge({
      name: 'sluice_limits_store_up',
      help: 'Whether the limits store can be used: 1 or 0.',
      registers: [this.#registry],
      collect() {
        this.set(isUsed() ? 1 : 0);
      },
    });
  }

  /** Shows what running requests hold of their budgets; read on every scrape. */
  watchReservations(read: () => { requests: number; micros: number }): void {
    const registers = [this.#registry];
    new Gauge({
      name: 'sluice_budget_reservations',
      help: 'Running requests that hold a part of a budget.',
      registers,
      collect() {
        this.set(read().requests);
      },
    });
    new Gauge({
      name: 'sluice_budget_reserved_usd',
      help: 'What running requests hold of budgets, in US dollars.',
      registers,
      collect() {
        this.set(read().micros / MICROS_PER_DOLLAR);
      },
    });
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

/** What the metrics need to know of the store. */
export interface LedgerStatus {
  readonly queued_rows: number;
  readonly written_rows: number;
  readonly failed_batches: number;
  readonly last_error: string | null;
}

/** The metrics of the store, read from its status on every scrape. */
function addLedgerMetrics(registers: Registry[], read: () => LedgerStatus): void {
  const gauge = (name: string, help: string, value: (status: LedgerStatus) => number): Gauge =>
    new Gauge({
      name: `sluice_ledger_${name}`,
      help,
      registers,
      collect() {
        this.set(value(read()));
      },
    });
  const counter = (name: string, help: string, value: (status: LedgerStatus) => number): Counter =>
    new Counter({
      name: `sluice_ledger_${name}_total`,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(value(read()));
      },
    });
  gauge('up', '0 while the store cannot write, otherwise 1.', ({ last_error }) => (last_error === null ? 1 : 0));
  gauge('queued_rows', 'Rows that wait to be written.', ({ queued_rows }) => queued_rows);
  counter('written_rows', 'Rows that are durable.', ({ written_rows }) => written_rows);
  counter('failed_batches', 'Transactions that failed and were repeated.', ({ failed_batches }) => failed_batches);
}

const MICROS_PER_DOLLAR = 1_000_000;

/** Labels as an exchange knows them. `isConfigured`: the configuration file names the model. */
export interface ExchangeLabels extends Labels {
  isConfigured?: boolean;
}

/** Bucket bounds in seconds. Models take from a tenth of a second to minutes for their first bytes. */
const DURATION_BOUNDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const OVERHEAD_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];

const TOKEN_TIME_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** Model labels per provider beyond configured ones, because some servers accept any name. */
const MAX_SERVED_MODELS = 200;

/** The label for all other models. */
const OTHER_MODELS = 'other';
