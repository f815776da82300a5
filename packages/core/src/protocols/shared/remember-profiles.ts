import type { ProviderProfile } from './profile.ts';
import { memo } from './remember.ts';

export type FindProfile = (providerId: string, model?: string) => ProviderProfile;

const PROVIDERS = { entries: 100, bytes: 64 * 1024 };
const MODELS = { entries: 200, bytes: 64 * 1024 };

/**
 * Providers that are reached in a second protocol under an id of their own. Each protocol has one row for a vendor, under the vendor's id; the
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

const vendorOf = (id: string): string => (Object.hasOwn(VENDORS, id) && VENDORS[id]) || id;

/** `find` with a cache: every exchange needs one of a few profiles. The profiles are frozen because all exchanges share them. */
export function rememberProfiles(find: (providerId: string, model: string) => ProviderProfile): FindProfile {
  const byProvider = memo(PROVIDERS, (id) => memo(MODELS, (model) => Object.freeze(find(vendorOf(id), model))));
  return (providerId, model = '') => byProvider(providerId)(model);
}
