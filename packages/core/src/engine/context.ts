/**
 * What every conversion shares: its options, the context passed to codecs, the list of notes, and the limit on the
 * nesting of tool arguments.
 */

import { deriveId } from '../accumulate/argument-text.ts';
import type { CanonicalResponse, ToolUseBlock } from '../canonical/message.ts';
import { type CanonicalError, CodecError, type Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { buildTooDeepError } from '../codec/answers.ts';
import { memoWeak, type ProviderProfile } from '../codec/profile.ts';
import type { Codec, CodecContext, Policy, Provider, RepairCodec, Sealing, Target } from '../codec/protocol.ts';
import { explainStrict, incompatible, isStrict } from '../codec/report.ts';
import { isDeeperThan, isDeepJson, type JsonObject } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { JsonNesting } from '../json/scanner.ts';
import type { Inspect } from './reader.ts';

/** Options of every conversion. */
export interface ConvertOptions<C extends RepairCodec = Codec> {
  /** The protocol of the input. */
  from: C;
  /** The protocol of the output. With the same protocol on both sides, a conversion only repairs. */
  to: C;
  /**
   * The upstream: its id in the profile tables, or its full description. Opaque values of a response are marked with it
   * and are sent back to no other upstream.
   */
  provider?: string | Provider | undefined;
  /** Overrides fields of the upstream's profile. */
  profile?: Partial<ProviderProfile> | undefined;
  /** How losses are treated; by default they are noted and nothing is refused. */
  policy?: Policy | undefined;
  /**
   * Unix seconds, for protocols that require a time where the source has none. 0 by default, so that the same input
   * gives the same output.
   */
  now?: (() => number) | undefined;
  /** Creates ids where the source has none; by default they are derived from the id of the response. */
  newId?: ((prefix: string) => string) | undefined;
  /** Seals the upstream's opaque values where a client has to carry them; by default they are plain text. */
  sealing?: Sealing | undefined;
  /** The JSON text of the body, where it was parsed: numbers that JSON.parse changes are taken from it. */
  text?: string | undefined;
  /** Fields of responses for OpenAI Responses clients, such as `id` and `store`, that override what is derived. */
  envelope?: JsonObject | undefined;
}

/** Options of a response conversion: `from` is the upstream's protocol, `to` the client's. */
export interface ResponseOptions<C extends RepairCodec = Codec> extends ConvertOptions<C> {
  /**
   * The request, as returned by `convertRequest`. Without it, the response is written as if the client had requested
   * every optional part.
   */
  request?: CanonicalRequest | undefined;
  /** The model name that the client sees; by default the one it requested. */
  model?: string | undefined;
  /** False: the upstream got the tools under the client's names, so there are none to restore. */
  isRenamed?: boolean | undefined;
}

/**
 * Finds the profile of the upstream: its row in the codec's table, overridden by the provider's own settings, then by
 * the caller's.
 */
export function findProfile(
  codec: Pick<Codec, 'profileFor'>,
  { provider, profile }: Pick<ConvertOptions, 'provider' | 'profile'>,
  model?: string,
): ProviderProfile {
  const own = typeof provider === 'object' ? provider.profile : undefined;
  const known = codec.profileFor(readId(provider), model);
  return own || profile ? mergeProfile(known, own ?? NO_PROFILE, profile ?? NO_PROFILE) : known;
}

const readId = (provider: string | Provider | undefined): string =>
  typeof provider === 'string' ? provider : (provider?.id ?? '');

type Settings = Partial<ProviderProfile>;

const NO_PROFILE: Settings = Object.freeze({});

/** Settings that are not frozen may change before the next call, so their merged profile is not cached. */
const mergeProfile = (known: ProviderProfile, own: Settings, top: Settings): ProviderProfile =>
  Object.isFrozen(own) && Object.isFrozen(top) ? findMerged(top)(own)(known) : merge(known, own, top);

/** A gateway passes the same frozen settings for every exchange. */
const findMerged = /* @__PURE__ */ memoWeak((top: Settings) =>
  memoWeak((own: Settings) => memoWeak((known: ProviderProfile) => merge(known, own, top))),
);

const merge = (known: ProviderProfile, own: Settings, top: Settings): ProviderProfile =>
  Object.freeze({ ...known, ...own, ...top });

/** Builds the upstream's description for codecs; undefined when no provider was given. */
export function buildTarget(
  codec: Pick<Codec, 'id'>,
  provider: string | Provider | undefined,
  target: Omit<Target, 'provider'>,
): Target | undefined {
  if (provider === undefined) return undefined;
  const row = typeof provider === 'string' ? { id: provider, protocol: codec.id, base_url: '' } : provider;
  return { model: target.model, stream: target.stream, provider: row };
}

/** Options of `createContext`. */
export interface ContextOptions extends Pick<CodecContext, 'profile'> {
  note: (note: Note) => void;
  policy?: Policy | undefined;
  now?: (() => number) | undefined;
  newId?: ((prefix: string) => string) | undefined;
  target?: Target | undefined;
  request?: CanonicalRequest | undefined;
  /** The protocol that is converted from, for encoders. */
  from?: Pick<Codec, 'id' | 'traits'>;
  trace?: boolean;
  locate?: ((path: string) => string) | undefined;
  sealing?: Sealing | undefined;
  envelope?: JsonObject | undefined;
  isRepair?: boolean;
}

/**
 * Builds the context of a codec; defaults are deterministic. Every context has the same fields in the same order, so
 * that reads of it stay monomorphic.
 */
export function createContext(parts: ContextOptions): CodecContext {
  const {
    note,
    profile,
    policy = {},
    now = epoch,
    newId = createIds(noSeed),
    target,
    request,
    from,
    trace = false,
    locate,
    sealing,
    envelope,
    isRepair = false,
  } = parts;
  const { id: source, traits: sourceTraits } = from ?? NO_SOURCE;
  const report = (): undefined => undefined;
  return {
    report,
    note,
    profile,
    policy,
    now,
    newId,
    target,
    request,
    source,
    sourceTraits,
    trace,
    locate,
    sealing,
    envelope,
    isRepair,
  };
}

const NO_SOURCE: Partial<Pick<Codec, 'id' | 'traits'>> = {};

const epoch = (): number => 0;

const noSeed = (): string => '';

/** Creates ids that are the same for the same response: derived from its id and a count. */
export function createIds(seed: () => string): (prefix: string) => string {
  let count = 0;
  return (prefix) => deriveId(prefix, seed(), count++);
}

/**
 * The notes of a conversion, without repetitions: a stream that loses the same thing in every chunk has one note about
 * it.
 */
export class NoteList {
  readonly list: Note[] = [];
  #seen: Set<string> | undefined;

  readonly add = (note: Note): void => {
    const key = `${note.code} ${note.path} ${note.feature} ${note.message}`;
    this.#seen ??= new Set();
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.list.push(note);
  };
}

/**
 * Returns a function that notes a loss in a response, or refuses it when the policy is strict. Response codecs are not
 * strict by themselves: a stream that has begun can only end in an error of the client's protocol, which the encoder
 * writes when this throws. `onRefusal` informs the caller.
 */
export function createNoteHandler(
  notes: NoteList,
  policy: Policy,
  onRefusal: (error: CanonicalError) => void,
): (note: Note) => void {
  return (note) => {
    if (note.code === 'DROPPED' && isStrict({ policy }, note.feature)) {
      const refusal = incompatible({ ...note, message: explainStrict(note.message) });
      onRefusal(refusal.error);
      throw refusal;
    }
    notes.add(note);
  };
}

// ---- nesting of tool arguments

/**
 * Throws when tool arguments of a whole response are nested more deeply than `MAX_JSON_DEPTH`, which cannot be parsed
 * and written safely.
 */
export function expectShallowCalls({ content, choices }: CanonicalResponse): void {
  for (const { content: blocks } of choices ?? [{ content }])
    for (const block of blocks) if (block.type === 'tool_use' && isDeep(block)) throw new CodecError(deepCall(block.name));
}

/**
 * Parsed arguments are in `input` and were checked by the parser; only arguments that were not parsed are checked here.
 */
const isDeep = ({ input, input_raw: raw, kind }: ToolUseBlock): boolean =>
  kind !== 'custom' && raw !== undefined && typeof input === 'object' && Object.keys(input).length === 0 && isDeepJson(raw);

interface OpenCall {
  name: string;
  nesting: JsonNesting;
}

/** Creates an inspection that refuses tool arguments nested too deeply, while they arrive. */
export function createDepthInspection(): Inspect {
  const calls = new Map<string | number, OpenCall>();
  return (event) => {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') {
      const { name, input, kind } = event.content_block;
      if (isDeeperThan(input, MAX_JSON_DEPTH)) return deepCall(name);
      if (kind !== 'custom') calls.set(buildKey(event), { name, nesting: new JsonNesting() });
    } else if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
      const call = calls.get(buildKey(event));
      call?.nesting.push(event.delta.partial_json);
      if (call && call.nesting.deepest > MAX_JSON_DEPTH) return deepCall(call.name);
    } else if (event.type === 'content_block_stop') calls.delete(buildKey(event));
    return undefined;
  };
}

/** Nearly every stream has one choice, so the index alone is the key and no string is built. */
const buildKey = ({ choice = 0, index }: { choice?: number; index: number }): string | number =>
  choice === 0 ? index : `${choice}.${index}`;

const deepCall = (name: string): CanonicalError => buildTooDeepError(`the arguments of the tool call ${name.slice(0, 100)} are`);
