import type { CanonicalResponse, CanonicalUsage } from '../canonical/message.ts';
import { type CanonicalError, CodecError, type ErrorCode, type Note } from '../canonical/notes.ts';
import type { CanonicalRequest, InterfaceType } from '../canonical/request.ts';
import { holdsCarrier } from '../codec/answers.ts';
import { BoundedCache, type ProviderProfile } from '../codec/profile.ts';
import type { Asked, Codec, HeaderBag, Provider, Routing, Target, WireReply, WireRequest } from '../codec/protocol.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import { CODECS } from '../protocols/index.ts';
import { type AnswerOptions, type ConvertOptions, profileOf } from './context.ts';
import { askedOf, passedBody, passedHeaders, passOrConvert, readAnswer, readQuestion } from './passthrough.ts';
import { type ConvertedRequest, convertRequest, type RequestOptions } from './request.ts';
import { convertError, convertResponse, encodeError, nameProvider } from './response.ts';
import {
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
import { type AnswerStream, encodeFailure, type StreamOptions, streamConverter } from './stream.ts';
import { collectStream } from './whole.ts';

/** URLs that were built before. They contain model names, of which clients can invent any number. */
const built = new BoundedCache<string>({ entries: 1000, bytes: 512 * 1024 });

/**
 * What `buildUrl` says. To parse and to write a URL takes as long as most of the rest of a small request: each is built once. `nativePath`: the
 * path that the encoder of the request chose, where an interface has several.
 */
function urlOf(codec: Codec, type: InterfaceType, target: Target, nativePath = ''): string {
  const { provider, model, stream } = target;
  // An operator's own settings may say anything about the path.
  if (provider.adapter_config) return codec.buildUrl(type, target, model, nativePath);
  const key = `${codec.id} ${type} ${stream} ${provider.base_url} ${model} ${nativePath}`;
  const known = built.get(key);
  if (known !== undefined) return known;
  const url = codec.buildUrl(type, target, model, nativePath);
  built.set(key, url);
  return url;
}

/** The model and the stream flag of a request. Throws if it names no model, or one that is too long. */
export function readAsked(client: Codec, wire: WireRequest): Asked {
  const target = client.readTarget(wire);
  if (!target)
    throw new CodecError({ code: 'MISSING_REQUIRED_FIELD', message: 'model: is required', http_status: 400, param: 'model' });
  checkModelName(target.model);
  return target;
}

/** The longest names in use have about 100 bytes. */
const MAX_MODEL_BYTES = 512;

const encoder = new TextEncoder();

/** Throws if a model name is too long: names become keys of caches, metric labels and log fields. */
export function checkModelName(model: string): void {
  const isTooLong =
    model.length > MAX_MODEL_BYTES || (model.length > MAX_MODEL_BYTES / 3 && encoder.encode(model).length > MAX_MODEL_BYTES);
  if (!isTooLong) return;
  const message = `model: must be at most ${MAX_MODEL_BYTES} bytes`;
  throw new CodecError({ code: 'INVALID_INPUT', message, http_status: 400, param: 'model' });
}

/** A question beside the conversation and its answer, from the client's protocol (`from`) to the upstream's (`to`) and back. */
export interface Lane {
  method: 'GET' | 'POST';
  /** `path`: the endpoint that fits the body; absent where the interface has only one. */
  ask(body: unknown): { body: unknown; headers: HeaderBag; path?: string; notes: Note[] };
  answer(body: unknown): { body: unknown; notes: Note[] };
}

type LaneMaker = (options: RequestOptions) => Lane;

const backwards = ({ from, to, path: _path, headers: _headers, model: _model, ...options }: RequestOptions): ConvertOptions => ({
  ...options,
  from: to,
  to: from,
});

/** Questions that are all in their path. */
const asked = (answer: (body: unknown, options: ConvertOptions) => ReturnType<Lane['answer']>): LaneMaker => {
  return (options) => ({
    method: 'GET',
    ask: () => ({ body: undefined, headers: {}, notes: [] }),
    answer: (body) => answer(body, backwards(options)),
  });
};

const LANES: Partial<Record<InterfaceType, LaneMaker>> = {
  MODELS: asked(convertModels),
  MODEL_INFO: asked(convertModelInfo),
  EMBEDDINGS: (options) => {
    let question: ReturnType<typeof convertEmbeddingsRequest>['value'] | undefined;
    return {
      method: 'POST',
      ask: (body) => {
        const converted = convertEmbeddingsRequest(body, options);
        question = converted.value;
        return converted;
      },
      answer: (body) => convertEmbeddingsResponse(body, { ...backwards(options), ...(question && { embedding: question }) }),
    };
  },
  RERANK: (options) => {
    let question: ReturnType<typeof convertRerankRequest>['value'] | undefined;
    return {
      method: 'POST',
      ask: (body) => {
        const converted = convertRerankRequest(body, options);
        question = converted.value;
        return converted;
      },
      answer: (body) => convertRerankResponse(body, { ...backwards(options), ...(question && { rerank: question }) }),
    };
  },
  COUNT_TOKENS: (options) => ({
    method: 'POST',
    ask: (body) => convertCountTokensRequest(body, options),
    answer: (body) => convertCountTokensResponse(body, backwards(options)),
  }),
};

/** Throws when the client's protocol or the upstream's has no such thing. */
function laneOf(type: InterfaceType, options: RequestOptions): Lane {
  const lane = LANES[type];
  if (!lane || !options.to.supports(type)) throw unsupported(options.to, type);
  return lane(options);
}

/** What a client wants, and in which language it wants it. */
export interface Route {
  client: Codec;
  type: InterfaceType;
  /** With its query; one form for everybody who looks at it. */
  path: string;
}

const REGISTERED: readonly Codec[] = Object.values(CODECS);

type Routed = Codec & { routing: Routing };

const BY_RANK = REGISTERED.filter((codec): codec is Routed => codec.routing !== undefined).toSorted(
  (a, b) => a.routing.rank - b.routing.rank,
);

/** The protocol of paths that no other one claims. */
const FALLBACK = CODECS['openai-chat'];

/** The protocols of a vendor. The headers are those by which `detectInterface` tells its clients from others. */
interface Mount {
  clients: readonly [Codec, ...Codec[]];
  headers: HeaderBag;
}

const MOUNTS: ReadonlyMap<string | undefined, Mount> = buildMounts();

function buildMounts(): Map<string | undefined, Mount> {
  const mounts = new Map<string | undefined, Mount>();
  for (const codec of REGISTERED) {
    const { mount, header } = codec.routing ?? {};
    if (mount === undefined) continue;
    const { clients, headers } = mounts.get(mount) ?? {};
    mounts.set(mount, {
      clients: clients ? [...clients, codec] : [codec],
      headers: { ...headers, ...(header && { [header]: '' }) },
    });
  }
  return mounts;
}

/** By the whole URL: nearly all requests are found here. */
const EXACT: ReadonlyMap<string | undefined, Codec> = new Map(BY_RANK.map((codec) => [codec.routing.path, codec]));

/** The protocol of a request by its path, and by its headers where protocols share a path (`/v1/models`). */
export function routeOf(url: string, headers: HeaderBag): Route {
  const exact = EXACT.get(url);
  if (exact) return { client: exact, type: 'CHAT', path: url };
  const { path, mount } = canonicalPath(url);
  return mount ? mountedRoute(path, mount) : openRoute(path, headers);
}

/** Requests below the name of a vendor are for its protocols alone. */
function mountedRoute(path: string, { clients, headers }: Mount): Route {
  for (const client of clients) {
    const type = client.detectInterface(path, headers);
    if (type !== 'PASSTHROUGH') return { client, type, path };
  }
  const language = languageOf(path);
  return { client: clients.includes(language) ? language : clients[0], type: 'PASSTHROUGH', path };
}

function openRoute(path: string, headers: HeaderBag): Route {
  const hinted = findHinted(path, headers);
  const candidates = hinted ? [hinted, ...BY_RANK] : BY_RANK;
  for (const client of candidates) {
    const type = client.detectInterface(path, headers);
    // To OpenAI's protocols everything below `/models/` is the name of a model, also `imagen:predict`.
    const isForeign = hinted !== undefined && client !== hinted && type.startsWith('MODEL');
    if (type !== 'PASSTHROUGH' && !isForeign) return { client, type, path };
  }
  return { client: hinted ?? languageOf(path), type: 'PASSTHROUGH', path };
}

/** By a header, or by a path that no other protocol has. Of two headers the one of the higher rank counts. */
function findHinted(path: string, headers: HeaderBag): Codec | undefined {
  const byHeader = BY_RANK.findLast(({ routing: { header } }) => header !== undefined && Object.hasOwn(headers, header));
  return byHeader ?? BY_RANK.find(({ routing }) => routing.isExclusive && routing.ownsPath?.(path));
}

/** The protocol of an endpoint that Sluice does not know, by the prefix of its path. */
const languageOf = (path: string): Codec => BY_RANK.find(({ routing }) => routing.ownsPath?.(path)) ?? FALLBACK;

/** A vendor's name before something else. */
const MOUNT = new RegExp(`^/(${[...MOUNTS.keys()].join('|')})(?=/.)`);

/** Versions before another version: base URLs often have one, and SDKs add theirs. The last one is the SDK's. */
const DOUBLED_VERSION = /^(?:\/v\d+(?:(?:alpha|beta)\d*)?)+(?=\/v\d+(?:(?:alpha|beta)\d*)?\/)/;

/** Doubled slashes come from base URLs that end in one; absolute forms from proxies. */
function canonicalPath(url: string): { path: string; mount: Mount | undefined } {
  const [path = '', query] = splitQuery(url.replace(/^https?:\/\/[^/?#]*/i, ''));
  const plain = `/${path}`.replace(/\/{2,}/g, '/');
  const vendor = MOUNT.exec(plain)?.[1];
  const below = vendor === undefined ? plain : plain.slice(vendor.length + 1);
  const native = BY_RANK.reduce((path, { routing }) => routing.normalise?.(path) ?? path, below.replace(DOUBLED_VERSION, ''));
  return { path: query === undefined ? native : `${native}?${query}`, mount: MOUNTS.get(vendor) };
}

function splitQuery(url: string): [string, string?] {
  const at = url.indexOf('?');
  return at < 0 ? [url] : [url.slice(0, at), url.slice(at + 1)];
}

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
