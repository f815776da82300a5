/** What the response codecs of several protocols share. */
import { MessageAccumulator } from '../accumulate/message.ts';
import { LimitError } from '../accumulate/tool-calls.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { CanonicalChoice, CanonicalResponse, StopDetails, StopReason, ToolUseBlock } from '../canonical/message.ts';
import { type CanonicalError, CodecError, type OwnErrorCode } from '../canonical/notes.ts';
import { type Extensions, PROTOCOL_IDS, type ProtocolId, type SignedBlob } from '../canonical/protocol.ts';
import type { Stage } from '../canonical/stage.ts';
import { isDeeperThan, isObject, type JsonObject, TOO_DEEP, writeJson } from '../json/json.ts';
import { MAX_ARGUMENT_CHARACTERS, MAX_CALLS, MAX_JSON_DEPTH } from '../json/limits.ts';
import type { SseFrame } from '../sse/encode.ts';
import type { CodecContext, Sealing } from './protocol.ts';
import { noteApproximated, noteDropped } from './report.ts';

// ---- decode

/**
 * The body of a response. Throws the decoded error for an error with status 200 and for text or HTML instead of JSON.
 */
export function expectResponse(
  wire: unknown,
  isError: (body: JsonObject) => boolean,
  decodeError: (body: unknown) => CanonicalError,
): JsonObject {
  if (isObject(wire) && !isError(wire)) return wire;
  throw new CodecError(decodeError(wire));
}

/**
 * Decodes a complete response with the stream decoder, so that every rule about fragments applies. Throws when it is an
 * error.
 */
export function readWholeResponse(fragments: readonly unknown[], decoder: Stage<SseFrame, CanonicalStreamEvent>): WholeResponse {
  const accumulator = new MessageAccumulator();
  for (const fragment of fragments) {
    if (isDeeperThan(fragment, MAX_JSON_DEPTH)) throw new CodecError(buildTooDeepError('the response is'));
    for (const event of decoder.push({ data: '', payload: fragment, bare: true })) accumulator.push(event);
  }
  for (const event of decoder.end()) accumulator.push(event);
  const { message, error, complete } = accumulator.finish();
  if (error) throw new CodecError(error);
  return { message, complete };
}

interface WholeResponse {
  message: CanonicalResponse;
  /** The response has an end. */
  complete: boolean;
}

/** An error for an invalid response, at `param`. */
export const malformedResponse = (param: string, message: string): CodecError =>
  new CodecError({ ...buildUpstreamError(`${param} of the response ${message}`), param });

/** An invalid response of the upstream, which the client cannot fix. */
export const buildUpstreamError = (message: string): CanonicalError => ({ code: 'UPSTREAM_ERROR', message, http_status: 502 });

/** JSON that is nested too deeply to be parsed and written again, so it is not forwarded either. */
export const buildTooDeepError = (what: string): CanonicalError => ({
  ...buildUpstreamError(`${what} ${TOO_DEEP}`),
  details: { code: 'too_large' satisfies OwnErrorCode },
});

/** Limits how many calls, and how many characters of arguments, a hostile server can make us hold for one message. */
export class CallLimits {
  #calls = 0;
  #characters = 0;

  /** Counts another call; throws a LimitError when there are too many. */
  open(): void {
    if (++this.#calls > MAX_CALLS) throw new LimitError(`more than ${MAX_CALLS} tool calls in one message`);
  }

  /** Counts characters of arguments; throws a LimitError when there are too many. */
  count(characters: number): void {
    this.#characters += characters;
    if (this.#characters > MAX_ARGUMENT_CHARACTERS)
      throw new LimitError(`more than ${MAX_ARGUMENT_CHARACTERS} characters of tool arguments`);
  }
}

// ---- encode

/**
 * Whether a response comes from another protocol than the one it is encoded in, by the context, else by its extensions.
 */
export function isForeign(
  { extensions }: { extensions?: Extensions },
  protocol: ProtocolId,
  { source, target }: CodecContext,
): boolean {
  if (extensions?.[protocol]) return false;
  const origin = source ?? target?.provider.protocol;
  return origin === undefined ? Object.keys(extensions ?? {}).length > 0 : origin !== protocol;
}

/**
 * The argument text of a complete call: verbatim where the wire sent text; empty arguments become `{}` unless the
 * message was cut off.
 */
export function buildArgumentText({ input, input_raw: raw, kind }: ToolUseBlock, isCut: boolean): string {
  if (raw !== undefined && raw !== '') return raw;
  if (kind === 'custom') return typeof input === 'string' ? input : (writeJson(input) ?? '');
  const isEmpty = typeof input === 'string' ? input === '' : Object.keys(input).length === 0;
  if (isEmpty) return isCut ? '' : '{}';
  return typeof input === 'string' ? input : (writeJson(input) ?? '');
}

/**
 * The stop reason of a complete response. Throws when it failed. When the provider reports how the model failed
 * (Gemini: MALFORMED_FUNCTION_CALL), the text before it is kept, as in a stream; the response is marked as cut off, so
 * that no client treats it as complete or runs its calls.
 */
export function resolveStopReason(
  { content, stop_reason: stop }: Pick<CanonicalChoice, 'content' | 'stop_reason'>,
  details: StopDetails | undefined,
  error: CanonicalError | undefined,
  context: CodecContext,
): Exclude<StopReason, 'error'> {
  const isKept = stop === 'error' && details && content.some((block) => block.type === 'text' && block.text !== '');
  if (error || stop === null || (stop === 'error' && !isKept)) throw new CodecError(error ?? buildStopError(stop, details));
  if (stop !== 'error') return stop;
  const message = `the provider stopped with ${details?.raw}; the text before it is sent as a truncated response`;
  noteApproximated(context, { path: '/stop_reason', feature: 'stop_reason', message });
  return 'max_tokens';
}

/** The error for a response without an end, or with a failed one: no stop reason is invented. */
export function buildStopError(stop: StopReason | null, details: StopDetails | undefined): CanonicalError {
  if (stop === null) return { code: 'STREAM_TRUNCATED', message: 'the response ended early' };
  return buildUpstreamError(details?.explanation || details?.raw || 'the provider aborted the generation');
}

/**
 * Reports dropped log probabilities if the client requested them. Without a request, everything counts as requested.
 */
export function dropLogprobs(path: string, message: string, context: CodecContext): void {
  const { request } = context;
  if (request && !request.parameters.logprobs && !request.parameters.top_logprobs) return;
  noteDropped(context, { path: `${path}/logprobs`, feature: 'logprobs', message });
}

// ---- text lengths for citations

/** A length that may be computed when it is read. */
export interface Length {
  readonly value: number;
}

/** The length of a growing text in code points. */
export interface TextCount extends Length {
  add(text: string): void;
}

/** Counts when the length is read, each piece once: for complete messages, whose lengths are rarely read. */
export class CharacterCount implements TextCount {
  #counted = 0;
  #rest = '';

  add(text: string): void {
    this.#rest += text;
  }

  get value(): number {
    if (this.#rest !== '') {
      this.#counted += countCodePoints(this.#rest);
      this.#rest = '';
    }
    return this.#counted;
  }
}

/** Counts every piece at once and holds no text: for streams. */
export class EagerCount implements TextCount {
  value = 0;

  add(text: string): void {
    this.value += countCodePoints(text);
  }
}

/** For texts whose length is never read. */
export const NO_COUNT: TextCount = { value: 0, add: () => {} };

/** Citation offsets count code points, not UTF-16 units. */
export function countCodePoints(text: string): number {
  let count = text.length;
  for (let i = 1; i < text.length; i++)
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
  return count;
}

// ---- carriers: opaque values of one provider in the protocol of another

/**
 * An opaque value of another provider in a field of the client's protocol, so that the client sends it back on the next
 * turn: `cv1.<protocol>.<provider>.<form>.<attach>.<base64url(value)>`. It names its issuer, so that it is only ever
 * sent to that provider. With a sealing: `cv2.<protocol>.<form>.<attach>.<sealed value>`.
 */
export function encodeCarrier({ origin, form, value }: SignedBlob, provider: string, attach: Attach, sealing?: Sealing): string {
  if (sealing) return `${SEALED_PREFIX}${origin}.${form}.${attach}.${sealing.seal(value, buildLabel(origin, form, attach))}`;
  return `${PREFIX}${origin}.${escapeDots(provider)}.${form}.${attach}.${toBase64Url(value)}`;
}

/** The carrier of a blob in a response of the context's upstream. */
export const carryBlob = (blob: SignedBlob, attach: Attach, context: CarrierContext): string =>
  encodeCarrier(blob, findIssuer(blob, context), attach, context.sealing);

/**
 * The content of a carrier; undefined for any other value, which was issued by the protocol it came in. A carrier that
 * cannot be opened has an issuer that no provider is, so that it is dropped with a note.
 */
export function decodeCarrier(text: string, { sealing }: CarrierContext = {}): Carried | undefined {
  if (text.startsWith(SEALED_PREFIX)) {
    const [origin = '', form = '', attach = '', sealed = ''] = text.slice(SEALED_PREFIX.length).split('.');
    return openCarried(origin, form, attach, sealed, sealing);
  }
  if (!text.startsWith(PREFIX)) return undefined;
  const [origin = '', provider = '', form = '', attach = '', encoded = '', ...rest] = text.slice(PREFIX.length).split('.');
  if (sealing) return buildUnverified(origin, form, attach);
  return rest.length > 0 ? undefined : readCarried(origin, unescapeDots(provider), form, attach, encoded);
}

/** A carrier appended to a call id, with only letters, digits, `_` and `-`. Undefined when the id would be too long. */
export function encodeCarrierInId(
  id: string,
  { origin, form, value }: SignedBlob,
  provider: string,
  attach: Attach,
  sealing?: Sealing,
): string | undefined {
  const parts = sealing
    ? [origin, form, attach, sealing.seal(value, buildLabel(origin, form, attach))]
    : [origin, escapeWord(provider), form, attach, toBase64Url(value)];
  const carried = `${id}${sealing ? SEALED_ID_MARK : ID_MARK}${parts.join('--')}`;
  return carried.length > MAX_ID ? undefined : carried;
}

/** The id as its issuer wrote it, and the carrier behind it. */
export function decodeCarrierInId(text: string, context?: CarrierContext): { id: string; carried?: Carried } {
  const { id, ...carried } = splitCarrier(text, context);
  return { id: unescapeId(id), ...carried };
}

function splitCarrier(text: string, { sealing }: CarrierContext = {}): { id: string; carried?: Carried } {
  const sealedAt = text.indexOf(SEALED_ID_MARK);
  if (sealedAt > 0) {
    const [origin = '', form = '', attach = '', ...value] = text.slice(sealedAt + SEALED_ID_MARK.length).split('--');
    return { id: text.slice(0, sealedAt), carried: openCarried(origin, form, attach, value.join('--'), sealing) };
  }
  const at = text.indexOf(ID_MARK);
  if (at <= 0) return { id: text };
  const [origin = '', provider = '', form = '', attach = '', ...value] = text.slice(at + ID_MARK.length).split('--');
  const carried = sealing
    ? buildUnverified(origin, form, attach)
    : readCarried(origin, unescapeWord(provider), form, attach, value.join('--'));
  return carried ? { id: text.slice(0, at), carried } : { id: text };
}

/**
 * A call id with only letters, digits, `_` and `-`, from which `unescapeId` restores it when the client sends it back:
 * `functions_002ef_003a0--cv0` for `functions.f:0`. The same id if it needs no escapes; undefined if it is empty or too long.
 */
export function escapeId(id: string): string | undefined {
  if (!needsEscapes(id)) return id;
  if (id === '' || id.length > MAX_ESCAPED_ID) return undefined;
  const escaped = `${escapeWord(id)}${ESCAPED_MARK}`;
  return escaped.length > MAX_ESCAPED_ID ? undefined : escaped;
}

/** The id that `escapeId` escaped; any other id is returned as it is. */
function unescapeId(text: string): string {
  if (!text.endsWith(ESCAPED_MARK) || text.length > MAX_ESCAPED_ID) return text;
  const id = unescapeWord(text.slice(0, -ESCAPED_MARK.length));
  return escapeId(id) === text ? id : text;
}

/** Ids that look like ours are escaped as well, so that none is changed on its way back. */
const needsEscapes = (id: string): boolean => !/^[a-zA-Z0-9_-]+$/.test(id) || id.includes('--cv');

/** Whether the JSON text of a request may hold a carrier: as a value, in a call id, or as base64. */
export const holdsCarrier = (text: string): boolean =>
  (text.includes('"cv') || text.includes('--cv') || text.includes('"Y3Y')) && MARKS.some((mark) => text.includes(mark));

/** Whether a base64 value starts as a carrier does: Gemini's signatures are bytes. */
export const isCarriedAsBase64 = (value: string): boolean =>
  value.startsWith(CARRIED_AS_BASE64) || value.startsWith(SEALED_AS_BASE64);

type CarrierContext = Pick<CodecContext, 'sealing' | 'target'>;

/** Who issued a blob in a response of the context's upstream. */
export const findIssuer = ({ provider }: SignedBlob, { target }: CarrierContext): string => provider ?? target?.provider.id ?? '';

const buildLabel = (origin: string, form: string, attach: string): string => `${origin}.${form}.${attach}`;

function openCarried(origin: string, form: string, attach: string, sealed: string, sealing: Sealing | undefined): Carried {
  const value = sealing?.open(sealed, buildLabel(origin, form, attach));
  if (!sealing || value === undefined || !isProtocol(origin) || !isForm(form) || !isAttach(attach))
    return buildUnverified(origin, form, attach);
  return { blob: { origin, form, value, provider: sealing.provider }, attach };
}

/** A carrier of unknown origin: nothing of it is used but the place that it had. */
const buildUnverified = (origin: string, form: string, attach: string): Carried => ({
  blob: {
    origin: isProtocol(origin) ? origin : 'openai-chat',
    form: isForm(form) ? form : 'signature',
    value: UNVERIFIED,
    provider: UNVERIFIED,
  },
  attach: isAttach(attach) ? attach : 'self',
});

/** No provider has an id with a space, so a value with this issuer is never sent. */
const UNVERIFIED = 'an unknown issuer';

/** Whether the blob belongs to the block that carries it, or to the call or text that follows. */
export type Attach = 'self' | 'next';

/** The decoded content of a carrier. */
interface Carried {
  blob: SignedBlob;
  attach: Attach;
}

const PREFIX = 'cv1.';

const SEALED_PREFIX = 'cv2.';

const ID_MARK = '--cv1--';

const SEALED_ID_MARK = '--cv2--';

/** The end of an id that was escaped. */
const ESCAPED_MARK = '--cv0';

/** Longer ids are not escaped. */
const MAX_ESCAPED_ID = 512;

/** The start of every carrier in base64. */
const CARRIED_AS_BASE64 = 'Y3Yx';

const SEALED_AS_BASE64 = 'Y3Yy';

/** How carriers begin in the JSON text of a request. */
const MARKS = [`"${PREFIX}`, `"${SEALED_PREFIX}`, ID_MARK, SEALED_ID_MARK, `"${CARRIED_AS_BASE64}`, `"${SEALED_AS_BASE64}`];

/** Longer ids are not written: clients send an id twice a turn, and a signature of Gemini has a few kB. */
const MAX_ID = 16_384;

const FORMS: Record<SignedBlob['form'], true> = { signature: true, redacted: true, encrypted: true, thought_signature: true };

function readCarried(origin: string, issuer: string, form: string, attach: string, encoded: string): Carried | undefined {
  const value = fromBase64Url(encoded);
  if (value === undefined || !isProtocol(origin) || !isForm(form)) return undefined;
  if (!isAttach(attach)) return undefined;
  return { blob: { origin, form, value, ...(issuer !== '' && { provider: issuer }) }, attach };
}

const isProtocol = (text: string): text is ProtocolId => PROTOCOL_IDS.some((id) => id === text);

const isAttach = (text: string): text is Attach => text === 'self' || text === 'next';

const isForm = (text: string): text is SignedBlob['form'] => Object.hasOwn(FORMS, text);

const escapeDots = (text: string): string => encodeURIComponent(text.toWellFormed()).replaceAll('.', '%2E');

function unescapeDots(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const escapeWord = (text: string): string =>
  text.replace(/[^a-zA-Z0-9]/g, (char) => `_${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

const unescapeWord = (text: string): string =>
  text.replace(/_([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

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

/** The model name of a response: the requested one if it is known, or by policy the one that the upstream reports. */
export const chooseModel = (reported: string, { request, policy }: Pick<CodecContext, 'request' | 'policy'>): string =>
  (policy.modelInAnswer === 'answered' && reported) || (request?.model ?? reported);
