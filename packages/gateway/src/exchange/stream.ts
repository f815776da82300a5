/** One attempt to get a stream from an upstream, as a state machine from request to outcome. */

import type { CanonicalError, CanonicalStreamEvent, ResponseStream } from '@sluice/core';
import type { ProviderLimits } from '../config/options.ts';
import { Collector } from '../upstream/body.ts';
import { Deadline } from '../upstream/deadline.ts';
import type { Call, Line, Receiver, Wait } from '../upstream/dialer.ts';
import type { ClientStream } from './client-stream.ts';
import type { Continuation } from './continuation.ts';
import { ResponseMeter } from './limits.ts';
import { type Claim, LOST } from './race.ts';
import { explainStreamError, readRefusal, redactBytes } from './read-reply.ts';
import {
  type Attempt,
  createConnectionError,
  createEmptyResponseError,
  createTimeoutError,
  createTooLargeError,
  findRedirectError,
  formatProvider,
  INTERNAL,
  type Outcome,
  STOPPED,
} from './types.ts';

/**
 * Requests a stream from one upstream. Resolves when the client has the whole response, or when this upstream has
 * failed.
 */
export function attemptStream(call: Call, attempt: Attempt, end: StreamEnd): StreamRun {
  let started: StreamAttempt | undefined;
  const outcome = new Promise<Outcome>((resolve, reject) => {
    started = new StreamAttempt(attempt, end, resolve, reject);
    started.begin(call);
  });
  return { outcome, cancel: () => started?.cancel() ?? false };
}

/** A stream that was requested. */
export interface StreamRun {
  outcome: Promise<Outcome>;
  /** Another upstream has the client. Has no effect after the end; then it returns false. */
  cancel: () => boolean;
}

/** The client's side of a stream. */
export interface StreamEnd {
  clientStream: ClientStream;
  /**
   * The first content has arrived; the headers are those of the upstream's response. Returns the right to send it to the
   * client; undefined when another upstream has that.
   */
  claim: (headers: Record<string, string>) => Claim | undefined;
  /** Continues a stream that breaks off; undefined when it ends in an error. */
  continuation?: Continuation | undefined;
  /** Records how the response ends. Its last bytes are held back until the promise resolves. */
  recordEnd: (error: CanonicalError | undefined, held: readonly Uint8Array[]) => Promise<void> | undefined;
}

type MessageStart = Extract<CanonicalStreamEvent, { type: 'message_start' }>['message'];

/** Whether the client reads the stream: as fast as it is written, too slowly, or not any more because it has left. */
type Reading = 'fast' | 'slow' | 'gone';

/**
 * Whether output may be sent: `closed` until the first content; `waiting` for the ledger, before the first content or
 * before the end; `open`; `ended` when the end is recorded.
 */
type Gate = 'closed' | 'waiting' | 'open' | 'ended';

class StreamAttempt implements Receiver {
  readonly #attempt: Attempt;
  readonly #end: StreamEnd;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #reject: (cause: unknown) => void;
  readonly #stream: ResponseStream;
  readonly #deadline: Deadline;
  #line: Line | undefined;
  #head = { status: 0, headers: {} as Record<string, string> };
  #phase: Phase = WAITING;
  /** `slow`: the upstream is paused. `gone`: the rest of the response is read for its usage only. */
  #reading: Reading = 'fast';
  /** Output from before the first content: it is dropped when the upstream turns out to have failed. */
  #held: Uint8Array[] = [];
  #gate: Gate = 'closed';
  /** A stream that may still continue has been silent for `UNENDED_MS`. */
  #isQuiet = false;
  /** Runs when the gate opens after the upstream has closed. */
  #afterGate: (() => void) | undefined;
  readonly #meter: ResponseMeter;
  #bytes = 0;
  /** An error that another upstream may make up for: known after its chunk is converted. */
  #breakage: CanonicalError | undefined;
  /** The right to send the content to the client. */
  #claim: Claim | undefined;

  constructor(attempt: Attempt, end: StreamEnd, resolve: (outcome: Outcome) => void, reject: (cause: unknown) => void) {
    this.#attempt = attempt;
    this.#end = end;
    this.#resolve = resolve;
    this.#reject = reject;
    const { connection, candidate } = attempt;
    this.#deadline = new Deadline({
      clock: connection.clock,
      totalMs: candidate.times.totalMs,
      onSilence: connection.guard(() => this.#onSilence()),
      onTotal: connection.guard(() => this.#breakOffForGood(createTimeoutError(this.#name, 'end', candidate.times.totalMs))),
    });
    this.#meter = new ResponseMeter(attempt.limits, this.#name);
    this.#stream = this.#createStream(end.continuation);
  }

  #createStream(continuation: Continuation | undefined): ResponseStream {
    const { exchange } = this.#attempt;
    const inspect = (event: CanonicalStreamEvent): CanonicalError | undefined => this.#inspect(event, this.#meter.add(event));
    if (!continuation) return exchange.stream({ inspect });
    const stream = exchange.stream({ inspect, splice: continuation, onto: continuation.output });
    continuation.output = stream;
    return stream;
  }

  get #name(): string {
    return formatProvider(this.#attempt.candidate);
  }

  get #isSettled(): boolean {
    return this.#phase === SETTLED;
  }

  /** The only place where the phase changes before it is settled. */
  #enter(phase: Phase): void {
    this.#phase = phase;
    this.#expect();
  }

  #expect(): void {
    const ms = findSilenceMs(this.#phase, this.#attempt.candidate.times);
    this.#isQuiet = false;
    this.#deadline.expect(this.#phase.is === 'streaming' ? Math.min(ms, UNENDED_MS) : ms);
  }

  begin(call: Call): void {
    const { connection, transport } = this.#attempt;
    connection.listen(this.#onInterruption);
    this.#enter(WAITING);
    this.#line = transport.dial(call, this);
    if (connection.isInterrupted) this.#onInterruption();
  }

  cancel(): boolean {
    if (this.#isSettled) return false;
    this.#lose();
    return true;
  }

  #lose(): void {
    this.#line?.hangUp();
    this.#settle(LOST);
  }

  again(): void {
    this.#attempt.onAgain();
  }

  connected(): void {
    this.#attempt.log.connected();
  }

  start(status: number, headers: Record<string, string>): void {
    if (this.#isSettled) return;
    this.#head = { status, headers };
    this.#attempt.log.responded(status, headers);
    const wrong = findRedirectError(this.#name, status);
    if (wrong) this.#giveUp(wrong);
    else this.#enter(status >= 400 ? { is: 'refusal', body: new Collector(this.#attempt.limits.errorBytes) } : SILENT);
  }

  data(chunk: Uint8Array): void {
    if (this.#isSettled) return;
    if (this.#isQuiet) this.#expect();
    else this.#deadline.recordData();
    try {
      if (this.#phase.is === 'refusal') this.#collect(chunk, this.#phase.body);
      else this.#convert(chunk);
    } catch (cause) {
      this.#crash(cause);
    }
  }

  end(): void {
    if (this.#isSettled) return;
    try {
      if (this.#phase.is === 'refusal') this.#refuse(this.#phase.body);
      else this.#close(this.#stream.end());
    } catch (cause) {
      this.#crash(cause);
    }
  }

  fail(error: Error): void {
    // A truncated error body is still the upstream's error.
    if (this.#phase.is === 'refusal') this.end();
    else this.#breakOff(createConnectionError(error, this.#name, this.#attempt.candidate.times.connectMs));
  }

  #convert(chunk: Uint8Array): void {
    const { streamBytes } = this.#attempt.limits;
    this.#bytes += chunk.length;
    if (this.#bytes > streamBytes) {
      this.#breakOffForGood(createTooLargeError(this.#name, streamBytes));
      return;
    }
    const pieces = this.#stream.push(chunk);
    if (this.#hasLost) {
      this.#lose();
      return;
    }
    if (this.#end.continuation && this.#handOver(pieces, this.#end.continuation)) return;
    this.#pass(pieces);
    if (this.#stream.hasFailed) this.end();
  }

  /** Whether the content belongs to nobody: another upstream has the client. */
  get #hasLost(): boolean {
    return hasContent(this.#phase) && !this.#claim;
  }

  /** Whether the rest of the response is left to another upstream, or no upstream continues what was sent. */
  #handOver(pieces: Iterable<Uint8Array>, continuation: Continuation): boolean {
    const error = this.#breakage;
    this.#breakage = undefined;
    if (!hasContent(this.#phase) || !(continuation.hasDiverged || (error && continuation.isCut))) {
      if (error) this.#updatePhase({ type: 'error', error });
      return false;
    }
    this.#pass(pieces);
    this.#line?.hangUp();
    const settle = (): void => this.#settle({ is: 'broken', error: continuation.error ?? error ?? INTERNAL });
    if (this.#gate === 'waiting' && this.#reading !== 'gone') this.#afterGate = settle;
    else settle();
    return true;
  }

  /** Sees every event before it is encoded for the client. `excess`: the limit that it exceeds, which rejects it. */
  #inspect(event: CanonicalStreamEvent, excess: CanonicalError | undefined): CanonicalError | undefined {
    if (event.type === 'message_start') this.#recordStart(event.message);
    if (excess) this.#end.continuation?.close();
    if (event.type === 'error' && this.#end.continuation && hasContent(this.#phase)) this.#breakage = event.error;
    else this.#updatePhase(excess ? { type: 'error', error: excess } : event);
    return excess;
  }

  #recordStart({ model, usage }: MessageStart): void {
    const { record, log } = this.#attempt;
    if (model !== '') log.modelAnswered = model;
    if (usage) record.reportUsage(usage, log);
  }

  /** Enters the phase that an event of the upstream leads to. */
  #updatePhase(event: CanonicalStreamEvent): void {
    const before = this.#phase;
    const after = findNextPhase(before, event);
    if (after === before) return;
    this.#enter(after);
    if (!hasContent(after) || hasContent(before)) return;
    this.#attempt.log.hadContent();
    this.#claim = this.#end.claim(this.#head.headers);
  }

  #pass(pieces: Iterable<Uint8Array>): void {
    if (this.#reading === 'gone') return;
    if (!hasContent(this.#phase)) {
      if (this.#phase.is === 'failed') this.#rejectStream(this.#phase.error);
      else for (const piece of pieces) this.#held.push(piece);
      return;
    }
    if (this.#gate === 'ended' || (this.#gate === 'open' && this.#phase.is === 'streaming')) this.#write(pieces);
    else this.#passGate(pieces);
  }

  /**
   * Holds output back until the ledger has what it must have before the client does: the attempt before the first
   * content, the usage before the end. The upstream is paused meanwhile.
   */
  #passGate(pieces: Iterable<Uint8Array>): void {
    for (const piece of pieces) this.#held.push(piece);
    if (this.#gate === 'waiting') return;
    const isEnd = this.#phase.is === 'ending';
    const recorded = isEnd ? this.#recordEnd() : this.#attempt.record.beforeContent(this.#attempt.log);
    if (!recorded) {
      this.#openGate(isEnd);
      return;
    }
    this.#gate = 'waiting';
    this.#line?.pause();
    this.#deadline.rest();
    void recorded.then(this.#attempt.connection.guard(() => this.#openGate(isEnd)));
  }

  #recordEnd(): Promise<void> | undefined {
    this.#observe();
    return this.#end.recordEnd(this.#stream.error, this.#held);
  }

  /** What the ledger keeps of the stream itself. */
  #observe(): void {
    const { log } = this.#attempt;
    log.outputCharacters = this.#meter.characters;
    log.observed(this.#stream.diagnostics);
  }

  #openGate(isEnd: boolean): void {
    if (this.#isSettled || this.#reading === 'gone') return;
    const wasWaiting = this.#gate === 'waiting';
    this.#gate = isEnd ? 'ended' : 'open';
    if (!isEnd && this.#phase.is === 'ending') {
      // The end has arrived while the first content was recorded.
      this.#passGate([]);
      return;
    }
    this.#write(this.#held.splice(0));
    if (this.#afterGate) this.#afterGate();
    else if (wasWaiting && this.#reading === 'fast') this.#resume();
  }

  #write(pieces: Iterable<Uint8Array>): void {
    const claim = this.#claim;
    if (!claim) return;
    const { clientStream } = this.#end;
    const { redact } = this.#attempt;
    for (const piece of this.#stream.hasError ? [redactBytes(pieces, redact)] : pieces) clientStream.write(piece, claim);
    if (clientStream.isFull) this.#wait();
  }

  /** The client reads more slowly than the upstream writes: the upstream is paused, so its silence is not a timeout. */
  #wait(): void {
    if (this.#isSettled || this.#reading === 'gone') return;
    this.#line?.pause();
    this.#deadline.rest();
    this.#reading = 'slow';
    this.#end.clientStream.onDrain(() => this.#continue());
  }

  #continue(): void {
    if (this.#isSettled || this.#reading !== 'slow') return;
    this.#reading = 'fast';
    // Otherwise the gate resumes it.
    if (this.#gate !== 'waiting') this.#resume();
  }

  #resume(): void {
    this.#expect();
    this.#line?.resume();
  }

  #close(pieces: Iterable<Uint8Array>): void {
    if (this.#hasLost) {
      this.#lose();
      return;
    }
    if (this.#end.continuation && this.#handOver(pieces, this.#end.continuation)) return;
    this.#pass(pieces);
    if (this.#isSettled) return;
    if (!hasContent(this.#phase)) {
      this.#giveUp(this.#phase.is === 'failed' ? this.#phase.error : createEmptyResponseError(this.#name));
      return;
    }
    this.#line?.hangUp();
    if (this.#gate === 'waiting' && this.#reading !== 'gone') this.#afterGate = () => this.#complete();
    else this.#complete();
  }

  #complete(): void {
    const { error } = this.#stream;
    if (this.#reading !== 'gone' && this.#claim) this.#endStream(error, this.#claim);
    this.#settle({ is: 'answered', ...(error && { error }) });
  }

  #endStream(error: CanonicalError | undefined, claim: Claim): void {
    const { clientStream } = this.#end;
    const { exchange, redact } = this.#attempt;
    const repeat = error && exchange.repeatInStream(error, this.#stream.diagnostics);
    if (error) clientStream.endInError(repeat && redactBytes([repeat], redact), claim);
    else clientStream.end(claim);
  }

  /** The upstream sent an error, or something that is not a response, in place of content. */
  #rejectStream(error: CanonicalError): void {
    const { onStrange } = this.#attempt;
    const shown = explainStreamError(error, this.#head.headers, this.#attempt);
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
    const overdue = findOverdue(this.#phase);
    const ms = findSilenceMs(this.#phase, this.#attempt.candidate.times);
    // Some servers send a stop reason, then neither their terminal marker nor the end of the body.
    if (overdue === undefined || (this.#phase.is === 'streaming' && this.#stream.hasStopReason)) this.end();
    else if (this.#phase.is === 'streaming' && !this.#isQuiet && ms > UNENDED_MS) {
      this.#isQuiet = true;
      this.#deadline.expect(ms - UNENDED_MS);
    } else this.#breakOff(createTimeoutError(this.#name, overdue, ms));
  }

  readonly #onInterruption = (): void => {
    const { connection, candidate } = this.#attempt;
    if (!connection.isGone) this.#breakOffForGood(connection.stopError ?? STOPPED);
    else if (candidate.drains && !connection.isStopped) this.#drain();
    else this.#leave();
  };

  /** The client has left: the rest of the response is read for its usage. */
  #drain(): void {
    const wasPaused = this.#reading === 'slow' || this.#gate === 'waiting';
    this.#reading = 'gone';
    this.#held = [];
    if (this.#isSettled) return;
    // The upstream has closed while the end was recorded.
    if (this.#afterGate) this.#complete();
    else if (wasPaused) this.#resume();
  }

  /** Reports the error in the client's stream if that has begun; otherwise another upstream may be tried. */
  #breakOff(error: CanonicalError): void {
    if (this.#isSettled) return;
    try {
      if (hasContent(this.#phase)) this.#close(this.#stream.fail(error));
      else this.#giveUp(error);
    } catch (cause) {
      this.#crash(cause);
    }
  }

  /** The same, and no upstream continues the response: the reason is not the upstream's. */
  #breakOffForGood(error: CanonicalError): void {
    this.#end.continuation?.close();
    this.#breakOff(error);
  }

  #giveUp(error: CanonicalError): void {
    this.#line?.hangUp();
    this.#settle({ is: 'failed', error });
  }

  #leave(): void {
    this.#line?.hangUp();
    this.#settle({ is: 'gone' });
  }

  /** A bug in the gateway ends this exchange only. */
  #crash(cause: unknown): void {
    this.#line?.hangUp();
    this.#reject(cause);
    this.#settle({ is: 'gone' });
  }

  /** Ends an unfinished stream, because decoders report usage only when the stream ends. */
  #closeUnread(): void {
    if (this.#bytes === 0) return;
    try {
      this.#stream.fail('the response was abandoned');
    } catch (cause) {
      this.#reject(cause);
    }
  }

  #settle(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#phase = SETTLED;
    this.#deadline.stop();
    this.#attempt.connection.unlisten(this.#onInterruption);
    if (outcome.is !== 'answered') this.#closeUnread();
    this.#observe();
    this.#resolve(this.#reading === 'gone' ? { is: 'gone' } : outcome);
  }
}

/** How far the response to a stream request has come. */
export type Phase =
  /** No response headers yet. */
  | { is: 'waiting' }
  /** An error status; its body is collected. */
  | { is: 'refusal'; body: Collector }
  /** Response headers, but no event. */
  | { is: 'silent' }
  /** Events, but no content: the output is held back, because the next event may be an error. */
  | { is: 'held' }
  /** Complete without content. */
  | { is: 'empty' }
  /** An error before any content. */
  | { is: 'failed'; error: CanonicalError }
  /** Content has arrived; the client receives it. */
  | { is: 'streaming' }
  /** Content has arrived, then the end of the message or an error; only the connection is still open. */
  | { is: 'ending' }
  /** The outcome is reported; nothing that arrives later counts. */
  | { is: 'settled' };

/** The request is sent. */
export const WAITING: Phase = { is: 'waiting' };

/** The response headers have arrived. */
export const SILENT: Phase = { is: 'silent' };

/** The outcome is reported. */
export const SETTLED: Phase = { is: 'settled' };

const HELD: Phase = { is: 'held' };

const EMPTY: Phase = { is: 'empty' };

const STREAMING: Phase = { is: 'streaming' };

const ENDING: Phase = { is: 'ending' };

/** What an event means for the phase. */
type Signal = 'start' | 'content' | 'stop' | 'error';

/** Phases change with events only as listed here, and never back. */
const TRANSITIONS = {
  waiting: {},
  refusal: {},
  silent: { start: HELD, content: STREAMING, stop: EMPTY, error: 'failed' },
  held: { content: STREAMING, stop: EMPTY, error: 'failed' },
  empty: { content: ENDING, error: 'failed' },
  failed: {},
  streaming: { stop: ENDING, error: ENDING },
  ending: {},
  settled: {},
} as const satisfies Record<Phase['is'], Partial<Record<Signal, Phase | 'failed'>>>;

/** The phase after an event; the same object when the event does not change it. */
export function findNextPhase(phase: Phase, event: CanonicalStreamEvent): Phase {
  const transitions: Partial<Record<Signal, Phase | 'failed'>> = TRANSITIONS[phase.is];
  const next = transitions[readSignal(event)] ?? phase;
  if (next !== 'failed') return next;
  return event.type === 'error' ? { is: 'failed', error: event.error } : phase;
}

function readSignal(event: CanonicalStreamEvent): Signal {
  switch (event.type) {
    case 'message_start':
    case 'ping':
      return 'start';
    case 'error':
      return 'error';
    case 'message_stop':
      return 'stop';
    case 'message_delta':
      // Without a stop reason it only announces an error.
      return event.delta.stop_reason === null ? 'start' : 'content';
    default:
      return 'content';
  }
}

/** Whether the upstream has sent content, so that no other upstream can be tried. */
export const hasContent = ({ is }: Phase): boolean => is === 'streaming' || is === 'ending';

interface Silence {
  /** The longest silence that the phase allows. */
  limit: 'headersMs' | 'firstEventMs' | 'betweenEventsMs' | 'linger';
  /** What did not arrive in time. Absent: the silence completes the response. */
  overdue?: Wait;
}

const SILENCE: Readonly<Record<Phase['is'], Silence>> = {
  waiting: { limit: 'headersMs', overdue: 'response' },
  // An error body that stops arriving is still the upstream's error.
  refusal: { limit: 'firstEventMs' },
  silent: { limit: 'firstEventMs', overdue: 'event' },
  held: { limit: 'betweenEventsMs', overdue: 'more' },
  streaming: { limit: 'betweenEventsMs', overdue: 'more' },
  empty: { limit: 'linger' },
  failed: { limit: 'linger' },
  ending: { limit: 'linger' },
  settled: { limit: 'linger' },
};

/** How long an upstream may take to end its response after its stop reason. */
const UNENDED_MS = 5000;

/** How long an upstream may take to close the connection after the end of its response. */
const LINGER_MS = 1000;

/** The longest silence that a phase allows, in milliseconds. */
function findSilenceMs({ is }: Phase, times: ProviderLimits): number {
  const { limit } = SILENCE[is];
  return limit === 'linger' ? LINGER_MS : times[limit];
}

/** What did not arrive when the silence of a phase was too long; undefined when that completes the response. */
export const findOverdue = ({ is }: Phase): Wait | undefined => SILENCE[is].overdue;
