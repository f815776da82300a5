import type { CacheControl, Node, ProtocolId, SignedBlob } from './protocol.ts';

export type ContentBlock =
  | TextBlock
  | ImageBlock
  | AudioBlock
  | FileBlock
  | ToolUseBlock
  | ToolResultBlock
  | ThinkingBlock
  | OpaqueBlock;

export interface TextBlock extends Node {
  type: 'text';
  text: string;
  /** The text came from an OpenAI refusal field; the flag lets an encoder restore it. */
  refusal?: boolean;
  citations?: Citation[];
  cache_control?: CacheControl;
  logprobs?: TokenLogprob[];
  /** Gemini may sign a plain text part. */
  signature?: SignedBlob;
}

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

export interface AudioBlock extends Node {
  type: 'audio';
  source: { data?: string; format?: string; media_type?: string; url?: string; file_id?: string };
  transcript?: string;
  audio_id?: string;
  expires_at?: number;
  cache_control?: CacheControl;
}

/** Documents, and video and other media: `media_type` tells. */
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

export type ToolKind = 'function' | 'custom' | 'server' | 'mcp';

export interface ToolUseBlock extends Node {
  type: 'tool_use';
  /** Never empty: a decoder derives one when the wire has none. */
  id: string;
  name: string;
  /** Object for functions, text for custom tools. */
  input: Record<string, unknown> | string;
  /** The argument text as the wire had it, whenever there was one: key order, big integers and spacing survive. */
  input_raw?: string;
  /** Default `function`; `server` and `mcp` calls are executed by the provider. */
  kind?: ToolKind;
  namespace?: string;
  item_id?: string;
  status?: 'in_progress' | 'completed' | 'incomplete';
  signature?: SignedBlob;
  cache_control?: CacheControl;
}

export interface ToolResultBlock extends Node {
  type: 'tool_result';
  tool_use_id: string;
  name?: string;
  content: string | (TextBlock | ImageBlock | AudioBlock | FileBlock | OpaqueBlock)[];
  is_error?: boolean;
  /** `server` and `mcp` results live inside the assistant message. */
  kind?: ToolKind;
  cache_control?: CacheControl;
}

export interface ThinkingBlock extends Node {
  type: 'thinking';
  /** `""` when omitted or redacted. */
  thinking: string;
  variant?: 'full' | 'summary' | 'redacted';
  signature?: SignedBlob;
  /** Responses has several summary parts; `thinking` is their join with a blank line. */
  summary_parts?: string[];
}

/** Anything only its own protocol understands: compaction, item_reference, executableCode, types of the future. */
export interface OpaqueBlock extends Node {
  type: 'opaque';
  origin: ProtocolId;
  raw: unknown;
  /** Human-readable stand-in for other protocols, when the source has one. */
  text?: string;
  /** The id of something that only the origin's server holds: without it, the conversation would be another one. */
  held?: string;
  /** The tools that it declares are tools of the request, too: without the block only their position is lost. */
  hoisted?: boolean;
}

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

export interface TopLogprob {
  token: string;
  logprob: number;
  bytes?: number[] | null;
}

export interface TokenLogprob extends TopLogprob {
  top?: TopLogprob[];
}
