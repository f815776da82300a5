import {
  type Asked,
  type CanonicalError,
  type ClientRequest,
  CODECS,
  CodecError,
  type Exchange,
  type ProtocolCodec,
  readAsked,
  translate,
} from '@sluice/core';
import { type Attempt, callOf } from './attempt.ts';
import { INTERNAL } from './failures.ts';
import { HEARTBEATS } from './heartbeats.ts';
import { type Ending, endingOf, type Outcome, type Reply } from './outcome.ts';
import { Outlet } from './outlet.ts';
import type { Presence } from './presence.ts';
import { redactBytes } from './redact-bytes.ts';
import { exchangeHeaders, type Progress, STREAM_HEADERS, sendReply } from './reply.ts';
import { keyOf, Rounds } from './rounds.ts';
import type { Candidate, Directory, Services } from './services.ts';
import { attemptStream } from './stream-attempt.ts';
import { attemptWhole } from './whole-attempt.ts';

export interface Question {
  id: string;
  client: ProtocolCodec;
  wire: ClientRequest;
  presence: Presence;
  directory: Directory;
  /** When the whole of it had come, by the clock of the services. */
  askedAt: number;
}

export interface Result extends Progress {
  status: number;
  ending: Ending;
  error?: CanonicalError | undefined;
}

/** A question of a conversation, answered by the first candidate that can. */
export class Conversation {
  readonly #question: Question;
  readonly #services: Services;
  readonly #asked: Asked;
  readonly #outlet: Outlet | undefined;
  readonly #rounds: Rounds;
  #exchange: Exchange | undefined;
  #candidate: Candidate | undefined;
  /** When the first of the answer came. */
  #firstAt: number | undefined;

  constructor(question: Question, services: Services) {
    this.#question = question;
    this.#services = services;
    this.#asked = readAsked(question.client.id, question.wire);
    this.#outlet = this.#asked.isStream ? this.#createOutlet() : undefined;
    this.#rounds = new Rounds(
      { id: question.id, presence: question.presence, ask: (candidate) => this.#ask(candidate) },
      services,
    );
  }

  async run(): Promise<Result> {
    const { holdMs } = this.#services.limits;
    const gate = this.#outlet && setTimeout(() => this.#outlet?.openSilently(), holdMs);
    try {
      return this.#result(await this.#askAll());
    } catch (cause) {
      // Where the stream has begun, nobody else can tell the client.
      if (!this.#outlet?.isOpen) throw cause;
      this.#services.log.error(
        { request_id: this.#question.id, error: String(cause instanceof Error ? cause.stack : cause) },
        'failed',
      );
      return this.#refuse(INTERNAL);
    } finally {
      clearTimeout(gate);
      this.#outlet?.close();
    }
  }

  #askAll(): Promise<Outcome> {
    const { directory, client } = this.#question;
    const { model } = this.#asked;
    const candidates = directory.resolve(model, client.id);
    const message = candidates.length > 0 ? 'nobody could be asked' : directory.whyUnknown(model);
    return this.#rounds.ask(candidates, { code: 'NOT_FOUND', message, http_status: 404, param: 'model' });
  }

  async #ask(candidate: Candidate): Promise<Outcome> {
    const { client, wire } = this.#question;
    const { provider, model, profile, repair } = candidate;
    const { isStream } = this.#asked;
    this.#candidate = candidate;
    try {
      const upstream = CODECS[provider.protocol];
      const { eventBytes } = this.#services.limits;
      const exchange = translate(client, upstream, {
        provider,
        model,
        profile,
        stream: isStream,
        passthrough: !repair,
        tap: 'usage',
        now: wallClock,
        maxLineBytes: eventBytes,
        maxEventBytes: eventBytes,
      });
      this.#exchange = exchange;
      const call = callOf(exchange, wire, candidate);
      this.#countOverhead();
      const attempt = this.#attempt(exchange, candidate);
      if (!this.#outlet) return await attemptWhole(call, attempt);
      return await attemptStream(call, attempt, { outlet: this.#outlet, onFirstContent: () => this.#begun(candidate) });
    } catch (error) {
      if (error instanceof CodecError) return { is: 'failed', error: error.error };
      throw error;
    }
  }

  #attempt(exchange: Exchange, candidate: Candidate): Attempt {
    const { id, presence } = this.#question;
    const { dialer, limits, log, redact } = this.#services;
    return {
      exchange,
      candidate,
      dialer,
      limits,
      presence,
      redact,
      onAgain: () => this.#rounds.count(),
      onStrange: (head) => log.warn({ request_id: id, provider: candidate.provider.id, head }, 'strange answer'),
    };
  }

  #countOverhead(): void {
    const { metrics, now } = this.#services;
    if (this.#rounds.attempts === 1) metrics.overhead(this.#labels, (now() - this.#question.askedAt) / 1000);
  }

  #begun(candidate: Candidate): void {
    const { breakers, metrics, now } = this.#services;
    this.#firstAt = now();
    breakers.succeeded(keyOf(candidate));
    metrics.firstToken(this.#labels, (this.#firstAt - this.#question.askedAt) / 1000);
  }

  #result(outcome: Outcome): Result {
    switch (outcome.is) {
      case 'gone':
        return { ...this.#ended(499), ending: this.#outlet?.isStalled ? 'client_stalled' : 'client_aborted' };
      case 'failed':
        return this.#refuse(outcome.error, outcome.reply);
      case 'answered':
        return outcome.reply ? this.#send(outcome.reply) : this.#streamed(outcome.error);
      default:
        return outcome satisfies never;
    }
  }

  #send(reply: Reply, error?: CanonicalError): Result {
    const { limits, redact } = this.#services;
    sendReply(this.#question.presence.response, reply, this.#progress(), { stallMs: limits.stallMs, redact });
    return this.#ended(reply.status, error);
  }

  #streamed(error: CanonicalError | undefined): Result {
    const { metrics, now } = this.#services;
    const result = this.#ended(200, error);
    const { output_tokens: tokens = 0 } = result.usage ?? {};
    if (this.#firstAt !== undefined && tokens > 1)
      metrics.interToken(this.#labels, (now() - this.#firstAt) / 1000 / (tokens - 1));
    return result;
  }

  /** Nobody could answer: the last reason, in the client's own words, and in the stream where that has begun. */
  #refuse(error: CanonicalError, reply?: Reply): Result {
    const { client } = this.#question;
    const exchange = this.#exchange ?? translate(client, client, { provider: NOBODY });
    if (!this.#outlet?.isOpen) return this.#send(reply ?? exchange.failure(error), error);
    this.#outlet.write(redactBytes(exchange.inBand(error), this.#services.redact));
    this.#outlet.end();
    return this.#ended(200, error);
  }

  #createOutlet(): Outlet {
    const { client, wire, presence } = this.#question;
    const { limits, streams } = this.#services;
    const { heartbeatMs, stallMs } = limits;
    return new Outlet(presence, {
      headers: () => exchangeHeaders(this.#progress(), STREAM_HEADERS[client.framing?.(wire.path) ?? 'sse']),
      heartbeat: HEARTBEATS[client.id],
      heartbeatMs,
      stallMs,
      onStall: (isStalled) => streams.stall(presence, isStalled),
    });
  }

  get #labels() {
    const { provider, model } = this.#candidate ?? {};
    return {
      provider: provider?.id ?? '',
      model: model ?? '',
      client_protocol: this.#question.client.id,
      upstream_protocol: provider?.protocol ?? '',
    };
  }

  #ended(status: number, error?: CanonicalError): Result {
    const { id, attempts, notes, tried, provider, upstream, model } = this.#progress();
    const usage = this.#exchange?.usage;
    return { id, attempts, notes, tried, provider, upstream, model, status, ending: endingOf(error), error, usage };
  }

  #progress(): Progress {
    const { provider, model } = this.#candidate ?? {};
    return {
      id: this.#question.id,
      attempts: this.#rounds.attempts,
      notes: this.#exchange?.notes ?? [],
      tried: this.#rounds.tried,
      provider: provider?.id,
      upstream: provider?.protocol,
      model,
    };
  }
}

const NOBODY = { id: '', protocol: 'openai-chat', base_url: 'http://localhost' } as const;

const wallClock = (): number => Math.floor(Date.now() / 1000);
