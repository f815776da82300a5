import { DEFAULT_PROFILE, type FindProfile, memoizeProfiles, type ProviderProfile } from '../../codec/profile.ts';
import type { ToolRules } from '../../passes/rules.ts';

/** The profile of an unknown model: what all models from 2.5 on accept. */
export const DEFAULT_GEMINI_PROFILE: ProviderProfile = {
  ...DEFAULT_PROFILE,
  thinking_mode: 'budget',
  max_stop: 5,
  gemini3: false,
  json_schema_params: true,
  function_call_ids: true,
  // P62, P63: rejected by all models before Gemini 3.
  tools_with_json_output: false,
  builtin_with_functions: false,
  tool_name: { pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/, max: 128 },
  // Any id is accepted, and ids are optional.
  tool_id: { pattern: /./s, max: Number.MAX_SAFE_INTEGER },
};

const GEMINI_3: Partial<ProviderProfile> = { gemini3: true, tools_with_json_output: true, builtin_with_functions: true };

/** Tool names before dots and colons were allowed. */
const OLD_NAMES: ProviderProfile['tool_name'] = { pattern: /^[a-zA-Z_][a-zA-Z0-9_-]*$/, max: 64 };

const BEFORE_THINKING: Partial<ProviderProfile> = { thinking_mode: 'none', tool_name: OLD_NAMES };

/** What is known about each model beyond the default; the first matching row applies. */
export const GEMINI_MODELS: readonly (readonly [pattern: RegExp, profile: Partial<ProviderProfile>])[] = [
  // recorded: thinkingLevel, signatures on calls, codeExecution beside JSON output.
  [/gemini-3(\.\d+)?-pro/, { ...GEMINI_3, effort_values: ['low', 'high'] }],
  [/gemini-([3-9]|\d\d)(\.\d+)?-/, { ...GEMINI_3, effort_values: ['minimal', 'low', 'medium', 'high'] }],
  // The documented budget ranges of 2.5; thinking cannot be disabled on Pro.
  [/gemini-2\.5-pro/, { thinking_budgets: { least: 128, most: 32_768, off: false } }],
  [/gemini-2\.5-flash-lite/, { thinking_budgets: { least: 512, most: 24_576, off: true } }],
  // The image and voice models of 2.5 do not think.
  [/gemini-2\.5-flash(-preview)?-(image|tts)/, BEFORE_THINKING],
  [/gemini-2\.5-flash/, { thinking_budgets: { least: 1, most: 24_576, off: true } }],
  [/gemini-(1\.|2\.0)/, BEFORE_THINKING],
  [/gemma/, { ...BEFORE_THINKING, json_schema: false }],
];

/** What is known about each provider, for all its models. */
export const GEMINI_PROFILES: Readonly<Record<string, Partial<ProviderProfile>>> = {
  google: {},
  // recorded: Vertex also has functionCall ids in requests and responses.
  'google-vertex': {},
};

const findModel = (model: string): Partial<ProviderProfile> | undefined =>
  GEMINI_MODELS.find(([pattern]) => pattern.test(model))?.[1];

/** Whether anything is known about the provider or the model. */
export const hasRecordedProfile = (providerId: string, model = ''): boolean =>
  Object.hasOwn(GEMINI_PROFILES, providerId) || findModel(model) !== undefined;

/** What a provider and model are known to accept. */
export const profileFor: FindProfile = /* @__PURE__ */ memoizeProfiles((providerId, model) => {
  const provider = Object.hasOwn(GEMINI_PROFILES, providerId) ? GEMINI_PROFILES[providerId] : undefined;
  const row = findModel(model);
  return { ...DEFAULT_GEMINI_PROFILE, ...row, ...provider };
});

/** Tool requirements of Gemini: all tools are functions with an object of arguments. */
export const toolRules = ({ tool_name }: ProviderProfile): ToolRules => ({
  toolName: tool_name,
  custom: false,
  namespaces: false,
  objectRoot: true,
});
