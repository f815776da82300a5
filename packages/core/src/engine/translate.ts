import { isObject } from '../accumulate/overlay.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { InterfaceType } from '../canonical/interfaces.ts';
import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { CanonicalResponse } from '../canonical/response.ts';
import {
  CodecError,
  type HeaderBag,
  type ProtocolCodec,
  type Provider,
  type WireReply,
  type WireRequest,
} from '../protocols/shared/codec.ts';
import type { AnswerOptions, ConvertOptions } from './context.ts';
import { type ConvertedRequest, convertRequest, type RequestOptions } from './convert-request.ts';
import { convertError, convertResponse, encodeError } from './convert-response.ts';
import { collectStream } from './convert-whole.ts';
import { type Lane, laneOf } from './lanes.ts';
import { PassedStream } from './passed-stream.ts';
import { type AnswerStream, encodeFailure, type StreamOptions, streamConverter } from './stream-converter.ts';

export interface TranslateOptions extends Omit<ConvertOptions, 'from' | 'to' | 'provider'> {
  /** Who is asked. */
  provider: Provider;
  /** The name under which the upstream knows the model; by default the one that the client asked for. */
  model?: string;
  /** Whether the upstream is asked for a stream; by default what the client asked for. */
  stream?: boolean;
  /** Same protocol on both sides: what comes goes through as it is, but for the model and who asks. Ignored between two protocols. */
  passthrough?: boolean;
  /** Keeps whole messages beside streams and answers (`answer`); true unless said. */
  tap?: boolean;
}

/** A request ready to be sent. */
export interface UpstreamRequest {
  method: string;
  url: string;
  headers: HeaderBag;
  /** Undefined for questions that have none, such as one for the list of models. */
  body: unknown;
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
export const translate = (client: ProtocolCodec, upstream: ProtocolCodec, options: TranslateOptions): Exchange =>
  new Exchange(client, upstream, options);

/** One question and its answer. Made by `translate`. */
export class Exchange {
  readonly #client: ProtocolCodec;
  readonly #upstream: ProtocolCodec;
  readonly #options: TranslateOptions;
  readonly #isPassing: boolean;
  readonly #notes: Note[] = [];
  #path = '';
  #lane: Lane | undefined;
  #stream: AnswerStream | undefined;
  #asked: CanonicalRequest | undefined;
  #answer: CanonicalResponse | undefined;

  constructor(client: ProtocolCodec, upstream: ProtocolCodec, options: TranslateOptions) {
    this.#client = client;
    this.#upstream = upstream;
    this.#options = options;
    this.#isPassing = options.passthrough === true && client.id === upstream.id;
  }

  /** What could not be carried so far, in both directions. */
  get notes(): Note[] {
    return [...this.#notes, ...(this.#stream?.notes ?? [])];
  }

  /** The question in the canonical form, when it is one of a conversation. */
  get asked(): CanonicalRequest | undefined {
    return this.#asked;
  }

  /** The answer in the canonical form, when it is tapped. */
  get answer(): CanonicalResponse | undefined {
    return this.#answer ?? this.#stream?.result?.message;
  }

  /** Throws a CodecError that `failure` tells the client. */
  request(wire: WireRequest): UpstreamRequest {
    this.#path = wire.path;
    const type = this.#client.detectInterface(wire.path, wire.headers);
    if (type !== 'CHAT') return this.#askLane(type, wire);
    const options = this.#forward(wire);
    const { body, headers, request } = this.#isPassing ? passed(wire, options) : this.#convert(wire, options);
    this.#asked = request;
    const stream = this.#options.stream ?? request?.stream ?? isStreamed(wire.body);
    return { method: 'POST', ...this.#address(type, stream, headers), body };
  }

  /** A whole answer; one with an error status is an error. */
  response(reply: WireReply): WireReply {
    if (reply.status >= 400) return this.error(reply);
    if (this.#lane) return this.#reply(reply, this.#lane.answer(reply.body));
    if (this.#isPassing) return this.#passReply(reply);
    const converted = convertResponse(reply.body, this.#backward());
    this.#answer = this.#options.tap === false ? undefined : converted.response;
    return this.#reply(reply, converted);
  }

  error(reply: WireReply): WireReply {
    if (this.#isPassing) return reply;
    const { status, headers, body } = convertError(reply, this.#backward());
    return { status, headers, body };
  }

  /** What an error of the upstream means: whether to ask again, or another. */
  readError(reply: WireReply): CanonicalError {
    return convertError(reply, this.#backward()).error;
  }

  /** A stream that came in the place of a whole answer. */
  collected(status: number, headers: HeaderBag, bytes: Uint8Array): WireReply {
    const converted = collectStream([bytes], this.#backward());
    this.#answer = this.#options.tap === false ? undefined : converted.response;
    return this.#reply({ status, headers, body: undefined }, converted);
  }

  /** A failure of our own, or one that a codec threw, as an answer to the client. */
  failure(error: CanonicalError): WireReply {
    return encodeError(error, { ...this.#options, to: this.#client });
  }

  /** The same in a stream that has begun without a word of the upstream's. */
  inBand(error: CanonicalError): Iterable<Uint8Array> {
    return encodeFailure(error, this.#streamOptions());
  }

  /** The stage for a stream; its `end` or `fail` closes what the client reads. `onEvent` sees what the upstream says, before the client does. */
  stream({ onEvent }: Pick<StreamOptions, 'onEvent'> = {}): AnswerStream {
    const options = { ...this.#streamOptions(), ...(onEvent && { onEvent }) };
    this.#stream = this.#isPassing ? new PassedStream(options) : streamConverter(options);
    return this.#stream;
  }

  #askLane(type: InterfaceType, wire: WireRequest): UpstreamRequest {
    this.#lane = laneOf(type, this.#forward(wire));
    const { method } = this.#lane;
    const { body, headers, notes } = this.#lane.ask(wire.body);
    this.#notes.push(...notes);
    return { method, ...this.#address(type, false, headers), body };
  }

  #convert(wire: WireRequest, options: RequestOptions): ConvertedRequest {
    const converted = convertRequest(wire.body, options);
    this.#notes.push(...converted.notes);
    return converted;
  }

  #address(type: InterfaceType, stream: boolean, headers: HeaderBag): Pick<UpstreamRequest, 'url' | 'headers'> {
    const { provider, model = this.#asked?.model ?? '' } = this.#options;
    return {
      url: this.#upstream.buildUrl(type, { provider, model, stream }),
      headers: { ...headers, ...this.#upstream.buildHeaders(provider, stream) },
    };
  }

  #reply({ status, headers }: WireReply, { body, notes }: { body: unknown; notes: Note[] }): WireReply {
    this.#notes.push(...notes);
    return { status, headers: { ...headers, 'content-type': 'application/json' }, body };
  }

  #passReply(reply: WireReply): WireReply {
    if (this.#options.tap !== false) this.#answer = readAnswer(reply.body, this.#backward());
    return reply;
  }

  #forward({ path, headers }: WireRequest): RequestOptions {
    const { passthrough: _passthrough, tap: _tap, ...options } = this.#options;
    return { ...options, from: this.#client, to: this.#upstream, path, headers };
  }

  #streamOptions(): StreamOptions {
    return { ...this.#backward(), tap: this.#options.tap ?? true, framing: this.#client.framing?.(this.#path) ?? 'sse' };
  }

  /** The model in the answer is the one that the client asked for. */
  #backward(): AnswerOptions {
    const { passthrough: _passthrough, tap: _tap, model: _model, stream: _stream, ...options } = this.#options;
    return { ...options, from: this.#upstream, to: this.#client, ...(this.#asked && { request: this.#asked }) };
  }
}

const isStreamed = (body: unknown): boolean => isObject(body) && body['stream'] === true;

interface Passed {
  body: unknown;
  headers: HeaderBag;
  request: CanonicalRequest | undefined;
}

/** The body as it came, with the upstream's name of the model. What we cannot read is the upstream's to judge. */
function passed({ body }: WireRequest, options: RequestOptions): Passed {
  const { model } = options;
  const isNamed = isObject(body) && body['model'] !== undefined && model !== undefined;
  const { headers, request } = attempt(() => convertRequest(body, { ...options, policy: {} })) ?? {};
  return { body: isNamed ? { ...body, model } : body, headers: headers ?? {}, request };
}

const readAnswer = (body: unknown, options: AnswerOptions): CanonicalResponse | undefined =>
  attempt(() => convertResponse(body, { ...options, policy: {} }))?.response;

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}
