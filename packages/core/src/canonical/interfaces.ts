import type { Node } from './protocol.ts';
import type { CanonicalRequest } from './request.ts';

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

export interface CanonicalModelList extends Node {
  models: CanonicalModel[];
  next_page?: string;
  has_more?: boolean;
}

export interface CanonicalEmbeddingRequest extends Node {
  model: string;
  /** Always a list; `single` remembers the scalar form. */
  input: (string | number[])[];
  single?: boolean;
  encoding_format?: 'float' | 'base64';
  dimensions?: number;
  user_id?: string;
  task_type?: string;
  title?: string;
}

export interface CanonicalEmbedding extends Node {
  index: number;
  /** A string is base64 of little-endian float32. */
  embedding: number[] | string;
}

export interface CanonicalEmbeddingResponse extends Node {
  model: string;
  data: CanonicalEmbedding[];
  usage?: { input_tokens: number };
}

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

export interface CanonicalRerankResponse extends Node {
  id?: string;
  model?: string;
  results: { index: number; relevance_score: number; document?: { text: string } | Record<string, unknown> }[];
  usage?: { input_tokens?: number; search_units?: number };
}

export type CanonicalCountTokensRequest = CanonicalRequest;

export interface CanonicalCountTokensResponse {
  input_tokens: number;
  cached_tokens?: number;
  estimated?: boolean;
}
