import type { ProviderProfile } from './profile.ts';
import { remember } from './remember.ts';

export type FindProfile = (providerId: string, model?: string) => ProviderProfile;

const PROVIDERS = { entries: 100, bytes: 64 * 1024 };
const MODELS = { entries: 200, bytes: 64 * 1024 };

/** The rules of models are many, and every exchange asks for the same few: what was found is kept, and frozen, for it is everybody's. */
export function rememberProfiles(find: (providerId: string, model: string) => ProviderProfile): FindProfile {
  const byProvider = remember(PROVIDERS, (id) => remember(MODELS, (model) => Object.freeze(find(id, model))));
  return (providerId, model = '') => byProvider(providerId)(model);
}
