import type { CanonicalError } from './notes.ts';
import type { CacheControl, Extensions, Node, ProtocolId, SignedBlob } from './protocol.ts';

/** One block of the content of a message. */
export type ContentBlock =
  | TextBlock
  | ImageBlock
  | AudioBlock
  | FileBlock
  | ToolUseBlock
  | ToolResultBlock
  | ThinkingBlock
  | OpaqueBlock;

/** Text of the user or the model. */
export interface TextBlock extends Node {
  type: 'text';
  text: string;
  /** The text came from an OpenAI refusal field, so that an encoder can restore it. */
  refusal?: boolean;
  citations?: Citation[];
  cache_control?: CacheControl;
  logprobs?: TokenLogprob[];
  /** Gemini may sign a plain text part. */
  signature?: SignedBlob;
}

/** An image, by URL, data or file id. */
export interface ImageBlock extends Node {
  type: 'image';
  source: {
    /** Remote URL only: `data:` URLs are split into `data` and `media_type` when decoded. */
    url?: string;
    data?: string;
    media_type?: string;
    file_id?: string;
    detail?: 'auto' | 'low' | 'high' | 'original';
  };
  cache_control?: CacheControl;
}

/** Audio, as input or as spoken output. */
export interface AudioBlock extends Node {
  type: 'audio';
  source: { data?: string; format?: string; media_type?: string; url?: string; file_id?: string };
  transcript?: string;
  audio_id?: string;
  expires_at?: number;
  cache_control?: CacheControl;
}

/** A document, video or other media, by `media_type`. */
export interface FileBlock extends Node {
  type: 'file';
  source: {
    /** base64, without a `data:` prefix. */
    file_data?: string;
    file_id?: string;
    filename?: string;
    file_url?: string;
    media_type?: string;
    text?: string;
    content?: ContentBlock[];
    detail?: string;
    video?: { start?: string; end?: string; fps?: number };
  };
  title?: string;
  context?: string;
  citations_enabled?: boolean;
  /** Set when the block is an Anthropic `search_result`. */
  search_result?: { source: string };
  cache_control?: CacheControl;
}

/** What executes a tool: the client (`function`, `custom`) or the provider (`server`, `mcp`). */
export type ToolKind = 'function' | 'custom' | 'server' | 'mcp';

/** A tool call. */
export interface ToolUseBlock extends Node {
  type: 'tool_use';
  /** Never empty: a decoder derives an id when the wire has none. */
  id: string;
  name: string;
  /** Object for functions, text for custom tools. */
  input: Record<string, unknown> | string;
  /** The argument text of the wire, whenever there was one: preserves key order, big integers and spacing. */
  input_raw?: string;
  /** Default `function`; `server` and `mcp` calls are executed by the provider. */
  kind?: ToolKind;
  namespace?: string;
  item_id?: string;
  status?: 'in_progress' | 'completed' | 'incomplete';
  signature?: SignedBlob;
  cache_control?: CacheControl;
}

/** The result of a tool call. */
export interface ToolResultBlock extends Node {
  type: 'tool_result';
  tool_use_id: string;
  name?: string;
  content: string | (TextBlock | ImageBlock | AudioBlock | FileBlock | OpaqueBlock)[];
  is_error?: boolean;
  /** `server` and `mcp` results are inside the assistant message. */
  kind?: ToolKind;
  cache_control?: CacheControl;
}

/** Reasoning of the model. */
export interface ThinkingBlock extends Node {
  type: 'thinking';
  /** `""` when omitted or redacted. */
  thinking: string;
  variant?: 'full' | 'summary' | 'redacted';
  signature?: SignedBlob;
  /** The summary parts of Responses; `thinking` joins them with a blank line. */
  summary_parts?: string[];
}

/** Content that only its own protocol understands: compaction, item_reference, executableCode, future types. */
export interface OpaqueBlock extends Node {
  type: 'opaque';
  origin: ProtocolId;
  raw: unknown;
  /** Human-readable replacement for other protocols, when the source has one. */
  text?: string;
  /** The id of state that only the origin's server holds: dropping the block would change the conversation. */
  held?: string;
  /** The tools that the block declares are also tools of the request: dropping it only loses their position. */
  hoisted?: boolean;
}

/** A source that a text cites. */
export interface Citation {
  kind: 'url' | 'document' | 'file' | 'search_result';
  url?: string;
  title?: string;
  cited_text?: string;
  /** Offsets into this block's text in Unicode code points, end exclusive. */
  start?: number;
  end?: number;
  file_id?: string;
  filename?: string;
  document_index?: number;
  page?: [number, number];
  block?: [number, number];
  raw?: unknown;
  origin: ProtocolId;
}

/** A token and its log probability. */
export interface TopLogprob {
  token: string;
  logprob: number;
  bytes?: number[] | null;
}

/** The log probability of a generated token, with the most likely alternatives. */
export interface TokenLogprob extends TopLogprob {
  top?: TopLogprob[];
}

/** Token counts of a response. */
export interface CanonicalUsage {
  /** All prompt tokens charged: uncached, cache read, cache written and tool-use prompt. */
  input_tokens: number;
  /** All generated tokens, reasoning included. */
  output_tokens: number;
  /** Subset of `input_tokens`. */
  cache_read_tokens?: number;
  /** Subset of `input_tokens`. */
  cache_creation_tokens?: number;
  /** Subset of `output_tokens`; as reported when `uncertain`. */
  reasoning_tokens?: number;
  details?: UsageDetails;
  /** The reported counts contradict each other, and it is unknown which are right. Never written to the wire. */
  uncertain?: true;
  /** The usage object of the source, verbatim. */
  extensions?: Extensions;
}

/** Token counts by kind, and counts of server tool requests. */
export interface UsageDetails {
  cache_creation_5m?: number;
  cache_creation_1h?: number;
  input_audio?: number;
  output_audio?: number;
  input_image?: number;
  output_image?: number;
  input_video?: number;
  input_document?: number;
  accepted_prediction?: number;
  rejected_prediction?: number;
  tool_use_prompt?: number;
  web_search_requests?: number;
  web_fetch_requests?: number;
}

/** Why generation stopped. */
export type StopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'tool_use'
  | 'content_filter'
  | 'stop_sequence'
  | 'refusal'
  /** Anthropic: a server-tool loop paused; send the conversation again to continue. */
  | 'pause_turn'
  | 'context_window'
  /** Generation aborted by the provider. */
  | 'error';

/** What the provider reports about the stop reason. */
export interface StopDetails {
  category?: string | null;
  explanation?: string | null;
  raw?: string;
}

/** A complete response. */
export interface CanonicalResponse extends Node {
  id: string;
  model: string;
  /** Unix seconds. */
  created?: number;
  /** The content of the first choice. */
  content: ContentBlock[];
  /** null only when the stream ended early. */
  stop_reason: StopReason | null;
  stop_sequence?: string | null;
  stop_details?: StopDetails;
  /** Absent when unknown, never zeros. */
  usage?: CanonicalUsage;
  /** Only when there is more than one; the first mirrors the fields above. */
  choices?: CanonicalChoice[];
  service_tier?: string;
  system_fingerprint?: string;
  error?: CanonicalError;
}

/** One choice of a response with several. */
export interface CanonicalChoice extends Node {
  index: number;
  content: ContentBlock[];
  stop_reason: StopReason | null;
  logprobs?: { content?: TokenLogprob[]; refusal?: TokenLogprob[] };
}

/** Corrects `end_turn` to `tool_use` when there are calls for the client to run, for all protocols. */
export function recomputeStop(stop: StopReason, content: Iterable<ContentBlock>): StopReason {
  if (stop !== 'end_turn') return stop;
  for (const block of content) if (block.type === 'tool_use' && isClientCall(block.kind)) return 'tool_use';
  return stop;
}

/** Whether the client, not the provider, runs calls of this kind. */
export const isClientCall = (kind: ToolKind | undefined): boolean => kind !== 'server' && kind !== 'mcp';
