import type { AnswerStream, CanonicalError, CanonicalStreamEvent } from '@sluice/core';
import { Collector } from '../upstream/collect.ts';
import type { Call, Line, Receiver } from '../upstream/dialer.ts';
import { Patience } from '../upstream/patience.ts';
import { AnswerMeter } from './answer-limits.ts';
import type { Attempt } from './attempt.ts';
import { connectionError, emptyResponse, nameOf, redirected, STOPPED, tooLarge, tooLate } from './failures.ts';
import type { Outcome } from './outcome.ts';
import type { Outlet } from './outlet.ts';
import { readRefusal, strangeStream } from './read-reply.ts';
import { redactBytes } from './redact-bytes.ts';

/** Where the stream goes. */
export interface StreamEnd {
  outlet: Outlet;
  /** There is an answer, with these headers. */
  onFirstContent: (headers: Record<string, string>) => void;
}

/** Asks one upstream for a stream. Resolves when the client has its answer, or when it is certain that this upstream has none. */
export function attemptStream(call: Call, attempt: Attempt, end: StreamEnd): Promise<Outcome> {
  return new Promise((resolve, reject) => new StreamAttempt(attempt, end, resolve, reject).begin(call));
}

/** How long an upstream that has said everything may take to close. */
const LINGER_MS = 1000;

class StreamAttempt implements Receiver {
  readonly #attempt: Attempt;
  readonly #end: StreamEnd;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #reject: (cause: unknown) => void;
  readonly #stream: AnswerStream;
  readonly #patience: Patience;
  #line: Line | undefined;
  #head = { status: 0, headers: {} as Record<string, string> };
  /** The client reads more slowly than the upstream writes. */
  #isWaiting = false;
  /** The body of an answer that is an error. */
  #refusal: Collector | undefined;
  /** What was converted before it was certain that there is an answer. */
  #held: Uint8Array[] = [];
  #bytes = 0;
  #hasEvents = false;
  #hasContent = false;
  #hasStopped = false;
  #error: CanonicalError | undefined;
  /** The client has left, and the answer is read for what it says of itself. */
  #isDraining = false;
  #isSettled = false;

  constructor(attempt: Attempt, end: StreamEnd, resolve: (outcome: Outcome) => void, reject: (cause: unknown) => void) {
    this.#attempt = attempt;
    this.#end = end;
    this.#resolve = resolve;
    this.#reject = reject;
    const { presence, candidate } = attempt;
    this.#patience = new Patience({
      clock: presence.clock,
      totalMs: candidate.times.totalMs,
      onSilence: presence.guard(() => this.#onSilence()),
      onTotal: presence.guard(() => this.#breakOff(tooLate(this.#name, 'end', candidate.times.totalMs))),
    });
    const meter = new AnswerMeter(attempt.limits, this.#name);
    this.#stream = attempt.exchange.stream({ inspect: (event) => this.#inspect(event, meter.add(event)) });
  }

  get #name(): string {
    return nameOf(this.#attempt.candidate);
  }

  begin(call: Call): void {
    const { presence, transport, candidate } = this.#attempt;
    presence.listen(this.#onInterruption);
    this.#patience.expect(candidate.times.headersMs);
    this.#line = transport.dial(call, this);
    if (presence.isInterrupted) this.#onInterruption();
  }

  again(): void {
    this.#attempt.onAgain();
  }

  start(status: number, headers: Record<string, string>): void {
    if (this.#isSettled) return;
    this.#head = { status, headers };
    this.#patience.expect(this.#attempt.candidate.times.firstEventMs);
    const wrong = redirected(this.#name, status);
    if (wrong) this.#giveUp(wrong);
    else if (status >= 400) this.#refusal = new Collector(this.#attempt.limits.errorBytes);
  }

  data(chunk: Uint8Array): void {
    if (this.#isSettled) return;
    this.#patience.heard();
    try {
      if (this.#refusal) this.#collect(chunk, this.#refusal);
      else this.#convert(chunk);
    } catch (cause) {
      this.#crash(cause);
    }
  }

  end(): void {
    if (this.#isSettled) return;
    try {
      if (this.#refusal) this.#refuse(this.#refusal);
      else this.#close(this.#stream.end());
    } catch (cause) {
      this.#crash(cause);
    }
  }

  fail(error: Error): void {
    // An error that was only half told is still the upstream's own word.
    if (this.#refusal) this.end();
    else this.#breakOff(connectionError(error, this.#name, this.#attempt.candidate.times.connectMs));
  }

  #convert(chunk: Uint8Array): void {
    const { streamBytes } = this.#attempt.limits;
    this.#bytes += chunk.length;
    if (this.#bytes > streamBytes) {
      this.#breakOff(tooLarge(this.#name, streamBytes));
      return;
    }
    this.#pass(this.#stream.push(chunk));
    if (this.#stream.hasFailed) this.end();
  }

  /** Called with every event of the upstream, before it is encoded for the client. `excess`: the limit it exceeds, which refuses it. */
  #inspect(event: CanonicalStreamEvent, excess: CanonicalError | undefined): CanonicalError | undefined {
    this.#look(excess ? { type: 'error', error: excess } : event);
    return excess;
  }

  #look(event: CanonicalStreamEvent): void {
    if (this.#isSettled) return;
    if (!this.#hasEvents) {
      this.#hasEvents = true;
      this.#patience.expect(this.#attempt.candidate.times.betweenEventsMs);
    }
    switch (event.type) {
      case 'message_start':
      case 'ping':
        return;
      case 'error':
        // Nothing that counts follows it, whether the upstream closes or not.
        this.#error ??= event.error;
        this.#hasStopped = true;
        this.#patience.expect(LINGER_MS);
        return;
      case 'message_stop':
        this.#hasStopped = true;
        this.#patience.expect(LINGER_MS);
        return;
      case 'message_delta':
        // Without a reason to stop, it only announces an error.
        if (event.delta.stop_reason !== null) this.#begun();
        return;
      default:
        this.#begun();
    }
  }

  /** There is an answer. */
  #begun(): void {
    if (this.#hasContent || this.#error) return;
    this.#hasContent = true;
    this.#end.onFirstContent(this.#head.headers);
  }

  #pass(pieces: Iterable<Uint8Array>): void {
    if (this.#isDraining) return;
    if (!this.#hasContent) {
      if (this.#error) this.#disown(this.#error);
      else for (const piece of pieces) this.#held.push(piece);
      return;
    }
    const { outlet } = this.#end;
    const { redact } = this.#attempt;
    const whole = this.#withHeld(pieces);
    for (const piece of this.#stream.hasError ? [redactBytes(whole, redact)] : whole) outlet.write(piece);
    if (outlet.isFull && !this.#isSettled) this.#wait();
  }

  #withHeld(pieces: Iterable<Uint8Array>): Iterable<Uint8Array> {
    return this.#held.length === 0 ? pieces : [...this.#held.splice(0), ...pieces];
  }

  /** The client reads more slowly than the upstream writes: the upstream waits, and is not to blame for its silence. */
  #wait(): void {
    this.#line?.pause();
    this.#patience.rest();
    this.#isWaiting = true;
    this.#end.outlet.onDrain(() => this.#goOn());
  }

  #goOn(): void {
    if (this.#isSettled || !this.#isWaiting) return;
    this.#isWaiting = false;
    this.#patience.expect(this.#hasStopped ? LINGER_MS : this.#attempt.candidate.times.betweenEventsMs);
    this.#line?.resume();
  }

  #close(pieces: Iterable<Uint8Array>): void {
    this.#pass(pieces);
    if (this.#isSettled) return;
    if (!this.#hasContent) {
      this.#giveUp(this.#error ?? emptyResponse(this.#name));
      return;
    }
    const { error } = this.#stream;
    this.#line?.hangUp();
    if (!this.#isDraining) this.#endStream(error);
    this.#settle({ is: 'answered', ...(error && { error }) });
  }

  #endStream(error: CanonicalError | undefined): void {
    const { outlet } = this.#end;
    const { exchange, redact } = this.#attempt;
    const repeat = error && exchange.repeatInBand(error);
    if (error) outlet.endInError(repeat && redactBytes([repeat], redact));
    else outlet.end();
  }

  /** What came is no answer. */
  #disown(error: CanonicalError): void {
    const { onStrange } = this.#attempt;
    const shown = strangeStream(error, this.#head.headers, this.#attempt);
    if (shown !== error) onStrange(error.message);
    this.#giveUp(shown);
  }

  #collect(chunk: Uint8Array, body: Collector): void {
    if (!body.push(chunk)) this.#refuse(body);
  }

  #refuse(body: Collector): void {
    this.#line?.hangUp();
    this.#settle(readRefusal({ ...this.#head, body: body.take() }, this.#attempt));
  }

  #onSilence(): void {
    if (this.#hasStopped || this.#refusal) this.end();
    else this.#breakOff(this.#silence());
  }

  #silence(): CanonicalError {
    const { headersMs, firstEventMs, betweenEventsMs } = this.#attempt.candidate.times;
    if (this.#head.status === 0) return tooLate(this.#name, 'response', headersMs);
    return this.#hasEvents ? tooLate(this.#name, 'more', betweenEventsMs) : tooLate(this.#name, 'event', firstEventMs);
  }

  readonly #onInterruption = (): void => {
    const { presence, candidate } = this.#attempt;
    if (!presence.isGone) this.#breakOff(STOPPED);
    else if (candidate.drains && !presence.isStopped) this.#drain();
    else this.#leave();
  };

  #drain(): void {
    this.#isDraining = true;
    this.#held = [];
    this.#goOn();
  }

  /** Tells the client in its stream, where that has begun. */
  #breakOff(error: CanonicalError): void {
    if (this.#isSettled) return;
    try {
      if (this.#hasContent) this.#close(this.#stream.fail(error));
      else this.#giveUp(error);
    } catch (cause) {
      this.#crash(cause);
    }
  }

  #giveUp(error: CanonicalError): void {
    this.#line?.hangUp();
    this.#settle({ is: 'failed', error });
  }

  #leave(): void {
    this.#line?.hangUp();
    this.#settle({ is: 'gone' });
  }

  /** A fault of ours ends this exchange, and nothing else. */
  #crash(cause: unknown): void {
    this.#line?.hangUp();
    this.#reject(cause);
    this.#settle({ is: 'gone' });
  }

  /** Decoders report the usage so far when a stream ends, so a stream that nobody reads any further is ended, too. */
  #closeUnread(): void {
    if (this.#bytes === 0) return;
    try {
      this.#stream.fail('it was abandoned');
    } catch (cause) {
      this.#reject(cause);
    }
  }

  #settle(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#patience.stop();
    this.#attempt.presence.unlisten(this.#onInterruption);
    if (outcome.is !== 'answered') this.#closeUnread();
    this.#resolve(this.#isDraining ? { is: 'gone' } : outcome);
  }
}
