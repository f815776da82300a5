import type { ProviderProfile } from './profile.ts';
import { remember } from './remember.ts';

export type FindProfile = (providerId: string, model?: string) => ProviderProfile;

const MOST_PROVIDERS = 100;
const MOST_MODELS = 200;

/** The rules of models are many, and every exchange asks for the same few: what was found is kept, and frozen, for it is everybody's. */
export function rememberProfiles(find: (providerId: string, model: string) => ProviderProfile): FindProfile {
  const byProvider = remember(MOST_PROVIDERS, (id) => remember(MOST_MODELS, (model) => Object.freeze(find(id, model))));
  return (providerId, model = '') => byProvider(providerId)(model);
}
