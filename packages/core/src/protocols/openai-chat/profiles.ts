import { DEFAULT_PROFILE, type FindProfile, memoizeProfiles, type ProviderProfile } from '../../codec/profile.ts';
import type { ToolRules } from '../../passes/rules.ts';

/**
 * The profile of an unknown compatible server. What a chat client sent is passed on; converted requests use the oldest
 * field names, nothing that only OpenAI supports, and no field that a strict server rejects (Groq and Mistral respond
 * with 400 or 422 to unknown fields).
 */
export const DEFAULT_CHAT_PROFILE: ProviderProfile = {
  ...DEFAULT_PROFILE,
  // Accepted in the recordings of 26 providers.
  stream_usage: true,
  reasoning_field: 'reasoning_content',
  reasoning_replay: 'as_sent',
  supports_sampling: true,
  supports_stop: true,
  // Many servers reject `developer`.
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
 * Known differences of providers from the default. `recorded` means seen in recorded traffic of the provider;
 * profiles.test.ts checks the rows against the recordings. A row without fields is a provider that differs only in its
 * responses, which the decoder handles for all.
 */
export const OPENAI_CHAT_PROFILES: Readonly<Record<string, Partial<ProviderProfile>>> = {
  // recorded: max_completion_tokens from gpt-4o on; no reasoning text in any response. The official types have
  // allowed_tools; more than 128 tools are rejected.
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

  // recorded: `reasoning` in responses, `reasoning{…}` in requests, reasoning_details sent back on turns with calls.
  // Reasoning is part of completion_tokens, although 173 of 168 were reported once (z-ai/glm-4.6).
  openrouter: {
    reasoning_field: 'reasoning',
    reasoning_replay: 'tool_turns',
    reasoning_additive: false,
    thinking_field: 'reasoning',
  },
  // recorded: the fields of OpenRouter; nothing is sent back.
  'vercel-gateway': { reasoning_field: 'reasoning', reasoning_additive: false, thinking_field: 'reasoning' },
  // recorded: reasoning{…} in the request, reasoning_details in the response.
  snowflake: { thinking_field: 'reasoning' },

  // recorded: `reasoning`. Rejects it and reasoning_content in history ("property 'reasoning' is unsupported":
  // gptel#774, jan#8136).
  groq: { reasoning_field: 'reasoning', reasoning_replay: 'never' },
  // recorded: `reasoning`.
  cerebras: { reasoning_field: 'reasoning' },
  // recorded: reasoning_content on turns with calls is sent back, and is required; `thinking{type}`. No json_schema
  // ("This response_format type is unavailable now": llm-exe#662). `prefix` marks a prefill.
  deepseek: { reasoning_replay: 'tool_turns', thinking_field: 'thinking', json_schema: false, prefix: true },
  // recorded: thinking parts in content in both directions, usage without a request in 18 of 18 streams. 422 for
  // stream_options (avante#2347) and for max_completion_tokens (openclaude#739). Call ids: exactly 9 letters or digits
  // (opencode#1680).
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
  // Case reasoning-content; required in history on turns with calls.
  moonshot: { reasoning_replay: 'tool_turns' },
  // recorded: reasoning_content is sent back on turns without calls too (preserved thinking), `thinking{type}`.
  zai: { reasoning_replay: 'always', thinking_field: 'thinking' },
  // recorded: reasoning_content, max_tokens. The models of zai behind another address.
  'zai-coder': { thinking_field: 'thinking' },
  // recorded without requests: reasoning_content. `enable_thinking` is the documented switch.
  alibaba: { thinking_field: 'enable_thinking' },
  // recorded: usage without a request, no stream_options sent. 400 "user and assistant roles should be alternating"
  // (perplexityai/api-discussion#265).
  perplexity: { stream_usage: false, strict_alternation: true },
  // Cases minimax: think tags, reasoning_details, message in the last chunk.
  minimax: {},

  // recorded: `reasoning`, also sent back on turns with calls. Reads max_tokens only and ignores max_completion_tokens
  // (measured by users).
  ollama: { max_tokens_field: 'max_tokens', reasoning_field: 'reasoning', reasoning_replay: 'tool_turns' },
  'ollama-cloud': { max_tokens_field: 'max_tokens', reasoning_field: 'reasoning', reasoning_replay: 'tool_turns' },
  // Case reasoning-field: `reasoning` since 0.12, reasoning_content before.
  vllm: { reasoning_field: 'reasoning' },
  // recorded: reasoning_content is sent back on turns with calls.
  llamacpp: { reasoning_replay: 'tool_turns' },
  // Case error-chunk-mid-stream-with-partial-text.
  lmstudio: {},
  // recorded: both fields are sent back, with and without calls.
  gpustack: { reasoning_replay: 'always' },
  // recorded: reasoning_content.
  mistralrs: {},

  // recorded: think tags of R1 in the text. Case tc-id-type-name-repeated-every-chunk.
  fireworks: {},
  // recorded: max_tokens, usage on request.
  together: {},
  // Case tc-args-null-in-opener.
  deepinfra: {},
  // Case tc-name-fragmented (Switchyard).
  nvidia: {},
  // recorded: plain streams, usage only on request.
  sambanova: {},
  // Case usage-cumulative-on-every-chunk.
  siliconflow: {},
  // recorded: calls without an id; thought signatures in extra_content (case extra-content-thought-signature-google).
  'google-openai-compat': {},
  // recorded: reasoning_content is sent back on turns with calls.
  doubleword: { reasoning_replay: 'tool_turns' },
  // recorded: `reasoning` is sent back on turns with calls.
  crusoe: { reasoning_field: 'reasoning', reasoning_replay: 'tool_turns' },
  // recorded: reasoning_content.
  venice: {},
  // recorded: kimi-k2.5, reasoning_content is sent back on turns with calls.
  avian: { reasoning_replay: 'tool_turns' },
  // recorded: reasoning_content (gpt-oss).
  'cloudflare-workers-ai': {},
  // recorded: plain.
  huggingface: {},
  // recorded: call ids of 46 characters are sent back.
  baseten: { tool_id: { pattern: /^[\x21-\x7e]+$/, max: 64 } },
};

const OPENAI = ['openai', 'azure', 'github-copilot'];

/**
 * recorded: gpt-5-nano rejects max_tokens (chat-bad-request), o1-mini the role `system` (openai-system-role-system),
 * gpt-5-nano accepts `developer`. Sampling and `stop`: openai-node's doc of `stop`, vercel/ai
 * openai-language-model-capabilities.ts; gpt-5 rejects both in public reports.
 */
const REASONING: Partial<ProviderProfile> = {
  max_tokens_field: 'max_completion_tokens',
  system_role: 'developer',
  supports_sampling: false,
  supports_stop: false,
};

interface ModelRule {
  providers: readonly string[];
  model: RegExp;
  profile: Partial<ProviderProfile>;
}

/** Every matching rule is applied over the row of the provider, in this order. */
const MODEL_RULES: readonly ModelRule[] = [
  // These reject reasoning_effort ("Unrecognized request argument").
  { providers: OPENAI, model: /^(gpt-[34]|chatgpt-|gpt-5-chat)/, profile: { thinking_mode: 'none' } },
  { providers: OPENAI, model: /^o\d/, profile: { ...REASONING, effort_values: ['low', 'medium', 'high'] } },
  { providers: OPENAI, model: /^o1-(mini|preview)/, profile: { effort_values: [] } },
  // gpt-5-chat-latest does not reason, gpt-5.1-chat-latest does. Custom tools came with gpt-5 (case custom-tool-call).
  {
    providers: OPENAI,
    model: /^gpt-([5-9]|\d\d)(?!-chat)([.-]|$)/,
    profile: { ...REASONING, custom_tools: true, effort_values: ['minimal', 'low', 'medium', 'high'] },
  },
  // openai-openapi, ReasoningEffort: `none` replaces `minimal` from gpt-5.1 on, `xhigh` after gpt-5.1-codex-max.
  // recorded: none with gpt-5.2.
  { providers: OPENAI, model: /^gpt-5\.1/, profile: { effort_values: ['none', 'low', 'medium', 'high'] } },
  { providers: OPENAI, model: /^gpt-5\.([2-9]|\d\d)/, profile: { effort_values: ['none', 'low', 'medium', 'high', 'xhigh'] } },
  // langchain#35424, litellm#34599: they do not reason by default; codex, pro and later models do.
  { providers: OPENAI, model: /^gpt-5\.[1-4](?!\d)(?!.*-(codex|pro))/, profile: { reasons_by_default: false } },
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
  // The platform fixes sampling from K2.5 on and rejects other values (java.agentscope.io, macparakeet#1087).
  { providers: ['moonshot'], model: /^kimi-k(2\.[5-9]|[3-9])/, profile: { supports_sampling: false } },
];

/**
 * Models that need their reasoning of earlier tool turns at any provider: DeepSeek from V3.1 on, Kimi K2 Thinking and
 * from K2.5 on, GLM from 4.5 on, MiniMax M1 and later, Qwen 3 and later, QwQ.
 */
const REPLAYED_MODELS: readonly RegExp[] = [
  /deepseek-(?:v(?:3\.[1-9]|[4-9])|reasoner|r[2-9])/,
  /kimi-(?:k2-thinking|k2\.[5-9]|k[3-9]|thinking|latest|for-coding)/,
  /glm-(?:4\.[5-9]|[5-9])/,
  /minimax-m[1-9]/,
  /qwen-?(?:3|[4-9])|qwq/,
];

/**
 * The profile of a provider and model. An unknown provider gets the default; the operator's `profile` overrides both.
 */
export const profileFor: FindProfile = /* @__PURE__ */ memoizeProfiles((providerId, model) => {
  const row = hasRecordedProfile(providerId) ? OPENAI_CHAT_PROFILES[providerId] : {};
  // Fine-tuned models are named after their base: ft:gpt-5-mini:org::id.
  const base = model.replace(/^ft:/, '');
  const profile = { ...DEFAULT_CHAT_PROFILE, ...row };
  for (const rule of MODEL_RULES)
    if (rule.providers.includes(providerId) && rule.model.test(base)) Object.assign(profile, rule.profile);
  const name = model.toLowerCase();
  if (profile.reasoning_replay === 'as_sent' && REPLAYED_MODELS.some((family) => family.test(name)))
    profile.reasoning_replay = 'tool_turns';
  return profile;
});

/** Whether the provider is known. Every model rule is bound to a provider that has a row. */
export const hasRecordedProfile = (providerId: string): boolean => Object.hasOwn(OPENAI_CHAT_PROFILES, providerId);

/** The rules for tools. OpenAI rejects a tool whose schema is not an object; other servers may accept it. */
export const toolRules = (profile: ProviderProfile): ToolRules => ({
  toolName: profile.tool_name,
  custom: profile.custom_tools,
  namespaces: false,
  objectRoot: profile.official,
});

/** OpenAI's reasoning models reject `max_tokens` at any provider; compatible servers support it best. */
const NEW_LIMIT_MODEL = /(?:^|[/:.])(?:o[1-9](?:-|$)|gpt-(?:[5-9]|\d\d)(?:[.-]|$))/;

/** The field of the token limit if neither the profile nor a chat client determines it. */
export const findLimitField = (model: string): NonNullable<ProviderProfile['max_tokens_field']> =>
  NEW_LIMIT_MODEL.test(model.toLowerCase()) ? 'max_completion_tokens' : 'max_tokens';
