import { isObject, parseJson } from '../accumulate/overlay.ts';
import { type CanonicalError, ownError } from '../canonical/errors.ts';
import type { Protocol } from '../protocols/shared/protocol.ts';
import { NO_BYTES } from '../sse/bytes.ts';
import type { SseFrame } from '../sse/frame.ts';
import { describeBody, describeEvents, looksLikeSse } from './body.ts';

/** After this many unrecognised frames the first candidate is used. */
const MAX_UNRECOGNISED = 256;
const HEAD_BYTES = 1024;

/** Finds the protocol of a body among candidates, and describes a body that is not a stream of any of them. */
export class ProtocolSniffer {
  readonly candidates: readonly Protocol[];
  /** A payload was parsed: from then on the beginning of the body is not recorded. */
  hasPayload = false;
  /** Frames that arrived before the protocol was known. */
  #waiting: SseFrame[] = [];
  #head: Uint8Array = NO_BYTES;

  constructor(protocol: Protocol | readonly Protocol[]) {
    this.candidates = 'id' in protocol ? [protocol] : protocol;
  }

  /** Records the beginning of the body for `explain`. */
  record(chunk: Uint8Array): void {
    const { length } = this.#head;
    if (this.hasPayload || length >= HEAD_BYTES) return;
    const head = new Uint8Array(Math.min(HEAD_BYTES, length + chunk.length));
    head.set(this.#head);
    head.set(chunk.subarray(0, head.length - length), length);
    this.#head = head;
  }

  /** The protocol that recognises the frame. The frame waits for `takeWaiting` either way. */
  recognise(frame: SseFrame): Protocol | undefined {
    const { data, event } = frame;
    this.#waiting.push(frame);
    // A stream without blank lines has one payload per line of its only event.
    const payload = parseJson(data) ?? parseJson(data.split('\n', 1).join());
    const known = isObject(payload) ? this.candidates.find((protocol) => protocol.recognises(payload, event)) : undefined;
    return known ?? (this.#waiting.length < MAX_UNRECOGNISED ? undefined : this.candidates[0]);
  }

  takeWaiting(): SseFrame[] {
    return this.#waiting.splice(0);
  }

  /** Replaces the error of an empty stream by what was expected and what the body contains instead. */
  explain(error: CanonicalError): CanonicalError {
    const isEmpty = error.details?.['code'] === 'empty_stream' && !error.details['isRead'];
    const isSse = looksLikeSse(this.#head);
    if (!isEmpty || (isSse && !this.hasPayload)) return error;
    if (this.#head.length === 0) return ownError('empty_stream', 'UPSTREAM_ERROR', 'the body is empty: 0 bytes');
    const expected = this.candidates.map(({ id }) => id).join(', ');
    const found = isSse ? `an event stream of something else (${describeEvents(this.#head)})` : describeBody(this.#head);
    const own = ownError('not_a_stream', 'UPSTREAM_ERROR', `expected a response stream (${expected}), found ${found}`);
    return { ...own, details: { ...error.details, ...own.details } };
  }
}
