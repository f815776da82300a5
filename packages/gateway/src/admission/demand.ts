/** The most that a request can use and cost, before it is sent. */

import type { PriceTable } from '../prices/table.ts';
import type { Work } from './work.ts';

/** A model that a request may be sent to. */
export interface DemandTarget {
  readonly provider: string;
  readonly model: string;
  /** The output limit of the model, where it is known. */
  readonly maxOutput: number | undefined;
  /** How often the provider uses its tools without a limit in the request; absent when that is not known. */
  readonly maxToolUses?: number | undefined;
  /** Whether the request is converted, which may raise a very low output limit, and drop the one of tool calls. */
  readonly isConverted: boolean;
}

/** What is known of a request. */
export interface DemandOptions {
  readonly work: Work;
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
    const { work, targets, prices } = this.#options;
    const { output, inputs } = work;
    let window = 0;
    for (const { provider, model } of targets)
      window = Math.max(window, prices.find(provider, model).contextWindow ?? Number.POSITIVE_INFINITY);
    const generated = output === 'none' ? 0 : (output.tokens ?? 0) * output.choices;
    return Math.ceil(Math.min(estimateInput(work), window * inputs) + generated);
  }

  /** The most that one attempt can cost, at the most expensive target; or the target whose price is unknown. */
  get micros(): number | DemandTarget {
    const { work } = this.#options;
    return this.#price((window, uses) => boundInput(work, window, uses), Number.POSITIVE_INFINITY);
  }

  /** What the request asks for whose price is not known; undefined when there is no such thing. */
  get unpriced(): string | undefined {
    return this.#options.work.unpriced;
  }

  /** What an attempt that reported no usage may have cost: its input, and what a model can generate in this time. */
  assume(elapsedMs: number): number {
    const { work } = this.#options;
    const { output, unreported, inputs } = work;
    const choices = output === 'none' ? 0 : output.choices;
    const micros =
      unreported === 'reserved'
        ? this.micros
        : this.#price(
            (window) => Math.min(estimateInput(work), window * inputs),
            (elapsedMs / 1000) * MAX_TOKENS_PER_SECOND * choices,
          );
    return typeof micros === 'number' ? micros : 0;
  }

  #price(countInput: (window: number, uses: number) => number, maxOutput: number): number | DemandTarget {
    const { work, targets, prices, at } = this.#options;
    const hasMedia = work.images > 0 || work.isOpen;
    let highest = 0;
    for (const target of targets) {
      const { provider, model } = target;
      // An upstream rejects what exceeds the context window.
      const { contextWindow = Number.POSITIVE_INFINITY } = prices.find(provider, model);
      const uses = countUses(work, target);
      const tokens = {
        input: Math.ceil(countInput(contextWindow, uses)),
        output: Math.ceil(Math.min(this.#findOutput(target, contextWindow), maxOutput)),
        searches: uses,
        hasMedia,
        isKeptLong: work.isKeptLong,
      };
      const micros = prices.bound(tokens, provider, model, at);
      if (micros === null) return target;
      highest = Math.max(highest, micros);
    }
    return highest;
  }

  #findOutput({ maxOutput, isConverted }: DemandTarget, contextWindow: number): number {
    const { output } = this.#options.work;
    if (output === 'none') return 0;
    const known = maxOutput ?? Math.min(contextWindow, MAX_OUTPUT_TOKENS);
    const requested = output.tokens === undefined ? known : Math.max(output.tokens, isConverted ? RAISED_TOKENS : 0);
    return requested * output.choices;
  }
}

/** How often a target uses its tools: those without a limit as often as all together may be, else as often as the target does. */
function countUses({ uses, hasOpenTools, output }: Work, { maxToolUses, isConverted }: DemandTarget): number {
  // A conversion may drop the limit of a tool.
  if (!hasOpenTools) return isConverted && uses > 0 ? Math.max(uses, maxToolUses ?? 0) : uses;
  const most = isConverted || output === 'none' ? undefined : output.toolCalls;
  return uses + (most ?? maxToolUses ?? ASSUMED_USES);
}

/**
 * No limit is known for other providers: not OpenAI's, to which Codex sends a search without a limit in every request. To
 * refuse those would leave Codex without budgets; further uses are an overrun.
 */
const ASSUMED_USES = 1;

/** The most tokens that a model with this context window reads. */
function boundInput({ bytes, images, isOpen, inputs, resultTokens }: Work, window: number, uses: number): number {
  const most = window * inputs;
  const text = bytes + images * MAX_IMAGE_TOKENS;
  const first = isOpen ? Math.max(text, Math.min(window, MAX_WINDOW)) : text;
  // Every use of a tool makes the input longer, until the window is full.
  const growing = Math.min(uses, Math.max(0, Math.floor((most - first) / resultTokens) || 0));
  const read = Math.min(first, most) + growing * first + (resultTokens * growing * (growing + 1)) / 2;
  return read + (uses > growing ? (uses - growing) * most : 0);
}

const estimateInput = ({ bytes, images }: Work): number => bytes / BYTES_PER_TOKEN + images * IMAGE_TOKENS;

/** As `estimateTokens` of the core counts English and code. */
const BYTES_PER_TOKEN = 4;

/** A large image at most models. */
const IMAGE_TOKENS = 1500;

/** `gpt-4o-mini` counts 48,169 tokens for the largest image; other models count at most a third of it. */
const MAX_IMAGE_TOKENS = 50_000;

/** Only one model of the price snapshot reads more, and its window is known. */
const MAX_WINDOW = 2_000_000;

/** No model in the price snapshot generates more for one request. */
const MAX_OUTPUT_TOKENS = 131_072;

/** The fastest public endpoints stay below it, except those of special hardware. */
const MAX_TOKENS_PER_SECOND = 500;

/** What a lower `max_tokens` is raised to when Anthropic's thinking would not fit into it. */
const RAISED_TOKENS = 2048;
