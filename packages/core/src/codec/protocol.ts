/** The interfaces of a protocol: `Protocol` reads streams, `RepairCodec` also writes responses, `Codec` converts in both directions. */
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
import type { Report, RuleId, RuleTexts } from '../rules/index.ts';
import type { SseEncoderOptions, SseFrame } from '../sse/encode.ts';
import type { Context } from './context.ts';
import type { StreamGrammar } from './grammar.ts';
import type { ProviderProfile } from './profile.ts';
import type { ResponsePlace, Watch, WireCheck } from './repair.ts';
import type { FrameDecoder, StreamDecoderOptions } from './stream-decoder.ts';

/**
 * A protocol in both directions. A separate value from the `RepairCodec` it extends, so that programs that only repair
 * responses load no requests.
 */
export interface Codec extends RepairCodec {
  /** `client`: its requests are decoded, responses and streams encoded. `upstream`: the reverse. */
  readonly roles: readonly Role[];
  /**
   * The state machine of what `streamEncoder` writes for a client that requested everything; tests check the encoder
   * against it.
   */
  grammar(): StreamGrammar;
  /**
   * Whether anything is recorded about this provider or model. All others get requests as clients of the protocol send
   * them.
   */
  hasFacts(providerId: string, model?: string): boolean;
  /**
   * Changes to a request that is otherwise forwarded as sent: top-level fields with their new values; `undefined`
   * removes one. Absent: no changes.
   */
  adjustPassed?(body: Record<string, unknown>, target: ForwardTarget): Record<string, unknown> | undefined;
  /**
   * Called with a request that goes to a server of another protocol: notes what it loses besides fields of its body.
   * Throws when another server has a part of the conversation.
   */
  leave?(wire: WireRequest, context: Pick<CodecContext, 'note'>): void;
  /** Whether a server with this profile continues a trailing assistant message, as far as is known. */
  acceptsPrefill(profile: ProviderProfile): boolean;
  /** How tools must look there. Responses are mapped back by the same rules. */
  toolRules(profile: ProviderProfile): ToolRules;
  /**
   * Request fields that are kept verbatim although the canonical request has them, too, with their canonical path. "":
   * the field adds nothing to its node, wherever it occurs. The encoder reports the loss of these fields, the engine
   * that of all others.
   */
  readonly mirroredFields?: Readonly<Record<string, string>>;
  /**
   * Response fields that are kept verbatim and that clients of other protocols do not miss: the canonical response has
   * them, they repeat the request, or the decoder added them. `name/` covers the fields inside; those of blocks are
   * inside `content/`.
   */
  readonly ignorableFields?: ReadonlySet<string>;
  /** How servers treat requests where OpenAI's differ; absent: as OpenAI's do. */
  readonly traits?: ProtocolTraits;
  /** The standard spelling of a field name; absent: the wire has only one spelling. */
  standardName?(field: string): string;
  /** Absent: requests are not routed to this protocol by path; callers name it. */
  readonly routing?: Routing;
  detectInterface(path: string, headers?: HeaderBag): InterfaceType;
  supports(type: InterfaceType): boolean;
  buildUrl(type: InterfaceType, target: Target, modelId?: string, nativePath?: string): string;
  buildHeaders(provider: Provider, stream?: boolean): HeaderBag;
  /** The model and stream flag of a request; undefined when it names no model. */
  readTarget(wire: WireRequest): RequestTarget | undefined;
  /** How much a chat request lets the model generate, read without decoding the request. Absent: not known. */
  readOutputLimit?(body: JsonObject): OutputLimit;
  readonly request: WireCodec<WireRequest, CanonicalRequest>;
  /**
   * The usage of a plain text response without calls, read without decoding it. Undefined: the response must be
   * decoded.
   */
  peekUsage?(body: unknown, profile?: Partial<ProviderProfile>): UsagePeek | undefined;
  /** How a client that called this path reads a stream; absent: always SSE. */
  framing?(path: string): Framing;
  /** An event or comment that keeps a silent stream open; absent: its clients accept none. */
  readonly heartbeat?: string;
  /** Some clients read an error of a stream only when it arrives once more, alone and outside an event. */
  readonly repeatsErrors?: boolean;
  /** Where payloads have the fields of the response. */
  readonly place: ResponsePlace;
  /** Fields that the protocol requires of a response and that this one, whole or in an event, left out. */
  complete?(response: JsonObject, context: CodecContext): JsonObject;
  /** Whether a payload is only sent to clients that requested it, and this one did not. */
  isUnrequested?(payload: JsonObject, request: CanonicalRequest): boolean;
  /** Streams begin with the tokens of the request. */
  readonly beginsWithUsage?: boolean;
  /** The fields of canonical responses that only some protocols have, and this one has. */
  readonly responseFields?: ReadonlySet<OptionalField>;
  /** Whether clients learn of this service tier; absent: of each. */
  carriesTier?(tier: string): boolean;
  /** The query that requests all models at once, where the default is one page. */
  readonly modelsQuery?: string;
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

/**
 * The responses of a protocol in both directions: whole ones, streams and errors. A separate value from the `Protocol` it
 * extends, so that programs that only read streams load no encoders.
 */
export interface RepairCodec extends Protocol {
  /** How paths of chat requests end: servers have them below any prefix. */
  readonly pathEnd: RegExp;
  /** How paths of streams end, where they are not requested by `stream` in the body. */
  readonly streamPathEnd?: RegExp;
  /** What a provider, and the model there, is known to accept. */
  profileFor(providerId: string, model?: string): ProviderProfile;
  readonly response: WireCodec<unknown, CanonicalResponse>;
  readonly error: WireCodec<WireReply, CanonicalError>;
  /** How lines of event streams end; absent: `\n`. */
  readonly lineEnd?: SseEncoderOptions['lineEnd'];
  /** Encodes canonical events as frames. */
  streamEncoder(context: CodecContext): Stage<CanonicalStreamEvent, SseFrame>;
  /** Creates the check of a stream's payloads. */
  check(report: Report): WireCheck;
  /** Creates the watch over a stream whose bytes are passed on. */
  watch(): Watch;
  /**
   * The frame that closes a stream, and the rule that is broken without it; absent: the last event closes the stream.
   */
  readonly terminal?: { rule: RuleId; frame: SseFrame };
}

/** What clients of a protocol rely on, for encoders whose target does not do it by itself. */
interface ProtocolTraits {
  /** A trailing assistant message is continued. */
  continuesPrefill: boolean;
  /** Every response schema is enforced, not only those marked as strict. */
  enforcesSchemas: boolean;
}

/** Fields of canonical responses that not every protocol has. */
type OptionalField = 'system_fingerprint' | 'stop_sequence' | 'server_tool_use';

/** The sides of the gateway that a protocol can be on. */
type Role = 'client' | 'upstream';

/** The read side of a protocol: everything needed to turn its streams into messages. */
export interface Protocol {
  /** The name of the protocol. */
  readonly id: ProtocolId;
  /** The texts of the rules that its decoder reports. */
  readonly rules: RuleTexts;
  /** Decodes frames to canonical events. A complete JSON body in a bare frame is accepted, too. */
  streamDecoder(context: Context, options?: StreamDecoderOptions): FrameDecoder;
  /** Whether a payload can belong to this protocol; used to read streams of unknown protocol. */
  recognises(payload: JsonObject, event: string | undefined): boolean;
  /** Fields of a message besides text, reasoning and calls, under their wire names. Only fields that are present. */
  extras(message: CanonicalResponse): JsonObject;
  /** Fields of a call besides id, name and arguments, under their wire names. */
  callFields(call: ToolUseBlock): JsonObject;
  /** The index that the wire gave a call. Chat sorts calls by it when every call has its own. */
  callIndex?(call: ToolUseBlock): number | undefined;
  /** Merges payloads into the complete object of the protocol, where the protocol has one. */
  accumulator?(): WireAccumulator;
}

/** Merges the payloads of a stream into the complete wire object. */
export interface WireAccumulator {
  push(payload: unknown): void;
  finish(): JsonObject;
}

/** Both directions of one kind of body. */
export interface WireCodec<Wire, Canonical> {
  decode(wire: Wire, context: CodecContext): Canonical;
  encode(value: Canonical, context: CodecContext): Wire;
}

/** What a codec needs from its caller. Clock, ids and reporting are arguments, so codecs are pure. */
export interface CodecContext extends Context {
  /** Unix seconds. */
  now(): number;
  newId(prefix: string): string;
  profile: ProviderProfile;
  policy: Policy;
  /** The request that is being answered, for encoders of responses. */
  request?: CanonicalRequest | undefined;
  /** The embeddings request that is being answered. */
  embedding?: CanonicalEmbeddingRequest;
  /** The rerank request that is being answered. */
  rerank?: CanonicalRerankRequest;
  target?: Target | undefined;
  /** Decoded nodes record their source position, so that notes can point into the client's request. */
  trace?: boolean;
  /** Maps a path of the prepared request to a path of the client's request; set by `prepare`. */
  locate?: ((path: string) => string) | undefined;
  /**
   * The protocol that is converted from: the client's when encoding requests, the upstream's when encoding responses.
   */
  source?: ProtocolId | undefined;
  /** The traits of the source protocol. */
  sourceTraits?: ProtocolTraits | undefined;
  /** Seals what carriers hold; absent: carriers are plain text. */
  sealing?: Sealing | undefined;
  /** The stream of a server is repaired for its own clients, whose request is not known. */
  isRepair?: boolean;
  /** Fields of an OpenAI response that the caller sets; they override those that are derived. */
  envelope?: JsonObject | undefined;
}

/** Seals the opaque values of one upstream, and opens those that it sealed for the same one. */
export interface Sealing {
  /** The id of the upstream: what was opened is sent to no other. */
  readonly provider: string;
  /** Returns base64url text. `label` is authenticated with the value. */
  seal(value: string, label: string): string;
  /** Undefined for text that was not sealed for this upstream under this label. */
  open(sealed: string, label: string): string | undefined;
}

/** How losses and doubtful input are treated. */
export interface Policy {
  /** Turn a drop into INCOMPATIBLE_FEATURE: always, or for these features. */
  strict?: boolean | readonly string[];
  /** `leading`: only system messages before the first other one become `system`; `all` hoists every one. */
  systemHoist?: 'leading' | 'all';
  /** What happens to thinking that the target did not issue. */
  foreignThinking?: 'drop' | 'text';
  /** The model name in responses: the requested one (default), or the one that the upstream reports. */
  modelInAnswer?: 'requested' | 'answered';
}

/** An upstream: a row of the provider table or of the configuration. */
export interface Provider {
  id: string;
  protocol: ProtocolId;
  base_url: string;
  api_key?: string;
  /** Settings that only the provider's protocol uses. */
  adapter_config?: {
    organization?: string;
    project?: string;
    /** How the key is sent; each protocol has its own default. */
    auth?: 'bearer' | 'api-key';
    /** Azure: `?api-version=`. */
    api_version?: string;
    /**
     * Inserted between `base_url` and the endpoint. Default: the protocol's version (`/v1`) after a bare host, else
     * nothing.
     */
    path?: string;
    headers?: HeaderBag;
  };
  profile?: Partial<ProviderProfile>;
}

/** Where a request is sent: provider, model, and whether a stream is requested. */
export interface Target {
  provider: Provider;
  /** The name under which the provider knows the model. */
  model: string;
  stream: boolean;
}

/** The upstream of a request that is forwarded as the client sent it. */
export interface ForwardTarget {
  stream: boolean;
  profile: ProviderProfile;
  note(note: Note): void;
}

/** Headers by lower-case name. */
export type HeaderBag = Record<string, string>;

/** A request on the wire. Gemini has the model and the stream flag in the path. */
export interface WireRequest {
  method: string;
  path: string;
  headers: HeaderBag;
  body: unknown;
}

/** A response on the wire. */
export interface WireReply {
  status: number;
  headers: HeaderBag;
  body: unknown;
}

/** The part of a request that routing needs. */
export interface RequestTarget {
  /** Empty when a stored prompt defines the model. */
  model: string;
  isStream: boolean;
}

/** How much a model may generate for a request. */
export interface OutputLimit {
  /** Tokens of one response; undefined when the request does not limit them. */
  tokens: number | undefined;
  /** Responses that are generated. */
  choices: number;
  /** Uses of tools that the provider runs; absent when the request does not limit them. */
  toolCalls?: number;
}

/** How a server that serves several protocols finds the protocol of a request. */
export interface Routing {
  /** Protocols are tried in ascending order: general paths last. */
  rank: number;
  /** The path of nearly all requests; no other protocol has it. */
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

/** `json-array`: one JSON array over the whole body, as Gemini streams to clients that do not request SSE. */
export type Framing = 'sse' | 'json-array';

/** Facts of a response that are known without decoding it. */
export interface UsagePeek {
  usage: CanonicalUsage;
  /** The model that the response names. */
  model: string | undefined;
}
