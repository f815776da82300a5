import { isObject, parseJson } from '../accumulate/overlay.ts';
import { type CanonicalError, ownError } from '../canonical/errors.ts';
import type { Protocol } from '../protocols/shared/protocol.ts';
import { ByteBuffer, decodeUtf8 } from '../sse/bytes.ts';
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
  readonly waiting: SseFrame[] = [];
  readonly #head = new ByteBuffer();

  constructor(protocol: Protocol | readonly Protocol[]) {
    this.candidates = 'id' in protocol ? [protocol] : protocol;
  }

  /** Records the beginning of the body for `explain`. */
  record(chunk: Uint8Array): void {
    if (!this.hasPayload) this.#head.append(chunk, 0, Math.min(chunk.length, HEAD_BYTES - this.#head.length));
  }

  /** The protocol that recognises the frame. The frame is kept in `waiting` either way. */
  recognise(frame: SseFrame): Protocol | undefined {
    const { data, event } = frame;
    this.waiting.push(frame);
    // A stream without blank lines has one payload per line of its only event.
    const payload = parseJson(data) ?? parseJson(data.split('\n', 1).join());
    const known = isObject(payload) ? this.candidates.find((protocol) => protocol.recognises(payload, event)) : undefined;
    return known ?? (this.waiting.length < MAX_UNRECOGNISED ? undefined : this.candidates[0]);
  }

  /** Replaces the error of an empty stream by what was expected and what the body contains instead. */
  explain(error: CanonicalError): CanonicalError {
    const isEmpty = error.details?.['code'] === 'empty_stream' && !error.details['isRead'];
    const head = this.#head.bytes.subarray(0, this.#head.length);
    const text = decodeUtf8(head);
    const isSse = looksLikeSse(text);
    if (!isEmpty || (isSse && !this.hasPayload)) return error;
    if (head.length === 0) return ownError('empty_stream', 'UPSTREAM_ERROR', 'the body is empty: 0 bytes');
    const expected = this.candidates.map(({ id }) => id).join(', ');
    const found = isSse ? `an event stream of something else (${describeEvents(text)})` : describeBody(head, text);
    const own = ownError('not_a_stream', 'UPSTREAM_ERROR', `expected a response stream (${expected}), found ${found}`);
    return { ...own, details: { ...error.details, ...own.details } };
  }
}
