/** What providers and models accept, and the bounded cache that profiles are looked up through. */

/**
 * What a provider or model is known to accept. About half of all 400 responses come from such quirks, not from rules of
 * the protocol.
 */
export interface ProviderProfile {
  // OpenAI Chat
  /**
   * Strict servers reject the new name, OpenAI's reasoning models the old one. Absent: the name a chat client sent,
   * else by the model family.
   */
  max_tokens_field?: 'max_completion_tokens' | 'max_tokens';
  /** Accepts `stream_options.include_usage`. */
  stream_usage: boolean;
  /** Where reasoning is sent. `parts`: as thinking parts inside the content (Mistral). */
  reasoning_field: 'reasoning_content' | 'reasoning' | 'parts' | 'none';
  /**
   * Whether reasoning of earlier turns is sent back. `as_sent`: only what a chat client replays. `tool_turns` and
   * `always`: also reasoning from clients of other protocols; DeepSeek V4 and Kimi need it on turns with tool calls.
   * `never`: the server rejects it.
   */
  reasoning_replay: 'never' | 'as_sent' | 'tool_turns' | 'always';
  /**
   * Whether reasoning tokens are added to `completion_tokens`. Absent: `total_tokens` decides; if it cannot, the
   * reported count stays and the usage is `uncertain`.
   */
  reasoning_additive?: boolean;
  /** Values of `reasoning_effort` it accepts; absent: all. */
  effort_values?: readonly string[];
  /**
   * The field that requests thinking. Absent: the one the client sent, else `reasoning_effort`. DeepSeek and GLM,
   * OpenRouter, and Qwen have their own.
   */
  thinking_field?: 'reasoning_effort' | 'thinking' | 'reasoning' | 'enable_thinking';
  /** Accepts `prompt_cache_breakpoint` on content parts (OpenAI from gpt-5.6). */
  cache_breakpoints?: boolean;
  /** Accepts Anthropic's `cache_control` on parts, calls, tools and the request (OpenRouter, for Claude). */
  cache_control?: boolean;
  /** A search model: web search is requested by `web_search_options`. */
  web_search_options?: boolean;
  /** Continues a trailing assistant message only with `prefix: true` (Mistral, DeepSeek). */
  prefix?: boolean;
  /** Expects `input_audio` as base64 text of any format, not as an object (Mistral). */
  audio_text?: boolean;
  // OpenAI Responses
  /** Accepts `include: ["reasoning.encrypted_content"]`; other servers may reject an unknown entry. */
  encrypted_reasoning: boolean;
  /** Accepts temperature, top_p and the like while it reasons (OpenAI's protocols). */
  supports_sampling: boolean;
  /** Whether it reasons when a request has no effort; false also means that it accepts sampling parameters then. */
  reasons_by_default?: boolean;
  /** Accepts stop sequences. */
  supports_stop: boolean;
  /** The role of system instructions. */
  system_role: 'system' | 'developer';
  /** Requires user and assistant messages to alternate. */
  strict_alternation: boolean;
  /** Accepts content as a list of parts; otherwise several texts are joined. */
  content_parts: boolean;
  /** Accepts images in tool results. */
  tool_images: boolean;
  /** Accepts custom tools, whose input is text. */
  custom_tools: boolean;
  /** Accepts a tool choice that lists allowed tools. */
  allowed_tools: boolean;
  /** Accepts a JSON schema as the response format. */
  json_schema: boolean;
  /** The maximum number of stop sequences. */
  max_stop: number;
  /** Requests with more tools are rejected before they are sent. Set only where the vendor documents a limit. */
  max_tools: number;
  /** OpenAI itself: accepts `safety_identifier`, `prompt_cache_*` and other fields that compatible servers reject. */
  official: boolean;
  /**
   * How thinking is controlled: by the model or an effort, by a token budget, or not available. `as_sent`: unknown; an
   * Anthropic client's settings go unchanged, those of other clients become a budget.
   */
  thinking_mode: 'adaptive' | 'budget' | 'none' | 'as_sent';
  // Anthropic
  /** An adaptive model that still accepts `thinking.budget_tokens`: an Anthropic client's budget goes unchanged. */
  accepts_budget?: boolean;
  /** Rejects temperature, top_p and top_k. */
  rejects_sampling: boolean;
  /** Continues a trailing assistant message. */
  prefill: boolean;
  /** Accepts system messages in the middle of a conversation. */
  mid_system: boolean;
  /** The output limit of the model: sent as `max_tokens` when the client sends none. */
  max_output_tokens: number;
  /** How often tools of the provider are used at most when the request does not limit it. Absent: unknown. */
  max_tool_uses?: number;
  /**
   * Absent: unknown; an Anthropic client's format goes unchanged, that of other clients is added to the instructions.
   */
  structured_outputs?: boolean;
  /** Rejects temperature and top_p in one request. */
  temperature_xor_top_p: boolean;
  /** Rejects disabled thinking with an effort above `high`. */
  rejects_disabled_above_high: boolean;
  /** The only `anthropic-version` that the server accepts. Absent: the client's, else 2023-06-01. */
  anthropic_version?: string;
  // Gemini
  /**
   * Gemini 3 and later: enforces thoughtSignature, accepts functionResponse.parts, and has thinkingLevel instead of
   * thinkingBudget.
   */
  gemini3: boolean;
  /** The range of the thinking budget in tokens, and whether thinking can be switched off. */
  thinking_budgets?: { least: number; most: number; off: boolean };
  /** Accepts JSON schemas for tools and responses, not only OpenAPI schemas. */
  json_schema_params: boolean;
  /** Accepts ids of function calls. */
  function_call_ids: boolean;
  /** Accepts function tools together with JSON output. */
  tools_with_json_output: boolean;
  /** Accepts built-in tools together with functions. */
  builtin_with_functions: boolean;
  /** The characters and length of tool names. */
  tool_name: { pattern: RegExp; max: number };
  /** The characters and length of tool call ids. */
  tool_id: { pattern: RegExp; max: number };
}

/** The profile of an unknown server, before the protocol adds its own defaults. */
export const DEFAULT_PROFILE: ProviderProfile = {
  stream_usage: true,
  reasoning_field: 'none',
  reasoning_replay: 'as_sent',
  encrypted_reasoning: false,
  supports_sampling: true,
  supports_stop: true,
  system_role: 'system',
  strict_alternation: false,
  content_parts: true,
  tool_images: false,
  custom_tools: false,
  allowed_tools: false,
  json_schema: true,
  max_stop: Number.MAX_SAFE_INTEGER,
  max_tools: Number.MAX_SAFE_INTEGER,
  official: false,
  thinking_mode: 'adaptive',
  rejects_sampling: false,
  prefill: false,
  mid_system: true,
  max_output_tokens: Number.MAX_SAFE_INTEGER,
  temperature_xor_top_p: false,
  rejects_disabled_above_high: false,
  gemini3: false,
  json_schema_params: false,
  function_call_ids: true,
  tools_with_json_output: true,
  builtin_with_functions: true,
  tool_name: { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 },
  tool_id: { pattern: /^[\x21-\x7e]+$/, max: 64 },
};

/** Looks up the profile of a provider and model. */
export type FindProfile = (providerId: string, model?: string) => ProviderProfile;

const PROVIDERS = { entries: 100, bytes: 64 * 1024 };

const MODELS = { entries: 200, bytes: 64 * 1024 };

/**
 * `find` with a cache: every exchange needs one of a few profiles. They are frozen because all exchanges share them.
 */
export function memoizeProfiles(find: (providerId: string, model: string) => ProviderProfile): FindProfile {
  const byProvider = memo(PROVIDERS, (id) => memo(MODELS, (model) => Object.freeze(find(findVendor(id), model))));
  return (providerId, model = '') => byProvider(providerId)(model);
}

const findVendor = (id: string): string => (Object.hasOwn(VENDORS, id) && VENDORS[id]) || id;

/**
 * Provider ids for the second protocol of a vendor. Each protocol has one row for a vendor, under the vendor's id; the
 * ids here are those of docs/config.md.
 */
const VENDORS: Readonly<Record<string, string>> = {
  'openai-responses': 'openai',
  'azure-responses': 'azure',
  'xai-responses': 'xai',
  'openrouter-anthropic': 'openrouter',
  'vercel-gateway-anthropic': 'vercel-gateway',
  'deepseek-anthropic': 'deepseek',
  'moonshot-anthropic': 'moonshot',
  'zai-anthropic': 'zai',
  'minimax-anthropic': 'minimax',
};

// ---- caches: every cache of this package is a `memo` or a `memoWeak`, so it holds results of pure functions only, and
// clearing one at any time changes nothing but the time a call takes.

/**
 * `compute` with a cache for keys that clients can invent: computed once for each key, until the key is evicted. The key
 * must determine the result; further arguments only save `compute` from parsing it.
 */
export function memo<T extends NonNullable<unknown>, Rest extends unknown[]>(
  max: CacheLimits,
  compute: (key: string, ...rest: Rest) => T,
): (key: string, ...rest: Rest) => T {
  const cache = new BoundedCache<T>(max);
  return (key, ...rest) => {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const value = compute(key, ...rest);
    cache.set(key, value);
    return value;
  };
}

/** `compute` with a cache for frozen objects: each result lives as long as its key. */
export function memoWeak<K extends object, T extends NonNullable<unknown>>(compute: (key: K) => T): (key: K) => T {
  const cache = new WeakMap<K, T>();
  return (key) => {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const value = compute(key);
    cache.set(key, value);
    return value;
  };
}

/** How much a cache may hold: entries, and bytes of their keys (two for each UTF-16 code unit). */
export interface CacheLimits {
  entries: number;
  bytes: number;
}

/**
 * A map that never holds more than its limits, for keys that clients can invent. Two generations approximate LRU: when
 * the young one is full, the old one is dropped. A hit costs one lookup and no write, where exact LRU would delete and
 * insert.
 */
export class BoundedCache<T extends NonNullable<unknown>> {
  /** Limits of one generation. */
  readonly #entries: number;
  readonly #bytes: number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();
  #youngBytes = 0;
  #oldBytes = 0;

  constructor({ entries, bytes }: CacheLimits) {
    this.#entries = entries / 2;
    this.#bytes = bytes / 2;
  }

  /** The number of entries. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** The bytes of all keys. */
  get bytes(): number {
    return this.#youngBytes + this.#oldBytes;
  }

  get(key: string): T | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const aged = this.#old.get(key);
    if (aged !== undefined) this.set(key, aged);
    return aged;
  }

  /** A key longer than half of the limit is not stored. */
  set(key: string, value: T): void {
    this.delete(key);
    const bytes = countBytes(key);
    if (bytes > this.#bytes) return;
    if (this.#young.size + 1 > this.#entries || this.#youngBytes + bytes > this.#bytes) this.#age();
    this.#young.set(key, value);
    this.#youngBytes += bytes;
  }

  delete(key: string): void {
    if (this.#young.delete(key)) this.#youngBytes -= countBytes(key);
    else if (this.#old.delete(key)) this.#oldBytes -= countBytes(key);
  }

  #age(): void {
    this.#old = this.#young;
    this.#oldBytes = this.#youngBytes;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

const countBytes = (key: string): number => 2 * key.length;
