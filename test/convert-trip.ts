import { decodeRequest } from '../packages/core/src/engine/index.ts';
import { SourceBody } from '../packages/core/src/engine/request.ts';
import {
  type CanonicalRequest,
  type Codec,
  CodecError,
  type ConvertedRequest,
  convertRequest,
  type Note,
  type ProviderProfile,
} from '../packages/core/src/index.ts';
import { sameJson } from '../packages/core/src/json/json.ts';
import { type Fact, factsOf, hasFact, isTold } from './convert-facts.ts';
import { NORMAL_FORM } from './convert-normal-form.ts';
import { codecs, type Source } from './convert-sources.ts';

/** A request on its way to another protocol and back. */
export interface Trip {
  source: Source;
  to: Codec;
  name: string;
}

export const trips = (sources: readonly Source[]): Trip[] =>
  sources.flatMap((source) =>
    codecs.filter(({ id }) => id !== source.codec.id).map((to) => ({ source, to, name: `${source.name} to ${to.id} and back` })),
  );

export const sourceOptions = ({ codec, model, path }: Source) => ({ from: codec, model, ...(path !== undefined && { path }) });

/** On the way home a server that takes everything its protocol has: what is lost there is lost by the protocol, not by a vendor. */
const HOME: Partial<Record<Codec['id'], Partial<ProviderProfile>>> = {
  'openai-chat': {
    official: true,
    custom_tools: true,
    allowed_tools: true,
    cache_breakpoints: true,
    reasoning_field: 'reasoning_content',
    reasoning_replay: 'always',
    tool_images: true,
    system_role: 'developer',
    max_stop: 100,
    tool_id: { pattern: /^[\x21-\x7e]+$/, max: 100 },
  },
  'openai-responses': { encrypted_reasoning: true },
};

const homeProfile = ({ id }: Codec): { profile?: Partial<ProviderProfile> } => {
  const profile = HOME[id];
  return profile ? { profile } : {};
};

/** What the protocol itself keeps of a request: its own normal form. */
export function homeOf(source: Source): Fact[] {
  const { codec, body } = source;
  const home = convertRequest(body, { ...sourceOptions(source), to: codec, ...homeProfile(codec) });
  return [...factsOf(decodeRequest(home.body, { from: codec, path: home.path }))];
}

interface Travelled {
  there: ConvertedRequest;
  back: ConvertedRequest;
}

function travel({ source, to }: Trip): Travelled {
  const { codec: from, body } = source;
  const there = convertRequest(body, { ...sourceOptions(source), to });
  return { there, back: convertRequest(there.body, { from: to, to: from, path: there.path, ...homeProfile(from) }) };
}

/** Silences that some request needs. */
export const used = new Set<string>();

/** Facts that were lost on the way there or back, and that nobody told of. */
export function lostOn(trip: Trip, original: CanonicalRequest): string[] {
  const { source, to } = trip;
  const { codec: from } = source;
  const { there, back } = travel(trip);
  const arrived = decodeRequest(there.body, { from: to, path: there.path });
  const returned = [...factsOf(decodeRequest(back.body, { from, path: back.path }))];
  const middle = [...factsOf(arrived)];
  const home = homeOf(source);
  const sent = new SourceBody(source.body, from);
  const passed = new SourceBody(there.body, to);
  return [...factsOf(original)]
    .filter((fact) => hasFact(fact, home) && !hasFact(fact, returned))
    .filter((fact) => !isTold(fact, there.notes, original, sent))
    .filter((fact) => !middle.some((known) => hasFact(fact, [known]) && isTold(known, back.notes, arrived, passed)))
    .filter((fact) => !isSilent(fact, from, to))
    .map(({ key, path, text }) => `${path}: ${key}${text === undefined ? '' : ` ${text.slice(0, 60)}`}`);
}

function isSilent(fact: Fact, from: Codec, to: Codec): boolean {
  const silence = NORMAL_FORM.find(({ covers }) => covers(fact, from.id, to.id));
  if (silence) used.add(silence.name);
  return silence !== undefined;
}

/** Notes of losses that point at nothing, or at what is still said after the way there and back. */
export function falseNotes(trip: Trip): string[] {
  const { there, back } = travel(trip);
  return there.notes
    .filter(({ code }) => code === 'DROPPED')
    .flatMap(({ path, feature }) => {
      const value = valueAt(trip.source.body, path);
      if (value === undefined) return [`${feature} ${path} is not there`];
      return sameJson(value, valueAt(back.body, path)) ? [`${feature} ${path} is still there`] : [];
    });
}

/** A note says something, of something that is there; what was repaired may be what was missing in it. */
export function isInPlace({ path, feature, message, code }: Note, body: unknown): boolean {
  const isAdded =
    code === 'REPAIRED' && (path.split('/').length < 4 || valueAt(body, path.replace(/\/[^/]*$/, '')) !== undefined);
  return feature !== '' && message !== '' && (isAdded || valueAt(body, path) !== undefined);
}

/** What a JSON pointer points at. */
function valueAt(body: unknown, pointer: string): unknown {
  const segments = pointer.split('/').slice(1);
  const names = segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
  return names.reduce((node, name) => (typeof node === 'object' && node !== null ? Reflect.get(node, name) : undefined), body);
}

/** Requests that a protocol refuses, rather than lose what they are about. */
const isRefusal = (error: unknown): error is CodecError =>
  error instanceof CodecError && (error.error.code === 'INCOMPATIBLE_FEATURE' || error.error.code === 'INVALID_INPUT');

/** Why it was refused; undefined when it was not. */
export function refusalOf(run: () => unknown): CodecError | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (isRefusal(error)) return error;
    throw error;
  }
}

/** Whether a trip comes to its end, or on which way it is refused. */
export function outcomeOf(trip: Trip): 'arrived' | 'refused there' | 'refused back' {
  if (!refusalOf(() => travel(trip))) return 'arrived';
  const { source, to } = trip;
  return refusalOf(() => convertRequest(source.body, { ...sourceOptions(source), to })) ? 'refused there' : 'refused back';
}

export function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}
