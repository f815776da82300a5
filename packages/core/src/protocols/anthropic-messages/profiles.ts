import { DEFAULT_PROFILE, type FindProfile, memoizeProfiles, type ProviderProfile } from '../../codec/profile.ts';
import type { ToolRules } from '../../passes/rules.ts';

/**
 * The profile of an unknown model, often one of another vendor behind a compatible API (GLM, Kimi, MiniMax, an
 * alias). Settings of Anthropic clients are sent unchanged, those of other clients in the basic form of the protocol.
 */
export const DEFAULT_ANTHROPIC_PROFILE: ProviderProfile = {
  ...DEFAULT_PROFILE,
  thinking_mode: 'as_sent',
  rejects_sampling: false,
  prefill: true,
  mid_system: false,
  max_output_tokens: 32_000,
  temperature_xor_top_p: false,
  rejects_disabled_above_high: false,
  tool_name: { pattern: /^[a-zA-Z0-9_-]+$/, max: 128 },
  tool_id: { pattern: /^[a-zA-Z0-9_-]+$/, max: Number.MAX_SAFE_INTEGER },
};

/**
 * Anthropic's latest models, and all Claude models that no rule below distinguishes: they reject most sampling
 * settings.
 */
const LATEST: Partial<ProviderProfile> = {
  thinking_mode: 'adaptive',
  // The request types of SDK 1.8 have no sampling parameters.
  rejects_sampling: true,
  prefill: false,
  structured_outputs: true,
  // Handling stop reasons: the loop of server tools ends after 10 iterations with `pause_turn`.
  max_tool_uses: 10,
  temperature_xor_top_p: true,
  rejects_disabled_above_high: true,
};

/**
 * A server that offers this API for its own models: only the basic protocol, without the features that only Claude is
 * known to have. These rows come from the vendors' documentation, not from recordings; the operator's `profile`
 * overrides them.
 */
const COMPATIBLE: Partial<ProviderProfile> = {
  thinking_mode: 'budget',
  rejects_sampling: false,
  prefill: true,
  structured_outputs: false,
  temperature_xor_top_p: false,
  rejects_disabled_above_high: false,
  // The version that the vendors' documentation shows.
  anthropic_version: '2023-06-01',
};

/** Bedrock accepts tool names of at most 64 characters. */
const BEDROCK: Partial<ProviderProfile> = { ...LATEST, tool_name: { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 } };

/**
 * What is known about each provider beyond the default; `recorded` means seen in recorded traffic. The rules for
 * Claude models below apply at every provider.
 */
export const ANTHROPIC_PROFILES: Readonly<Record<string, Partial<ProviderProfile>>> = {
  // recorded: 107 requests, claude-3 to claude-opus-5.
  anthropic: LATEST,
  // recorded: anthropic_version is in the body, the model in the path.
  bedrock: BEDROCK,
  'amazon-bedrock': BEDROCK,
  // recorded: the same.
  'google-vertex': LATEST,
  // recorded: claude-haiku-4-5 to claude-opus-4-5.
  azure: LATEST,
  // recorded: anthropic/claude-haiku-4.5. Empty because it also serves models of other vendors.
  openrouter: {},
  // api-docs.deepseek.com/guides/anthropic_api: Claude names are aliases of its own models; anthropic-beta and
  // anthropic-version are ignored.
  deepseek: COMPATIBLE,
  moonshot: COMPATIBLE,
  zai: COMPATIBLE,
  'zai-coder': COMPATIBLE,
  // platform.minimax.io/docs/api-reference/text-anthropic-api: thinking must be sent back with the calls it led to.
  minimax: COMPATIBLE,
  alibaba: COMPATIBLE,
  ollama: COMPATIBLE,
  lmstudio: COMPATIBLE,
  vllm: COMPATIBLE,
  llamacpp: COMPATIBLE,
};

/** Names of Anthropic's models. A name that only contains the word (`claude-proxy`) is an unknown model. */
const CLAUDE = /^claude-(instant|v?2|3|opus|sonnet|haiku|mythos|fable|[a-z]+-([5-9]|\d\d)(-|$))/;

interface ModelRule {
  model: RegExp;
  profile: Partial<ProviderProfile>;
}

/** The oldest Claude models, which accept every sampling setting and do not think. */
const EARLY: Partial<ProviderProfile> = {
  thinking_mode: 'none',
  rejects_sampling: false,
  prefill: true,
  structured_outputs: false,
  temperature_xor_top_p: false,
  rejects_disabled_above_high: false,
  max_output_tokens: 4096,
};

/** Claude models that think within a token budget. */
const BUDGET: Partial<ProviderProfile> = { ...EARLY, thinking_mode: 'budget', max_output_tokens: 64_000 };

const LOW_TO_HIGH = ['low', 'medium', 'high'];

/**
 * Every matching rule is applied over the provider's row, in this order. Names are compared with `-` for `.` and
 * without the decoration of gateways: `anthropic/claude-opus-4.5`, `us.anthropic.claude-opus-4-1-20250805-v1:0`,
 * `claude-haiku-4-5@20251001`.
 *
 * recorded: which models accept temperature, budgets, prefills, `role: system`, effort. Maximum outputs are those of
 * platform.claude.com.
 */
const MODEL_RULES: readonly ModelRule[] = [
  { model: CLAUDE, profile: LATEST },
  { model: /^claude-(instant|v?2|3)/, profile: EARLY },
  { model: /^claude-3-5-/, profile: { max_output_tokens: 8192 } },
  { model: /^claude-3-7-/, profile: BUDGET },
  { model: /^claude-(opus|sonnet|haiku)-4/, profile: { ...BUDGET, effort_values: LOW_TO_HIGH } },
  { model: /^claude-opus-4(-[01](-|$)|-\d{8}|$)/, profile: { max_output_tokens: 32_000 } },
  // P69: 4.1 and later reject both together. Structured outputs are documented from 4.5 on; 4.1 has them too.
  {
    model: /^claude-(opus|sonnet|haiku)-4-[1-9](-|$)/,
    profile: { temperature_xor_top_p: true, structured_outputs: true },
  },
  // recorded: sonnet-4-6 accepts budgets, although they are deprecated; prefills are rejected (P13).
  {
    model: /^claude-(opus|sonnet)-4-[6-9](-|$)/,
    profile: {
      thinking_mode: 'adaptive',
      accepts_budget: true,
      prefill: false,
      max_output_tokens: 128_000,
      effort_values: [...LOW_TO_HIGH, 'max'],
    },
  },
  {
    model: /^claude-opus-4-[7-9](-|$)/,
    profile: { rejects_sampling: true, accepts_budget: false, effort_values: [...LOW_TO_HIGH, 'xhigh', 'max'] },
  },
  // recorded: role system after a user message.
  { model: /^claude-opus-4-[89](-|$)/, profile: { mid_system: true } },
  // recorded: claude-opus-5 with effort max, and with thinking disabled at effort high.
  {
    model: /^claude-([a-z]+-([5-9]|\d\d)(-|$)|mythos|fable)/,
    profile: { mid_system: true, max_output_tokens: 128_000 },
  },
];

/** The model name without region, vendor and version suffix, in lower case, with `-` for `.`. */
const normaliseName = (model: string): string =>
  model
    .toLowerCase()
    .replace(/^.*?(?=claude)/, '')
    .replaceAll('.', '-')
    .replace(/[@:].*$/s, '');

/**
 * What a provider and model are known to accept. Unknown providers get the default; the operator's `profile` is
 * applied over the result.
 */
export const profileFor: FindProfile = /* @__PURE__ */ memoizeProfiles((providerId, model) => {
  const row = hasRow(providerId) ? ANTHROPIC_PROFILES[providerId] : {};
  const profile = { ...DEFAULT_ANTHROPIC_PROFILE, ...row };
  if (row === COMPATIBLE) return profile; // its models may have Claude names
  const name = normaliseName(model);
  for (const rule of MODEL_RULES) if (rule.model.test(name)) Object.assign(profile, rule.profile);
  return profile;
});

const hasRow = (providerId: string): boolean => Object.hasOwn(ANTHROPIC_PROFILES, providerId);

/** Whether anything is known about the provider or the model. */
export const hasRecordedProfile = (providerId: string, model = ''): boolean =>
  hasRow(providerId) || CLAUDE.test(normaliseName(model));

/** Tool requirements of Anthropic: object schemas (P57), no free-text tools, no namespaces. */
export const toolRules = (profile: ProviderProfile): ToolRules => ({
  toolName: profile.tool_name,
  custom: false,
  namespaces: false,
  objectRoot: true,
});

/**
 * The model family, by which signatures are checked: `claude-3-7-sonnet-…` and `claude-sonnet-4-5` are both `sonnet`.
 */
export const modelFamily = (model = ''): string | undefined => /claude-(?:[\d.-]+-)?([a-z]+)/.exec(model)?.[1];
