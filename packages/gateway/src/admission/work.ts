/** What a request lets a provider do at most. */

import type { OutputLimit } from '@sluice/core';

/** What is done for a request, as far as its price depends on it. */
export interface Work {
  /** Bytes that a model reads as text. No tokenizer makes more than one token of a byte. */
  readonly bytes: number;
  /** Images, whose bytes say nothing about their tokens. */
  readonly images: number;
  /** Only the context window limits the input: it has documents, audio, or names something that the provider keeps. */
  readonly isOpen: boolean;
  /** Inputs that are read apart from each other, each as long as a context window: prompts, texts to embed. */
  readonly inputs: number;
  /**
   * How often tools of the provider are used that have a limit of their own. After each use the model reads everything
   * again, with the result.
   */
  readonly uses: number;
  /** Whether there are tools of the provider without such a limit. */
  readonly hasOpenTools: boolean;
  /** Tokens of the result of such a use. */
  readonly resultTokens: number;
  /** Whether input may be written to a cache that keeps it for an hour. */
  readonly isKeptLong: boolean;
  /** What is generated; `none`: nothing, as for embeddings. */
  readonly output: OutputLimit | 'none';
  /** What is charged when an upstream reports no usage. */
  readonly unreported: 'estimated' | 'reserved';
  /** What changes the price in a way that is not known. */
  readonly unpriced: string | undefined;
}

/** A request with text of this size that may generate this much. */
export const describeText = (bytes: number, output: Work['output'] = UNLIMITED): Work => ({
  bytes,
  images: 0,
  isOpen: false,
  inputs: 1,
  uses: 0,
  hasOpenTools: false,
  resultTokens: 0,
  isKeptLong: false,
  output,
  unreported: 'estimated',
  unpriced: undefined,
});

/** As much as the model generates, once. */
export const UNLIMITED: OutputLimit = { tokens: undefined, choices: 1 };
