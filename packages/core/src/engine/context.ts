import { deriveId } from '../accumulate/argument-text.ts';
import type { CanonicalResponse, ToolUseBlock } from '../canonical/message.ts';
import { type CanonicalError, CodecError, type Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { tooDeep } from '../codec/answers.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { Codec, CodecContext, Policy, Provider, Target } from '../codec/protocol.ts';
import { incompatible, isStrict } from '../codec/report.ts';
import { isDeeperThan, isDeepJson } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { JsonNesting } from '../json/scanner.ts';
import type { Inspect } from './reader.ts';

const deepCall = (name: string): CanonicalError => tooDeep(`the arguments of the tool call ${name.slice(0, 100)} are`);

/** Throws when arguments of a whole response are nested more deeply than anyone can read or write them again. */
export function expectShallowCalls({ content, choices }: CanonicalResponse): void {
  for (const { content: blocks } of choices ?? [{ content }])
    for (const block of blocks) if (block.type === 'tool_use' && isDeep(block)) throw new CodecError(deepCall(block.name));
}

/** A text that was read left its value in `input`: only one that was not is looked at again. */
const isDeep = ({ input, input_raw: raw, kind }: ToolUseBlock): boolean =>
  kind !== 'custom' && raw !== undefined && typeof input === 'object' && Object.keys(input).length === 0 && isDeepJson(raw);

interface OpenCall {
  name: string;
  nesting: JsonNesting;
}

/** Refuses tool arguments that are nested too deeply, while they arrive. */
export function createDepthInspection(): Inspect {
  const calls = new Map<string | number, OpenCall>();
  return (event) => {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') {
      const { name, input, kind } = event.content_block;
      if (isDeeperThan(input, MAX_JSON_DEPTH)) return deepCall(name);
      if (kind !== 'custom') calls.set(keyOf(event), { name, nesting: new JsonNesting() });
    } else if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
      const call = calls.get(keyOf(event));
      call?.nesting.push(event.delta.partial_json);
      if (call && call.nesting.deepest > MAX_JSON_DEPTH) return deepCall(call.name);
    } else if (event.type === 'content_block_stop') calls.delete(keyOf(event));
    return undefined;
  };
}

/** Nearly every stream has one choice: no text is made for it. */
const keyOf = ({ choice = 0, index }: { choice?: number; index: number }): string | number =>
  choice === 0 ? index : `${choice}.${index}`;

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

/** The notes of a conversion, each said once: a stream that loses the same thing in every chunk has one note about it. */
export class NoteList {
  readonly list: Note[] = [];
  #said: Set<string> | undefined;

  readonly add = (note: Note): void => {
    const key = `${note.code} ${note.path} ${note.feature} ${note.message}`;
    this.#said ??= new Set();
    if (this.#said.has(key)) return;
    this.#said.add(key);
    this.list.push(note);
  };
}

/**
 * Tells of a loss in an answer, or refuses it. The codecs of answers are not strict by themselves: a stream that has begun can only end in an
 * error of the client's protocol, which the encoder writes when this throws, and the caller has to learn of it, too (`onRefusal`).
 */
export function answerNotes(notes: NoteList, policy: Policy, onRefusal: (error: CanonicalError) => void): (note: Note) => void {
  return (note) => {
    if (note.code === 'DROPPED' && isStrict({ policy }, note.feature)) {
      const refusal = incompatible(note);
      onRefusal(refusal.error);
      throw refusal;
    }
    notes.add(note);
  };
}
