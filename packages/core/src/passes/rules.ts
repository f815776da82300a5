import type { TextBlock, ToolUseBlock } from '../canonical/message.ts';
import type { Note } from '../canonical/notes.ts';
import type { CacheControl, ProtocolId } from '../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool, RequestParameters } from '../canonical/request.ts';

export type Loss = Omit<Note, 'code'>;

/** How a pass tells what it did. The protocols bring these: only they know how strict the caller is. */
export interface Telling {
  note(note: Note): void;
  /** Something is left out: a note, or an error when the policy is strict about it. */
  drop(loss: Loss): void;
  /** Wrong input was mended: a note, or an error when the policy is strict about it. */
  repair(loss: Loss): void;
  /** Leaving it out would be silently wrong: always an error. */
  refuse(loss: Loss): never;
}

/** What a name or an id may look like. */
export interface NameRule {
  pattern: RegExp;
  max: number;
}

export interface MediaRule {
  /** Formats of inline audio it hears. */
  audio: readonly string[];
  /** Fetches images by URL. */
  imageUrls: boolean;
  /** Fetches documents by URL. */
  fileUrls: boolean;
  /** Refers to images by the id of a file uploaded there. */
  imageIds: boolean;
  /** Refers to documents by the id of a file uploaded there. */
  fileIds: boolean;
  /** Protocols whose file ids mean the same here; absent: only its own. */
  idsOf?: readonly ProtocolId[] | undefined;
  /** Takes documents of plain text and of blocks as such; otherwise they become text. */
  textFiles?: boolean;
  /** Takes films as files. */
  video: boolean;
  /** What an assistant said aloud: named by its id, said again, or told by its transcript. */
  spoken: 'id' | 'data' | 'transcript';
  /** Tool results may hold images and files; otherwise these follow in a user message. */
  inToolResults: boolean;
}

/** Cache breakpoints (P73, P74). */
export interface CacheMarkRule {
  /**
   * `everywhere`: on tools, calls and results, too, and those that live longer come first. `parts`: only on parts of messages; `inputs`: on
   * those that the model did not write. `automatic`: nowhere, the server caches by itself. `none`: nowhere.
   */
  places: 'everywhere' | 'parts' | 'inputs' | 'automatic' | 'none';
  most: number;
  /** How long a mark may live. */
  ttls: readonly NonNullable<CacheControl['ttl']>[];
}

export type ToolField =
  | 'strict'
  | 'defer_loading'
  | 'allowed_callers'
  | 'output_schema'
  | 'input_examples'
  | 'eager_input_streaming';

/** What a target has a word for, of what not every protocol says. The rest is told, and does not reach the encoder. */
export interface Vocabulary {
  /** Names of participants. */
  names: boolean;
  /** What a document is called: a field of it, the name of a file that has none, or a text in front of it. */
  titles: 'field' | 'filename' | 'text';
  /** What a document is about; otherwise a text in front of it tells. */
  contexts: boolean;
  /** How likely the words of an earlier answer were. */
  logprobs: boolean;
  /** That a document may be cited. */
  citable: boolean;
  /** Which stretch of a film is looked at. */
  stretches: boolean;
  /** How closely an image is looked at: everywhere, not in results of tools, or nowhere. */
  detail: 'everywhere' | 'messages' | 'nowhere';
  /** A tool choice that holds calls to their schemas (Gemini's VALIDATED). */
  validated: boolean;
  /** Callers of tools that only another protocol knows. */
  foreignCallers: RegExp;
  tools: readonly ToolField[];
}

/** The numbers that have bounds, [least, most]. */
export type Bounds = {
  [K in keyof RequestParameters as number extends RequestParameters[K] ? K : never]?: readonly [number, number];
};

/** The columns of "Schema dialects" in docs/canonical.md. */
export type SchemaDialect = 'openai' | 'openai-strict' | 'anthropic' | 'anthropic-strict' | 'gemini-json' | 'gemini-openapi';

/** How tools must look at a target. The names and inputs of an answer are mapped back by the same rules (`callTable`). */
export interface ToolRules {
  toolName: NameRule;
  /** Knows custom tools, which take free text. */
  custom: boolean;
  /** Knows namespaces of tools. */
  namespaces: boolean;
  /** The root of a tool's schema must be an object. */
  objectRoot: boolean;
}

/** How a target writes a server tool that another protocol named: what comes back takes its place. */
export interface ServerToolRule {
  /** Fields of the configuration that are written: `user_location`, `filters/allowed_domains`. All others are lost. */
  reads: readonly string[];
  write(config: Record<string, unknown>): Pick<NonNullable<CanonicalTool['server']>, 'wire_type' | 'config'>;
}

/** What a target asks of a request. */
export interface Rules extends Telling, ToolRules {
  protocol: ProtocolId;
  /** The configured id of the upstream; absent: unknown, and a blob that names its issuer goes to nobody. */
  provider?: string | undefined;
  /** The name under which the upstream knows the model. */
  model?: string | undefined;
  toolId: NameRule;
  /** Results may answer calls that the upstream remembers (`previous_response_id`). */
  remembersCalls?: boolean;
  /** Thinking that another signed: left out, or told as text. */
  foreignThinking: 'drop' | 'text';
  /** Thinking that nobody signed: left to the encoder, or left out where only signed thinking counts. */
  unsignedThinking: 'keep' | 'drop';
  /** The family of a model, where signatures are valid for one family only; undefined for an unknown model. */
  modelFamily?(model: string | undefined): string | undefined;
  /** Whether a block brings its foreign signature in a field of this protocol, which goes back as it came. */
  carriesSignature?(block: TextBlock | ToolUseBlock): boolean;
  /** Server tools of others that have a counterpart here, by their canonical type (`web_search`, `code_execution`, …). */
  serverTools?: Readonly<Record<string, ServerToolRule>>;
  media: MediaRule;
  /** Messages of one role may not follow each other. */
  alternate: boolean;
  /** A message of a user or an assistant that says nothing. */
  emptyMessages: 'keep' | 'drop';
  /** Text of nothing but white space counts as empty. */
  dropWhitespace: boolean;
  /** The user speaks first. */
  firstUser: boolean;
  /**
   * An assistant's last message. `keep`: taken as a prefill, `trim`: without white space at its end. `tell`: sent, but not continued although
   * the source would have been. `continue`: not taken, so that the user says "Continue."
   */
  trailingAssistant: 'keep' | 'tell' | 'trim' | 'continue';
  /** Instructions in the middle: anywhere, only behind a user's turn, or nowhere (they become a reminder in the user's next turn). */
  midSystem: 'keep' | 'after_user' | 'reminder';
  schemas: { tool: SchemaDialect; strictTool: SchemaDialect; output: SchemaDialect };
  bounds: Bounds;
  maxStop: number;
  /** More tools are refused. */
  maxTools: number;
  cacheMarks: CacheMarkRule;
  says: Vocabulary;
}

/** A step of `prepare`: what it tells has paths of the request it was given. `source` is the request before the first step. */
export type Pass = (request: CanonicalRequest, rules: Rules, source: CanonicalRequest) => CanonicalRequest;
