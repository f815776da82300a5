/** Records a running exchange in memory, with a limit. Secrets are still in it: `cleanRecording` makes a capture of it. */

import type { CanonicalError, ExchangeOptions, Provider } from '@sluice/core';
import type { Ending as TapeEnding } from '@sluice/lab/tape';
import type { AttemptObserver, ExchangeObserver, ObservedEnd, ObservedRequest } from '../exchange/observer.ts';
import type { Outcome } from '../exchange/types.ts';
import type { Call, Line, Receiver, Transport } from '../upstream/dialer.ts';
import { type Allowance, ByteLog } from './byte-log.ts';

/** What a recording needs. */
export interface RecordingOptions {
  allowance: Allowance;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Milliseconds since 1970. */
  wallClock: () => number;
  /** The exchange is over. */
  onEnd: (recording: Recording) => void;
}

/** A running exchange. */
export class Recording implements ExchangeObserver {
  readonly request: ObservedRequest;
  readonly at: number;
  readonly allowance: Allowance;
  /** Undefined when the body did not fit. */
  readonly body: Body | undefined;
  /** Attempts that were sent. */
  readonly attempts: AttemptRecording[] = [];
  readonly sentBytes: ByteLog;
  readonly fills: number[] = [];
  head: { status: number; headers: Readonly<Record<string, string>>; isStream: boolean } | undefined;
  end: ObservedEnd = { ending: 'answered' };
  readonly #options: RecordingOptions;
  readonly #startedAt: number;
  #isOver = false;

  constructor(request: ObservedRequest, options: RecordingOptions) {
    const { allowance, now, wallClock } = options;
    this.request = request;
    this.#options = options;
    this.allowance = allowance;
    this.at = wallClock();
    this.#startedAt = now();
    this.body = keepBody(request.body, allowance);
    this.sentBytes = new ByteLog(allowance);
  }

  attempt(provider: Provider, options?: ExchangeOptions): AttemptRecording {
    const { now, wallClock } = this.#options;
    return new AttemptRecording(provider, options, {
      allowance: this.allowance,
      now,
      wallClock,
      startedAt: this.#startedAt,
      onSent: (attempt) => void this.attempts.push(attempt),
    });
  }

  opened(status: number, headers: Readonly<Record<string, string>>, isStream: boolean): void {
    this.head = { status, headers, isStream };
  }

  sent(data: string | Uint8Array, encoding: BufferEncoding = 'utf8'): void {
    if (!this.#isOver) this.sentBytes.push(typeof data === 'string' ? Buffer.from(data, encoding) : data, this.#elapsed);
  }

  filled(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const { count } = this.sentBytes;
    this.sentBytes.push(bytes, this.#elapsed);
    if (this.sentBytes.count > count) this.fills.push(count);
  }

  ended({ ending, error }: ObservedEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.end = { ending, ...(error && { error }) };
    this.#options.onEnd(this);
  }

  get #elapsed(): number {
    return this.#options.now() - this.#startedAt;
  }
}

/** A request body as the exchange has it: encoding it would delay the request. */
type Body = string | Uint8Array;

/** A body, if it fits. */
const keepBody = (body: Body, allowance: Allowance): Body | undefined => (allowance.take(body.length) ? body : undefined);

interface AttemptRecordingOptions extends Omit<RecordingOptions, 'onEnd'> {
  /** When the exchange began. */
  startedAt: number;
  /** The request is being sent. */
  onSent: (attempt: AttemptRecording) => void;
}

/** One attempt of a running exchange, and the transport that it listens to. */
export class AttemptRecording implements AttemptObserver {
  readonly provider: Provider;
  readonly options: ExchangeOptions | undefined;
  readonly clock: number[] = [];
  readonly received: ByteLog;
  call: Call | undefined;
  /** Undefined when the body did not fit. */
  body: Body | undefined;
  /** Milliseconds between the client's request and this one. */
  startMs = 0;
  head: { status: number; headers: Record<string, string> } | undefined;
  /** How the upstream ended the response; undefined when the gateway did. */
  closed: TapeEnding | undefined;
  /** Undefined while the attempt runs, and for forwarded requests. */
  outcome: Outcome['is'] | undefined;
  error: CanonicalError | undefined;
  readonly #recording: AttemptRecordingOptions;
  #sentAt = 0;

  constructor(provider: Provider, options: ExchangeOptions | undefined, recording: AttemptRecordingOptions) {
    this.provider = provider;
    this.#recording = recording;
    this.received = new ByteLog(recording.allowance);
    // A conversion that reads no clock gets none, so that its output stays the same.
    this.options = options?.now ? { ...options, now: this.#readClock } : options;
  }

  tap(transport: Transport): Transport {
    return { dial: (call, receiver) => this.#dial(transport, call, receiver) };
  }

  ended(outcome: Outcome): void {
    this.outcome = outcome.is;
    this.error = 'error' in outcome ? outcome.error : undefined;
  }

  #dial(transport: Transport, call: Call, receiver: Receiver): Line {
    const { allowance, now, startedAt, onSent } = this.#recording;
    this.#sentAt = now();
    this.startMs = this.#sentAt - startedAt;
    this.call = call;
    this.body = keepBody(call.body ?? '', allowance);
    onSent(this);
    return transport.dial(call, {
      start: (status, headers) => {
        this.head = { status, headers };
        receiver.start(status, headers);
      },
      data: (chunk) => {
        this.received.push(chunk, now() - this.#sentAt);
        receiver.data(chunk);
      },
      end: () => {
        this.closed = 'complete';
        receiver.end();
      },
      fail: (error) => {
        this.closed = this.head ? 'upstream_cut' : 'unreachable';
        receiver.fail(error);
      },
      again: () => receiver.again?.(),
      connected: () => receiver.connected?.(),
    });
  }

  readonly #readClock = (): number => {
    const seconds = Math.floor(this.#recording.wallClock() / 1000);
    // Conversions read the clock at the start and at the end of a response.
    if (this.clock.length < MAX_CLOCK_READS) this.clock.push(seconds);
    return seconds;
  };
}

const MAX_CLOCK_READS = 64;
