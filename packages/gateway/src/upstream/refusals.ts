import { BoundedCache, type CanonicalError, type ProviderProfile } from '@sluice/core';

/** Optional fields of chat requests that some servers reject. */
export type RefusedField = 'stream_options' | 'reasoning';

/** The profile of a server that rejects the field. */
const WITHOUT = {
  stream_options: { stream_usage: false },
  reasoning: { reasoning_replay: 'never' },
} as const satisfies Record<RefusedField, Partial<ProviderProfile>>;

/** How errors name the fields. */
const NAMES = {
  stream_options: /\bstream_options\b|\binclude_usage\b/,
  reasoning: /\breasoning_(?:content|details|text)\b|['"`]reasoning['"`]|\bmessages\b[^\n]{0,40}\.reasoning\b/,
} as const satisfies Record<RefusedField, RegExp>;

const REFUSAL =
  /unsupported|not supported|unknown|unrecognized|unexpected|extra|not permitted|not allowed|forbidden|invalid|additional propert/i;
/** The server requires the field or another value of it, so leaving it out would not help. */
const DEMAND = /missing|required|must (?:be|have|contain|include)/i;

/** Characters of an upstream error that are searched. */
const READ_CHARS = 4096;

/** Finds the optional field that the server rejected; undefined for other errors. */
export function findRefusal(error: CanonicalError): RefusedField | undefined {
  const status = error.upstream?.status ?? 0;
  if (status !== 400 && status !== 422) return undefined;
  const told = JSON.stringify(error.upstream?.body) ?? '';
  const text = `${error.message.slice(0, READ_CHARS)}\n${error.param ?? ''}\n${told.replaceAll('\\"', '"').slice(0, READ_CHARS)}`;
  if (!REFUSAL.test(text) || DEMAND.test(text)) return undefined;
  return NAMES.stream_options.test(text) ? 'stream_options' : NAMES.reasoning.test(text) ? 'reasoning' : undefined;
}

/** The profile without these fields. */
export const profileWithout = (profile: ProviderProfile, fields: readonly RefusedField[]): ProviderProfile =>
  Object.freeze(Object.assign({ ...profile }, ...fields.map((field) => WITHOUT[field])));

interface Learned {
  /** The configured profile. A reload creates a new one, which invalidates what was learned. */
  base: ProviderProfile;
  profile: ProviderProfile;
}

interface Target {
  key: string;
  profile: ProviderProfile;
}

/** Targets contain model names, of which clients can invent any number. */
const TARGETS = { entries: 1000, bytes: 512 * 1024 };

/**
 * Which targets (provider and model) reject which optional fields, learned from their errors until the configuration is
 * reloaded.
 */
export class LearnedRefusals {
  readonly #learned = new BoundedCache<Learned>(TARGETS);

  /** The profile of a target without the fields that it has rejected. */
  findProfile({ key, profile }: Target): ProviderProfile {
    const learned = this.#learned.get(key);
    return learned?.base === profile ? learned.profile : profile;
  }

  learn(target: Target, fields: readonly RefusedField[]): void {
    const profile = profileWithout(this.findProfile(target), fields);
    this.#learned.set(target.key, { base: target.profile, profile });
  }
}
