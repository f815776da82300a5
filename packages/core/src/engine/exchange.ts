/** One exchange: the client's request to the upstream, and the response, stream or error back. */

import type { CanonicalResponse, CanonicalUsage } from '../canonical/message.ts';
import { type CanonicalError, CodecError, type ErrorCode, type Note } from '../canonical/notes.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalRerankResponse, InterfaceType } from '../canonical/request.ts';
import { holdsCarrier } from '../codec/answers.ts';
import { memo, type ProviderProfile } from '../codec/profile.ts';
import type { Codec, HeaderBag, Provider, RequestTarget, Target, UsagePeek, WireReply, WireRequest } from '../codec/protocol.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import type { Diagnostic } from '../rules/index.ts';
import { type ConvertOptions, findProfile, NoteList, type ResponseOptions } from './context.ts';
import {
  buildPassedBody,
  decodePassedRequest,
  decodePassedResponse,
  passOrConvert,
  peekTarget,
  pickPassedHeaders,
} from './passthrough.ts';
import { type ConvertedRequest, convertRequest, type RequestOptions } from './request.ts';
import { convertError, convertResponse, decodeResponse, encodeError, findCalls, nameProvider } from './response.ts';
import {
  type Converted,
  convertCountTokensRequest,
  convertCountTokensResponse,
  convertEmbeddingsRequest,
  convertEmbeddingsResponse,
  convertModelInfo,
  convertModels,
  convertRerankRequest,
  convertRerankResponse,
  unsupported,
} from './side-endpoints.ts';
import { createStreamConverter, encodeFailure, type ResponseStream, type StreamOptions } from './stream.ts';
import { convertStreamToResponse } from './whole.ts';

/**
 * Pairs two protocols for one exchange: the client's request to the upstream, the upstream's response, stream or error
 * to the client.
 *
 * ```ts
 * const exchange = createExchange(anthropicMessagesCodec, openaiChatCodec, { provider, model: 'gpt-5.6' });
 * const { url, ...init } = exchange.request({ method: 'POST', path: '/v1/messages', headers, body });
 * // … send it, then one of:
 * exchange.stream(); //         a stage, bytes to bytes
 * exchange.response(reply); //  a whole response, or an error, by its status
 * exchange.failure(error); //   an error of the gateway itself, in the client's protocol
 * exchange.notes; //            what could not be converted, in both directions
 * ```
 */
export const createExchange = (client: Codec, upstream: Codec, options: ExchangeOptions): Exchange =>
  new Exchange(client, upstream, options);

/** Options of `createExchange`. */
export interface ExchangeOptions extends Omit<ConvertOptions, 'from' | 'to' | 'provider'>, StreamLimits {
  /** The upstream that gets the request. */
  provider: Provider;
  /** The model's name at the upstream; by default the one in the request. */
  model?: string;
  /** Whether to request a stream from the upstream; by default whatever the client requested. */
  stream?: boolean;
  /**
   * Same protocol on both sides: bytes are passed on unchanged except for the model and the credentials. Ignored
   * between two protocols.
   */
  passthrough?: boolean;
  /**
   * Same protocol on both sides: keeps what conforms in a response byte for byte, and repairs the rest. Absent: responses are
   * decoded and encoded again. An argument, so that a bundle without it does not contain it.
   */
  repair?: ResponseRepair | undefined;
  /**
   * Same protocol on both sides: whether the request is sent as it is, except for the model and what the codec adjusts
   * (`adjustPassed`); the response is still read and repaired. `unless_changed`: only when the conversion would do
   * nothing but repair. By default `always` for upstreams without a profile, `unless_changed` where only the model has
   * one. A request that holds state of another provider is converted.
   */
  passRequest?: PassRequest;
  /** The beginning of the response, which the upstream continues: sent as a trailing assistant message. */
  prefill?: CanonicalMessage | undefined;
  /**
   * Keeps the whole message of streams and responses (`canonicalResponse`), or with `usage` only the usage of streams; true by
   * default.
   */
  tap?: boolean | 'usage';
}

type StreamLimits = Pick<StreamOptions, 'maxLineBytes' | 'maxEventBytes' | 'malformed'>;

/** Repairs responses for clients of their own protocol. `renamed`: the client's name of the model, if it has another one. */
export interface ResponseRepair {
  stream(options: StreamOptions, renamed: string | undefined): ResponseStream;
  /** Undefined for a response that has to be encoded again. */
  response(body: unknown, text: string, options: ResponseOptions, renamed: string | undefined): KeptResponse | undefined;
}

/** A whole response that conforms, as the client receives it. */
export interface KeptResponse {
  body: unknown;
  text: string;
  notes: Note[];
}

/** A whole response of an upstream. `text`: its body as it came, which stays what it is where nothing has to change. */
export interface TextReply extends WireReply {
  text?: string;
}

/** When a request in the upstream's own protocol is sent without conversion. */
export type PassRequest = 'always' | 'unless_changed' | 'never';

/** Chooses the default of `passRequest`: the more is known about an upstream, the more a conversion can correct. */
export function choosePassRequest(codec: Codec, provider: Pick<Provider, 'id' | 'profile'>, model: string): PassRequest {
  if (provider.profile || codec.hasFacts(provider.id)) return 'never';
  return codec.hasFacts(provider.id, model) ? 'unless_changed' : 'always';
}

/** A request as the client sent it. */
export interface ClientRequest extends WireRequest {
  /** The body as text: passthrough sends it unchanged. */
  text?: string;
}

/** A request that is ready to be sent. */
export interface UpstreamRequest {
  method: string;
  url: string;
  headers: HeaderBag;
  /** Undefined for requests without a body, such as the list of models. */
  body: unknown;
  /** The body as JSON, where the client's text is passed on. */
  text?: string;
}

/**
 * `converted`: both directions are converted or repaired; `request_passed`: only the request is passed on; `passed`:
 * both are.
 */
type Mode = 'converted' | 'request_passed' | 'passed';

type StreamObservers = Pick<StreamOptions, 'onEvent' | 'onEncoded' | 'inspect' | 'splice' | 'onto'>;

/** One request and its response. Created by `createExchange`. */
export class Exchange {
  readonly #client: Codec;
  readonly #upstream: Codec;
  readonly #options: ExchangeOptions;
  #mode: Mode;
  readonly #notes: Note[] = [];
  #wire: ClientRequest = { method: '', path: '', headers: {}, body: undefined };
  #sent: Pick<UpstreamRequest, 'method' | 'url'> | undefined;
  #sideEndpoint: SideEndpoint | undefined;
  #stream: ResponseStream | undefined;
  #request: CanonicalRequest | undefined;
  #response: CanonicalResponse | undefined;
  /** A response that was passed on and has not been decoded yet. */
  #passed: WireReply | undefined;
  /** What was read of a response that was passed on without decoding it. */
  #peek: UsagePeek | undefined;
  /** The usage of a side endpoint's response. */
  #sideUsage: CanonicalUsage | undefined;

  constructor(client: Codec, upstream: Codec, options: ExchangeOptions) {
    this.#client = client;
    this.#upstream = upstream;
    this.#options = options;
    this.#mode = options.passthrough === true && client.id === upstream.id ? 'passed' : 'converted';
  }

  /** Whether request and response are passed on unchanged. */
  get isPassing(): boolean {
    return this.#mode === 'passed' && !this.#sideEndpoint;
  }

  /** What could not be converted so far, in both directions. */
  get notes(): Note[] {
    return [...this.#notes, ...(this.#stream?.notes ?? [])];
  }

  /**
   * The canonical request, if it is one of a conversation. A request that is passed on is decoded when this is first
   * read.
   */
  get canonicalRequest(): CanonicalRequest | undefined {
    if (this.#mode !== 'converted' && !this.#sideEndpoint) this.#request ??= decodePassedRequest(this.#wire, this.#client);
    return this.#request;
  }

  /** The canonical response, if `tap` is set. A response that is passed on is decoded when this is first read. */
  get canonicalResponse(): CanonicalResponse | undefined {
    if (this.#passed) this.#response ??= decodePassedResponse(this.#passed.body, this.#responseOptions());
    return this.#response ?? this.#stream?.result?.message;
  }

  /** The usage of the response, if `tap` is set. */
  get usage(): CanonicalUsage | undefined {
    return this.#peek?.usage ?? this.#sideUsage ?? this.canonicalResponse?.usage;
  }

  /** The response was passed on and only its usage was read: it is plain text without tool calls. */
  get hasUsageOnly(): boolean {
    return this.#peek !== undefined;
  }

  /** The model that the response names, if `tap` is set. */
  get answeredModel(): string | undefined {
    return this.#peek ? this.#peek.model : this.canonicalResponse?.model;
  }

  /** The method and the URL of the request to the upstream; undefined before `request`. */
  get sent(): Pick<UpstreamRequest, 'method' | 'url'> | undefined {
    return this.#sent;
  }

  /** Converts the client's request. Throws a CodecError; `failure` converts it to a response. */
  request(wire: ClientRequest): UpstreamRequest {
    const request = this.#buildRequest(wire);
    this.#sent = request;
    return request;
  }

  #buildRequest(wire: ClientRequest): UpstreamRequest {
    this.#wire = wire;
    const type = this.#client.detectInterface(wire.path, wire.headers);
    if (type !== 'CHAT') return this.#requestSideEndpoint(type, wire);
    // Only a conversion can restore or remove what Sluice put into the history.
    if (this.#mode === 'passed' && holdsCarrier(wire.text ?? JSON.stringify(wire.body) ?? '')) this.#mode = 'converted';
    if (this.#mode === 'passed') return this.#pass(wire);
    const pass = this.#decidePass(wire);
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

  /**
   * Converts a whole response; one with an error status is converted as an error. The result has a text where the response
   * is passed on as it came, or with a few values changed in it. From the text of the reply, numbers that JSON.parse changes
   * are kept.
   */
  response(reply: TextReply): TextReply {
    if (reply.status >= 400) return this.error(reply);
    if (this.#sideEndpoint) return this.#sideReply(reply, this.#sideEndpoint.response(reply.body));
    if (this.#mode === 'passed') return this.#passReply(reply);
    const kept = this.#keepReply(reply);
    if (kept) return kept;
    const converted = convertResponse(reply.body, Object.assign(this.#responseOptions(), { text: reply.text }));
    this.#response = this.#options.tap === false ? undefined : converted.response;
    return this.#reply(reply, converted);
  }

  /**
   * Converts an error response. In passthrough the upstream's body is kept, unless it is not JSON or its message would
   * mislead the client.
   */
  error(reply: WireReply): WireReply {
    const { error } = convertError(reply, this.#responseOptions());
    const named = nameProvider(error, this.#options.provider.id);
    const isPassed = this.#mode === 'passed' && named === error && typeof reply.body === 'object' && reply.body !== null;
    return isPassed ? reply : this.failure(named);
  }

  /** Decodes an error response, to decide about a retry or a fallback. */
  readError(reply: WireReply): CanonicalError {
    return nameProvider(convertError(reply, this.#responseOptions()).error, this.#options.provider.id);
  }

  /** Converts a stream that the upstream sent in place of a whole response. */
  responseFromStream(status: number, headers: HeaderBag, bytes: Uint8Array): WireReply {
    const converted = convertStreamToResponse([bytes], {
      ...this.#responseOptions(this.canonicalRequest),
      malformed: this.#options.malformed ?? 'fail',
    });
    this.#response = this.#options.tap === false ? undefined : converted.response;
    return this.#reply({ status, headers, body: undefined }, converted);
  }

  /** Builds the client's error response for an error of the gateway itself or one that a codec threw. */
  failure(error: CanonicalError): WireReply {
    return encodeError(error, { ...this.#options, to: this.#client });
  }

  /** Builds the same error for a stream that has begun before the upstream sent anything. */
  inBand(error: CanonicalError): Iterable<Uint8Array> {
    return [encodeFailure(error, this.#streamOptions(this.#request))];
  }

  /**
   * Repeats the error of a stream, to be written on its own some time later. Undefined for other clients, and for an
   * error that the client's own vendor reports in its streams: it is written as the vendor does. A server that sends it as
   * bare JSON has clients that read only that.
   */
  repeatInStream(error: CanonicalError, diagnostics: readonly Diagnostic[] = []): Uint8Array | undefined {
    const isBare = this.#mode !== 'passed' && diagnostics.some(({ rule }) => rule === 'sse/bare-json');
    return error.upstream?.protocol === this.#client.id && !isBare ? undefined : this.repeatInBand(error);
  }

  /**
   * Repeats the error, to be written on its own some time after the stream contained it: @google/genai 1 reports an
   * ApiError only when one read returns the error and nothing else. Undefined for other clients.
   */
  repeatInBand(error: CanonicalError): Uint8Array | undefined {
    const { framing } = this.#streamOptions(this.#request);
    if (!this.#client.repeatsErrors || framing !== 'sse') return undefined;
    return new TextEncoder().encode(`${JSON.stringify(this.failure(error).body)}\r\n`);
  }

  /**
   * Returns the stage for a stream; its `end` or `fail` closes the client's stream. `onEvent` is called with every
   * event of the upstream before it is encoded, `onEncoded` with its text for the client; `inspect` may refuse one, which ends the stream with an error. `splice`
   * and `onto` continue the message of an earlier exchange with the same client; neither works in passthrough.
   */
  stream(watched: StreamObservers = {}): ResponseStream {
    const options = this.#streamOptions(this.#known, watched);
    // Upstreams always send SSE, so a client that expects a JSON array gets it from an encoder.
    const isSse = options.framing === 'sse';
    const convert = (): ResponseStream => {
      const known = this.#streamOptions(this.canonicalRequest, watched);
      // What continues an earlier source is written.
      const repair = isSse && !watched.onto ? this.#repair : undefined;
      return repair ? repair.stream(known, this.#renamed) : createStreamConverter(known);
    };
    this.#stream = this.#mode === 'passed' && isSse ? passOrConvert(options, convert) : convert();
    return this.#stream;
  }

  /** Whether the response is repaired in its protocol. */
  get #isRepaired(): boolean {
    return this.#options.repair !== undefined && this.#mode !== 'passed' && this.#client.id === this.#upstream.id;
  }

  /** Undefined where the response changes its protocol, or where tools have to be restored in it. */
  get #repair(): ResponseRepair | undefined {
    const isOther = !this.#isRepaired || findCalls(this.#responseOptions(this.canonicalRequest)) !== undefined;
    return isOther ? undefined : this.#options.repair;
  }

  /** The client's name of the model, where it is not that of the upstream. */
  get #renamed(): string | undefined {
    const { model, policy } = this.#options;
    // A request of Gemini has its model in the path, which a request that cannot be decoded does not show here.
    const requested = this.canonicalRequest?.model || peekTarget(this.#wire, this.#client).model || model;
    return model === undefined || requested === model || policy?.modelInAnswer === 'answered' ? undefined : requested;
  }

  #requestSideEndpoint(type: InterfaceType, wire: WireRequest): UpstreamRequest {
    this.#sideEndpoint = createSideEndpoint(type, this.#requestOptions(wire));
    const { method } = this.#sideEndpoint;
    const { body, headers, path, notes } = this.#sideEndpoint.request(wire.body);
    for (const note of notes) this.#notes.push(note);
    return { method, ...this.#address(type, { model: this.#options.model ?? '', stream: false }, headers, path), body };
  }

  /**
   * A request is changed only because of a fact about the provider or the model, or to restore state that Sluice put
   * into the history.
   */
  #decidePass(wire: ClientRequest): PassRequest {
    if (this.#client.id !== this.#upstream.id || this.#options.prefill) return 'never';
    const { provider, profile, model = peekTarget(wire, this.#client).model } = this.#options;
    const { passRequest = profile ? 'never' : choosePassRequest(this.#upstream, provider, model) } = this.#options;
    return passRequest === 'never' || holdsCarrier(wire.text ?? JSON.stringify(wire.body) ?? '') ? 'never' : passRequest;
  }

  /** Undefined for a request that cannot be decoded and is left for the upstream to judge. */
  #convert(wire: ClientRequest, pass: PassRequest): ConvertedRequest | undefined {
    try {
      const converted = convertRequest(wire.body, this.#requestOptions(wire));
      this.#request = converted.request;
      return converted;
    } catch (error) {
      if (pass === 'never' || !(error instanceof CodecError) || !UNREADABLE.has(error.error.code)) throw error;
      return undefined;
    }
  }

  /**
   * Sends the body as it came, with the upstream's model name. A body that cannot be decoded is left for the upstream
   * to judge.
   */
  #pass(wire: ClientRequest): UpstreamRequest {
    const { provider, model, stream } = this.#options;
    const target = model !== undefined && stream !== undefined ? { model, stream } : this.#readTarget(wire);
    const { url, headers } = this.#address('CHAT', target, {});
    const isRequestOnly = this.#mode === 'request_passed';
    const profile = isRequestOnly ? findProfile(this.#upstream, this.#options, target.model) : undefined;
    return {
      method: 'POST',
      url,
      headers: Object.assign(headers, pickPassedHeaders(wire.headers, provider, profile)),
      ...buildPassedBody(wire, target.model, profile && this.#adjust(wire.body, target.stream, profile)),
    };
  }

  #adjust(body: unknown, stream: boolean, profile: ProviderProfile): JsonObject | undefined {
    const note = (added: Note): void => void this.#notes.push(added);
    return isObject(body) ? this.#upstream.adjustPassed?.(body, { stream, profile, note }) : undefined;
  }

  #readTarget(wire: ClientRequest): Omit<Target, 'provider'> {
    const requested = peekTarget(wire, this.#client);
    const { model = requested.model, stream = requested.stream } = this.#options;
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
      url: findUrl(this.#upstream, type, { provider, model: target.model, stream: target.stream }, nativePath),
      headers: Object.assign(
        {},
        headers,
        this.#upstream.buildHeaders(provider, target.stream),
        pickPassedHeaders(headers, provider),
      ),
    };
  }

  #reply({ status, headers }: WireReply, { body, notes }: { body: unknown; notes: Note[] }): WireReply {
    for (const note of notes) this.#notes.push(note);
    return { status, headers: { ...headers, 'content-type': 'application/json' }, body };
  }

  /** A response that conforms stays as it came. Throws if it is an error. */
  #keepReply(reply: TextReply): TextReply | undefined {
    const repair = this.#repair;
    if (!repair) return undefined;
    const { body, text = JSON.stringify(body) } = reply;
    const options = this.#responseOptions(this.canonicalRequest);
    const kept = repair.response(body, text, options, this.#renamed);
    if (!kept) return undefined;
    if (!this.#peekReply(reply)) {
      const response = decodeResponse(body, options, new NoteList());
      if (this.#options.tap !== false) this.#response = response;
    }
    return { ...this.#reply(reply, kept), text: kept.text };
  }

  #sideReply(reply: WireReply, { usage, ...converted }: ReturnType<SideEndpoint['response']>): WireReply {
    if (usage?.input_tokens !== undefined) this.#sideUsage = { input_tokens: usage.input_tokens, output_tokens: 0 };
    return this.#reply(reply, converted);
  }

  #passReply(reply: WireReply): WireReply {
    if (!this.#peekReply(reply)) {
      // Decoded even without `tap`: the body may be an error, which throws.
      const response = decodePassedResponse(reply.body, this.#responseOptions());
      if (this.#options.tap !== false) this.#response = response;
    }
    return reply;
  }

  /** False when the response has to be decoded. */
  #peekReply(reply: WireReply): boolean {
    const tap = this.#options.tap !== false;
    this.#peek = tap ? this.#upstream.peekUsage?.(reply.body, this.#responseProfile) : undefined;
    if (this.#peek) this.#passed = reply;
    return this.#peek !== undefined;
  }

  /** Options for the request. */
  #requestOptions({ path, headers, text: given }: ClientRequest): RequestOptions {
    const { provider, profile, policy, now, newId, model, stream, prefill, sealing } = this.#options;
    const [from, to] = [this.#client, this.#upstream];
    // A request in its own protocol is rather passed on as it came.
    const text = from.id === to.id ? undefined : given;
    return { from, to, provider, profile, policy, now, newId, model, stream, prefill, path, headers, sealing, text };
  }

  #streamOptions(request: CanonicalRequest | undefined, watched: StreamObservers = {}): StreamOptions {
    const { onEvent, onEncoded, inspect, splice, onto } = watched;
    const { provider, now, newId, maxLineBytes, maxEventBytes, malformed = 'fail', tap = true } = this.#options;
    const policy = this.#policy;
    const [from, to] = [this.#upstream, this.#client];
    const framing = to.framing?.(this.#wire.path) ?? 'sse';
    const isRenamed = this.#mode === 'converted';
    const options = { from, to, provider, profile: this.#responseProfile, policy, now, newId, request, isRenamed, framing, tap };
    const { sealing, envelope } = this.#options;
    const limits = { maxLineBytes, maxEventBytes, malformed, onEvent, onEncoded, inspect, splice, onto, sealing, envelope };
    return Object.assign(options, limits);
  }

  /** Options for the response. */
  #responseOptions(request: CanonicalRequest | undefined = this.#known): ResponseOptions {
    const { provider, now, newId, sealing, envelope } = this.#options;
    const policy = this.#policy;
    const profile = this.#responseProfile;
    const isRenamed = this.#mode === 'converted';
    const [from, to] = [this.#upstream, this.#client];
    return { from, to, provider, profile, policy, now, newId, request, isRenamed, sealing, envelope };
  }

  /** A repaired response has the upstream's name of the model, unless the client used another one. */
  get #policy(): ExchangeOptions['policy'] {
    const { policy } = this.#options;
    return this.#isRepaired && this.#renamed === undefined ? { ...policy, modelInAnswer: 'answered' } : policy;
  }

  /** The request as far as a response encoder needs it: passthrough decodes nothing. */
  get #known(): CanonicalRequest | undefined {
    return this.#mode === 'request_passed' ? this.canonicalRequest : this.#request;
  }

  /** Looks up the profile by the upstream's model name; the client may use an alias. */
  get #responseProfile(): ResponseOptions['profile'] {
    const { model, profile } = this.#options;
    return model === undefined ? profile : findProfile(this.#upstream, this.#options, model);
  }
}

/** A repair does not depend on the model: the upstream decides whether it accepts the request unrepaired. */
const isChange = ({ code }: Note): boolean => code !== 'REPAIRED';

const UNREADABLE: ReadonlySet<ErrorCode> = new Set(['INVALID_INPUT', 'MISSING_REQUIRED_FIELD']);

/** Calls `buildUrl` once per URL: parsing and writing one takes as long as most of the rest of a small request. */
const buildUrlOnce = /* @__PURE__ */ memo(
  { entries: 1000, bytes: 512 * 1024 },
  (_, codec: Codec, type: InterfaceType, target: Target, nativePath: string) =>
    codec.buildUrl(type, target, target.model, nativePath),
);

/** The URL of a request. `nativePath` is the path that the request encoder chose, where an interface has several. */
function findUrl(codec: Codec, type: InterfaceType, target: Target, nativePath = ''): string {
  const { provider, model, stream } = target;
  // Operator settings can change the path in any way, so these URLs are not cached.
  if (provider.adapter_config) return codec.buildUrl(type, target, model, nativePath);
  const key = `${codec.id} ${type} ${stream} ${provider.base_url} ${model} ${nativePath}`;
  return buildUrlOnce(key, codec, type, target, nativePath);
}

/** Reads the model and the stream flag of a request. Throws if it names no model, or one that is too long. */
export function readRequestTarget(client: Codec, wire: WireRequest): RequestTarget {
  const target = client.readTarget(wire);
  if (!target)
    throw new CodecError({ code: 'MISSING_REQUIRED_FIELD', message: 'model: is required', http_status: 400, param: 'model' });
  checkModelName(target.model);
  return target;
}

/** The longest names in use have about 100 bytes. */
const MAX_MODEL_BYTES = 512;

const encoder = /* @__PURE__ */ new TextEncoder();

/** Throws if a model name is too long: names become keys of caches, metric labels and log fields. */
export function checkModelName(model: string): void {
  const isTooLong =
    model.length > MAX_MODEL_BYTES || (model.length > MAX_MODEL_BYTES / 3 && encoder.encode(model).length > MAX_MODEL_BYTES);
  if (!isTooLong) return;
  const message = `model: must be at most ${MAX_MODEL_BYTES} bytes`;
  throw new CodecError({ code: 'INVALID_INPUT', message, http_status: 400, param: 'model' });
}

// ---- side endpoints

/**
 * One request to a side endpoint and its response, from the client's protocol (`from`) to the upstream's (`to`) and
 * back.
 */
interface SideEndpoint {
  method: 'GET' | 'POST';
  /** `path`: the endpoint that fits the body; absent where the interface has only one. */
  request(body: unknown): { body: unknown; headers: HeaderBag; path?: string; notes: Note[] };
  response(body: unknown): { body: unknown; notes: Note[]; usage?: { input_tokens?: number } | undefined };
}

type SideEndpointFactory = (options: RequestOptions) => SideEndpoint;

/** Throws when the client's protocol or the upstream's has no such endpoint. */
function createSideEndpoint(type: InterfaceType, options: RequestOptions): SideEndpoint {
  const create = SIDE_ENDPOINTS[type];
  if (!create || !options.to.supports(type)) throw unsupported(options.to, type);
  return create(options);
}

/** The options of the response: the request's path, headers and model are not part of them. */
const swapDirection = ({
  from,
  to,
  path: _path,
  headers: _headers,
  model: _model,
  ...options
}: RequestOptions): ConvertOptions => ({
  ...options,
  from: to,
  to: from,
});

/** Endpoints whose requests have no body. */
const withoutBody = (
  convert: (body: unknown, options: ConvertOptions) => ReturnType<SideEndpoint['response']>,
): SideEndpointFactory => {
  return (options) => ({
    method: 'GET',
    request: () => ({ body: undefined, headers: {}, notes: [] }),
    response: (body) => convert(body, swapDirection(options)),
  });
};

/** Adds the usage that a response reports. */
const withUsage = ({
  body,
  notes,
  value,
}: Converted<Pick<CanonicalRerankResponse, 'usage'>>): ReturnType<SideEndpoint['response']> => ({
  body,
  notes,
  usage: value.usage,
});

const SIDE_ENDPOINTS: Partial<Record<InterfaceType, SideEndpointFactory>> = {
  MODELS: withoutBody(convertModels),
  MODEL_INFO: withoutBody(convertModelInfo),
  EMBEDDINGS: (options) => {
    let embedding: ReturnType<typeof convertEmbeddingsRequest>['value'] | undefined;
    return {
      method: 'POST',
      request: (body) => {
        const converted = convertEmbeddingsRequest(body, options);
        embedding = converted.value;
        return converted;
      },
      response: (body) =>
        withUsage(convertEmbeddingsResponse(body, { ...swapDirection(options), ...(embedding && { embedding }) })),
    };
  },
  RERANK: (options) => {
    let rerank: ReturnType<typeof convertRerankRequest>['value'] | undefined;
    return {
      method: 'POST',
      request: (body) => {
        const converted = convertRerankRequest(body, options);
        rerank = converted.value;
        return converted;
      },
      response: (body) => withUsage(convertRerankResponse(body, { ...swapDirection(options), ...(rerank && { rerank }) })),
    };
  },
  COUNT_TOKENS: (options) => ({
    method: 'POST',
    request: (body) => convertCountTokensRequest(body, options),
    response: (body) => convertCountTokensResponse(body, swapDirection(options)),
  }),
};
