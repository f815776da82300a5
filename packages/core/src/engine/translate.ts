import { isObject, type JsonObject } from '../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../canonical/errors.ts';
import type { InterfaceType } from '../canonical/interfaces.ts';
import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { CanonicalResponse } from '../canonical/response.ts';
import type { CanonicalUsage } from '../canonical/usage.ts';
import { holdsCarrier } from '../protocols/shared/carrier.ts';
import {
  type Codec,
  CodecError,
  type HeaderBag,
  type Provider,
  type Target,
  type WireReply,
  type WireRequest,
} from '../protocols/shared/codec.ts';
import type { ProviderProfile } from '../protocols/shared/profile.ts';
import { urlOf } from './address.ts';
import { type AnswerOptions, type ConvertOptions, profileOf } from './context.ts';
import { type ConvertedRequest, convertRequest, type RequestOptions } from './convert-request.ts';
import { convertError, convertResponse, encodeError, nameProvider } from './convert-response.ts';
import { collectStream } from './convert-whole.ts';
import { type Lane, laneOf } from './lanes.ts';
import { askedOf, passedBody, passedHeaders, readAnswer, readQuestion } from './pass.ts';
import { passOrConvert } from './passed-stream.ts';
import { type AnswerStream, encodeFailure, type StreamOptions, streamConverter } from './stream-converter.ts';

type StreamLimits = Pick<StreamOptions, 'maxLineBytes' | 'maxEventBytes'>;
type Watching = Pick<StreamOptions, 'onEvent' | 'inspect'>;

export interface TranslateOptions extends Omit<ConvertOptions, 'from' | 'to' | 'provider'>, StreamLimits {
  /** Who is asked. */
  provider: Provider;
  /** The name under which the upstream knows the model; by default the one that the client asked for. */
  model?: string;
  /** Whether the upstream is asked for a stream; by default what the client asked for. */
  stream?: boolean;
  /** Same protocol on both sides: what comes goes through as it is, but for the model and who asks. Ignored between two protocols. */
  passthrough?: boolean;
  /**
   * Same protocol on both sides: whether the request goes as the client sent it, but for the model and what the codec adjusts (`adjustPassed`);
   * the response is still read and repaired. `unless_changed`: when the conversion only repairs. By default `always` for upstreams of which
   * nothing is known, `unless_changed` where only the model is known. A request that holds state of another provider is converted.
   */
  passRequest?: PassRequest;
  /** Keeps whole messages beside streams and answers (`answer`), or, of streams, only what they used; true unless said. */
  tap?: boolean | 'usage';
}

export type PassRequest = 'always' | 'unless_changed' | 'never';

/** A request as a client sent it. */
export interface ClientRequest extends WireRequest {
  /** The body as it came: what is passed through is passed to the letter. */
  text?: string;
}

/** A request ready to be sent. */
export interface UpstreamRequest {
  method: string;
  url: string;
  headers: HeaderBag;
  /** Undefined for questions that have none, such as one for the list of models. */
  body: unknown;
  /** The body as JSON, where the client's own text is passed through. */
  text?: string;
}

/**
 * Pairs two protocols for one exchange: the client's request to the upstream, the upstream's answer, stream or error to the client.
 *
 * ```ts
 * const exchange = translate(anthropicMessagesCodec, openaiChatCodec, { provider, model: 'gpt-5.6' });
 * const { url, ...init } = exchange.request({ method: 'POST', path: '/v1/messages', headers, body });
 * // … send it, then one of:
 * exchange.stream(); //         a stage, bytes to bytes
 * exchange.response(reply); //  a whole answer, or an error, by its status
 * exchange.failure(error); //   what we ourselves have to say, in the client's words
 * exchange.notes; //            what could not be carried, in both directions
 * ```
 */
export const translate = (client: Codec, upstream: Codec, options: TranslateOptions): Exchange =>
  new Exchange(client, upstream, options);

/** How much is known of an upstream decides what becomes of requests in its own protocol. */
export function passRequestFor(codec: Codec, provider: Pick<Provider, 'id' | 'profile'>, model: string): PassRequest {
  if (provider.profile || codec.hasFacts(provider.id)) return 'never';
  return codec.hasFacts(provider.id, model) ? 'unless_changed' : 'always';
}

/** Repairs are no facts about a model: whether it takes the request as it is, the upstream decides. */
const isChange = ({ code }: Note): boolean => code !== 'REPAIRED';

const UNREADABLE: ReadonlySet<ErrorCode> = new Set(['INVALID_INPUT', 'MISSING_REQUIRED_FIELD']);

/** What is done with the two directions of an exchange: both converted or repaired, only the request passed on, or both passed on. */
type Mode = 'converted' | 'request_passed' | 'passed';

/** One question and its answer. Made by `translate`. */
export class Exchange {
  readonly #client: Codec;
  readonly #upstream: Codec;
  readonly #options: TranslateOptions;
  #mode: Mode;
  readonly #notes: Note[] = [];
  #wire: ClientRequest = { method: '', path: '', headers: {}, body: undefined };
  #lane: Lane | undefined;
  #stream: AnswerStream | undefined;
  #asked: CanonicalRequest | undefined;
  #answer: CanonicalResponse | undefined;
  /** An answer that was passed on, and not yet read. */
  #passed: WireReply | undefined;
  #usage: CanonicalUsage | undefined;

  constructor(client: Codec, upstream: Codec, options: TranslateOptions) {
    this.#client = client;
    this.#upstream = upstream;
    this.#options = options;
    this.#mode = options.passthrough === true && client.id === upstream.id ? 'passed' : 'converted';
  }

  /** Whether what comes goes through as it is. */
  get isPassing(): boolean {
    return this.#mode === 'passed' && !this.#lane;
  }

  /** What could not be carried so far, in both directions. */
  get notes(): Note[] {
    return [...this.#notes, ...(this.#stream?.notes ?? [])];
  }

  /** The question in the canonical form, when it is one of a conversation. What is only passed through is read when somebody wants to know. */
  get asked(): CanonicalRequest | undefined {
    if (this.#mode !== 'converted' && !this.#lane) this.#asked ??= readQuestion(this.#wire, this.#client);
    return this.#asked;
  }

  /** The answer in the canonical form, when it is tapped. One that is only passed through is read when somebody wants to know. */
  get answer(): CanonicalResponse | undefined {
    if (this.#passed) this.#answer ??= readAnswer(this.#passed.body, this.#backward());
    return this.#answer ?? this.#stream?.result?.message;
  }

  /** What the answer used, when it is tapped. */
  get usage(): CanonicalUsage | undefined {
    return this.#usage ?? this.answer?.usage;
  }

  /** The answer was passed on without being read: it is text, and has no calls. */
  get isGlanced(): boolean {
    return this.#usage !== undefined;
  }

  /** Throws a CodecError that `failure` tells the client. */
  request(wire: ClientRequest): UpstreamRequest {
    this.#wire = wire;
    const type = this.#client.detectInterface(wire.path, wire.headers);
    if (type !== 'CHAT') return this.#askLane(type, wire);
    if (this.#mode === 'passed') return this.#pass(wire);
    const pass = this.#passRequestOf(wire);
    const converted = pass === 'always' ? undefined : this.#convert(wire, pass);
    if (!converted || (pass === 'unless_changed' && !converted.notes.some(isChange))) {
      this.#mode = 'request_passed';
      return this.#pass(wire);
    }
    const { body, headers, request, notes } = converted;
    for (const note of notes) this.#notes.push(note);
    const { model = request.model, stream = request.stream ?? false } = this.#options;
    return { method: 'POST', ...this.#address(type, { model, stream }, headers), body };
  }

  /** A whole answer; one with an error status is an error. */
  response(reply: WireReply): WireReply {
    if (reply.status >= 400) return this.error(reply);
    if (this.#lane) return this.#reply(reply, this.#lane.answer(reply.body));
    if (this.#mode === 'passed') return this.#passReply(reply);
    const converted = convertResponse(reply.body, this.#backward());
    this.#answer = this.#options.tap === false ? undefined : converted.response;
    return this.#reply(reply, converted);
  }

  /** The upstream's own body where it passes through, unless the body is no JSON, or its words would mislead the client. */
  error(reply: WireReply): WireReply {
    const { error } = convertError(reply, this.#backward());
    const named = nameProvider(error, this.#options.provider.id);
    const isPassed = this.#mode === 'passed' && named === error && typeof reply.body === 'object' && reply.body !== null;
    return isPassed ? reply : this.failure(named);
  }

  /** What an error of the upstream means: whether to ask again, or another. */
  readError(reply: WireReply): CanonicalError {
    return nameProvider(convertError(reply, this.#backward()).error, this.#options.provider.id);
  }

  /** A stream that came in the place of a whole answer. */
  collected(status: number, headers: HeaderBag, bytes: Uint8Array): WireReply {
    const converted = collectStream([bytes], { ...this.#backward(this.asked), malformed: 'fail' });
    this.#answer = this.#options.tap === false ? undefined : converted.response;
    return this.#reply({ status, headers, body: undefined }, converted);
  }

  /** A failure of our own, or one that a codec threw, as an answer to the client. */
  failure(error: CanonicalError): WireReply {
    return encodeError(error, { ...this.#options, to: this.#client });
  }

  /** The same in a stream that has begun without a word of the upstream's. */
  inBand(error: CanonicalError): Iterable<Uint8Array> {
    return [encodeFailure(error, this.#streamOptions(this.#asked))];
  }

  /**
   * The error once more, to be written on its own some time after the stream has told it. @google/genai 1 reports an ApiError only where one
   * read holds the error and nothing else. Undefined for every other client.
   */
  repeatInBand(error: CanonicalError): Uint8Array | undefined {
    const { framing } = this.#streamOptions(this.#asked);
    if (!this.#client.repeatsErrors || framing !== 'sse') return undefined;
    return new TextEncoder().encode(`${JSON.stringify(this.failure(error).body)}\r\n`);
  }

  /**
   * The stage for a stream; its `end` or `fail` closes what the client reads. `onEvent` is called with every event
   * of the upstream before it is encoded; `inspect` may refuse one, which ends the stream with an error.
   */
  stream(watched: Watching = {}): AnswerStream {
    const options = this.#streamOptions(this.#known, watched);
    // Upstreams are asked for event streams: who wants a list gets it from an encoder.
    const convert = (): AnswerStream => streamConverter(this.#streamOptions(this.asked, watched));
    this.#stream = this.#mode === 'passed' && options.framing === 'sse' ? passOrConvert(options, convert) : convert();
    return this.#stream;
  }

  #askLane(type: InterfaceType, wire: WireRequest): UpstreamRequest {
    this.#lane = laneOf(type, this.#forward(wire));
    const { method } = this.#lane;
    const { body, headers, path, notes } = this.#lane.ask(wire.body);
    for (const note of notes) this.#notes.push(note);
    return { method, ...this.#address(type, { model: this.#options.model ?? '', stream: false }, headers, path), body };
  }

  /** A request is changed only because of a fact about the provider or the model, or to restore what Sluice put into the history. */
  #passRequestOf(wire: ClientRequest): PassRequest {
    if (this.#client.id !== this.#upstream.id) return 'never';
    const { provider, profile, model = askedOf(wire, this.#client).model } = this.#options;
    const { passRequest = profile ? 'never' : passRequestFor(this.#upstream, provider, model) } = this.#options;
    return passRequest === 'never' || holdsCarrier(wire.text ?? JSON.stringify(wire.body) ?? '') ? 'never' : passRequest;
  }

  /** Undefined for a request that cannot be read and is the upstream's to judge. */
  #convert(wire: ClientRequest, pass: PassRequest): ConvertedRequest | undefined {
    try {
      const converted = convertRequest(wire.body, this.#forward(wire));
      this.#asked = converted.request;
      return converted;
    } catch (error) {
      if (pass === 'never' || !(error instanceof CodecError) || !UNREADABLE.has(error.error.code)) throw error;
      return undefined;
    }
  }

  /** The body as it came, with the upstream's name of the model. What we cannot read is the upstream's to judge. */
  #pass(wire: ClientRequest): UpstreamRequest {
    const { provider, model, stream } = this.#options;
    const target = model !== undefined && stream !== undefined ? { model, stream } : this.#targetOf(wire);
    const { url, headers } = this.#address('CHAT', target, {});
    const isRequestOnly = this.#mode === 'request_passed';
    const profile = isRequestOnly ? profileOf(this.#upstream, this.#options, target.model) : undefined;
    return {
      method: 'POST',
      url,
      headers: Object.assign(headers, passedHeaders(wire.headers, provider, profile)),
      ...passedBody(wire, target.model, profile && this.#adjust(wire.body, target.stream, profile)),
    };
  }

  #adjust(body: unknown, stream: boolean, profile: ProviderProfile): JsonObject | undefined {
    const note = (said: Note): void => void this.#notes.push(said);
    return isObject(body) ? this.#upstream.adjustPassed?.(body, { stream, profile, note }) : undefined;
  }

  #targetOf(wire: ClientRequest): Omit<Target, 'provider'> {
    const asked = askedOf(wire, this.#client);
    const { model = asked.model, stream = asked.stream } = this.#options;
    return { model, stream };
  }

  #address(
    type: InterfaceType,
    target: Omit<Target, 'provider'>,
    headers: HeaderBag,
    nativePath?: string,
  ): Pick<UpstreamRequest, 'url' | 'headers'> {
    const { provider } = this.#options;
    return {
      url: urlOf(this.#upstream, type, { provider, model: target.model, stream: target.stream }, nativePath),
      headers: Object.assign({}, headers, this.#upstream.buildHeaders(provider, target.stream), passedHeaders(headers, provider)),
    };
  }

  #reply({ status, headers }: WireReply, { body, notes }: { body: unknown; notes: Note[] }): WireReply {
    for (const note of notes) this.#notes.push(note);
    return { status, headers: { ...headers, 'content-type': 'application/json' }, body };
  }

  #passReply(reply: WireReply): WireReply {
    const tap = this.#options.tap !== false;
    this.#usage = tap ? this.#upstream.glance?.(reply.body, this.#answerProfile)?.usage : undefined;
    if (this.#usage) this.#passed = reply;
    else {
      // Also when nobody taps: an error may stand in its place.
      const answer = readAnswer(reply.body, this.#backward());
      if (tap) this.#answer = answer;
    }
    return reply;
  }

  #forward({ path, headers }: WireRequest): RequestOptions {
    const { provider, profile, policy, now, newId, model, stream } = this.#options;
    return { from: this.#client, to: this.#upstream, provider, profile, policy, now, newId, model, stream, path, headers };
  }

  #streamOptions(request: CanonicalRequest | undefined, { onEvent, inspect }: Watching = {}): StreamOptions {
    const { provider, policy, now, newId, maxLineBytes, maxEventBytes, tap = true } = this.#options;
    const [from, to] = [this.#upstream, this.#client];
    const framing = to.framing?.(this.#wire.path) ?? 'sse';
    const isRenamed = this.#mode === 'converted';
    const told = { from, to, provider, profile: this.#answerProfile, policy, now, newId, request, isRenamed, framing, tap };
    return Object.assign(told, { maxLineBytes, maxEventBytes, malformed: 'fail', onEvent, inspect } as const);
  }

  /** The model in the answer is the one that the client asked for. */
  #backward(asked: CanonicalRequest | undefined = this.#known): AnswerOptions {
    const { provider, policy, now, newId } = this.#options;
    const profile = this.#answerProfile;
    const isRenamed = this.#mode === 'converted';
    return { from: this.#upstream, to: this.#client, provider, profile, policy, now, newId, request: asked, isRenamed };
  }

  /** The request, as far as the encoder of a response needs it: nothing is read for a response that is passed on. */
  get #known(): CanonicalRequest | undefined {
    return this.#mode === 'request_passed' ? this.asked : this.#asked;
  }

  /** Who was asked answers: what it is known to do goes by its own name of the model, which the client's question does not say. */
  get #answerProfile(): AnswerOptions['profile'] {
    const { model, profile } = this.#options;
    return model === undefined ? profile : profileOf(this.#upstream, this.#options, model);
  }
}
