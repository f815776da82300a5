import { BoundedCache, type CanonicalError, type ProviderProfile } from '@sluice/core';

/** Optional fields of chat requests that some servers refuse. */
export type RefusedField = 'stream_options' | 'reasoning';

/** What a profile says of a server that refuses the field. */
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
/** The server wants more of the field, not less. */
const DEMAND = /missing|required|must (?:be|have|contain|include)/i;

/** Errors are text of others: this much of one is read. */
const READ_CHARS = 4096;

/** The optional field that the server refused, if that is what the error says. */
export function findRefusal(error: CanonicalError): RefusedField | undefined {
  const status = error.upstream?.status ?? 0;
  if (status !== 400 && status !== 422) return undefined;
  const told = JSON.stringify(error.upstream?.body) ?? '';
  const text = `${error.message.slice(0, READ_CHARS)}\n${error.param ?? ''}\n${told.replaceAll('\\"', '"').slice(0, READ_CHARS)}`;
  if (!REFUSAL.test(text) || DEMAND.test(text)) return undefined;
  return NAMES.stream_options.test(text) ? 'stream_options' : NAMES.reasoning.test(text) ? 'reasoning' : undefined;
}

/** The profile of a server that refuses these fields. */
export const profileWithout = (profile: ProviderProfile, fields: readonly RefusedField[]): ProviderProfile =>
  Object.freeze(Object.assign({ ...profile }, ...fields.map((field) => WITHOUT[field])));

interface Learned {
  /** The profile of the configuration; a reload makes a new one, and what was learned about the old one no longer counts. */
  base: ProviderProfile;
  profile: ProviderProfile;
}

interface Target {
  key: string;
  profile: ProviderProfile;
}

/** Targets contain model names, of which clients can invent any number. */
const TARGETS = { entries: 1000, bytes: 512 * 1024 };

/** Which targets (provider and model) refuse which optional fields, learned from their errors; forgotten when the configuration is reloaded. */
export class LearnedRefusals {
  readonly #learned = new BoundedCache<Learned>(TARGETS);

  /** What the target accepts: its profile, without what it has refused. */
  profileOf({ key, profile }: Target): ProviderProfile {
    const learned = this.#learned.get(key);
    return learned?.base === profile ? learned.profile : profile;
  }

  learn(target: Target, fields: readonly RefusedField[]): void {
    const profile = profileWithout(this.profileOf(target), fields);
    this.#learned.set(target.key, { base: target.profile, profile });
  }
}
