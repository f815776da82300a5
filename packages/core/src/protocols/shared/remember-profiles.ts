import type { ProviderProfile } from './profile.ts';

export type FindProfile = (providerId: string, model?: string) => ProviderProfile;

/** Names of models are the client's, and it may make up any number of them. */
const MOST_KEPT = 200;

/** The rules of models are many, and every exchange asks for the same few: what was found is kept, and frozen, for it is everybody's. */
export function rememberProfiles(find: (providerId: string, model: string) => ProviderProfile): FindProfile {
  const found = new Map<string, Map<string, ProviderProfile>>();
  let count = 0;
  return (providerId, model = '') => {
    const known = found.get(providerId)?.get(model);
    if (known) return known;
    const profile = Object.freeze(find(providerId, model));
    if (count++ >= MOST_KEPT) {
      found.clear();
      count = 1;
    }
    const models = found.get(providerId) ?? new Map<string, ProviderProfile>();
    found.set(providerId, models.set(model, profile));
    return profile;
  };
}
