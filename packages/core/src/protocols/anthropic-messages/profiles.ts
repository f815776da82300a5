import { DEFAULT_PROFILE, type FindProfile, type ProviderProfile, rememberProfiles } from '../../codec/profile.ts';
import type { ToolRules } from '../../passes/rules.ts';

/**
 * A model of which nothing is known, often one that only speaks the protocol (GLM, Kimi, MiniMax, any alias): settings of Anthropic clients go
 * unchanged, those of other clients in the plain core of the protocol.
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

/** Anthropic's latest, and all of its models that no rule below tells apart: they refuse most of what the older ones took. */
const LATEST: Partial<ProviderProfile> = {
  thinking_mode: 'adaptive',
  // The request types of SDK 1.8 have no sampling parameters.
  rejects_sampling: true,
  prefill: false,
  structured_outputs: true,
  temperature_xor_top_p: true,
  rejects_disabled_above_high: true,
};

/**
 * A server that speaks the protocol with models of its own: the plain core of it, and nothing that only Claude is known to have. No recording
 * stands behind these rows, only the pages that name the endpoint; the operator's own `profile` goes over them.
 */
const COMPATIBLE: Partial<ProviderProfile> = {
  thinking_mode: 'budget',
  rejects_sampling: false,
  prefill: true,
  structured_outputs: false,
  temperature_xor_top_p: false,
  rejects_disabled_above_high: false,
  // The version of the protocol that their pages show; none of them names a later one.
  anthropic_version: '2023-06-01',
};

/** Bedrock accepts tool names of at most 64 characters. */
const BEDROCK: Partial<ProviderProfile> = { ...LATEST, tool_name: { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 } };

/**
 * What is known of each provider beyond the default. `recorded` means seen in recorded traffic of the provider. The rules for
 * Claude models below apply wherever the models run.
 */
export const ANTHROPIC_PROFILES: Readonly<Record<string, Partial<ProviderProfile>>> = {
  // recorded: 107 requests, claude-3 to claude-opus-5.
  anthropic: LATEST,
  // recorded: the body says anthropic_version, the path the model.
  bedrock: BEDROCK,
  'amazon-bedrock': BEDROCK,
  // recorded: the same.
  'google-vertex': LATEST,
  // recorded: claude-haiku-4-5 to claude-opus-4-5.
  azure: LATEST,
  // recorded: anthropic/claude-haiku-4.5. It has models of others, too.
  openrouter: {},
  // api-docs.deepseek.com/guides/anthropic_api: names of Claude are taken for models of its own, anthropic-beta and -version are ignored.
  deepseek: COMPATIBLE,
  moonshot: COMPATIBLE,
  zai: COMPATIBLE,
  'zai-coder': COMPATIBLE,
  // platform.minimax.io/docs/api-reference/text-anthropic-api: thinking goes back with the calls it led to.
  minimax: COMPATIBLE,
  alibaba: COMPATIBLE,
  ollama: COMPATIBLE,
  lmstudio: COMPATIBLE,
  vllm: COMPATIBLE,
  llamacpp: COMPATIBLE,
};

/** Names of Anthropic's models. Others may have the word in theirs (`claude-proxy`): nothing is known of these. */
const CLAUDE = /^claude-(instant|v?2|3|opus|sonnet|haiku|mythos|fable|[a-z]+-([5-9]|\d\d)(-|$))/;

interface ModelRule {
  model: RegExp;
  profile: Partial<ProviderProfile>;
}

/** Claude before it refused anything. */
const EARLY: Partial<ProviderProfile> = {
  thinking_mode: 'none',
  rejects_sampling: false,
  prefill: true,
  structured_outputs: false,
  temperature_xor_top_p: false,
  rejects_disabled_above_high: false,
  max_output_tokens: 4096,
};

const BUDGET: Partial<ProviderProfile> = { ...EARLY, thinking_mode: 'budget', max_output_tokens: 64_000 };

const LOW_TO_HIGH = ['low', 'medium', 'high'];

/**
 * Every rule that fits is laid over the row of the provider, in this order. Names are compared with `-` for `.` and without what gateways put
 * around them: `anthropic/claude-opus-4.5`, `us.anthropic.claude-opus-4-1-20250805-v1:0`, `claude-haiku-4-5@20251001`.
 *
 * recorded: which models took temperature, budgets, prefills, `role: system`, effort. Maximal outputs: platform.claude.com model pages.
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
  // recorded: budgets with sonnet-4-6, where they are deprecated; prefills are refused (P13).
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
  // recorded: role system after the user's turn.
  { model: /^claude-opus-4-[89](-|$)/, profile: { mid_system: true } },
  // recorded: claude-opus-5 with effort max, and with thinking disabled at effort high.
  {
    model: /^claude-([a-z]+-([5-9]|\d\d)(-|$)|mythos|fable)/,
    profile: { mid_system: true, max_output_tokens: 128_000 },
  },
];

/** Everything up to `claude`, which regions and vendors stand before, and dots. */
const plainName = (model: string): string =>
  model
    .toLowerCase()
    .replace(/^.*?(?=claude)/, '')
    .replaceAll('.', '-')
    .replace(/[@:].*$/s, '');

/** What a provider, and the model there, is known to accept. An unknown provider gets the default; the operator's own `profile` goes over it. */
export const profileFor: FindProfile = rememberProfiles((providerId, model) => {
  const row = hasRow(providerId) ? ANTHROPIC_PROFILES[providerId] : {};
  const profile = { ...DEFAULT_ANTHROPIC_PROFILE, ...row };
  if (row === COMPATIBLE) return profile; // whatever its models are called
  const name = plainName(model);
  for (const rule of MODEL_RULES) if (rule.model.test(name)) Object.assign(profile, rule.profile);
  return profile;
});

const hasRow = (providerId: string): boolean => Object.hasOwn(ANTHROPIC_PROFILES, providerId);

export const hasFacts = (providerId: string, model = ''): boolean => hasRow(providerId) || CLAUDE.test(plainName(model));

/** Anthropic refuses a tool whose schema is no object (P57), and knows neither free text nor namespaces. */
export const toolRules = (profile: ProviderProfile): ToolRules => ({
  toolName: profile.tool_name,
  custom: false,
  namespaces: false,
  objectRoot: true,
});

/** Signatures are checked per model family: `claude-3-7-sonnet-…` and `claude-sonnet-4-5` are one. */
export const modelFamily = (model = ''): string | undefined => /claude-(?:[\d.-]+-)?([a-z]+)/.exec(model)?.[1];
