/** What a target requires of a request, as data for the passes. */

import type { TextBlock, ToolUseBlock } from '../canonical/message.ts';
import type { Note } from '../canonical/notes.ts';
import type { CacheControl, ProtocolId } from '../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool, RequestParameters } from '../canonical/request.ts';

/**
 * A step of `prepare`. Its notes have paths of the request it was given. `source` is the request before the first
 * step.
 */
export type Pass = (request: CanonicalRequest, rules: Rules, source: CanonicalRequest) => CanonicalRequest;

/** What the passes need to fit one request to its target. */
export interface Rules extends Reporter {
  /** What the target requires of all requests. */
  target: TargetRules;
  /** The configured id of the upstream; without it, a signature that names its issuer is not sent. */
  provider?: string | undefined;
  /** The upstream's name of the model. */
  model?: string | undefined;
  /** Results may belong to calls that the upstream stores (`previous_response_id`). */
  remembersCalls: boolean;
  /** Thinking signed by another provider: dropped, or sent as text. */
  foreignThinking: 'drop' | 'text';
}

/** What a target requires of all requests, as data. Built once per profile and source protocol (`memoizeTarget`). */
export interface TargetRules extends ToolRules {
  protocol: ProtocolId;
  toolId: NameRule;
  /** Unsigned thinking: left to the encoder, or dropped where only signed thinking is accepted. */
  unsignedThinking: 'keep' | 'drop';
  /** The family of a model, where signatures are valid for one family only; undefined for an unknown model. */
  modelFamily?(model: string | undefined): string | undefined;
  /** Whether a block has its foreign signature in a field of this protocol, which is sent unchanged. */
  carriesSignature?(block: TextBlock | ToolUseBlock): boolean;
  /** Counterparts of other protocols' server tools, by canonical type (`web_search`, `code_execution`, …). */
  serverTools?: Readonly<Record<string, ServerToolRule>>;
  media: MediaRule;
  /** Whether consecutive messages of one role are rejected. */
  alternate: boolean;
  /**
   * What happens to user and assistant messages without content. `drop_beside`: dropped, except the user's when no
   * message has content.
   */
  emptyMessages: 'keep' | 'drop' | 'drop_beside';
  /** Whether text that is only white space counts as empty. */
  dropWhitespace: boolean;
  /** Whether the first message must be the user's. */
  firstUser: boolean;
  /**
   * A trailing assistant message. `keep`: accepted as a prefill. `trim`: accepted without trailing white space.
   * `note`: sent with a note, because the target does not continue it. `continue`: rejected, so a user message
   * "Continue." is added.
   */
  trailingAssistant: 'keep' | 'note' | 'trim' | 'continue';
  /**
   * System messages within the conversation: accepted anywhere, only after a user message, or nowhere (they become a
   * reminder in a user message).
   */
  midSystem: 'keep' | 'after_user' | 'reminder';
  /** The dialects of tools and of response schemas, and what strict ones must keep to. */
  schemas: { tool: SchemaDialect; strictTool: SchemaDialect; output: SchemaDialect; strictOutput: SchemaDialect };
  bounds: Bounds;
  maxStop: number;
  /** Requests with more tools are rejected. */
  maxTools: number;
  cacheMarks: CacheMarkRule;
  supports: Capabilities;
}

/** How a pass reports what it did. The protocols provide these functions, because they know the caller's policy. */
export interface Reporter {
  /** Adds a note. */
  note(note: Note): void;
  /** Something is dropped: a note, or an error if the policy is strict about it. */
  drop(loss: Loss): void;
  /** Invalid input was repaired: a note, or an error if the policy is strict about it. */
  repair(loss: Loss): void;
  /** Dropping it would be silently wrong: always an error. */
  refuse(loss: Loss): never;
}

/** A note without its code. */
export type Loss = Omit<Note, 'code'>;

/** Requirements for tools. The names and inputs in responses are mapped back by the same rules (`buildRenamedTools`). */
export interface ToolRules {
  /** The names that are accepted. */
  toolName: NameRule;
  /** Whether custom tools, which take free text, are supported. */
  custom: boolean;
  /** Whether namespaces of tools are supported. */
  namespaces: boolean;
  /** Whether the root of a tool's schema must be an object. */
  objectRoot: boolean;
}

/** Which names or ids are accepted. */
export interface NameRule {
  pattern: RegExp;
  /** The maximum length. */
  max: number;
}

/** How a target writes a server tool of another protocol. */
export interface ServerToolRule {
  /**
   * Configuration fields that are written, as paths: `user_location`, `filters/allowed_domains`. All others are
   * dropped.
   */
  reads: readonly string[];
  /** Converts the configuration. */
  write(config: Record<string, unknown>): Pick<NonNullable<CanonicalTool['server']>, 'wire_type' | 'config'>;
}

/** Which images, audio and files a target accepts. */
export interface MediaRule {
  /** Accepted formats of inline audio. */
  audio: readonly string[];
  /** Whether images are fetched by URL. */
  imageUrls: boolean;
  /** Whether documents are fetched by URL. */
  fileUrls: boolean;
  /** Whether images can be ids of uploaded files. */
  imageIds: boolean;
  /** Whether documents can be ids of uploaded files. */
  fileIds: boolean;
  /** Protocols whose file ids are valid here; by default only the target's own. */
  idProtocols?: readonly ProtocolId[] | undefined;
  /** Whether documents of plain text and of blocks are accepted; otherwise they become text. */
  textFiles?: boolean;
  /** Whether videos are accepted as files. */
  video: boolean;
  /** How earlier audio of the assistant is sent: by its id, as data, or as its transcript. */
  assistantAudio: 'id' | 'data' | 'transcript';
  /** Whether tool results may contain images and files; otherwise these follow in a user message. */
  inToolResults: boolean;
}

/** A JSON Schema dialect: a column of "Schema dialects" in docs/canonical.md. */
export type SchemaDialect = 'openai' | 'openai-strict' | 'anthropic' | 'anthropic-strict' | 'gemini-json' | 'gemini-openapi';

/** Accepted ranges of numeric parameters, [minimum, maximum]. */
export type Bounds = {
  [K in keyof RequestParameters as number extends RequestParameters[K] ? K : never]?: readonly [number, number];
};

/** Requirements for cache breakpoints (P73, P74). */
export interface CacheMarkRule {
  /**
   * `everywhere`: also on tools, calls and results, and longer lifetimes must come first. `parts`: only on parts of
   * messages. `inputs`: only on parts that the model did not write. `automatic`: nowhere, the server caches by itself.
   * `none`: nowhere.
   */
  places: 'everywhere' | 'parts' | 'inputs' | 'automatic' | 'none';
  /** The maximum number of breakpoints. */
  max: number;
  /** Accepted lifetimes. */
  ttls: readonly NonNullable<CacheControl['ttl']>[];
}

/** Which optional features a target supports. Others are dropped with a note before the encoder runs. */
export interface Capabilities {
  /** Names of participants. */
  names: boolean;
  /** Where the title of a document goes: a field, the file name if there is none, or a text before the document. */
  titles: 'field' | 'filename' | 'text';
  /** Whether documents have a context field; otherwise a text before the document has it. */
  contexts: boolean;
  /** Log probabilities of earlier responses. */
  logprobs: boolean;
  /** Whether citations of documents can be enabled. */
  citable: boolean;
  /** Clip ranges of videos. */
  clips: boolean;
  /** Where image detail is supported: everywhere, not in tool results, or nowhere. */
  detail: 'everywhere' | 'messages' | 'nowhere';
  /** A tool choice that enforces the schemas (Gemini's VALIDATED). */
  validated: boolean;
  /** Tool callers that only another protocol has. */
  foreignCallers: RegExp;
  /** Optional fields of tools. */
  tools: readonly ToolField[];
}

/** An optional field of tools that not every protocol has. */
export type ToolField =
  | 'strict'
  | 'defer_loading'
  | 'allowed_callers'
  | 'output_schema'
  | 'input_examples'
  | 'eager_input_streaming';
