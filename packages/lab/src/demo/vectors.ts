/** Embeddings and rankings of the demo model. */

import type {
  CanonicalEmbeddingRequest,
  CanonicalEmbeddingResponse,
  CanonicalRerankRequest,
  CanonicalRerankResponse,
} from '@sluice/core';

/** The demo's response to an embeddings request. */
export function embed({ model, input, dimensions }: CanonicalEmbeddingRequest): CanonicalEmbeddingResponse {
  const texts = input.map((item) => (typeof item === 'string' ? item : item.join(' ')));
  return {
    model,
    data: texts.map((text, index) => ({ index, embedding: embedText(text, dimensions) })),
    usage: { input_tokens: texts.reduce((sum, text) => sum + splitWords(text).length, 0) },
  };
}

/** A vector of length one: equal texts have equal vectors, and texts that share words are near each other. */
export function embedText(text: string, dimensions: number = DIMENSIONS): number[] {
  const vector = new Array<number>(Math.min(dimensions, MAX_DIMENSIONS)).fill(0);
  for (const word of splitWords(text)) {
    const at = hash(word) % vector.length;
    vector[at] = (vector[at] ?? 0) + 1;
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

const DIMENSIONS = 8;

const MAX_DIMENSIONS = 4096;

/** The demo's response to a rerank request: scores by the share of the query's words that are in a document. */
export function rank({
  model,
  query,
  documents,
  top_n: most = documents.length,
}: CanonicalRerankRequest): CanonicalRerankResponse {
  const wanted = new Set(splitWords(query));
  const scored = documents.map((document, index) => {
    const words = new Set(splitWords(typeof document === 'string' ? document : JSON.stringify(document)));
    return { index, relevance_score: wanted.size === 0 ? 0 : [...wanted].filter((word) => words.has(word)).length / wanted.size };
  });
  return { model, results: scored.toSorted((a, b) => b.relevance_score - a.relevance_score).slice(0, most) };
}

const splitWords = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** FNV-1a. */
function hash(word: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) value = Math.imul(value ^ word.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
