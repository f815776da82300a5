import { writeJson } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { Extensions, ProtocolId } from '../../canonical/protocol.ts';
import type { CanonicalChoice, StopDetails, StopReason } from '../../canonical/response.ts';
import { approximate, type CodecContext, CodecError, drop } from './codec.ts';

// What the encoders of answers share.

/** Whether an answer was given in another protocol than the one it is written in: the context says it, or what the decoder kept. */
export function isForeign(
  { extensions }: { extensions?: Extensions },
  protocol: ProtocolId,
  { source, target }: CodecContext,
): boolean {
  if (extensions?.[protocol]) return false;
  const origin = source ?? target?.provider.protocol;
  return origin === undefined ? Object.keys(extensions ?? {}).length > 0 : origin !== protocol;
}

/** The argument text of a whole call. The text of the wire goes verbatim; none means none, unless the message was cut. */
export function argumentsOf({ input, input_raw: raw, kind }: ToolUseBlock, isCut: boolean): string {
  if (raw !== undefined && raw !== '') return raw;
  if (kind === 'custom') return typeof input === 'string' ? input : (writeJson(input) ?? '');
  const isEmpty = typeof input === 'string' ? input === '' : Object.keys(input).length === 0;
  if (isEmpty) return isCut ? '' : '{}';
  return typeof input === 'string' ? input : (writeJson(input) ?? '');
}

/**
 * How a whole response ends. Throws when it failed. When the provider says how the model failed (Gemini: MALFORMED_FUNCTION_CALL), the text
 * before it is kept, as a stream keeps it: the response is marked as cut off, so that no client takes it for complete or runs its calls.
 */
export function endingOf(
  { content, stop_reason: stop }: Pick<CanonicalChoice, 'content' | 'stop_reason'>,
  details: StopDetails | undefined,
  error: CanonicalError | undefined,
  context: CodecContext,
): Exclude<StopReason, 'error'> {
  const isKept = stop === 'error' && details && content.some((block) => block.type === 'text' && block.text !== '');
  if (error || stop === null || (stop === 'error' && !isKept)) throw new CodecError(error ?? failureOf(stop, details));
  if (stop !== 'error') return stop;
  const message = `the provider broke off (${details?.raw}); the text before it is sent as a response that was cut off`;
  approximate(context, { path: '/stop_reason', feature: 'stop_reason', message });
  return 'max_tokens';
}

/** An answer that came to no end, or to a bad one, is an error for the client: no stop is invented. */
export function failureOf(stop: StopReason | null, details: StopDetails | undefined): CanonicalError {
  if (stop === null) return { code: 'STREAM_TRUNCATED', message: 'the response ended early' };
  const message = details?.explanation || details?.raw || 'the provider broke off the generation';
  return { code: 'UPSTREAM_ERROR', message, http_status: 502 };
}

/** Tells that log probabilities have no place in an answer, to who asked for them. Without a question everything was asked for. */
export function dropLogprobs(path: string, message: string, context: CodecContext): void {
  const { request } = context;
  if (request && !request.parameters.logprobs && !request.parameters.top_logprobs) return;
  drop(context, { path: `${path}/logprobs`, feature: 'logprobs', message });
}

/** Offsets of citations count code points, not UTF-16 units. */
function codePoints(text: string): number {
  let count = text.length;
  for (let i = 1; i < text.length; i++)
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
  return count;
}

/** A length that may have to be counted first. */
export interface Length {
  readonly value: number;
}

/** The length of a growing text in code points. */
export interface TextCount extends Length {
  add(text: string): void;
}

/** Counts when the length is read, each piece once: for whole messages, whose lengths are rarely read. */
export class CharacterCount implements TextCount {
  #counted = 0;
  #rest = '';

  add(text: string): void {
    this.#rest += text;
  }

  get value(): number {
    if (this.#rest !== '') {
      this.#counted += codePoints(this.#rest);
      this.#rest = '';
    }
    return this.#counted;
  }
}

/** Counts every piece at once and holds none: for streams. */
export class EagerCount implements TextCount {
  value = 0;

  add(text: string): void {
    this.value += codePoints(text);
  }
}

/** For texts whose length is never read. */
export const NO_COUNT: TextCount = { value: 0, add: () => {} };
