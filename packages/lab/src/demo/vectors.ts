import type {
  CanonicalEmbeddingRequest,
  CanonicalEmbeddingResponse,
  CanonicalRerankRequest,
  CanonicalRerankResponse,
} from '@sluice/core';

const DIMENSIONS = 8;

const MAX_DIMENSIONS = 4096;

/** A vector of length one: the same text has always the same, and texts that share words are near each other. */
export function vectorOf(text: string, dimensions: number = DIMENSIONS): number[] {
  const vector = new Array<number>(Math.min(dimensions, MAX_DIMENSIONS)).fill(0);
  for (const word of wordsOf(text)) {
    const at = hash(word) % vector.length;
    vector[at] = (vector[at] ?? 0) + 1;
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

export function embed({ model, input, dimensions }: CanonicalEmbeddingRequest): CanonicalEmbeddingResponse {
  const texts = input.map((item) => (typeof item === 'string' ? item : item.join(' ')));
  return {
    model,
    data: texts.map((text, index) => ({ index, embedding: vectorOf(text, dimensions) })),
    usage: { input_tokens: texts.reduce((sum, text) => sum + wordsOf(text).length, 0) },
  };
}

/** By the share of the question's words that stand in a document. */
export function rank({
  model,
  query,
  documents,
  top_n: most = documents.length,
}: CanonicalRerankRequest): CanonicalRerankResponse {
  const wanted = new Set(wordsOf(query));
  const scored = documents.map((document, index) => {
    const words = new Set(wordsOf(typeof document === 'string' ? document : JSON.stringify(document)));
    return { index, relevance_score: wanted.size === 0 ? 0 : [...wanted].filter((word) => words.has(word)).length / wanted.size };
  });
  return { model, results: scored.toSorted((a, b) => b.relevance_score - a.relevance_score).slice(0, most) };
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** FNV-1a. */
function hash(word: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) value = Math.imul(value ^ word.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
