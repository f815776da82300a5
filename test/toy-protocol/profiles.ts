import { DEFAULT_PROFILE, type ProviderProfile } from '../../packages/core/src/codec/profile.ts';
import type { ToolRules } from '../../packages/core/src/passes/rules.ts';

export const profileFor = (): ProviderProfile => DEFAULT_PROFILE;

export const hasFacts = (): boolean => false;

export const toolRules = ({ tool_name: toolName }: ProviderProfile): ToolRules => ({
  toolName,
  custom: false,
  namespaces: false,
  objectRoot: true,
});
