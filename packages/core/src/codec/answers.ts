import { MessageAccumulator } from '../accumulate/message.ts';
import { LimitError } from '../accumulate/tool-calls.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { CanonicalChoice, CanonicalResponse, StopDetails, StopReason, ToolUseBlock } from '../canonical/message.ts';
import { type CanonicalError, CodecError, type OwnErrorCode } from '../canonical/notes.ts';
import type { Extensions, ProtocolId, SignedBlob } from '../canonical/protocol.ts';
import type { Stage } from '../canonical/stage.ts';
import { isDeeperThan, isObject, type JsonObject, TOO_DEEP, writeJson } from '../json/json.ts';
import { MAX_ARGUMENT_CHARACTERS, MAX_CALLS, MAX_JSON_DEPTH } from '../json/limits.ts';
import type { SseFrame } from '../sse/encode.ts';
import type { CodecContext } from './protocol.ts';
import { approximate, drop } from './report.ts';

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

/** What a hostile server can make us keep of the calls of one message: as many, and as much, as of one of chat. */
export class CallLimits {
  #calls = 0;
  #characters = 0;

  /** Another call. */
  open(): void {
    if (++this.#calls > MAX_CALLS) throw new LimitError(`more than ${MAX_CALLS} tool calls in one message`);
  }

  /** More characters of arguments. */
  count(characters: number): void {
    this.#characters += characters;
    if (this.#characters > MAX_ARGUMENT_CHARACTERS)
      throw new LimitError(`more than ${MAX_ARGUMENT_CHARACTERS} characters of tool arguments`);
  }
}

/** Whether the blob belongs to the block that carries it, or to the call or text that follows. */
export type Attach = 'self' | 'next';

const PREFIX = 'cv1.';

const ID_MARK = '--cv1--';

/** The beginning of every carrier as base64: Gemini's signatures are bytes. */
export const CARRIED_AS_BASE64 = 'Y3Yx';

const PROTOCOLS: Record<ProtocolId, true> = {
  'openai-chat': true,
  'anthropic-messages': true,
  'openai-responses': true,
  gemini: true,
};

const FORMS: Record<SignedBlob['form'], true> = { signature: true, redacted: true, encrypted: true, thought_signature: true };

/**
 * Another provider's opaque value in a field of the client's own protocol, so that the client hands it back on the next turn:
 * `cv1.<protocol>.<provider>.<form>.<attach>.<base64url(value)>`. It names its issuer, so that nobody else ever gets it.
 */
export function encodeCarrier({ origin, form, value }: SignedBlob, provider: string, attach: Attach): string {
  return `${PREFIX}${origin}.${escapeDots(provider)}.${form}.${attach}.${toBase64Url(value)}`;
}

/** Whether the JSON text of a request may hold a carrier: as a value, in a call id, or as base64. */
export const holdsCarrier = (text: string): boolean =>
  text.includes(PREFIX) || text.includes(ID_MARK) || text.includes(`"${CARRIED_AS_BASE64}`);

/** What a carrier holds; undefined for anything else: such a value was issued by the protocol it came in. */
export function decodeCarrier(text: string): Carried | undefined {
  if (!text.startsWith(PREFIX)) return undefined;
  const [origin = '', provider = '', form = '', attach = '', encoded = '', ...rest] = text.slice(PREFIX.length).split('.');
  return rest.length > 0 ? undefined : readFields(origin, unescapeDots(provider), form, attach, encoded);
}

interface Carried {
  blob: SignedBlob;
  attach: Attach;
}

function readFields(origin: string, issuer: string, form: string, attach: string, encoded: string): Carried | undefined {
  const value = fromBase64Url(encoded);
  if (value === undefined || !isProtocol(origin) || !isForm(form)) return undefined;
  if (attach !== 'self' && attach !== 'next') return undefined;
  return { blob: { origin, form, value, ...(issuer !== '' && { provider: issuer }) }, attach };
}

/** Longer ids are not written. Clients replay an id as it is, and send it twice a turn; a signature of Gemini has a few kB. */
const MAX_ID = 16_384;

/** The same behind the id of a call, in the characters that ids may have: letters, digits, `_`, `-`. Undefined where the id would be too long. */
export function encodeCarrierInId(
  id: string,
  { origin, form, value }: SignedBlob,
  provider: string,
  attach: Attach,
): string | undefined {
  const carried = `${id}${ID_MARK}${[origin, escapeWord(provider), form, attach, toBase64Url(value)].join('--')}`;
  return carried.length > MAX_ID ? undefined : carried;
}

/** The id as its issuer wrote it, and what was carried behind it. */
export function decodeCarrierInId(text: string): { id: string; carried?: Carried } {
  const at = text.indexOf(ID_MARK);
  if (at <= 0) return { id: text };
  const [origin = '', provider = '', form = '', attach = '', ...value] = text.slice(at + ID_MARK.length).split('--');
  const carried = readFields(origin, unescapeWord(provider), form, attach, value.join('--'));
  return carried ? { id: text.slice(0, at), carried } : { id: text };
}

const escapeWord = (text: string): string =>
  text.replace(/[^a-zA-Z0-9]/g, (char) => `_${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

const unescapeWord = (text: string): string =>
  text.replace(/_([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

const isProtocol = (text: string): text is ProtocolId => Object.hasOwn(PROTOCOLS, text);

const isForm = (text: string): text is SignedBlob['form'] => Object.hasOwn(FORMS, text);

const escapeDots = (text: string): string => encodeURIComponent(text.toWellFormed()).replaceAll('.', '%2E');

function unescapeDots(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function toBase64Url(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64Url(text: string): string | undefined {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
