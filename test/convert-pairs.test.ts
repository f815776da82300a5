import { afterAll, describe, expect, test } from 'vitest';
import {
  type CanonicalRequest,
  CodecError,
  convertRequest,
  decodeRequest,
  type ProtocolCodec,
  type ProviderProfile,
} from '../packages/core/src/index.ts';
import { type Fact, factsOf, hasFact, isTold } from './convert-facts.ts';
import { GAPS, NORMAL_FORM, UNREFUSED } from './convert-normal-form.ts';
import { clientRequests, codecs, recordedRequests, type Source, sampled } from './convert-sources.ts';
import { SHARED } from './shared.ts';

/** On the way home a server that takes everything its protocol has: what is lost there is lost by the protocol, not by a vendor. */
const HOME: Partial<Record<ProtocolCodec['id'], Partial<ProviderProfile>>> = {
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
};

interface Trip {
  source: Source;
  to: ProtocolCodec;
  name: string;
}

const trips = (sources: readonly Source[]): Trip[] =>
  sources.flatMap((source) =>
    codecs.filter(({ id }) => id !== source.codec.id).map((to) => ({ source, to, name: `${source.name} to ${to.id} and back` })),
  );

const sourceOptions = ({ codec, model, path }: Source) => ({ from: codec, model, ...(path !== undefined && { path }) });

/** What the protocol itself keeps of a request: its own normal form. */
function homeOf(source: Source): Fact[] {
  const { codec, body } = source;
  const home = convertRequest(body, { ...sourceOptions(source), to: codec, ...homeProfile(codec) });
  return [...factsOf(decodeRequest(home.body, { from: codec, path: home.path }))];
}

const homeProfile = ({ id }: ProtocolCodec): { profile?: Partial<ProviderProfile> } => {
  const profile = HOME[id];
  return profile ? { profile } : {};
};

/** Requests that a protocol refuses, rather than lose what they are about. */
function isRefusal(error: unknown): boolean {
  return error instanceof CodecError && (error.error.code === 'INCOMPATIBLE_FEATURE' || error.error.code === 'INVALID_INPUT');
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

function raise(message: string): never {
  throw new Error(message);
}

const used = new Set<string>();

/** Facts that were lost on the way there or back, and that nobody told of. */
function lostOn({ source, to }: Trip, original: CanonicalRequest): string[] {
  const { codec: from, body } = source;
  const there = convertRequest(body, { ...sourceOptions(source), to });
  const arrived = decodeRequest(there.body, { from: to, path: there.path });
  const back = convertRequest(there.body, { from: to, to: from, path: there.path, ...homeProfile(from) });
  const returned = [...factsOf(decodeRequest(back.body, { from, path: back.path }))];
  const middle = [...factsOf(arrived)];
  const home = homeOf(source);
  return [...factsOf(original)]
    .filter((fact) => hasFact(fact, home) && !hasFact(fact, returned))
    .filter((fact) => !isTold(fact, there.notes, original, from))
    .filter((fact) => !middle.some((known) => hasFact(fact, [known]) && isTold(known, back.notes, arrived, to)))
    .filter((fact) => !isSilent(fact, from, to))
    .map(({ key, path, text }) => `${path}: ${key}${text === undefined ? '' : ` ${text.slice(0, 60)}`}`);
}

function isSilent(fact: Fact, from: ProtocolCodec, to: ProtocolCodec): boolean {
  const silence = [...NORMAL_FORM, ...GAPS].find(({ covers }) => covers(fact, from.id, to.id));
  if (silence) used.add(silence.name);
  return silence !== undefined;
}

const everything = [...recordedRequests(), ...clientRequests()];
/** What is no request of its protocol at all is tested where it is refused. */
const readable = everything.flatMap((source) => {
  const original = attempt(() => decodeRequest(source.body, sourceOptions(source)));
  return original && attempt(() => homeOf(source)) ? [{ source, original }] : [];
});
const originals = new Map(readable.map(({ source, original }) => [source, original]));
const rows = trips(
  sampled(
    readable.map(({ source }) => source),
    1,
  ),
);

describe.skipIf(!SHARED).each(rows)('$name', (trip) => {
  const { source, to } = trip;
  const options = { ...sourceOptions(source), to };

  test('nothing is lost but what the notes name', () => {
    let lost: string[] = [];
    try {
      lost = lostOn(trip, originals.get(source) ?? raise('not read'));
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
    expect(lost.join('\n')).toBe('');
  });

  test('P130: the same each time, every note in its place, and strict refuses what they tell', () => {
    const told = attempt(() => convertRequest(source.body, options));
    if (!told) return; // refused in any case
    expect(JSON.stringify(convertRequest(source.body, options).body)).toBe(JSON.stringify(told.body));
    for (const { path, feature, message } of told.notes)
      expect([path.replace(/^\/.*/, ''), feature && message ? '' : 'empty']).toEqual(['', '']);
    const strict = () => convertRequest(source.body, { ...options, policy: { strict: true } });
    const lost = told.notes
      .filter(({ code, feature }) => code === 'DROPPED' && !UNREFUSED.has(feature))
      .map(({ feature }) => feature);
    if (lost.length > 0) expect(strict, lost.join()).toThrow(CodecError);
    else if (told.notes.length === 0) expect(strict().body).toEqual(told.body);
  });
});

afterAll(() => {
  const idle = [...NORMAL_FORM, ...GAPS].filter(({ name }) => !used.has(name)).map(({ name }) => name);
  if (SHARED) expect(idle, 'every rule is needed').toEqual([]);
});

test.each([...NORMAL_FORM, ...GAPS])('$name has a reason', ({ reason }) => expect(reason.length).toBeGreaterThan(20));
