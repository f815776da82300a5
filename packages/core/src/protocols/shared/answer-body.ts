import { MessageAccumulator } from '../../accumulate/message.ts';
import { isDeeperThan, isObject, type JsonObject, TOO_DEEP } from '../../accumulate/overlay.ts';
import type { CanonicalError, OwnErrorCode } from '../../canonical/errors.ts';
import type { CanonicalStreamEvent } from '../../canonical/events.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { MAX_JSON_DEPTH } from '../../json/limits.ts';
import type { SseFrame } from '../../sse/frame.ts';
import type { Stage } from '../../stage.ts';
import { CodecError } from './codec.ts';

// Whole answers, as the decoders of all protocols read them.

/** The server's answer is wrong, and nothing that the client could mend. */
export const upstreamError = (message: string): CanonicalError => ({ code: 'UPSTREAM_ERROR', message, http_status: 502 });

/** Such JSON cannot be parsed and written again safely, so it is not passed on either. */
export const tooDeep = (what: string): CanonicalError => ({
  ...upstreamError(`${what} ${TOO_DEEP}`),
  details: { code: 'too_large' satisfies OwnErrorCode },
});

/** The same, at `param`. */
export const badAnswer = (param: string, message: string): CodecError =>
  new CodecError({ ...upstreamError(`${param} of the answer ${message}`), param });

/** The body of an answer; an error that came with status 200, and a text or a page instead of JSON, are thrown as what they are. */
export function expectAnswer(
  wire: unknown,
  isError: (body: JsonObject) => boolean,
  decodeError: (body: unknown) => CanonicalError,
): JsonObject {
  if (isObject(wire) && !isError(wire)) return wire;
  throw new CodecError(decodeError(wire));
}

interface Read {
  message: CanonicalResponse;
  /** It came to an end. */
  complete: boolean;
}

/** Read by the decoder of streams: every rule about fragments holds for the whole. Throws when it is an error. */
export function readWhole(fragments: readonly unknown[], decoder: Stage<SseFrame, CanonicalStreamEvent>): Read {
  const accumulator = new MessageAccumulator();
  for (const fragment of fragments) {
    if (isDeeperThan(fragment, MAX_JSON_DEPTH)) throw new CodecError(tooDeep('the response is'));
    for (const event of decoder.push({ data: '', payload: fragment, bare: true })) accumulator.push(event);
  }
  for (const event of decoder.end()) accumulator.push(event);
  const { message, error, complete } = accumulator.finish();
  if (error) throw new CodecError(error);
  return { message, complete };
}
