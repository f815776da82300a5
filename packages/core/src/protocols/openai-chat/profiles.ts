import { DEFAULT_PROFILE, type FindProfile, type ProviderProfile, rememberProfiles } from '../../codec/profile.ts';
import type { ToolRules } from '../../passes/rules.ts';

/**
 * An unknown server that calls itself compatible. What a chat client sent stays; what is converted from other protocols gets the oldest names,
 * nothing that only OpenAI has, and no field that a strict server refuses (Groq and Mistral answer 400 or 422 to any they do not know).
 */
export const DEFAULT_CHAT_PROFILE: ProviderProfile = {
  ...DEFAULT_PROFILE,
  // Accepted in the recordings of 26 providers.
  stream_usage: true,
  reasoning_field: 'reasoning_content',
  reasoning_replay: 'as_sent',
  supports_sampling: true,
  supports_stop: true,
  // Many refuse `developer` (P16).
  system_role: 'system',
  strict_alternation: false,
  content_parts: true,
  tool_images: false,
  custom_tools: false,
  allowed_tools: false,
  json_schema: true,
  max_stop: 4,
  official: false,
  tool_name: { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 },
  tool_id: { pattern: /^[\x21-\x7e]+$/, max: 40 },
};

/**
 * What is known of each provider beyond the default. `recorded` means seen in recorded traffic of the provider; profiles.test.ts
 * checks the rows against the recordings. A row without fields is a provider whose departures are all in its answers, which the decoder reads for everyone.
 */
export const OPENAI_CHAT_PROFILES: Readonly<Record<string, Partial<ProviderProfile>>> = {
  // recorded: max_completion_tokens from gpt-4o on; no reasoning text in any response. allowed_tools is in the official types; more than 128 tools are rejected.
  openai: {
    max_tokens_field: 'max_completion_tokens',
    reasoning_field: 'none',
    reasoning_replay: 'never',
    reasoning_additive: false,
    allowed_tools: true,
    max_tools: 128,
    official: true,
  },
  // recorded: max_completion_tokens with gpt-4.1, o-series, gpt-5 and deepseek-r1; reasoning_content from DeepSeek.
  azure: { max_tokens_field: 'max_completion_tokens' },
  // recorded: gpt-4o with max_tokens; Claude's reasoning comes as reasoning_text (case reasoning-text-opaque-copilot).
  'github-copilot': {},

  // recorded: `reasoning` in answers, `reasoning{…}` in requests, reasoning_details replayed on turns with calls.
  // Reasoning is a part of completion_tokens, although 173 of 168 were reported once (z-ai/glm-4.6).
  openrouter: {
    reasoning_field: 'reasoning',
    reasoning_replay: 'tool_turns',
    reasoning_additive: false,
    thinking_field: 'reasoning',
  },
  // recorded: the same words as OpenRouter, nothing replayed.
  'vercel-gateway': { reasoning_field: 'reasoning', reasoning_additive: false, thinking_field: 'reasoning' },
  // recorded: reasoning{…} in the request, reasoning_details in the answer.
  snowflake: { thinking_field: 'reasoning' },

  // recorded: `reasoning`. Refuses it, and reasoning_content, in history ("property 'reasoning' is unsupported": gptel#774, jan#8136).
  groq: { reasoning_field: 'reasoning', reasoning_replay: 'never' },
  // recorded: `reasoning`.
  cerebras: { reasoning_field: 'reasoning' },
  // recorded: reasoning_content on a turn with calls goes back; `thinking{type}`. P84: must go back. No json_schema ("This response_format
  // type is unavailable now": llm-exe#662). `prefix` marks a prefill.
  deepseek: { reasoning_replay: 'tool_turns', thinking_field: 'thinking', json_schema: false, prefix: true },
  // recorded: thinking parts in content both ways, usage unasked in 18 of 18 streams. 422 for stream_options (avante#2347) and
  // for max_completion_tokens (openclaude#739). Ids of calls: exactly 9 letters or digits (opencode#1680).
  mistral: {
    reasoning_field: 'parts',
    reasoning_replay: 'always',
    stream_usage: false,
    max_tokens_field: 'max_tokens',
    prefix: true,
    audio_text: true,
    tool_id: { pattern: /^[a-zA-Z0-9]{9}$/, max: 9 },
  },
  // recorded: completion_tokens without the reasoning in 21 of 21.
  xai: { reasoning_additive: true },
  // Case reasoning-content; P84: history needs it back on turns with calls.
  moonshot: { reasoning_replay: 'tool_turns' },
  // recorded: reasoning_content goes back on turns without calls too (preserved thinking), `thinking{type}`.
  zai: { reasoning_replay: 'always', thinking_field: 'thinking' },
  // recorded: reasoning_content, max_tokens. The models of zai behind another address.
  'zai-coder': { thinking_field: 'thinking' },
  // recorded without requests: reasoning_content. `enable_thinking` is the documented switch.
  alibaba: { thinking_field: 'enable_thinking' },
  // recorded: usage unasked, no stream_options ever sent. 400 "user and assistant roles should be alternating" (perplexityai/api-discussion#265).
  perplexity: { stream_usage: false, strict_alternation: true },
  // Cases minimax: think tags, reasoning_details, message in the last chunk.
  minimax: {},

  // recorded: `reasoning`, and taken back on turns with calls. Counts max_tokens only and ignores max_completion_tokens (measured by users).
  ollama: { max_tokens_field: 'max_tokens', reasoning_field: 'reasoning', reasoning_replay: 'tool_turns' },
  'ollama-cloud': { max_tokens_field: 'max_tokens', reasoning_field: 'reasoning', reasoning_replay: 'tool_turns' },
  // Case reasoning-field: `reasoning` since 0.12, reasoning_content before.
  vllm: { reasoning_field: 'reasoning' },
  // recorded: reasoning_content goes back on turns with calls.
  llamacpp: { reasoning_replay: 'tool_turns' },
  // Case error-chunk-mid-stream-with-partial-text.
  lmstudio: {},
  // recorded: both fields go back, with and without calls.
  gpustack: { reasoning_replay: 'always' },
  // recorded: reasoning_content.
  mistralrs: {},

  // recorded: think tags of R1 in the text. Case tc-id-type-name-repeated-every-chunk.
  fireworks: {},
  // recorded: max_tokens, usage asked for.
  together: {},
  // Case tc-args-null-in-opener.
  deepinfra: {},
  // Case tc-name-fragmented (Switchyard).
  nvidia: {},
  // recorded: plain streams without usage when not asked.
  sambanova: {},
  // Case usage-cumulative-on-every-chunk.
  siliconflow: {},
  // recorded: calls without an id; thought signatures ride in extra_content (case extra-content-thought-signature-google).
  'google-openai-compat': {},
  // recorded: reasoning_content goes back on turns with calls.
  doubleword: { reasoning_replay: 'tool_turns' },
  // recorded: `reasoning` goes back on turns with calls.
  crusoe: { reasoning_field: 'reasoning', reasoning_replay: 'tool_turns' },
  // recorded: reasoning_content.
  venice: {},
  // recorded: kimi-k2.5, reasoning_content goes back on turns with calls.
  avian: { reasoning_replay: 'tool_turns' },
  // recorded: reasoning_content (gpt-oss).
  'cloudflare-workers-ai': {},
  // recorded: plain.
  huggingface: {},
  // recorded: ids of calls of 46 characters go back.
  baseten: { tool_id: { pattern: /^[\x21-\x7e]+$/, max: 64 } },
};

interface ModelRule {
  providers: readonly string[];
  model: RegExp;
  profile: Partial<ProviderProfile>;
}

const OPENAI = ['openai', 'azure', 'github-copilot'];

/**
 * recorded: gpt-5-nano refuses max_tokens (chat-bad-request), o1-mini the role `system` (openai-system-role-system), gpt-5-nano takes `developer`.
 * Sampling and `stop`: openai-node's doc of `stop`, vercel/ai openai-language-model-capabilities.ts; gpt-5 refuses both in public reports.
 */
const REASONING: Partial<ProviderProfile> = {
  max_tokens_field: 'max_completion_tokens',
  system_role: 'developer',
  supports_sampling: false,
  supports_stop: false,
};

/** Every rule that fits is laid over the row of the provider, in this order. */
const MODEL_RULES: readonly ModelRule[] = [
  // These refuse reasoning_effort ("Unrecognized request argument").
  { providers: OPENAI, model: /^(gpt-[34]|chatgpt-|gpt-5-chat)/, profile: { thinking_mode: 'none' } },
  { providers: OPENAI, model: /^o\d/, profile: { ...REASONING, effort_values: ['low', 'medium', 'high'] } },
  { providers: OPENAI, model: /^o1-(mini|preview)/, profile: { effort_values: [] } },
  // gpt-5-chat-latest does not reason, gpt-5.1-chat-latest does. Custom tools came with gpt-5 (case custom-tool-call).
  {
    providers: OPENAI,
    model: /^gpt-([5-9]|\d\d)(?!-chat)([.-]|$)/,
    profile: { ...REASONING, custom_tools: true, effort_values: ['minimal', 'low', 'medium', 'high'] },
  },
  // openai-openapi, ReasoningEffort: `none` from gpt-5.1 on and `minimal` no more, `xhigh` after gpt-5.1-codex-max. recorded: none with gpt-5.2.
  { providers: OPENAI, model: /^gpt-5\.1/, profile: { effort_values: ['none', 'low', 'medium', 'high'] } },
  { providers: OPENAI, model: /^gpt-5\.([2-9]|\d\d)/, profile: { effort_values: ['none', 'low', 'medium', 'high', 'xhigh'] } },
  // vercel/ai openai-language-model-capabilities.ts.
  { providers: OPENAI, model: /^gpt-([6-9]|\d\d)/, profile: { effort_values: ['low', 'medium', 'high', 'xhigh', 'max'] } },
  {
    providers: OPENAI,
    model: /^gpt-6-(sol|luna)$/,
    profile: { effort_values: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] },
  },
  // recorded: prompt_cache_breakpoint with gpt-5.6-sol and gpt-5.6-terra.
  { providers: ['openai'], model: /^gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)/, profile: { cache_breakpoints: true } },
  // recorded: on messages and calls, for Claude. openrouter.ai/docs: on parts, tools and the request.
  { providers: ['openrouter'], model: /^~?anthropic\/|claude/, profile: { cache_control: true } },
  // recorded: gpt-4o-mini-search-preview.
  { providers: OPENAI, model: /-search-(preview|api)/, profile: { web_search_options: true } },
  // recorded: 400 "does not support parameter reasoningEffort".
  { providers: ['xai'], model: /^grok-code-fast/, profile: { effort_values: [] } },
  // recorded: reasoning_tokens above completion_tokens, so they are not part of them.
  { providers: ['vercel-gateway'], model: /^google\//, profile: { reasoning_additive: true } },
  // The platform fixes them from K2.5 on and refuses others (java.agentscope.io, macparakeet#1087).
  { providers: ['moonshot'], model: /^kimi-k(2\.[5-9]|[3-9])/, profile: { supports_sampling: false } },
];

/**
 * Models that are served with their reasoning of earlier tool turns, wherever they run (P84): DeepSeek from V3.1 on, Kimi K2 Thinking and from K2.5
 * on, GLM from 4.5 on, MiniMax M1 and later, Qwen 3 and later, QwQ.
 */
const REPLAYED: readonly RegExp[] = [
  /deepseek-(?:v(?:3\.[1-9]|[4-9])|reasoner|r[2-9])/,
  /kimi-(?:k2-thinking|k2\.[5-9]|k[3-9]|thinking|latest|for-coding)/,
  /glm-(?:4\.[5-9]|[5-9])/,
  /minimax-m[1-9]/,
  /qwen-?(?:3|[4-9])|qwq/,
];

/** What a provider, and the model there, is known to accept. An unknown provider gets the default; the operator's own `profile` goes over it. */
export const profileFor: FindProfile = rememberProfiles((providerId, model) => {
  const row = hasFacts(providerId) ? OPENAI_CHAT_PROFILES[providerId] : {};
  // Fine-tuned models are called after their base: ft:gpt-5-mini:org::id.
  const base = model.replace(/^ft:/, '');
  const profile = { ...DEFAULT_CHAT_PROFILE, ...row };
  for (const rule of MODEL_RULES)
    if (rule.providers.includes(providerId) && rule.model.test(base)) Object.assign(profile, rule.profile);
  const name = model.toLowerCase();
  if (profile.reasoning_replay === 'as_sent' && REPLAYED.some((family) => family.test(name)))
    profile.reasoning_replay = 'tool_turns';
  return profile;
});

/** The rules of models are all bound to providers that have a row. */
export const hasFacts = (providerId: string): boolean => Object.hasOwn(OPENAI_CHAT_PROFILES, providerId);

/** OpenAI's reasoning models refuse `max_tokens`, wherever they run; compatible servers know it best (P66). */
const NEW_LIMIT_MODEL = /(?:^|[/:.])(?:o[1-9](?:-|$)|gpt-(?:[5-9]|\d\d)(?:[.-]|$))/;

/** The name of the limit of tokens where neither the profile nor a chat client names it. */
export const limitFieldOf = (model: string): NonNullable<ProviderProfile['max_tokens_field']> =>
  NEW_LIMIT_MODEL.test(model.toLowerCase()) ? 'max_completion_tokens' : 'max_tokens';

/** OpenAI refuses a tool whose schema is no object; other servers may take it. */
export const toolRules = (profile: ProviderProfile): ToolRules => ({
  toolName: profile.tool_name,
  custom: profile.custom_tools,
  namespaces: false,
  objectRoot: profile.official,
});
