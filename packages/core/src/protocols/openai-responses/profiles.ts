import { DEFAULT_PROFILE, type FindProfile, memoizeProfiles, type ProviderProfile } from '../../codec/profile.ts';
import type { ToolRules } from '../../passes/rules.ts';

/**
 * The profile of an unknown server of this protocol: what OpenAI documents, and nothing that only its models support.
 */
export const DEFAULT_RESPONSES_PROFILE: ProviderProfile = {
  ...DEFAULT_PROFILE,
  max_tokens_field: 'max_completion_tokens',
  allowed_tools: true,
  tool_images: true,
  system_role: 'developer',
  // The protocol has no stop sequences.
  supports_stop: false,
  tool_name: { pattern: /^[a-zA-Z0-9_-]+$/, max: 128 },
  // Call ids have 1 to 64 characters.
  tool_id: { pattern: /^[\x21-\x7e]+$/, max: 64 },
};

/**
 * Known differences of providers from the default. `recorded` means seen in recorded traffic of the provider. All of
 * them accept encrypted reasoning. A row without other fields is a provider that differs only in its responses, which
 * the decoder handles for all.
 */
export const OPENAI_RESPONSES_PROFILES: Readonly<Record<string, Partial<ProviderProfile>>> = {
  openai: { official: true, custom_tools: true, encrypted_reasoning: true },
  azure: { official: true, custom_tools: true, encrypted_reasoning: true },
  // The endpoint for Codex subscriptions.
  'chatgpt-codex': { official: true, custom_tools: true, encrypted_reasoning: true },
  // recorded: item ids that change with every event.
  'github-copilot': { custom_tools: true, encrypted_reasoning: true },
  // recorded: reasoning items with `format`, items that overlap.
  openrouter: { encrypted_reasoning: true },
  // recorded: x_search.
  xai: { encrypted_reasoning: true },
  // recorded: gpt-oss with reasoning_text, parts counted from 1.
  bedrock: { encrypted_reasoning: true },
};

const OPENAI = ['openai', 'azure', 'chatgpt-codex', 'github-copilot'];

const REASONING: Partial<ProviderProfile> = { supports_sampling: false };

interface ModelRule {
  /** Absent: for any provider. */
  providers?: readonly string[];
  model: RegExp;
  profile: Partial<ProviderProfile>;
}

/** Every matching rule is applied over the row of the provider, in this order. */
const MODEL_RULES: readonly ModelRule[] = [
  // Reasoning models of OpenAI behind any gateway; some name them `openai/gpt-5`.
  { model: /^(openai\/)?(o\d|gpt-([5-9]|\d\d)(?!-chat)([.-]|$))/, profile: { encrypted_reasoning: true } },
  // These reject `reasoning` and `include: ["reasoning.encrypted_content"]`; custom tools came with gpt-5.
  { providers: OPENAI, model: /^(gpt-(3|4)|chatgpt-|gpt-5-chat)/, profile: { thinking_mode: 'none', custom_tools: false } },
  { providers: OPENAI, model: /^o\d/, profile: { ...REASONING, custom_tools: false, effort_values: ['low', 'medium', 'high'] } },
  {
    providers: OPENAI,
    model: /^gpt-([5-9]|\d\d)(?!-chat)([.-]|$)/,
    profile: { ...REASONING, effort_values: ['minimal', 'low', 'medium', 'high'] },
  },
  { providers: OPENAI, model: /^gpt-5\.1/, profile: { effort_values: ['none', 'low', 'medium', 'high'] } },
  { providers: OPENAI, model: /^gpt-5\.([2-9]|\d\d)/, profile: { effort_values: ['none', 'low', 'medium', 'high', 'xhigh'] } },
  // langchain#35424, litellm#34599: they do not reason by default; codex, pro and later models do.
  { providers: OPENAI, model: /^gpt-5\.[1-4](?!\d)(?!.*-(codex|pro))/, profile: { reasons_by_default: false } },
  { providers: OPENAI, model: /^gpt-([6-9]|\d\d)/, profile: { effort_values: ['low', 'medium', 'high', 'xhigh', 'max'] } },
  // recorded: prompt_cache_breakpoint with gpt-5.6.
  { providers: ['openai'], model: /^gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)/, profile: { cache_breakpoints: true } },
];

/**
 * The profile of a provider and model. An unknown provider gets the default; the operator's `profile` overrides both.
 */
export const profileFor: FindProfile = /* @__PURE__ */ memoizeProfiles((providerId, model) => {
  const row = hasRecordedProfile(providerId) ? OPENAI_RESPONSES_PROFILES[providerId] : {};
  // Fine-tuned models are named after their base: ft:gpt-5-mini:org::id.
  const base = model.replace(/^ft:/, '');
  const profile = { ...DEFAULT_RESPONSES_PROFILE, ...row };
  for (const rule of MODEL_RULES)
    if ((rule.providers?.includes(providerId) ?? true) && rule.model.test(base)) Object.assign(profile, rule.profile);
  return profile;
});

/** Whether the provider is known. */
export const hasRecordedProfile = (providerId: string): boolean => Object.hasOwn(OPENAI_RESPONSES_PROFILES, providerId);

/**
 * The rules for tools. Only OpenAI supports namespaces: elsewhere the tools are flat, and the engine restores them in
 * the response.
 */
export const toolRules = (profile: ProviderProfile): ToolRules => ({
  toolName: profile.tool_name,
  custom: profile.custom_tools,
  namespaces: profile.official,
  objectRoot: true,
});
