import {
  type CanonicalError,
  type CanonicalMessage,
  type CanonicalRequest,
  type CanonicalUsage,
  type ClientRequest,
  type Codec,
  createExchange,
  type Exchange,
  type Note,
  type ProviderProfile,
  type RequestTarget,
} from '@sluice/core';
import { CODECS, decodeRequest, estimateTokens } from '@sluice/core/engine';
import type { Rule } from '../config/resolve.ts';
import type { LabelledSeries } from '../observe/labelled-series.ts';
import type { Cost } from '../prices/cost.ts';
import { nameConversation } from '../routing/affinity.ts';
import { findAffinity, type Plan } from '../routing/router.ts';
import type { ResponseKind } from '../routing/target-stats.ts';
import type { Call } from '../upstream/dialer.ts';
import { isPrefillRefusal, mayBeBilled } from '../upstream/retry.ts';
import { ClientStream, encodeHeartbeat } from './client-stream.ts';
import { Continuation, findObstacle, type JoinMode } from './continuation.ts';
import { type AttemptSteps, ChatEndpoint, type Endpoint, type PreparedRequest, SideEndpoint } from './endpoint.ts';
import type { ModelRequest, Result, Reuse } from './model-request.ts';
import { type Lane, LOST, Race } from './race.ts';
import { redactBytes } from './read-reply.ts';
import type { AttemptRecord, ExchangeEnd } from './record.ts';
import { addUpstreamHeaders, buildExchangeHeaders, chooseRedact, type Progress, STREAM_HEADERS, sendReply } from './reply.ts';
import type { CacheHit, Caching } from './response-cache.ts';
import { AttemptLoop } from './rounds.ts';
import type { PreparedState } from './state.ts';
import { attemptStream, type StreamRun } from './stream.ts';
import {
  type Attempt,
  buildCall,
  buildLabels,
  type Candidate,
  createUnavailableError,
  type Ending,
  findEnding,
  formatProvider,
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
  /** Whether another target continues a stream that breaks off. */
  readonly #continues: boolean;
  /** What the client has received, if it may be continued; undefined before content. */
  #continuation: Continuation | undefined;
  readonly #race: Race;
  readonly #loop: AttemptLoop;
  #exchange: Exchange | undefined;
  #stateNotes: readonly Note[] = [];
  #candidate: Candidate | undefined;
  #plan: Plan<Candidate> = NO_PLAN;
  /** What changed in the prompt since the turn before. */
  #cacheBreak: string | undefined;
  /** Seconds between the request and the first call to an upstream. */
  #overhead: { candidate: Candidate; seconds: number } | undefined;
  /** Response headers of the upstream whose stream is sent to the client. */
  #upstreamHeaders: Record<string, string> = {};
  /** What the cache does for this request; undefined when nothing. */
  #caching: Caching | undefined;
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
    this.#continues = this.#clientStream !== undefined && request.directory.recovery.onBreak === 'continue';
    this.#race = new Race(request.connection);
    this.#loop = new AttemptLoop(
      {
        id: request.id,
        connection: request.connection,
        record: request.record,
        admission: request.admission,
        recovery: request.directory.recovery,
        race: this.#race,
        mayHedge: this.#clientStream !== undefined,
        mayContinue: () => this.#mayContinue(),
        attempt: (lane, repeat) => this.#tryCandidate(lane, repeat),
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
      const outcome = await this.#respond();
      // An error has its own status, however long its record takes: the stream must not open meanwhile.
      holdTimer?.close();
      return await this.#result(outcome);
    } catch (cause) {
      // Once the stream has begun, the error can only be reported in it.
      if (!this.#clientStream?.isOpen) throw cause;
      this.#services.log.error(
        { request_id: this.#request.id, error: String(cause instanceof Error ? cause.stack : cause) },
        'failed',
      );
      return await this.#refuse(INTERNAL);
    } finally {
      // After an internal error a lane may still run.
      this.#race.conclude();
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
    const { cached, state } = this.#request;
    if (cached && state?.mayReuse === false) throw cached.refusal;
    if (cached) this.#caching = cached.caching;
    else if (first && this.#endpoint.kind === 'chat') this.#caching = this.#services.cache?.begin(this.#request, candidates);
    if (this.#caching?.hit) return this.#sendCached(this.#caching.hit);
    const outcome = this.#loop.run(candidates, createUnavailableError(model, candidates, directory));
    // While the upstream works on its response.
    this.#findCacheBreak();
    return outcome;
  }

  /** The candidates of the requested model, or of the one that a rule chose, in the order in which they are tried. */
  #findPlan(): Plan<Candidate> {
    const { client, directory, wire, caller, session } = this.#request;
    const { prices, affinityMs } = directory;
    const isChat = this.#endpoint.kind === 'chat';
    const model = this.#request.rule?.use ?? this.#target.model;
    const candidates = directory.resolve(model, client.id);
    if (candidates.length < 2) return { candidates };
    return this.#services.router.plan(candidates, {
      kind: this.#target.isStream ? 'stream' : 'whole',
      affinityMs: isChat ? affinityMs : null,
      prices,
      nameConversation: () => nameConversation({ caller: caller?.id ?? '', model, session, body: wire.body }),
    });
  }

  #findCacheBreak(): void {
    const { wire, session } = this.#request;
    if (this.#endpoint.kind === 'chat' && session !== undefined)
      this.#cacheBreak = this.#services.router.cacheBreaks.compare(session, this.#target.model, wire.body);
  }

  /** Sends a response from the cache. */
  async #sendCached(hit: CacheHit): Promise<Outcome> {
    if (!this.#clientStream) return { is: 'answered', reply: { status: 200, headers: {}, body: hit.encode() } };
    const bytes = hit.encodeStream();
    await this.#settle(this.#buildResult(200));
    await this.#request.state?.beforeEnd([bytes], undefined);
    const claim = this.#race.conclude();
    this.#clientStream.write(bytes, claim);
    this.#clientStream.end(claim);
    return { is: 'answered' };
  }

  #tryCandidate(lane: Lane, repeat: Call['repeat']): Promise<Outcome> {
    if (this.#continuation?.isCut) return this.#continueAt(lane, repeat, this.#continuation);
    return this.#requestFrom(lane, repeat);
  }

  /** Asks a candidate for the rest of a broken response, or for the whole of it when it refuses to continue one. */
  async #continueAt(lane: Lane, repeat: Call['repeat'], continuation: Continuation): Promise<Outcome> {
    const { candidate } = lane;
    const { refusals } = this.#services;
    const prefill = refusals.acceptsPrefill(candidate) ? continuation.prefill : undefined;
    this.#noteContinuation(candidate, continuation, prefill ? 'prefill' : 'restart');
    if (prefill) {
      continuation.join('prefill');
      const outcome = await this.#requestFrom(lane, repeat, prefill);
      const error = outcome.is === 'failed' && isPrefillRefusal(outcome.error) ? outcome.error : undefined;
      if (!error) return outcome;
      refusals.learnPrefill(candidate);
      if (!this.#loop.repeatFromStart(lane, error)) return outcome;
    }
    continuation.join('restart');
    return this.#requestFrom(lane, repeat);
  }

  #noteContinuation(candidate: Candidate, { characters, notes, error }: Continuation, mode: JoinMode): void {
    const { provider, model } = candidate;
    const message = `the stream was truncated after ${characters} characters; continued by ${formatProvider(candidate)}`;
    notes.push({ code: 'REPAIRED', path: '', feature: 'stream.continued', message });
    this.#services.log.warn(
      { request_id: this.#request.id, provider: provider.id, model, characters, mode, reason: error?.message },
      'stream truncated; continuing at another target',
    );
  }

  /** Whether another target may continue what the client has received. */
  #mayContinue(): boolean {
    if (!this.#continuation?.isCut || this.#continuation.hasDiverged) return false;
    const request = this.#exchange?.canonicalRequest;
    const obstacle = request ? findObstacle(request) : 'the request cannot be read';
    if (obstacle !== undefined)
      this.#services.log.info({ request_id: this.#request.id, reason: obstacle }, 'stream truncated; not continued');
    return obstacle === undefined;
  }

  #requestFrom(lane: Lane, repeat: Call['repeat'], prefill?: CanonicalMessage): Promise<Outcome> {
    const { candidate } = lane;
    const steps: AttemptSteps = {
      prepare: (profile) => this.#prepare(candidate, profile, repeat, prefill),
      dispatch: (request) => this.#dispatch(lane, request),
      repeatWithout: (field, error) => this.#loop.repeatWithout(field, lane, error),
    };
    this.#candidate = candidate;
    return this.#endpoint.request(candidate, steps);
  }

  #prepare(
    candidate: Candidate,
    profile: ProviderProfile,
    repeat: Call['repeat'],
    prefill: CanonicalMessage | undefined,
  ): PreparedRequest {
    const { client, wire } = this.#request;
    const state = this.#prepareState(candidate);
    const options = this.#endpoint.conversion(candidate, profile);
    const isRefused = state !== undefined && 'is' in state;
    if (!isRefused) Object.assign(options, state?.options);
    const notes = (!isRefused && state?.notes) || [];
    options.sealing = this.#services.sealing?.(candidate);
    if (this.#continues) {
      // Another target can continue only what was decoded.
      options.passthrough = false;
      options.prefill = prefill;
    }
    if (this.#caching?.saves) options.tap = true;
    const observer = this.#request.observer?.attempt(candidate.provider, options);
    const exchange = createExchange(client, CODECS[candidate.provider.protocol], observer?.options ?? options);
    const call = isRefused ? state : prepareCall(exchange, state?.wire ?? wire, candidate, repeat);
    return { exchange, call, observer, notes };
  }

  /** The request with the state that it refers to; a failed outcome when the candidate cannot know it. */
  #prepareState(candidate: Candidate): PreparedState | Outcome | undefined {
    try {
      return this.#request.state?.prepare(candidate);
    } catch (error) {
      return toFailedOutcome(error);
    }
  }

  async #dispatch(lane: Lane, { exchange, call, observer, notes }: PreparedRequest): Promise<Outcome> {
    this.#exchange = exchange;
    this.#stateNotes = notes;
    if ('is' in call) {
      observer?.ended(call);
      return call;
    }
    if (lane.isOver) return LOST;
    const attempt = this.#createAttempt({ exchange, notes, observer }, lane.candidate);
    const outcome = await this.#send(call, attempt, lane);
    observer?.ended(outcome);
    this.#recordAttempt(outcome, attempt);
    return outcome;
  }

  /** Sends the request of an attempt. When its lane loses, the attempt ends and is recorded at once. */
  async #send(call: Call, attempt: Attempt, lane: Lane): Promise<Outcome> {
    let cancel = (): boolean => true;
    // The exchange may be settled in this turn.
    const stopListening = lane.onLost(() => {
      if (cancel()) this.#recordAttempt(LOST, attempt);
    });
    try {
      const recorded = attempt.record.beforeSending(attempt.log);
      if (recorded && !(await lane.waitFor(recorded))) return lane.explainEnd();
      attempt.startedAt = this.#services.now();
      this.#measureOverhead(attempt.candidate);
      if (!this.#clientStream) return await this.#attemptWhole(call, attempt);
      const run = this.#attemptStream(call, attempt, { clientStream: this.#clientStream, lane });
      cancel = run.cancel;
      return await run.outcome;
    } finally {
      stopListening();
    }
  }

  #attemptStream(call: Call, attempt: Attempt, { clientStream, lane }: { clientStream: ClientStream; lane: Lane }): StreamRun {
    const continuation = this.#continuation ?? (this.#continues ? new Continuation() : undefined);
    return attemptStream(call, attempt, {
      clientStream,
      continuation,
      claim: (headers) => {
        const claim = lane.claim();
        if (!claim) return undefined;
        this.#continuation = continuation;
        this.#onFirstContent(attempt, headers);
        return claim;
      },
      recordEnd: (error, held) => {
        this.#recordAttempt({ is: 'answered', ...(error && { error }) }, attempt);
        const settled = this.#settle(this.#buildResult(200, error));
        const kept = this.#request.state?.beforeEnd(held, this.#findKeeper(attempt.candidate));
        return kept ? Promise.all([settled, kept]).then(() => undefined) : settled;
      },
    });
  }

  /** The candidate whose provider may keep the response; none keeps one that several have made. */
  #findKeeper(candidate: Candidate): Candidate | undefined {
    return this.#continuation?.notes.length ? undefined : candidate;
  }

  async #attemptWhole(call: Call, attempt: Attempt): Promise<Outcome> {
    const { provider, model } = attempt.candidate;
    const outcome = await attemptWhole(call, attempt);
    if (outcome.is === 'answered') {
      this.#observeWhole(attempt);
      this.#recordResponse(attempt, 'whole');
      this.#services.metrics.answeredFor(provider.id, model);
    }
    return outcome;
  }

  #recordResponse({ candidate, startedAt }: Attempt, kind: ResponseKind): void {
    const { router, now } = this.#services;
    router.responded(this.#plan, candidate, kind, now() - startedAt);
  }

  #observeWhole({ exchange, log }: Attempt): void {
    log.hadContent();
    log.modelAnswered = exchange.answeredModel;
    if (!exchange.usage && exchange.canonicalResponse)
      log.outputCharacters = JSON.stringify(exchange.canonicalResponse.content).length;
  }

  /** The end of an attempt. What it used is known from the upstream, or estimated from its content. */
  #recordAttempt(outcome: Outcome, { exchange, candidate, record, log }: Attempt): void {
    const error = 'error' in outcome ? outcome.error : undefined;
    const ending = outcome.is === 'gone' ? this.#goneEnding : outcome.is === 'lost' ? 'hedge_lost' : findEnding(error);
    const reported = findReported(exchange.usage);
    const estimate = this.#estimateUsage(outcome, ending, reported, log);
    const usage = estimate ?? reported;
    const cost = usage && this.#findCost(usage, candidate);
    const isFirst = record.endAttempt(
      {
        ending,
        error,
        usage,
        provenance: estimate ? 'estimated' : usage?.uncertain ? 'uncertain' : 'reported',
        cost,
        possiblyBilled: !reported && this.#mayBeBilled(outcome, log),
      },
      log,
    );
    if (isFirst && cost) this.#findSeries(candidate).spent(cost.micros);
  }

  /** Whether an upstream that has reported no usage may charge for an attempt. */
  #mayBeBilled(outcome: Outcome, { firstTokenAt, connectedAt }: AttemptRecord): boolean {
    if (!this.#endpoint.isCharged) return false;
    if (firstTokenAt !== undefined) return true;
    // A request that was cancelled is charged for its prompt, if it was sent.
    if (outcome.is === 'gone' || outcome.is === 'lost' || (outcome.error && isStop(outcome.error)))
      return connectedAt !== undefined;
    return outcome.error !== undefined && mayBeBilled(outcome.error);
  }

  get #goneEnding(): Ending {
    return this.#clientStream?.isStalled ? 'client_stalled' : 'client_aborted';
  }

  /**
   * What was used by a response whose upstream reported no usage, or reported it before most of the content, as
   * Anthropic does, and was cancelled. An upstream's own failure is not charged, unless another one continued its
   * response. A request that lost to another one is charged for its prompt.
   */
  #estimateUsage(
    { is }: Outcome,
    ending: Ending,
    reported: CanonicalUsage | undefined,
    { firstTokenAt, connectedAt, outputCharacters }: AttemptRecord,
  ): CanonicalUsage | undefined {
    const { client, wire } = this.#request;
    if (this.#endpoint.kind !== 'chat') return undefined;
    if (is === 'lost') return reported || connectedAt === undefined ? undefined : estimateUsage(client, wire, 0);
    if (firstTokenAt === undefined || !(is === 'broken' || ESTIMATED_ENDINGS.has(ending))) return undefined;
    const output = Math.ceil(outputCharacters / CHARACTERS_PER_TOKEN);
    if (!reported) return estimateUsage(client, wire, output);
    // Estimates are rough: a report is replaced only when it cannot be true.
    const isOutdated = ending !== 'answered' && output > MAX_ESTIMATE_ERROR * reported.output_tokens;
    return isOutdated ? { ...reported, output_tokens: estimateUsage(client, wire, output).output_tokens } : undefined;
  }

  #createAttempt({ exchange, notes, observer }: Omit<PreparedRequest, 'call'>, candidate: Candidate): Attempt {
    const { id, connection } = this.#request;
    const { dialer, limits, log, redactUpstream, now } = this.#services;
    const transport = candidate.transport ?? dialer;
    const { record } = this.#request;
    const { provider, model } = candidate;
    const price = (usage: CanonicalUsage): number | null => this.#findCost(usage, candidate)?.micros ?? null;
    const attempt: Attempt = {
      exchange,
      notes,
      candidate,
      startedAt: now(),
      transport: observer?.tap(transport) ?? transport,
      limits,
      connection,
      record,
      log: record.startAttempt({ provider: provider.id, protocol: provider.protocol, model, price }),
      redact: redactUpstream,
      onAgain: () => {
        attempt.log = this.#loop.repeated(candidate, attempt.log);
      },
      onStrange: (head) => log.warn({ request_id: id, provider: provider.id, head }, 'unexpected upstream response'),
    };
    return attempt;
  }

  /** Recorded at the end: a model gets its own label only after its provider has responded. */
  #measureOverhead(candidate: Candidate): void {
    this.#firstCallAt ??= this.#services.now();
    if (this.#loop.attempts === 1 && this.#endpoint.kind === 'chat')
      this.#overhead = { candidate, seconds: (this.#firstCallAt - this.#request.receivedAt) / 1000 };
  }

  #onFirstContent(attempt: Attempt, headers: Record<string, string>): void {
    const { breakers, metrics, now } = this.#services;
    const { candidate, exchange, notes, record, log } = attempt;
    this.#candidate = candidate;
    this.#exchange = exchange;
    this.#stateNotes = notes;
    record.choose(log);
    this.#upstreamHeaders = headers;
    this.#firstAt = now();
    breakers.succeeded(candidate.key);
    this.#recordResponse(attempt, 'stream');
    metrics.answeredFor(candidate.provider.id, candidate.model);
    this.#findSeries(candidate).firstToken((this.#firstAt - this.#request.receivedAt) / 1000);
  }

  async #result(outcome: Outcome): Promise<Result> {
    const broken = this.#continuation?.isCut ? this.#continuation : undefined;
    if (broken && (outcome.is === 'failed' || outcome.is === 'broken')) return this.#endBroken(outcome.error, broken);
    switch (outcome.is) {
      case 'gone':
        return { ...this.#buildResult(499), ending: this.#goneEnding };
      // Lanes lose to a lane that does not: the result of all is never this.
      case 'lost':
        return this.#refuse(INTERNAL);
      case 'failed':
        return this.#refuse(outcome.error, outcome.reply);
      case 'broken':
        return this.#refuse(outcome.error);
      case 'answered':
        // A continued response is only in part that of the last exchange.
        if (!outcome.error && !this.#continuation?.notes.length) this.#saveResponse();
        return outcome.reply ? this.#reply(outcome.reply) : this.#finishStream(outcome.error);
      default:
        return outcome satisfies never;
    }
  }

  #saveResponse(): void {
    if (!this.#candidate) return;
    const sealing = this.#services.sealing?.(this.#candidate);
    this.#caching?.save(this.#exchange, { candidate: this.#candidate, sealing }, this.#request.record.attempt?.rules);
  }

  /** Records the exchange; the client may receive its end when the promise resolves. */
  #settle({ status, ending, error, notes, rule, affinity, cacheBreak }: Result): Promise<void> | undefined {
    const { record, receivedAt } = this.#request;
    const queueMs = this.#firstCallAt === undefined ? undefined : this.#firstCallAt - receivedAt;
    const { hit } = this.#caching ?? {};
    const end: ExchangeEnd = {
      status,
      ending,
      error,
      notes: hit ? [hit.note] : notes,
      route_rule: rule ?? null,
      affinity: affinity ?? null,
      cache_break: cacheBreak ?? null,
    };
    if (queueMs !== undefined) end.queue_ms = queueMs;
    return record.settle(end);
  }

  async #reply(reply: Reply, error?: CanonicalError): Promise<Result> {
    const { limits } = this.#services;
    const result = this.#buildResult(reply.status, error);
    await this.#settle(result);
    await this.#request.state?.beforeReply(reply, this.#caching?.hit ? undefined : this.#candidate);
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
    if (!this.#clientStream?.isOpen) return this.#reply(reply ?? exchange.failure(error), error);
    const claim = this.#race.conclude();
    const redact = chooseRedact(error, this.#services);
    const repeat = exchange.repeatInBand(error);
    const result = this.#buildResult(200, error);
    await this.#settle(result);
    this.#clientStream.write(redactBytes(exchange.inBand(error), redact), claim);
    this.#clientStream.endInError(repeat && redactBytes([repeat], redact), claim);
    return result;
  }

  /** No target continued: the stream ends in the error that broke it, whatever came after. */
  async #endBroken(last: CanonicalError, continuation: Continuation): Promise<Result> {
    const { client } = this.#request;
    const error = isStop(last) ? last : (continuation.error ?? last);
    const exchange = createExchange(client, client, { provider: NO_PROVIDER, tap: false });
    const pieces = [...exchange.stream({ splice: continuation.fail(), onto: continuation.output }).fail(error)];
    const redact = chooseRedact(error, this.#services);
    const repeat = (this.#exchange ?? exchange).repeatInStream(error);
    const result = this.#buildResult(200, error);
    await this.#settle(result);
    const claim = this.#race.conclude();
    this.#clientStream?.write(redactBytes(pieces, redact), claim);
    this.#clientStream?.endInError(repeat && redactBytes([repeat], redact), claim);
    return result;
  }

  #createClientStream(): ClientStream {
    const { client, wire, connection, observer, state } = this.#request;
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
      onSent: state && ((bytes) => state.sent(bytes, this.#candidate)),
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
    const cost = usage && this.#findCost(usage, this.#candidate);
    const { id, attempts, notes, tried, requested, provider, upstream, model, rule, affinity, limits, cache } = this.#progress();
    const cacheBreak = this.#cacheBreak;
    const reused: Reuse | undefined = cache === 'hit' ? 'cached' : undefined;
    const ending = findEnding(error);
    const series = this.#finishSeries();
    // Field by field: a spread takes 9 us of every request.
    const progress = { id, attempts, notes, tried, requested, provider, upstream, model, rule, affinity, limits, cache };
    return Object.assign(progress, { status, ending, error, usage, cost, series, cacheBreak, reused });
  }

  #findCost(usage: CanonicalUsage, candidate: Candidate | undefined): Cost | null {
    if (!candidate) return null;
    const { provider, model } = candidate;
    return this.#request.directory.prices.cost(usage, provider.id, model, Date.now());
  }

  #listNotes(): readonly Note[] {
    const notes = (this.#endpoint.kind === 'chat' && this.#exchange?.notes) || [];
    const more = [...this.#stateNotes, ...(this.#continuation?.notes ?? [])];
    return more.length > 0 ? [...notes, ...more] : notes;
  }

  #progress(): Progress {
    const { redactName } = this.#services;
    const { provider, model } = this.#candidate ?? {};
    return {
      id: this.#request.id,
      attempts: this.#loop.attempts,
      // Side endpoints do not report notes.
      notes: this.#listNotes(),
      tried: this.#loop.tried,
      requested: redactName(this.#target.model),
      provider: provider?.id,
      upstream: provider?.protocol,
      model: model === undefined ? undefined : redactName(model),
      limits: this.#request.admission?.headers,
      rule: this.#request.rule?.name,
      affinity: this.#candidate && findAffinity(this.#plan, this.#candidate),
      cache: this.#caching?.status,
    };
  }
}

const NO_PLAN: Plan<Candidate> = { candidates: [] };

/** The rule that chooses the model of a chat request, if one does. */
export const findRule = ({ client, wire, target, caller, directory }: RoutedRequest): Rule | undefined =>
  directory.rules?.find({
    model: target.model,
    headers: wire.headers,
    tags: caller?.tags ?? [],
    decode: () => decodeOrSkip(client, wire),
  });

type RoutedRequest = Pick<ModelRequest, 'client' | 'wire' | 'target' | 'caller' | 'directory'>;

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
