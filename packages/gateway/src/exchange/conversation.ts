import {
  type CanonicalError,
  type CanonicalRequest,
  type CanonicalUsage,
  type ClientRequest,
  type Codec,
  createExchange,
  type Exchange,
  type ProviderProfile,
  type RequestTarget,
} from '@sluice/core';
import { CODECS, decodeRequest, estimateTokens } from '@sluice/core/engine';
import type { Admission } from '../admission/gate.ts';
import type { Rule } from '../config/resolve.ts';
import type { Caller } from '../keys/caller.ts';
import type { LabelledSeries } from '../observe/labelled-series.ts';
import type { Cost } from '../prices/cost.ts';
import { nameConversation } from '../routing/affinity.ts';
import { findAffinity, type Plan } from '../routing/router.ts';
import type { RuleRequest } from '../routing/rules.ts';
import type { ResponseKind } from '../routing/target-stats.ts';
import type { Call } from '../upstream/dialer.ts';
import { mayBeBilled } from '../upstream/retry.ts';
import type { ClientConnection } from './client-connection.ts';
import { ClientStream, encodeHeartbeat } from './client-stream.ts';
import { type AttemptSteps, ChatEndpoint, type Endpoint, type PreparedRequest, SideEndpoint } from './endpoint.ts';
import type { AttemptObserver, ExchangeObserver } from './observer.ts';
import { redactBytes } from './read-reply.ts';
import { type ExchangeEnd, type ExchangeRecord, findSession } from './record.ts';
import { addUpstreamHeaders, buildExchangeHeaders, chooseRedact, type Progress, STREAM_HEADERS, sendReply } from './reply.ts';
import { AttemptLoop } from './rounds.ts';
import { attemptStream } from './stream.ts';
import {
  type Attempt,
  buildCall,
  buildLabels,
  type Candidate,
  createUnavailableError,
  type Directory,
  type Ending,
  findEnding,
  INTERNAL,
  isStop,
  type Outcome,
  type Reply,
  type Services,
  toFailedOutcome,
} from './types.ts';
import { attemptWhole } from './whole.ts';

/** A request for a model, sent to its candidates in order until one of them responds. */
export class Conversation {
  readonly #request: ModelRequest;
  readonly #services: Services;
  readonly #target: RequestTarget;
  readonly #endpoint: Endpoint;
  readonly #clientStream: ClientStream | undefined;
  readonly #loop: AttemptLoop;
  #exchange: Exchange | undefined;
  #candidate: Candidate | undefined;
  /** The rule that chose the model, if one did. */
  #rule: Rule | undefined;
  #plan: Plan<Candidate> = NO_PLAN;
  /** What changed in the prompt since the turn before. */
  #cacheBreak: string | undefined;
  /** When the current attempt began. */
  #attemptAt = 0;
  /** Seconds between the request and the first call to an upstream. */
  #overhead: { candidate: Candidate; seconds: number } | undefined;
  /** Response headers of the upstream whose stream is sent to the client. */
  #upstreamHeaders: Record<string, string> = {};
  /** When the first content arrived. */
  #firstAt: number | undefined;
  /** When the request was first sent to an upstream. */
  #firstCallAt: number | undefined;

  constructor(request: ModelRequest, services: Services) {
    this.#request = request;
    this.#services = services;
    this.#target = request.target;
    this.#endpoint =
      request.kind === 'chat'
        ? new ChatEndpoint(this.#target.isStream, services, request.directory.modelInAnswer)
        : new SideEndpoint(request, services.log);
    this.#clientStream = this.#endpoint.isStream ? this.#createClientStream() : undefined;
    this.#loop = new AttemptLoop(
      {
        id: request.id,
        connection: request.connection,
        record: request.record,
        admission: request.admission,
        attempt: (candidate, repeat) => this.#tryCandidate(candidate, repeat),
      },
      services,
    );
  }

  /** Responds to the request. Rejects only before anything was sent. */
  async run(): Promise<Result> {
    const { holdMs } = this.#services.limits;
    const { connection } = this.#request;
    const holdTimer =
      this.#clientStream &&
      connection.clock.setTimer(
        connection.guard(() => this.#clientStream?.openSilently()),
        holdMs,
      );
    try {
      return await this.#result(await this.#respond());
    } catch (cause) {
      // Once the stream has begun, the error can only be reported in it.
      if (!this.#clientStream?.isOpen) throw cause;
      this.#services.log.error(
        { request_id: this.#request.id, error: String(cause instanceof Error ? cause.stack : cause) },
        'failed',
      );
      return await this.#refuse(INTERNAL);
    } finally {
      holdTimer?.close();
      this.#clientStream?.close();
    }
  }

  async #respond(): Promise<Outcome> {
    const { directory } = this.#request;
    const { model } = this.#target;
    this.#plan = this.#findPlan();
    const { candidates } = this.#plan;
    const [first] = candidates;
    // A side endpoint names its first candidate even when every candidate is paused.
    if (this.#endpoint.kind === 'side') this.#candidate = first;
    // A local response says nothing about the health of the upstream, so it does not count as an attempt.
    const local = first && this.#endpoint.respondLocally(first);
    if (local) return local;
    const outcome = this.#loop.run(candidates, createUnavailableError(model, candidates, directory));
    // While the upstream works on its response.
    this.#findCacheBreak();
    return outcome;
  }

  /** The candidates of the requested model, or of the one that a rule chose, in the order in which they are tried. */
  #findPlan(): Plan<Candidate> {
    const { client, directory, wire, caller } = this.#request;
    const { prices, affinityMs, rules } = directory;
    const isChat = this.#endpoint.kind === 'chat';
    this.#rule = isChat ? rules?.find(this.#describeForRules()) : undefined;
    const model = this.#rule?.use ?? this.#target.model;
    const candidates = directory.resolve(model, client.id);
    if (candidates.length < 2) return { candidates };
    return this.#services.router.plan(candidates, {
      kind: this.#target.isStream ? 'stream' : 'whole',
      affinityMs: isChat ? affinityMs : null,
      prices,
      nameConversation: () =>
        nameConversation({ caller: caller?.id ?? '', model, session: findSession(wire.headers, wire.body), body: wire.body }),
    });
  }

  #findCacheBreak(): void {
    const { wire } = this.#request;
    const session = this.#endpoint.kind === 'chat' ? findSession(wire.headers, wire.body) : undefined;
    if (session !== undefined)
      this.#cacheBreak = this.#services.router.cacheBreaks.compare(session, this.#target.model, wire.body);
  }

  #describeForRules(): RuleRequest {
    const { client, wire, caller } = this.#request;
    return {
      model: this.#target.model,
      headers: wire.headers,
      tags: caller?.tags ?? [],
      decode: () => decodeOrSkip(client, wire),
    };
  }

  #tryCandidate(candidate: Candidate, repeat: Call['repeat']): Promise<Outcome> {
    const steps: AttemptSteps = {
      prepare: (profile) => this.#prepare(candidate, profile, repeat),
      dispatch: (request) => this.#dispatch(candidate, request),
      repeatWithout: (field, error) => this.#loop.repeatWithout(field, candidate, error),
    };
    this.#candidate = candidate;
    return this.#endpoint.request(candidate, steps);
  }

  #prepare(candidate: Candidate, profile: ProviderProfile, repeat: Call['repeat']): PreparedRequest {
    const { client, wire } = this.#request;
    const options = this.#endpoint.conversion(candidate, profile);
    const observer = this.#request.observer?.attempt(candidate.provider, options);
    const exchange = createExchange(client, CODECS[candidate.provider.protocol], observer?.options ?? options);
    return { exchange, call: prepareCall(exchange, wire, candidate, repeat), observer };
  }

  async #dispatch(candidate: Candidate, { exchange, call, observer }: PreparedRequest): Promise<Outcome> {
    this.#exchange = exchange;
    const outcome = 'is' in call ? call : await this.#attempt(this.#createAttempt(exchange, candidate, observer), call);
    observer?.ended(outcome);
    this.#recordAttempt(outcome);
    return outcome;
  }

  #attempt(attempt: Attempt, call: Call): Promise<Outcome> {
    const { candidate } = attempt;
    const { provider, model } = candidate;
    this.#measureOverhead(candidate);
    this.#attemptAt = this.#services.now();
    this.#request.record.startAttempt({ provider: provider.id, protocol: provider.protocol, model, price: this.#price });
    if (!this.#clientStream) return this.#attemptWhole(call, attempt);
    return attemptStream(call, attempt, {
      clientStream: this.#clientStream,
      onFirstContent: (headers) => this.#onFirstContent(candidate, headers),
      recordEnd: (error) => {
        this.#recordAttempt({ is: 'answered', ...(error && { error }) });
        return this.#settle(this.#buildResult(200, error));
      },
    });
  }

  async #attemptWhole(call: Call, attempt: Attempt): Promise<Outcome> {
    const { provider, model } = attempt.candidate;
    const outcome = await attemptWhole(call, attempt);
    if (outcome.is === 'answered') {
      this.#observeWhole(attempt);
      this.#recordResponse(attempt.candidate, 'whole');
      this.#services.metrics.answeredFor(provider.id, model);
    }
    return outcome;
  }

  #recordResponse(candidate: Candidate, kind: ResponseKind): void {
    const { router, now } = this.#services;
    router.responded(this.#plan, candidate, kind, now() - this.#attemptAt);
  }

  #observeWhole({ exchange, record: { attempt } }: Attempt): void {
    if (!attempt) return;
    attempt.hadContent();
    attempt.modelAnswered = exchange.answeredModel;
    if (!exchange.usage && exchange.canonicalResponse)
      attempt.outputCharacters = JSON.stringify(exchange.canonicalResponse.content).length;
  }

  /** The end of the current attempt. What it used is known from the upstream, or estimated from its content. */
  #recordAttempt(outcome: Outcome): void {
    const { record } = this.#request;
    const error = outcome.is === 'gone' ? undefined : outcome.error;
    const ending = outcome.is === 'gone' ? this.#goneEnding : findEnding(error);
    const reported = findReported(this.#exchange?.usage);
    const estimate = this.#estimateUsage(ending, reported);
    const usage = estimate ?? reported;
    const cost = usage && this.#findCost(usage);
    const isFirst = record.endAttempt({
      ending,
      error,
      usage,
      provenance: estimate ? 'estimated' : usage?.uncertain ? 'uncertain' : 'reported',
      cost,
      possiblyBilled: !reported && this.#mayBeBilled(outcome),
    });
    if (isFirst && cost && this.#candidate) this.#findSeries(this.#candidate).spent(cost.micros);
  }

  /** Whether an upstream that has reported no usage may charge for the current attempt. */
  #mayBeBilled(outcome: Outcome): boolean {
    const { attempt } = this.#request.record;
    if (!this.#endpoint.isCharged || !attempt) return false;
    if (attempt.firstTokenAt !== undefined) return true;
    // A request that was cancelled is charged for its prompt, if it was sent.
    if (outcome.is === 'gone' || (outcome.error && isStop(outcome.error))) return attempt.connectedAt !== undefined;
    return outcome.error !== undefined && mayBeBilled(outcome.error);
  }

  get #goneEnding(): Ending {
    return this.#clientStream?.isStalled ? 'client_stalled' : 'client_aborted';
  }

  /**
   * What was used by a response whose upstream reported no usage, or reported it before most of the content, as
   * Anthropic does, and was cancelled. An upstream's own failure is not charged.
   */
  #estimateUsage(ending: Ending, reported: CanonicalUsage | undefined): CanonicalUsage | undefined {
    const { record, client, wire } = this.#request;
    const { firstTokenAt, outputCharacters = 0 } = record.attempt ?? {};
    if (this.#endpoint.kind !== 'chat' || firstTokenAt === undefined || !ESTIMATED_ENDINGS.has(ending)) return undefined;
    const output = Math.ceil(outputCharacters / CHARACTERS_PER_TOKEN);
    if (!reported) return estimateUsage(client, wire, output);
    // Estimates are rough: a report is replaced only when it cannot be true.
    const isOutdated = ending !== 'answered' && output > MAX_ESTIMATE_ERROR * reported.output_tokens;
    return isOutdated ? { ...reported, output_tokens: estimateUsage(client, wire, output).output_tokens } : undefined;
  }

  #createAttempt(exchange: Exchange, candidate: Candidate, observer: AttemptObserver | undefined): Attempt {
    const { id, connection } = this.#request;
    const { dialer, limits, log, redactUpstream } = this.#services;
    const transport = candidate.transport ?? dialer;
    return {
      exchange,
      candidate,
      transport: observer?.tap(transport) ?? transport,
      limits,
      connection,
      record: this.#request.record,
      redact: redactUpstream,
      onAgain: () => this.#loop.repeated(candidate),
      onStrange: (head) => log.warn({ request_id: id, provider: candidate.provider.id, head }, 'unexpected upstream response'),
    };
  }

  /** Recorded at the end: a model gets its own label only after its provider has responded. */
  #measureOverhead(candidate: Candidate): void {
    this.#firstCallAt ??= this.#services.now();
    if (this.#loop.attempts === 1 && this.#endpoint.kind === 'chat')
      this.#overhead = { candidate, seconds: (this.#firstCallAt - this.#request.receivedAt) / 1000 };
  }

  #onFirstContent(candidate: Candidate, headers: Record<string, string>): void {
    const { breakers, metrics, now } = this.#services;
    this.#upstreamHeaders = headers;
    this.#firstAt = now();
    breakers.succeeded(candidate.key);
    this.#recordResponse(candidate, 'stream');
    metrics.answeredFor(candidate.provider.id, candidate.model);
    this.#findSeries(candidate).firstToken((this.#firstAt - this.#request.receivedAt) / 1000);
  }

  async #result(outcome: Outcome): Promise<Result> {
    switch (outcome.is) {
      case 'gone':
        return { ...this.#buildResult(499), ending: this.#goneEnding };
      case 'failed':
        return this.#refuse(outcome.error, outcome.reply);
      case 'answered':
        return outcome.reply ? this.#send(outcome.reply) : this.#finishStream(outcome.error);
      default:
        return outcome satisfies never;
    }
  }

  /** Records the exchange; the client may receive its end when the promise resolves. */
  #settle({ status, ending, error, notes, rule, affinity, cacheBreak }: Result): Promise<void> | undefined {
    const { record, receivedAt } = this.#request;
    const queueMs = this.#firstCallAt === undefined ? undefined : this.#firstCallAt - receivedAt;
    const end: ExchangeEnd = {
      status,
      ending,
      error,
      notes,
      route_rule: rule ?? null,
      affinity: affinity ?? null,
      cache_break: cacheBreak ?? null,
    };
    if (queueMs !== undefined) end.queue_ms = queueMs;
    return record.settle(end);
  }

  async #send(reply: Reply, error?: CanonicalError): Promise<Result> {
    const { limits } = this.#services;
    const result = this.#buildResult(reply.status, error);
    await this.#settle(result);
    sendReply(this.#request.connection.response, reply, result, {
      stallMs: limits.stallMs,
      redact: chooseRedact(error, this.#services),
      observer: this.#request.observer,
    });
    return result;
  }

  #finishStream(error: CanonicalError | undefined): Result {
    const { now } = this.#services;
    const result = this.#buildResult(200, error);
    const { output_tokens: tokens = 0 } = result.usage ?? {};
    if (this.#firstAt !== undefined && tokens > 1) result.series?.interToken((now() - this.#firstAt) / 1000 / (tokens - 1));
    return result;
  }

  /** No candidate responded: sends the last error in the client's protocol, inside the stream if that has begun. */
  async #refuse(error: CanonicalError, reply?: Reply): Promise<Result> {
    const { client } = this.#request;
    const exchange = this.#exchange ?? createExchange(client, client, { provider: NO_PROVIDER });
    if (!this.#clientStream?.isOpen) return this.#send(reply ?? exchange.failure(error), error);
    const redact = chooseRedact(error, this.#services);
    const repeat = exchange.repeatInBand(error);
    const result = this.#buildResult(200, error);
    await this.#settle(result);
    this.#clientStream.write(redactBytes(exchange.inBand(error), redact));
    this.#clientStream.endInError(repeat && redactBytes([repeat], redact));
    return result;
  }

  #createClientStream(): ClientStream {
    const { client, wire, connection, observer } = this.#request;
    const { limits, streams, redact } = this.#services;
    const { heartbeatMs, stallMs } = limits;
    return new ClientStream(connection, {
      // A stream that opens early for heartbeats has no upstream headers yet.
      headers: () => {
        const own = { ...STREAM_HEADERS[client.framing?.(wire.path) ?? 'sse'] };
        return buildExchangeHeaders(this.#progress(), addUpstreamHeaders(own, this.#upstreamHeaders, redact));
      },
      heartbeat: encodeHeartbeat(client),
      heartbeatMs,
      stallMs,
      onStall: (isStalled) => streams.stall(connection, isStalled),
      observer,
    });
  }

  #findSeries(candidate: Candidate): LabelledSeries {
    return this.#services.metrics.of(buildLabels(candidate, this.#request.client.id));
  }

  /** Records the overhead and returns the metric series of the last candidate. */
  #finishSeries(): LabelledSeries | undefined {
    if (this.#overhead) this.#findSeries(this.#overhead.candidate).overhead(this.#overhead.seconds);
    this.#overhead = undefined;
    return this.#candidate && this.#findSeries(this.#candidate);
  }

  #buildResult(status: number, error?: CanonicalError): Result {
    const usage = this.#exchange?.usage;
    const cost = usage && this.#findCost(usage);
    const { id, attempts, notes, tried, requested, provider, upstream, model, rule, affinity, limits } = this.#progress();
    const cacheBreak = this.#cacheBreak;
    const ending = findEnding(error);
    const series = this.#finishSeries();
    // Field by field: a spread takes 9 us of every request.
    const progress = { id, attempts, notes, tried, requested, provider, upstream, model, rule, affinity, limits };
    return Object.assign(progress, { status, ending, error, usage, cost, series, cacheBreak });
  }

  readonly #price = (usage: CanonicalUsage): number | null => this.#findCost(usage)?.micros ?? null;

  #findCost(usage: CanonicalUsage | undefined): Cost | null {
    if (!this.#candidate || !usage) return null;
    const { provider, model } = this.#candidate;
    return this.#request.directory.prices.cost(usage, provider.id, model, Date.now());
  }

  #progress(): Progress {
    const { provider, model } = this.#candidate ?? {};
    return {
      id: this.#request.id,
      attempts: this.#loop.attempts,
      // Side endpoints do not report notes.
      notes: (this.#endpoint.kind === 'chat' && this.#exchange?.notes) || [],
      tried: this.#loop.tried,
      requested: this.#target.model,
      provider: provider?.id,
      upstream: provider?.protocol,
      model,
      limits: this.#request.admission?.headers,
      rule: this.#rule?.name,
      affinity: this.#candidate && findAffinity(this.#plan, this.#candidate),
    };
  }
}

/** A parsed request for a model. */
export interface ModelRequest {
  /** Chat, or an endpoint beside it: token counts, embeddings, rankings. */
  kind: Endpoint['kind'];
  id: string;
  client: Codec;
  wire: ClientRequest;
  /** The model and the stream flag of the request. */
  target: RequestTarget;
  connection: ClientConnection;
  /** The record of the exchange in the ledger. */
  record: ExchangeRecord;
  /** What the request holds at the gate; undefined without limits. */
  admission: Admission | undefined;
  observer: ExchangeObserver | undefined;
  directory: Directory;
  /** Who sends the request. */
  caller: Caller | undefined;
  /** When the whole request had arrived, by `services.now`. */
  receivedAt: number;
}

/** Why a request needed no upstream: it shares the response of a running request, or repeats that of a finished one. */
type Reuse = 'joined' | 'replayed';

/** What became of a request, for the log and the metrics. */
export interface Result extends Progress {
  status: number;
  ending: Ending;
  error?: CanonicalError | undefined;
  /** Whose response it is, when nothing was sent upstream for this request: that of an earlier one. */
  reused?: Reuse | undefined;
  /** What changed in the prompt since the turn before: `tools[3].description changed`. */
  cacheBreak?: string | undefined;
  /** The metric series of the last candidate, if there was one. */
  series?: LabelledSeries | undefined;
}

const NO_PLAN: Plan<Candidate> = { candidates: [] };

/** The request for rules; undefined when it is invalid, which its conversion reports. */
function decodeOrSkip(client: Codec, { body, path, headers }: ClientRequest): CanonicalRequest | undefined {
  try {
    return decodeRequest(body, { from: client, path, headers });
  } catch {
    return undefined;
  }
}

/** The call for a candidate; a failed outcome when its protocol cannot express the request. */
function prepareCall(exchange: Exchange, wire: ClientRequest, candidate: Candidate, repeat: Call['repeat']): Call | Outcome {
  try {
    return buildCall(exchange, wire, candidate, repeat);
  } catch (error) {
    return toFailedOutcome(error);
  }
}

/** Endings after which a response without reported usage is charged by an estimate. */
const ESTIMATED_ENDINGS: ReadonlySet<Ending> = new Set(['answered', 'client_aborted', 'client_stalled', 'stopped']);

/** As `estimateTokens` counts English and code. */
const CHARACTERS_PER_TOKEN = 4;

/** How many times the real number of tokens an estimate may be. */
const MAX_ESTIMATE_ERROR = 4;

/** The usage of a request with this output, at most the output that it allows. No prompt when it cannot be read. */
function estimateUsage(client: Codec, { body, path, headers }: ClientRequest, output: number): CanonicalUsage {
  try {
    const request = decodeRequest(body, { from: client, path, headers });
    const max = request.parameters.max_tokens ?? Number.POSITIVE_INFINITY;
    return { input_tokens: estimateTokens(request).input_tokens, output_tokens: Math.min(max, output) };
  } catch {
    return { input_tokens: 0, output_tokens: output };
  }
}

/** Some servers report zeros instead of no usage. */
const findReported = (usage: CanonicalUsage | undefined): CanonicalUsage | undefined =>
  usage && usage.input_tokens + usage.output_tokens > 0 ? usage : undefined;

/** Stands in where an error is encoded before any provider was chosen. */
const NO_PROVIDER = { id: '', protocol: 'openai-chat', base_url: 'http://localhost' } as const;
