import type { ProviderProfile } from '../../packages/core/src/codec/profile.ts';
import type { Codec } from '../../packages/core/src/codec/protocol.ts';
import { convertRequest } from '../../packages/core/src/engine/request.ts';
import type { Field } from '../../scripts/fields/fields.js';
import { bodyWith, sampleOf } from '../../scripts/fields/sample.js';
import { tells } from '../convert-facts.ts';
import { differences, type Route, withoutHoles } from './probe.ts';
import { contextOf } from './route.ts';

/** What another protocol does with a field: says it, tells of the loss or the change in a note, refuses it, or none of these. */
export type Fate = 'converted' | 'approximated' | 'dropped' | 'rejected' | 'silent';

/** A body with one value of a field. */
interface Sample {
  body: unknown;
  canonical: unknown;
}

interface Told {
  code: string;
  feature: string;
  path: string;
}

interface Letter {
  written: unknown;
  notes: readonly Told[];
}

/** Another protocol, to which bodies are written. */
export interface Abroad {
  name: string;
  write(sample: Sample): Letter;
  /** Notes name the place in the body: those of requests do, those of answers point into the canonical message. */
  isPointing: boolean;
}

interface Way {
  from: Codec;
  to: Codec;
  /** What is known of the server there. */
  profile: ProviderProfile;
  /** Gemini has the model in the path. */
  path: string | undefined;
}

/** How requests and responses are written in another protocol. Streams say what responses say. */
export function abroad(name: string, section: string, { from, to, profile, path }: Way): Abroad | undefined {
  if (section === 'request')
    return {
      name,
      isPointing: true,
      write({ body }) {
        const { body: written, path: called, notes } = convertRequest(body, { from, to, profile, ...(path && { path }) });
        return { written: { body: written, called }, notes };
      },
    };
  if (section !== 'response') return undefined;
  return {
    name,
    isPointing: false,
    write({ canonical }) {
      const context = contextOf(profile);
      return { written: to.response.encode(canonical as never, context), notes: context.notes }; // what the route reads
    },
  };
}

/** What becomes of a field in each of the others. It is said when a change of it changes what is written. */
export function fatesOf(field: Field, route: Route, others: readonly Abroad[]): Record<string, Fate> {
  const values: unknown[] = [0, 1].map((n) => sampleOf(field, n, route.samples));
  if (field.optional) values.push(undefined);
  const samples = values.flatMap((value) => {
    try {
      return [sampleWith(withoutHoles(route.complete(bodyWith(field, value, route.samples))), route)];
    } catch {
      return [];
    }
  });
  return Object.fromEntries(others.map((other) => [other.name, fateOf(samples, other, usualNotes(route, other))]));
}

const sampleWith = (body: unknown, route: Route): Sample => ({ body, canonical: route.travel(body).canonical });

function fateOf(samples: readonly Sample[], { write, isPointing }: Abroad, usual: ReadonlySet<string>): Fate {
  try {
    const letters = samples.map(write);
    const isSaid = letters.some(({ written }) => differences(letters[0]?.written, written).length > 0);
    const places = samples.flatMap(({ body }) => pointersTo(samples[0]?.body, body));
    const isMeant = (note: Told): boolean => (isPointing ? places.some((place) => tells(note, place)) : !usual.has(keyOf(note)));
    const told = letters.slice(0, 2).flatMap(({ notes }) => notes.filter(isMeant));
    const has = (code: string): boolean => told.some((note) => note.code === code);
    if (!isSaid && has('DROPPED')) return 'dropped';
    if (has('APPROXIMATED') || has('DROPPED')) return 'approximated';
    return isSaid || has('RENAMED') || has('CLAMPED') ? 'converted' : 'silent';
  } catch {
    return 'rejected';
  }
}

/** Where two bodies differ, as JSON pointers. */
function pointersTo(a: unknown, b: unknown, pointer = ''): string[] {
  if (Object.is(a, b)) return [];
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return [pointer];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].flatMap((name) => pointersTo(Reflect.get(a, name), Reflect.get(b, name), `${pointer}/${name}`));
}

const keyOf = ({ code, feature, path }: Told): string => `${code} ${feature} ${path}`;

const usual = new WeakMap<Abroad, ReadonlySet<string>>();

/** What is told of every answer: a default that the other protocol asks for. */
function usualNotes(route: Route, other: Abroad): ReadonlySet<string> {
  if (other.isPointing) return new Set();
  const known = usual.get(other) ?? new Set(notesOf(route, other).map(keyOf));
  usual.set(other, known);
  return known;
}

function notesOf(route: Route, { write }: Abroad): readonly Told[] {
  try {
    return write(sampleWith(withoutHoles(route.complete({})), route)).notes;
  } catch {
    return [];
  }
}
