import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { CanonicalResponse, CanonicalUsage, ToolUseBlock } from '../canonical/message.ts';
import type { CanonicalError, Note } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type {
  CanonicalCountTokensResponse,
  CanonicalEmbeddingRequest,
  CanonicalEmbeddingResponse,
  CanonicalModel,
  CanonicalModelList,
  CanonicalRequest,
  CanonicalRerankRequest,
  CanonicalRerankResponse,
  InterfaceType,
} from '../canonical/request.ts';
import type { Stage } from '../canonical/stage.ts';
import type { JsonObject } from '../json/json.ts';
import type { ToolRules } from '../passes/rules.ts';
import type { RuleId } from '../rules/index.ts';
import type { SseEncoderOptions, SseFrame } from '../sse/encode.ts';
import type { Context } from './context.ts';
import type { StreamGrammar } from './grammar.ts';
import type { ProviderProfile } from './profile.ts';
import type { FrameDecoder, StreamDecoderOptions } from './stream-decoder.ts';

/** A protocol for reading: what is needed to turn its streams into messages. */
export interface Protocol {
  readonly id: ProtocolId;
  /** Frames to canonical events. A whole JSON body in a bare frame is read as well. */
  streamDecoder(context: Context, options?: StreamDecoderOptions): FrameDecoder;
  /** Whether a payload can be of this protocol, so that a stream without a label can be read. */
  recognises(payload: JsonObject, event: string | undefined): boolean;
  /** What must survive of a message beside text, reasoning and calls, in the words of the wire. Only what is there. */
  extras(message: CanonicalResponse): JsonObject;
  /** The fields of a call beside id, name and arguments, in the words of the wire. */
  callFields(call: ToolUseBlock): JsonObject;
  /** The wire's own number of a call: chat lists calls by it when every call has its own. */
  callIndex?(call: ToolUseBlock): number | undefined;
  /** Folds the payloads into the protocol's own whole object, where there is such a thing. */
  accumulator?(): WireAccumulator;
}

export interface WireAccumulator {
  push(payload: unknown): void;
  finish(): JsonObject;
}

/** Lower-case names. */
export type HeaderBag = Record<string, string>;

/** A request on the wire. Gemini has the model and the stream flag in the path. */
export interface WireRequest {
  method: string;
  path: string;
  headers: HeaderBag;
  body: unknown;
}

/** What must be known of a request to route it. */
export interface Asked {
  /** Empty when a stored prompt defines it. */
  model: string;
  isStream: boolean;
}

/** By which a server that serves several protocols finds the one of a request. */
export interface Routing {
  /** Protocols are tried in ascending order: general paths last. */
  rank: number;
  /** The path of nearly all requests, which no other protocol has. */
  path?: string;
  /** A header that only clients of this protocol send. */
  header?: string;
  /** A first path segment that names the vendor, as in `/anthropic/v1`; protocols of one vendor share it. */
  mount?: string;
  /** Whether an unknown endpoint belongs to this protocol, by its prefix. */
  ownsPath?(path: string): boolean;
  /** `ownsPath` decides for known endpoints, too: no other protocol has such paths. */
  isExclusive?: boolean;
  /** The usual spelling of a path, without its query. */
  normalise?(path: string): string;
}

/** An answer on the wire. */
export interface WireReply {
  status: number;
  headers: HeaderBag;
  body: unknown;
}

/** Who speaks a protocol: a row of a table, or of the operator's configuration. */
export interface Provider {
  id: string;
  protocol: ProtocolId;
  base_url: string;
  api_key?: string;
  /** Settings that only its protocol knows. */
  adapter_config?: {
    organization?: string;
    project?: string;
    /** How the key is sent; each protocol has its own default. */
    auth?: 'bearer' | 'api-key';
    /** Azure: `?api-version=`. */
    api_version?: string;
    /** What stands between `base_url` and the endpoint. Default: nothing, but the protocol's version (`/v1`) after a bare host. */
    path?: string;
    headers?: HeaderBag;
  };
  profile?: Partial<ProviderProfile>;
}

export interface Target {
  provider: Provider;
  /** The name under which the provider knows the model. */
  model: string;
  stream: boolean;
}

/** Who gets a request as the client sent it. */
export interface PassedTarget {
  stream: boolean;
  profile: ProviderProfile;
  note(note: Note): void;
}

/** How losses and doubtful input are treated. */
export interface Policy {
  /** Turn a drop into INCOMPATIBLE_FEATURE: always, or for these features. */
  strict?: boolean | readonly string[];
  /** `leading`: only system messages before the first other one become `system`; `all` hoists every one. */
  systemHoist?: 'leading' | 'all';
  /** What happens to thinking that the target did not issue. */
  foreignThinking?: 'drop' | 'text';
}

/** What a codec may ask of its caller. Everything impure is an argument. */
export interface CodecContext extends Context {
  /** Unix seconds. */
  now(): number;
  newId(prefix: string): string;
  profile: ProviderProfile;
  policy: Policy;
  /** The question, for the encoders of answers. */
  request?: CanonicalRequest | undefined;
  /** The same, when the question was one for embeddings or for a ranking. */
  embedding?: CanonicalEmbeddingRequest;
  rerank?: CanonicalRerankRequest;
  target?: Target | undefined;
  /** Nodes of a decoded request remember where they stood, so that notes point into the source. */
  trace?: boolean;
  /** A path of the request at hand as one of the source; `prepare` brings it. */
  locate?: ((path: string) => string) | undefined;
  /** The protocol of what is converted: in encoders of requests the client's, in encoders of responses the upstream's. */
  source?: ProtocolId | undefined;
}

/** Both directions of one kind of body. */
export interface WireCodec<Wire, Canonical> {
  decode(wire: Wire, context: CodecContext): Canonical;
  encode(value: Canonical, context: CodecContext): Wire;
}

/** `json-array`: one JSON list over the whole body, as Gemini streams to clients that do not ask for SSE. */
export type Framing = 'sse' | 'json-array';

/** What can be said of an answer without reading it. */
export interface Glance {
  usage: CanonicalUsage;
}

/** Which side of the gate a protocol can be on: the protocol of a client, of an upstream, or of both. */
type Role = 'client' | 'upstream';

/** A protocol in both directions. A value apart from the `Protocol` it extends, so that a program that only reads streams loads no encoder. */
export interface Codec extends Protocol {
  /** `client`: its requests are decoded, responses and streams encoded. `upstream`: the reverse. */
  readonly roles: readonly Role[];
  /** The state machine of what `streamEncoder` writes for a client that requested everything; tests hold the encoder to it. */
  grammar(): StreamGrammar;
  /** What a provider, and the model there, is known to accept. */
  profileFor(providerId: string, model?: string): ProviderProfile;
  /** Whether anything is recorded about this provider or model. Of all others nothing is known: they get requests as clients of the protocol send them. */
  hasFacts(providerId: string, model?: string): boolean;
  /**
   * What changes in a request that is otherwise sent as the client sent it: top-level fields with their new values; `undefined` removes one.
   * Absent: nothing.
   */
  adjustPassed?(body: Record<string, unknown>, target: PassedTarget): Record<string, unknown> | undefined;
  /** How tools must look there. Answers are mapped back by the same rules. */
  toolRules(profile: ProviderProfile): ToolRules;
  /**
   * Request fields that are kept as they came although the canonical request says them, too: the path where it does, or "" for those that say
   * nothing more than their node, wherever they stand. Their loss is the encoder's to tell; that of all other kept fields is the engine's.
   */
  readonly fields?: Readonly<Record<string, string>>;
  /**
   * Fields of an answer that are kept as they came and that no client of another protocol misses: the canonical answer says them, too, they
   * repeat the question, or they are a decoder's own. With a `/` behind: their fields are such. Those of blocks stand within `content/`.
   */
  readonly idle?: ReadonlySet<string>;
  /** The usual name of a field that the wire may spell otherwise; absent: there is one spelling. */
  nameOf?(field: string): string;
  /** Absent: only callers that name the protocol use it. */
  readonly routing?: Routing;
  detectInterface(path: string, headers?: HeaderBag): InterfaceType;
  supports(type: InterfaceType): boolean;
  buildUrl(type: InterfaceType, target: Target, modelId?: string, nativePath?: string): string;
  buildHeaders(provider: Provider, stream?: boolean): HeaderBag;
  /** Where a request names its model, and whether it wants a stream; undefined when it names no model. */
  readTarget(wire: WireRequest): Asked | undefined;
  readonly request: WireCodec<WireRequest, CanonicalRequest>;
  readonly response: WireCodec<unknown, CanonicalResponse>;
  /** What an ordinary answer used: text, and no call. Undefined when it has to be read to be known. */
  glance?(body: unknown, profile?: Partial<ProviderProfile>): Glance | undefined;
  readonly error: WireCodec<WireReply, CanonicalError>;
  /** How a client that called this path reads a stream; absent: always SSE. */
  framing?(path: string): Framing;
  /** How lines of event streams end; absent: `\n`. */
  readonly lineEnd?: SseEncoderOptions['lineEnd'];
  /** An event or comment that keeps a silent stream open; absent: its clients accept none. */
  readonly heartbeat?: string;
  /** The frame that closes a stream, and the rule that its absence breaks; absent: the last event closes it. */
  readonly terminal?: { rule: RuleId; frame: SseFrame };
  /** An error in a stream is written in two forms, because each form is missed by some clients. */
  readonly repeatsErrors?: boolean;
  /** Responses have a `system_fingerprint`. */
  readonly hasFingerprint?: boolean;
  /** The query that requests all models at once, where the default is a page. */
  readonly modelsQuery?: string;
  /** Canonical events to frames. */
  streamEncoder(context: CodecContext): Stage<CanonicalStreamEvent, SseFrame>;
  readonly models?: WireCodec<unknown, CanonicalModelList>;
  readonly modelInfo?: WireCodec<unknown, CanonicalModel>;
  readonly embeddings?: {
    readonly request: WireCodec<WireRequest, CanonicalEmbeddingRequest>;
    readonly response: WireCodec<unknown, CanonicalEmbeddingResponse>;
  };
  readonly countTokens?: {
    readonly request: WireCodec<WireRequest, CanonicalRequest>;
    readonly response: WireCodec<unknown, CanonicalCountTokensResponse>;
  };
  readonly rerank?: {
    readonly request: WireCodec<WireRequest, CanonicalRerankRequest>;
    readonly response: WireCodec<unknown, CanonicalRerankResponse>;
  };
}
