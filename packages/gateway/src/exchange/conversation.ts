import {
  type Asked,
  type CanonicalError,
  type ClientRequest,
  CODECS,
  type Codec,
  CodecError,
  type Exchange,
  type ProviderProfile,
  readAsked,
  translate,
} from '@sluice/core';
import type { LabelledSeries } from '../observe/labelled-series.ts';
import type { Call } from '../upstream/dialer.ts';
import { findRefusal, profileWithout, type RefusedField } from '../upstream/refusals.ts';
import { type Attempt, callOf, labelsOf } from './attempt.ts';
import { INTERNAL, unanswerable } from './failures.ts';
import { encodeHeartbeat } from './heartbeats.ts';
import { type Ending, endingOf, type Outcome, type Reply } from './outcome.ts';
import { Outlet } from './outlet.ts';
import type { Presence } from './presence.ts';
import { redactBytes } from './redact-bytes.ts';
import { addPassed, exchangeHeaders, type Progress, redactFor, STREAM_HEADERS, sendReply } from './reply.ts';
import { Rounds } from './rounds.ts';
import type { Candidate, Directory, Services } from './services.ts';
import { attemptStream } from './stream-attempt.ts';
import { attemptWhole } from './whole-attempt.ts';

export interface Question {
  id: string;
  client: Codec;
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
  /** Where it is counted, when that was looked for already. */
  series?: LabelledSeries | undefined;
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
  /** Seconds until the first candidate was called. */
  #overhead: { candidate: Candidate; seconds: number } | undefined;
  /** Headers of the upstream whose stream the client gets. */
  #upstreamHeaders: Record<string, string> = {};
  /** When the first of the answer came. */
  #firstAt: number | undefined;

  constructor(question: Question, services: Services) {
    this.#question = question;
    this.#services = services;
    this.#asked = readAsked(question.client, question.wire);
    this.#outlet = this.#asked.isStream ? this.#createOutlet() : undefined;
    this.#rounds = new Rounds(
      { id: question.id, presence: question.presence, ask: (candidate, repeat) => this.#ask(candidate, repeat) },
      services,
    );
  }

  async run(): Promise<Result> {
    const { holdMs } = this.#services.limits;
    const { presence } = this.#question;
    const gate =
      this.#outlet &&
      presence.clock.setTimer(
        presence.guard(() => this.#outlet?.openSilently()),
        holdMs,
      );
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
      gate?.close();
      this.#outlet?.close();
    }
  }

  #askAll(): Promise<Outcome> {
    const { directory, client } = this.#question;
    const { model } = this.#asked;
    const candidates = directory.resolve(model, client.id);
    return this.#rounds.ask(candidates, unanswerable(model, candidates, directory));
  }

  /** Once, and once more without each optional field that the target refuses. */
  async #ask(candidate: Candidate, repeat: Call['repeat']): Promise<Outcome> {
    const { refusals } = this.#services;
    const profile = refusals.profileOf(candidate);
    const without: RefusedField[] = [];
    let request = this.#prepare(candidate, profile, repeat);
    for (;;) {
      const outcome = await this.#dispatch(candidate, request);
      const error = outcome.is === 'failed' ? outcome.error : undefined;
      const field = error && this.#refusedField(error, candidate);
      if (error && field && !without.includes(field)) {
        without.push(field);
        const next = this.#prepare(candidate, profileWithout(profile, without), repeat);
        if (isOther(next, request) && this.#rounds.repeatWithout(field, candidate, error)) {
          request = next;
          continue;
        }
      }
      if (outcome.is === 'answered' && without.length > 0) refusals.learn(candidate, without);
      return outcome;
    }
  }

  #refusedField(error: CanonicalError, { provider }: Candidate): RefusedField | undefined {
    const field = provider.protocol === 'openai-chat' ? findRefusal(error) : undefined;
    // Without a stream, the field is the client's own mistake.
    return field === 'stream_options' && !this.#asked.isStream ? undefined : field;
  }

  #prepare(candidate: Candidate, profile: ProviderProfile, repeat: Call['repeat']): Prepared {
    const exchange = this.#translate(candidate, profile);
    return { exchange, call: callOrRefusal(exchange, this.#question.wire, candidate, repeat) };
  }

  #dispatch(candidate: Candidate, { exchange, call }: Prepared): Promise<Outcome> {
    this.#candidate = candidate;
    this.#exchange = exchange;
    if ('is' in call) return Promise.resolve(call);
    this.#measureOverhead(candidate);
    const attempt = this.#attempt(exchange, candidate);
    if (!this.#outlet) return attemptWhole(call, attempt);
    return attemptStream(call, attempt, {
      outlet: this.#outlet,
      onFirstContent: (headers) => this.#begun(candidate, headers),
    });
  }

  #translate({ provider, model, repair, passRequest }: Candidate, profile: ProviderProfile): Exchange {
    const { eventBytes } = this.#services.limits;
    return translate(this.#question.client, CODECS[provider.protocol], {
      provider,
      model,
      profile,
      stream: this.#asked.isStream,
      passthrough: !repair,
      passRequest,
      tap: 'usage',
      now: wallClock,
      maxLineBytes: eventBytes,
      maxEventBytes: eventBytes,
    });
  }

  #attempt(exchange: Exchange, candidate: Candidate): Attempt {
    const { id, presence } = this.#question;
    const { dialer, limits, log, redactUpstream } = this.#services;
    return {
      exchange,
      candidate,
      transport: candidate.transport ?? dialer,
      limits,
      presence,
      redact: redactUpstream,
      onAgain: () => this.#rounds.repeated(candidate),
      onStrange: (head) => log.warn({ request_id: id, provider: candidate.provider.id, head }, 'strange answer'),
    };
  }

  /** Recorded at the end: whether a model gets a label of its own depends on what its provider answers. */
  #measureOverhead(candidate: Candidate): void {
    const { now } = this.#services;
    if (this.#rounds.attempts === 1) this.#overhead = { candidate, seconds: (now() - this.#question.askedAt) / 1000 };
  }

  #begun(candidate: Candidate, headers: Record<string, string>): void {
    const { breakers, metrics, now } = this.#services;
    this.#upstreamHeaders = headers;
    this.#firstAt = now();
    breakers.succeeded(candidate.key);
    metrics.answeredFor(candidate.provider.id, candidate.model);
    this.#seriesOf(candidate).firstToken((this.#firstAt - this.#question.askedAt) / 1000);
  }

  #result(outcome: Outcome): Result {
    switch (outcome.is) {
      case 'gone':
        return { ...this.#ended(499), ending: this.#outlet?.isStalled ? 'client_stalled' : 'client_aborted' };
      case 'failed':
        return this.#refuse(outcome.error, outcome.reply);
      case 'answered':
        return outcome.reply ? this.#sendAnswer(outcome.reply) : this.#streamed(outcome.error);
      default:
        return outcome satisfies never;
    }
  }

  #sendAnswer(reply: Reply): Result {
    const { provider, model } = this.#candidate ?? {};
    if (provider && model !== undefined) this.#services.metrics.answeredFor(provider.id, model);
    return this.#send(reply);
  }

  #send(reply: Reply, error?: CanonicalError): Result {
    const { limits } = this.#services;
    const result = this.#ended(reply.status, error);
    sendReply(this.#question.presence.response, reply, result, {
      stallMs: limits.stallMs,
      redact: redactFor(error, this.#services),
    });
    return result;
  }

  #streamed(error: CanonicalError | undefined): Result {
    const { now } = this.#services;
    const result = this.#ended(200, error);
    const { output_tokens: tokens = 0 } = result.usage ?? {};
    if (this.#firstAt !== undefined && tokens > 1) result.series?.interToken((now() - this.#firstAt) / 1000 / (tokens - 1));
    return result;
  }

  /** Nobody could answer: the last reason, in the client's own words, and in the stream where that has begun. */
  #refuse(error: CanonicalError, reply?: Reply): Result {
    const { client } = this.#question;
    const exchange = this.#exchange ?? translate(client, client, { provider: NOBODY });
    if (!this.#outlet?.isOpen) return this.#send(reply ?? exchange.failure(error), error);
    const redact = redactFor(error, this.#services);
    const repeat = exchange.repeatInBand(error);
    this.#outlet.write(redactBytes(exchange.inBand(error), redact));
    this.#outlet.endInError(repeat && redactBytes([repeat], redact));
    return this.#ended(200, error);
  }

  #createOutlet(): Outlet {
    const { client, wire, presence } = this.#question;
    const { limits, streams, redact } = this.#services;
    const { heartbeatMs, stallMs } = limits;
    return new Outlet(presence, {
      // A stream that opens early, for heartbeats, has no headers of the upstream: there are none yet.
      headers: () => {
        const own = { ...STREAM_HEADERS[client.framing?.(wire.path) ?? 'sse'] };
        return exchangeHeaders(this.#progress(), addPassed(own, this.#upstreamHeaders, redact));
      },
      heartbeat: encodeHeartbeat(client),
      heartbeatMs,
      stallMs,
      onStall: (isStalled) => streams.stall(presence, isStalled),
    });
  }

  #seriesOf(candidate: Candidate): LabelledSeries {
    return this.#services.metrics.of(labelsOf(candidate, this.#question.client.id));
  }

  /** Metric series of the last candidate. */
  #series(): LabelledSeries | undefined {
    if (this.#overhead) this.#seriesOf(this.#overhead.candidate).overhead(this.#overhead.seconds);
    this.#overhead = undefined;
    return this.#candidate && this.#seriesOf(this.#candidate);
  }

  #ended(status: number, error?: CanonicalError): Result {
    const { id, attempts, notes, tried, provider, upstream, model } = this.#progress();
    const usage = this.#exchange?.usage;
    const ending = endingOf(error);
    return { id, attempts, notes, tried, provider, upstream, model, status, ending, error, usage, series: this.#series() };
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

/** A request on its way to a candidate; an outcome when the candidate cannot be asked that. */
interface Prepared {
  exchange: Exchange;
  call: Call | Outcome;
}

/** A field that was not sent cannot have been refused: without it, the request would be the same. */
const isOther = ({ call: next }: Prepared, { call: last }: Prepared): boolean =>
  !('is' in next) && !('is' in last) && next.body !== last.body;

/** The call that a question becomes; what went wrong, when the upstream cannot be asked that. */
function callOrRefusal(exchange: Exchange, wire: ClientRequest, candidate: Candidate, repeat: Call['repeat']): Call | Outcome {
  try {
    return callOf(exchange, wire, candidate, repeat);
  } catch (error) {
    if (error instanceof CodecError) return { is: 'failed', error: error.error };
    throw error;
  }
}

const NOBODY = { id: '', protocol: 'openai-chat', base_url: 'http://localhost' } as const;

const wallClock = (): number => Math.floor(Date.now() / 1000);
