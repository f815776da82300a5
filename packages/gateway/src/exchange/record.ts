/** The record of one exchange in the ledger: opened when its request is read, settled before the client has its last byte. */

import type { CanonicalError, CanonicalUsage, Diagnostic, HeaderBag, ProtocolId } from '@sluice/core';
import type { AdmissionGate, Admission as GateAdmission } from '../admission/gate.ts';
import type { Clock, Timer } from '../http/clock.ts';
import { readHeaderText } from '../http/header-text.ts';
import type { Cost } from '../prices/cost.ts';
import type {
  Admission,
  ExchangeOpening,
  ExchangeSettlement,
  Ledger,
  NoteRow,
  Provenance,
  Settlement,
  TokenCounts,
  Write,
} from '../store/index.ts';

/** How records are written, for all exchanges of a gateway. */
export interface RecordKeeping {
  readonly ledger: Ledger;
  /** `strict`: clients wait until what they are about to receive is recorded on disk. */
  readonly durability: 'strict' | 'relaxed';
  /** A client received something before it was recorded. */
  onLate(reason: string): void;
  readonly clock: Clock;
  /** Removes the secrets of the gateway from what clients and upstreams wrote. */
  readonly redact?: (text: string) => string;
}

/** What the ledger knows of a request by its body. */
export type BodyFacts = Pick<ExchangeOpening, 'model_requested' | 'is_stream' | 'session_id'>;

/** What the ledger knows of a request by its headers. */
export type HeaderFacts = Omit<ExchangeOpening, 'id' | 'ts' | 'client_name' | keyof BodyFacts>;

/** Records one exchange. Without `keeping`, nothing is recorded. */
export class ExchangeRecord {
  readonly #keeping: RecordKeeping | undefined;
  readonly #admission: Admission;
  readonly #startedAt: number;
  readonly #totals = new UsageTotals();
  /** What the request holds at the gate; undefined without limits. */
  admission: GateAdmission | undefined;
  /** Costs of ended attempts that are known, and those that are assumed because no usage was reported. */
  #spent = 0;
  #assumed = 0;
  #state: 'new' | 'open' | 'settled' = 'new';
  /** The last attempt. */
  #attempt: AttemptRecord | undefined;
  /** The attempt whose response the client receives; undefined before its content. */
  #chosen: AttemptRecord | undefined;
  /** Attempts that have not ended: two, when a slow stream is hedged. */
  readonly #running: AttemptRecord[] = [];
  #attempts = 0;
  #body: BodyFacts = {};
  /** The write of the exchange. */
  #opening: Write | undefined;

  constructor(keeping: RecordKeeping | undefined) {
    this.#keeping = keeping;
    this.#admission = keeping?.ledger.createId() ?? { id: '', ts: 0 };
    this.#startedAt = keeping?.clock.now() ?? 0;
  }

  /** The id of the exchange in the ledger; empty when it is not recorded. */
  get id(): string {
    return this.#admission.id;
  }

  /** When the request was received, in milliseconds since 1970; 0 when it is not recorded. */
  get receivedAt(): number {
    return this.#admission.ts;
  }

  /** What all ended attempts have cost, or may have cost, in millionths of a dollar. */
  get charged(): number {
    return this.#spent + this.#assumed;
  }

  /** Tokens of all ended attempts; null when none were reported, although something may have been used. */
  get tokens(): number | null {
    const { tokens, provenance, possiblyBilled } = this.#totals.sum;
    if (provenance === null) return possiblyBilled ? null : 0;
    return (tokens.input_tokens ?? 0) + (tokens.output_tokens ?? 0);
  }

  /** Gives back what the exchange holds at the gate, and charges what it used. Only the first call counts. */
  endAdmission(gate: Pick<AdmissionGate, 'end'>): void {
    if (this.admission) gate.end(this.admission, { micros: this.charged, tokens: this.tokens });
  }

  /** Whether the exchange is recorded at all. */
  get isKept(): boolean {
    return this.#keeping !== undefined;
  }

  /** What is known of the attempt whose response the client receives, or of the last one; undefined before the first. */
  get attempt(): AttemptRecord | undefined {
    return this.#chosen ?? this.#attempt;
  }

  /** What is known of the body of the request; nothing before the record is opened. */
  get body(): BodyFacts {
    return this.#body;
  }

  /**
   * The request has been read, or could not be read. What clients write into their requests may have their key, or one that an upstream
   * told them. The columns are named one by one: a spread of them took 4 us of every request.
   */
  open(headers: HeaderFacts, body: BodyFacts = {}): void {
    if (!this.#keeping || this.#state !== 'new') return;
    this.#state = 'open';
    this.#body = body;
    const userAgent = this.#redact(headers.user_agent);
    this.#opening = this.#keeping.ledger.openExchange({
      id: this.#admission.id,
      ts: this.#admission.ts,
      request_id: headers.request_id,
      key_id: headers.key_id,
      key_name: headers.key_name,
      tags: this.#redactAll(headers.tags),
      session_id: this.#redact(body.session_id),
      client_protocol: headers.client_protocol,
      client_name: findClientName(userAgent),
      user_agent: userAgent,
      endpoint: headers.endpoint,
      model_requested: this.#redact(body.model_requested),
      is_stream: body.is_stream,
    } satisfies Record<keyof ExchangeOpening, unknown>);
  }

  /** A request is about to be sent to an upstream. */
  startAttempt(target: AttemptTarget): AttemptRecord {
    this.#attempts++;
    const attempt = new AttemptRecord(this.#attempts, this.#now, target);
    this.#attempt = attempt;
    this.#running.push(attempt);
    if (this.#keeping && this.#state === 'open')
      attempt.opening = this.#keeping.ledger.openAttempt({
        exchange_id: this.#admission.id,
        number: attempt.number,
        // Monotonic, so that a step of the wall clock does not reorder attempts.
        ts: this.#admission.ts + attempt.startedAt - this.#startedAt,
        provider: target.provider,
        upstream_protocol: target.protocol,
        model: this.#redact(target.model),
      });
    return attempt;
  }

  /** What the upstream has reported before the end, as Anthropic does; it counts if the gateway crashes. */
  reportUsage(
    { input_tokens: input = 0, output_tokens: output = 0, ...usage }: Partial<CanonicalUsage>,
    attempt: AttemptRecord,
  ): void {
    if (!this.#keeping || this.#state !== 'open' || input + output === 0) return;
    const used = { ...usage, input_tokens: input, output_tokens: output };
    void this.#keeping.ledger.reportProgress({
      ...countTokens(used),
      cost_micros: attempt.target.price?.(used) ?? null,
      exchange_id: this.#admission.id,
      number: attempt.number,
    });
  }

  /** The response of this attempt is sent. The exchange has its provider and model, whatever was requested beside it. */
  choose(attempt: AttemptRecord): void {
    this.#chosen = attempt;
  }

  /**
   * An attempt has ended, by default the last one. Later calls for the same attempt have no effect and return
   * false.
   */
  endAttempt(end: AttemptEnd, attempt: AttemptRecord | undefined = this.#attempt): boolean {
    if (!attempt || attempt.isSettled) return false;
    attempt.isSettled = true;
    this.#running.splice(this.#running.indexOf(attempt), 1);
    const totals = readTotals(end);
    this.#totals.add(totals);
    this.#charge(end, attempt);
    if (!this.#keeping || this.#state !== 'open') return true;
    const { startedAt } = attempt;
    const settlement = buildSettlement(end, attempt.status, totals, attempt, { from: startedAt, to: this.#now() });
    void this.#keeping.ledger.settleAttempt(
      Object.assign(settlement, {
        exchange_id: this.#admission.id,
        number: attempt.number,
        upstream_request_id: this.#redact(attempt.upstreamRequestId),
        model_answered: this.#redact(attempt.modelAnswered),
      }),
    );
    return true;
  }

  #charge({ cost, usage, possiblyBilled }: AttemptEnd, attempt: AttemptRecord): void {
    if (cost) this.#spent += cost.micros;
    else if (this.admission && (usage || possiblyBilled)) this.#assumed += this.admission.assume(this.#now() - attempt.startedAt);
  }

  /**
   * What a request with a budget waits for before it is sent: after a crash, only an attempt with a row counts. Undefined
   * when it need not wait.
   */
  beforeSending(attempt: AttemptRecord): Promise<void> | undefined {
    return this.admission?.isReserved ? this.beforeContent(attempt) : undefined;
  }

  /** What the client has to wait for before it receives content of an attempt; undefined when it need not wait. */
  beforeContent(attempt: AttemptRecord | undefined = this.#attempt): Promise<void> | undefined {
    const write = attempt?.opening ?? this.#opening;
    return write && !write.isDurable ? this.#waitFor(write) : undefined;
  }

  /**
   * Settles the exchange. The client may receive the end of its response when the promise resolves, or at once when
   * there is none. Only the first call counts.
   */
  settle(end: ExchangeEnd): Promise<void> | undefined {
    if (!this.#keeping || this.#state !== 'open') return undefined;
    const { ledger } = this.#keeping;
    const { attempt } = this;
    // No attempt stays open after its exchange; these were ended by a bug of the gateway.
    for (const open of [...this.#running]) this.endAttempt({ ending: end.ending, error: end.error, possiblyBilled: true }, open);
    this.#state = 'settled';
    const time = { from: this.#startedAt, to: this.#now() };
    const settlement = buildSettlement(end, end.status, this.#totals.sum, attempt, time);
    const settled = ledger.settleExchange(
      Object.assign(settlement, {
        id: this.#admission.id,
        ts: this.#admission.ts + time.to - time.from,
        provider: attempt?.target.provider ?? null,
        upstream_protocol: attempt?.target.protocol ?? null,
        model: this.#redact(attempt?.target.model),
        model_answered: this.#redact(attempt?.modelAnswered),
        assumed_micros: this.#assumed,
        queue_ms: end.queue_ms ?? null,
        notes: this.#redactNotes(end.notes),
        rules: attempt?.rules ?? [],
        route_rule: end.route_rule ?? null,
        affinity: end.affinity ?? null,
        cache_break: end.cache_break ?? null,
      }),
    );
    return this.#waitFor(settled);
  }

  #redact(text: string | null | undefined): string | null {
    return text === undefined || text === null ? null : (this.#keeping?.redact?.(text) ?? text);
  }

  #redactAll(texts: readonly string[] = []): readonly string[] {
    const redact = this.#keeping?.redact;
    return redact && texts.length > 0 ? texts.map(redact) : texts;
  }

  #redactNotes(notes: readonly NoteRow[]): readonly NoteRow[] {
    const redact = this.#keeping?.redact;
    if (!redact || notes.length === 0) return notes;
    return notes.map((note) => (note.message === undefined ? note : { ...note, message: redact(note.message) }));
  }

  get #now(): () => number {
    return this.#keeping?.clock.now ?? ZERO;
  }

  /**
   * Waits for a write, unless the operator or the state of the store forbids to wait. A response that was paid for is
   * delivered in any case: a store that does not answer delays it by `MAX_WAIT_MS`, a failing one does not delay it.
   */
  #waitFor(write: Write): Promise<void> | undefined {
    const keeping = this.#keeping;
    if (!keeping || keeping.durability === 'relaxed') return undefined;
    if (keeping.ledger.isFailing) {
      keeping.onLate('the store is failing');
      return undefined;
    }
    return findWaits(keeping).add(write);
  }
}

/** A response that waits for a write. */
interface Wait {
  readonly until: number;
  /** Undefined when the response waits no longer. */
  resolve: (() => void) | undefined;
}

/** The responses that wait for a store, in their order. One timer serves them all: a timer for each took 3 % of a request. */
class Waits {
  readonly #keeping: RecordKeeping;
  #waits: Wait[] = [];
  #timer: Timer | undefined;

  constructor(keeping: RecordKeeping) {
    this.#keeping = keeping;
  }

  /** Resolves when the write is durable, has failed, or takes too long. */
  add(write: Write): Promise<void> {
    return new Promise((resolve) => {
      const wait: Wait = { until: this.#keeping.clock.now() + MAX_WAIT_MS, resolve };
      this.#waits.push(wait);
      this.#timer ??= this.#setTimer(MAX_WAIT_MS);
      write.onEnd((error) => this.#end(wait, error && String(error)));
    });
  }

  /** The connections of responses that wait keep the process alive. The timer must not: a gateway that has stopped would end 5 s later. */
  #setTimer(ms: number): Timer {
    return this.#keeping.clock.setTimer(this.#sweep, ms).unref();
  }

  /** `reason`: why the response is sent before it is recorded. */
  #end(wait: Wait, reason?: string): void {
    const { resolve } = wait;
    if (!resolve) return;
    wait.resolve = undefined;
    if (reason !== undefined) this.#keeping.onLate(reason);
    resolve();
  }

  /** Ends what has waited too long, and waits for the next. */
  readonly #sweep = (): void => {
    const now = this.#keeping.clock.now();
    for (const wait of this.#waits) if (wait.until <= now) this.#end(wait, `the store did not answer within ${MAX_WAIT_MS} ms`);
    this.#waits = this.#waits.filter(({ resolve }) => resolve);
    const [next] = this.#waits;
    this.#timer = next && this.#setTimer(Math.max(1, next.until - now));
  };
}

const waitsByKeeping = new WeakMap<RecordKeeping, Waits>();

function findWaits(keeping: RecordKeeping): Waits {
  const known = waitsByKeeping.get(keeping);
  if (known) return known;
  const waits = new Waits(keeping);
  waitsByKeeping.set(keeping, waits);
  return waits;
}

const ZERO = (): number => 0;

/** How long a response waits for a store that does not answer. */
export const MAX_WAIT_MS = 5000;

/** Where an attempt goes. */
export interface AttemptTarget {
  provider: string;
  protocol: ProtocolId;
  model: string | undefined;
  /** What usage of it costs; null when the price is unknown. */
  price?: PriceUsage | undefined;
}

type PriceUsage = (usage: CanonicalUsage) => number | null;

/** What is known of a running attempt. Times are monotonic milliseconds. */
export class AttemptRecord {
  /** Its number in the exchange, from 1. */
  readonly number: number;
  readonly startedAt: number;
  readonly #now: () => number;
  /** The upstream's HTTP status. */
  status: number | undefined;
  connectedAt: number | undefined;
  firstByteAt: number | undefined;
  firstTokenAt: number | undefined;
  upstreamRequestId: string | undefined;
  modelAnswered: string | undefined;
  /** Characters of text, reasoning and arguments that have arrived. */
  outputCharacters = 0;
  /** Ids of the rules that the response breaks. */
  rules: readonly string[] = [];
  isSettled = false;
  readonly target: AttemptTarget;
  /** The write of its row; undefined when it is not recorded. */
  opening: Write | undefined;

  constructor(number: number, now: () => number, target: AttemptTarget) {
    this.number = number;
    this.#now = now;
    this.target = target;
    this.startedAt = now();
  }

  /** The connection is ready and the request is being sent. */
  connected(): void {
    this.connectedAt ??= this.#now();
  }

  /** The response headers have arrived. */
  responded(status: number, headers: HeaderBag): void {
    this.status = status;
    this.firstByteAt ??= this.#now();
    this.upstreamRequestId ??= headers['x-request-id'] ?? headers['request-id'];
  }

  /** The first content has arrived. */
  hadContent(): void {
    this.firstTokenAt ??= this.#now();
  }

  /** The protocol violations of the response. */
  observed(diagnostics: readonly Diagnostic[]): void {
    this.rules = [...new Set(diagnostics.map(({ rule }) => rule))];
  }
}

/** How an attempt ended, and what it used. */
export interface AttemptEnd {
  ending: string;
  error?: CanonicalError | undefined;
  usage?: CanonicalUsage | undefined;
  provenance?: Provenance | undefined;
  /** Null when the price is unknown; undefined without usage. */
  cost?: Cost | null | undefined;
  possiblyBilled?: boolean;
}

/** How an exchange ended. Usage and cost are those of its attempts. */
export interface ExchangeEnd
  extends Pick<AttemptEnd, 'ending' | 'error'>,
    Pick<ExchangeSettlement, 'route_rule' | 'affinity' | 'cache_break'> {
  /** The status that the client receives. */
  status: number;
  notes: readonly NoteRow[];
  queue_ms?: number;
}

/** What was used, and what it costs. */
interface Totals {
  tokens: TokenCounts;
  provenance: Provenance | null;
  micros: number | null;
  version: string | null;
  possiblyBilled: boolean;
}

const NO_TOKENS: TokenCounts = {
  input_tokens: null,
  output_tokens: null,
  cache_read_tokens: null,
  cache_creation_tokens: null,
  reasoning_tokens: null,
  input_audio_tokens: null,
  output_audio_tokens: null,
};

/** What one attempt used. */
function readTotals({ usage, provenance = 'reported', cost, possiblyBilled = false }: AttemptEnd): Totals {
  if (!usage) return { tokens: NO_TOKENS, provenance: null, micros: null, version: null, possiblyBilled };
  return {
    tokens: countTokens(usage),
    provenance,
    micros: cost?.micros ?? null,
    version: cost?.version ?? null,
    possiblyBilled,
  };
}

/** From the most to the least certain. */
const PROVENANCES = ['reported', 'derived', 'estimated', 'uncertain'] as const satisfies readonly Provenance[];

/** Sums over the attempts of an exchange: a client is charged for all of them. */
class UsageTotals {
  #sum: Totals | undefined;

  get sum(): Totals {
    return this.#sum ?? readTotals({ ending: '' });
  }

  add(totals: Totals): void {
    const before = this.#sum;
    this.#sum = before ? addTotals(before, totals) : totals;
  }
}

function addTotals(a: Totals, b: Totals): Totals {
  const possiblyBilled = a.possiblyBilled || b.possiblyBilled;
  if (a.provenance === null || b.provenance === null) return { ...(a.provenance === null ? b : a), possiblyBilled };
  return {
    tokens: addCounts(a.tokens, b.tokens),
    provenance: PROVENANCES.findLast((value) => value === a.provenance || value === b.provenance) ?? null,
    // What is known of the cost. An attempt without a price has none in its row, and the roll-ups count the exchange as unpriced.
    micros: a.micros === null ? b.micros : a.micros + (b.micros ?? 0),
    version: b.version ?? a.version,
    possiblyBilled,
  };
}

function addCounts(a: TokenCounts, b: TokenCounts): TokenCounts {
  const sum = { ...a };
  for (const [name, count] of Object.entries(b) as [keyof TokenCounts, number | null][])
    if (count !== null) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** Token counts as the ledger has them. */
function countTokens(usage: CanonicalUsage): TokenCounts {
  const { details } = usage;
  return {
    input_tokens: usage.input_tokens,
    output_tokens: usage.output_tokens,
    cache_read_tokens: usage.cache_read_tokens ?? null,
    cache_creation_tokens: usage.cache_creation_tokens ?? null,
    reasoning_tokens: usage.reasoning_tokens ?? null,
    input_audio_tokens: details?.input_audio ?? null,
    output_audio_tokens: details?.output_audio ?? null,
  };
}

/** The columns that attempts and exchanges share, without a spread: those took 6 % of a request. */
function buildSettlement(
  { ending, error }: Pick<AttemptEnd, 'ending' | 'error'>,
  status: number | undefined,
  { tokens, provenance, micros, version, possiblyBilled }: Totals,
  attempt: AttemptRecord | undefined,
  { from, to }: { from: number; to: number },
): Settlement {
  return {
    input_tokens: tokens.input_tokens,
    output_tokens: tokens.output_tokens,
    cache_read_tokens: tokens.cache_read_tokens,
    cache_creation_tokens: tokens.cache_creation_tokens,
    reasoning_tokens: tokens.reasoning_tokens,
    input_audio_tokens: tokens.input_audio_tokens,
    output_audio_tokens: tokens.output_audio_tokens,
    provenance,
    cost_micros: micros,
    price_version: version,
    connect_ms: subtract(attempt?.connectedAt, from),
    first_byte_ms: subtract(attempt?.firstByteAt, from),
    first_token_ms: subtract(attempt?.firstTokenAt, from),
    total_ms: to - from,
    http_status: status ?? null,
    ending,
    error_code: error?.code ?? null,
    possibly_billed: possiblyBilled,
  };
}

const subtract = (at: number | undefined, from: number): number | null => (at === undefined ? null : at - from);

/**
 * The conversation that a request belongs to, by what clients send for it: our own header, Codex's, the cache key of
 * OpenAI, the conversation of Responses, the user id of Claude Code, which ends in its session or is JSON with it.
 */
export function findSession(headers: HeaderBag, body: unknown): string | undefined {
  for (const name of SESSION_HEADERS) if (headers[name]) return readHeaderText(headers[name]);
  if (typeof body !== 'object' || body === null) return undefined;
  const { prompt_cache_key: cacheKey, conversation, metadata } = body as Record<string, unknown>; // any JSON object
  if (typeof cacheKey === 'string' && cacheKey !== '') return cacheKey;
  const stored =
    typeof conversation === 'object' && conversation !== null && 'id' in conversation ? conversation.id : conversation;
  if (typeof stored === 'string' && stored !== '') return stored;
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const { session_id: session, user_id: user } = metadata as Record<string, unknown>; // any JSON object
  if (typeof session === 'string' && session !== '') return session;
  return typeof user === 'string' ? /(?:_session_|"session_id"\s*:\s*")([\w-]{8,64})(?:$|")/.exec(user)?.[1] : undefined;
}

const SESSION_HEADERS = ['x-sluice-session', 'session_id', 'session-id', 'x-session-id', 'conversation_id'];

/** The name of a client in its User-Agent, without the version: `claude-cli`, `OpenAI/JS`, `ai-sdk/openai`. */
export const findClientName = (userAgent: string | null): string | undefined => CLIENT_NAME.exec(userAgent ?? '')?.[0];

const CLIENT_NAME = /^[^\s(]{1,100}?(?=[/ ]v?\d|[\s(]|$)/;
