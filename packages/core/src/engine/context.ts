import { deriveId } from '../accumulate/derive-id.ts';
import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { Codec, CodecContext, Policy, Provider, Target } from '../protocols/shared/codec.ts';
import type { ProviderProfile } from '../protocols/shared/profile.ts';

/** What every conversion may be told. */
export interface ConvertOptions {
  /** The protocol of what is converted. */
  from: Codec;
  /** The protocol it is converted to. The same one: what is wrong is repaired. */
  to: Codec;
  /** Who the upstream is: its id in the tables of profiles, or its row. Opaque values of an answer are marked with it, and go back to nobody else. */
  provider?: string | Provider | undefined;
  /** Laid over what is known of the upstream. */
  profile?: Partial<ProviderProfile> | undefined;
  /** How losses are treated; by default they are told and nothing is refused. */
  policy?: Policy | undefined;
  /** Unix seconds, for protocols that want a time where the source has none; 0 when left out, so that the same input gives the same output. */
  now?: (() => number) | undefined;
  /** Ids for what the source left unnamed; derived from the id of the answer when left out. */
  newId?: ((prefix: string) => string) | undefined;
}

/** Options of an answer: `from` is the upstream's protocol, `to` the client's. */
export interface AnswerOptions extends ConvertOptions {
  /** The question, as `convertRequest` gave it back; without it, the answer is written as if everything had been asked for. */
  request?: CanonicalRequest | undefined;
  /** The name of the model that the client sees; by default the one it asked for. */
  model?: string | undefined;
  /** False: the upstream got the tools under the client's own names, so there are none to restore. */
  isRenamed?: boolean | undefined;
}

const idOf = (provider: string | Provider | undefined): string =>
  typeof provider === 'string' ? provider : (provider?.id ?? '');

/** What is known of the upstream: its row in the codec's table, then the operator's own settings, then the caller's. */
export function profileOf(
  codec: Codec,
  { provider, profile }: Pick<ConvertOptions, 'provider' | 'profile'>,
  model?: string,
): ProviderProfile {
  const own = typeof provider === 'object' ? provider.profile : undefined;
  const known = codec.profileFor(idOf(provider), model);
  return own || profile ? laidOver(known, own, profile ?? NO_PROFILE) : known;
}

type Settings = Partial<ProviderProfile>;

const NO_PROFILE: Settings = {};

interface Laid {
  own: Settings | undefined;
  whole: ProviderProfile;
}

/** By the settings on top and what is below, and only for those that cannot change: a gateway has the same ones from one exchange to the next. */
const laid = new WeakMap<Settings, WeakMap<ProviderProfile, Laid>>();

function laidOver(known: ProviderProfile, own: Settings | undefined, top: Settings): ProviderProfile {
  const last = laid.get(top)?.get(known);
  if (last && last.own === own) return last.whole;
  const whole = Object.freeze({ ...known, ...own, ...top });
  if (!Object.isFrozen(top) || (own && !Object.isFrozen(own))) return whole;
  const below = laid.get(top) ?? new WeakMap<ProviderProfile, Laid>();
  laid.set(top, below.set(known, { own, whole }));
  return whole;
}

/** The upstream as codecs see it; undefined when nobody said who it is. */
export function targetOf(
  codec: Codec,
  provider: string | Provider | undefined,
  target: Omit<Target, 'provider'>,
): Target | undefined {
  if (provider === undefined) return undefined;
  const row = typeof provider === 'string' ? { id: provider, protocol: codec.id, base_url: '' } : provider;
  return { model: target.model, stream: target.stream, provider: row };
}

interface ContextParts extends Pick<CodecContext, 'profile'> {
  note: (note: Note) => void;
  policy?: Policy | undefined;
  now?: (() => number) | undefined;
  newId?: ((prefix: string) => string) | undefined;
  target?: Target | undefined;
  request?: CanonicalRequest | undefined;
  source?: CodecContext['source'];
  trace?: boolean;
  locate?: ((path: string) => string) | undefined;
}

/** The context of a codec: what is left out is deterministic. All contexts have the same fields, which V8 likes: they are read everywhere. */
export function createContext(parts: ContextParts): CodecContext {
  const {
    note,
    profile,
    policy = {},
    now = never,
    newId = createIds(nothing),
    target,
    request,
    source,
    trace = false,
    locate,
  } = parts;
  return { report: () => undefined, note, profile, policy, now, newId, target, request, source, trace, locate };
}

const never = (): number => 0;
const nothing = (): string => '';

/** Ids that the same answer always gets: out of its own id, and a count. */
export function createIds(seed: () => string): (prefix: string) => string {
  let count = 0;
  return (prefix) => deriveId(prefix, seed(), count++);
}
