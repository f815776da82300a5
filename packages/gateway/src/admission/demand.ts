/** The most that a request can use and cost, before it is sent. */

import type { OutputLimit } from '@sluice/core';
import type { PriceTable } from '../prices/table.ts';

/** A model that a request may be sent to. */
export interface DemandTarget {
  readonly provider: string;
  readonly model: string;
  /** The output limit of the model, where it is known. */
  readonly maxOutput: number | undefined;
  /** Whether the request is converted, which may raise a very low output limit. */
  readonly isConverted: boolean;
}

/** What is known of a request. */
export interface DemandOptions {
  /** Size of the body. */
  readonly bytes: number;
  /** `none`: nothing is generated, as for embeddings. */
  readonly output: OutputLimit | 'none';
  readonly targets: readonly DemandTarget[];
  readonly prices: PriceTable;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** What one attempt of a request can use and cost. */
export class Demand {
  readonly #options: DemandOptions;

  constructor(options: DemandOptions) {
    this.#options = options;
  }

  /** About how many tokens the request uses: its input, and the output that it asks for. */
  get tokens(): number {
    const { bytes, output, targets, prices } = this.#options;
    let window = 0;
    for (const { provider, model } of targets)
      window = Math.max(window, prices.find(provider, model).contextWindow ?? Number.POSITIVE_INFINITY);
    return Math.min(Math.ceil(bytes / BYTES_PER_TOKEN), window) + (output === 'none' ? 0 : (output.tokens ?? 0) * output.choices);
  }

  /** The most that one attempt can cost, at the most expensive target; or the target whose price is unknown. */
  get micros(): number | DemandTarget {
    const input = this.#options.bytes / MIN_BYTES_PER_TOKEN;
    return this.#price(input, Number.POSITIVE_INFINITY);
  }

  /** What an attempt that reported no usage may have cost: its input, and what a model can generate in this time. */
  assume(elapsedMs: number): number {
    const micros = this.#price(this.#options.bytes / BYTES_PER_TOKEN, (elapsedMs / 1000) * MAX_TOKENS_PER_SECOND);
    return typeof micros === 'number' ? micros : 0;
  }

  #price(input: number, maxOutput: number): number | DemandTarget {
    const { targets, prices, at } = this.#options;
    let highest = 0;
    for (const target of targets) {
      const { provider, model } = target;
      // An upstream rejects what exceeds the context window. Images and audio have fewer tokens than bytes.
      const { contextWindow = Number.POSITIVE_INFINITY } = prices.find(provider, model);
      const output = Math.min(this.#findOutput(target, contextWindow), maxOutput);
      const tokens = { input: Math.ceil(Math.min(input, contextWindow)), output: Math.ceil(output) };
      const micros = prices.bound(tokens, provider, model, at);
      if (micros === null) return target;
      highest = Math.max(highest, micros);
    }
    return highest;
  }

  #findOutput({ maxOutput, isConverted }: DemandTarget, contextWindow: number): number {
    const { output } = this.#options;
    if (output === 'none') return 0;
    const known = maxOutput ?? Math.min(contextWindow, MAX_OUTPUT_TOKENS);
    const requested = output.tokens === undefined ? known : Math.max(output.tokens, isConverted ? RAISED_TOKENS : 0);
    return requested * output.choices;
  }
}

/** As `estimateTokens` of the core counts English and code. */
const BYTES_PER_TOKEN = 4;

/** Tokens of real requests have more bytes, in any language: their JSON counts, too. */
const MIN_BYTES_PER_TOKEN = 2;

/** No model in the price snapshot generates more for one request. */
const MAX_OUTPUT_TOKENS = 131_072;

/** The fastest public endpoints stay below it. */
const MAX_TOKENS_PER_SECOND = 500;

/** What a lower `max_tokens` is raised to when Anthropic's thinking would not fit into it. */
const RAISED_TOKENS = 2048;
