import type { ContentBlock } from './message.ts';
import type { CacheControl, JsonSchema, Node, ProtocolId } from './protocol.ts';

/** A chat request. */
export interface CanonicalRequest extends Node {
  /** The model the client requested; the encoder writes the upstream's name instead. */
  model: string;
  system?: SystemBlock[];
  messages: CanonicalMessage[];
  tools?: CanonicalTool[];
  tool_choice?: ToolChoice;
  parameters: RequestParameters;
  user_id?: string;
  /** Absent: plain text. */
  output_format?: OutputFormat;
  /** Absent: the provider's default. */
  parallel_tool_use?: boolean;
  thinking?: ThinkingConfig;
  stream?: boolean;
  /** The options the client sent. */
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean };
  metadata?: Record<string, string>;
  service_tier?: string;
  store?: boolean;
  /** State held by a server: a stateless converter can only reject it or use a state store. */
  state?: {
    previous_response_id?: string;
    conversation_id?: string;
    cached_content?: string;
    /** A prompt template that the provider stores: only it can expand the template. */
    prompt_id?: string;
    background?: boolean;
  };
  modalities?: ('text' | 'audio' | 'image')[];
  audio_output?: { format?: string; voice?: unknown };
  prompt_cache?: { key?: string; mode?: 'implicit' | 'explicit'; ttl?: string; cache_control?: CacheControl };
  verbosity?: 'low' | 'medium' | 'high';
  truncation?: 'auto' | 'disabled';
  /** Responses `include`, verbatim. */
  include?: string[];
}

/** System instructions before the conversation. */
export interface SystemBlock extends Node {
  type: 'text';
  text: string;
  cache_control?: CacheControl;
  /** The OpenAI role it came from. */
  role?: 'system' | 'developer';
}

/** One message of the conversation. */
export interface CanonicalMessage extends Node {
  /** `system` only for instructions in the middle of a conversation, kept in position. */
  role: 'user' | 'assistant' | 'tool' | 'system';
  content: ContentBlock[];
  name?: string;
  id?: string;
  /** Responses message phase. */
  phase?: 'commentary' | 'final_answer';
}

/** Sampling and output parameters. */
export interface RequestParameters {
  /** Limit of all output tokens, including reasoning. */
  max_tokens?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  stop_sequences?: string[];
  seed?: number;
  n?: number;
  logprobs?: boolean;
  top_logprobs?: number;
  logit_bias?: Record<string, number>;
  max_tool_calls?: number;
}

/** How much a model should think. */
export type Effort = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** Whether and how much the model thinks, and what it shows of it. */
export interface ThinkingConfig {
  /** `adaptive`: the model decides. */
  type: 'enabled' | 'disabled' | 'adaptive';
  effort?: Effort;
  budget_tokens?: number;
  display?: 'summarized' | 'omitted' | 'full';
  summary?: 'auto' | 'concise' | 'detailed';
}

/** The format that the response must have. */
export type OutputFormat =
  | { type: 'json_object' }
  | {
      type: 'json_schema';
      json_schema: { name?: string; description?: string; schema: JsonSchema; strict?: boolean };
    };

/** A tool that the model may call. */
export interface CanonicalTool extends Node {
  name: string;
  description?: string;
  /** Absent: an object without properties. */
  input_schema?: JsonSchema;
  kind?: 'function' | 'custom' | 'server' | 'mcp';
  /** Absent: the provider's default. */
  strict?: boolean;
  format?: { type: 'text' } | { type: 'grammar'; syntax: 'lark' | 'regex'; definition: string };
  server?: {
    /** web_search, web_fetch, code_execution, file_search, computer, … */
    type: string;
    /** Exact wire type including its date, e.g. `web_search_20260318`, `googleSearch`. */
    wire_type: string;
    config: Record<string, unknown>;
    origin: ProtocolId;
  };
  namespace?: string;
  defer_loading?: boolean;
  allowed_callers?: string[];
  output_schema?: JsonSchema;
  input_examples?: unknown[];
  eager_input_streaming?: boolean;
  /** A block of the conversation withdraws the tool: only this protocol declares it still. */
  withdrawn?: ProtocolId;
  cache_control?: CacheControl;
}

/** Whether the model may or must call tools. */
export interface ToolMode {
  type: 'auto' | 'none' | 'any';
  allowed_tools?: string[];
  /** Gemini's mode VALIDATED: the model may choose, and its calls satisfy their schemas. */
  validated?: boolean;
  /** A choice without a canonical form, verbatim; other protocols use `type`. */
  native?: { value: unknown; origin: ProtocolId };
}

/** Whether the model may or must call tools, or the one tool that it must call. */
export type ToolChoice = ToolMode | { type: 'tool'; name: string };

/** The kinds of endpoints. */
export type InterfaceType =
  | 'CHAT'
  | 'MODELS'
  | 'MODEL_INFO'
  | 'EMBEDDINGS'
  | 'RERANK'
  | 'AUDIO'
  | 'IMAGES'
  | 'COUNT_TOKENS'
  | 'PASSTHROUGH';

/** A model in a list of models. */
export interface CanonicalModel extends Node {
  id: string;
  name?: string;
  created?: number;
  owned_by?: string;
  description?: string;
  max_input_tokens?: number;
  max_output_tokens?: number;
  capabilities?: Record<string, boolean>;
  actions?: string[];
}

/** One page of models. */
export interface CanonicalModelList extends Node {
  models: CanonicalModel[];
  next_page?: string;
  has_more?: boolean;
}

/** A request for embeddings. */
export interface CanonicalEmbeddingRequest extends Node {
  model: string;
  /** Always a list; `single` records the scalar form. */
  input: (string | number[])[];
  single?: boolean;
  encoding_format?: 'float' | 'base64';
  dimensions?: number;
  user_id?: string;
  task_type?: string;
  title?: string;
}

/** One embedding. */
export interface CanonicalEmbedding extends Node {
  index: number;
  /** Text is base64 of little-endian float32. */
  embedding: number[] | string;
}

/** The embeddings of a request. */
export interface CanonicalEmbeddingResponse extends Node {
  model: string;
  data: CanonicalEmbedding[];
  usage?: { input_tokens: number };
}

/** A request to rank documents by relevance. */
export interface CanonicalRerankRequest extends Node {
  model: string;
  query: string;
  documents: (string | Record<string, unknown>)[];
  top_n?: number;
  return_documents?: boolean;
  max_chunks_per_doc?: number;
  max_tokens_per_doc?: number;
  rank_fields?: string[];
}

/** The ranked documents. */
export interface CanonicalRerankResponse extends Node {
  id?: string;
  model?: string;
  results: { index: number; relevance_score: number; document?: { text: string } | Record<string, unknown> }[];
  usage?: { input_tokens?: number; search_units?: number };
}

/** A request to count tokens. */
export type CanonicalCountTokensRequest = CanonicalRequest;

/** The token count of a request. */
export interface CanonicalCountTokensResponse {
  input_tokens: number;
  cached_tokens?: number;
  estimated?: boolean;
}
