import type { ProtocolCodec } from '../../packages/core/src/protocols/shared/codec.ts';
import type { ProviderProfile } from '../../packages/core/src/protocols/shared/profile.ts';
import type { Field } from '../../scripts/fields/fields.js';
import { bodyWith, sampleOf } from '../../scripts/fields/sample.js';
import { differences, type Route, withoutHoles } from './probe.ts';
import { contextOf } from './route.ts';

/** What another protocol does with a field: says it, tells of the loss or the change in a note, refuses it, or none of these. */
export type Fate = 'said' | 'approximated' | 'dropped' | 'refused' | 'silent';

interface Letter {
  written: unknown;
  /** Code, feature and path of each note. */
  notes: readonly string[];
}

/** Another protocol, to which a canonical value is written. */
export interface Abroad {
  name: string;
  write(canonical: never): Letter;
}

/** How requests and responses of another protocol are written. Streams say what responses say. */
export function abroad(name: string, codec: ProtocolCodec, profile: ProviderProfile, section: string): Abroad | undefined {
  const encode = { request: codec.request.encode, response: codec.response.encode }[section];
  if (!encode) return undefined;
  return {
    name,
    write(canonical) {
      const context = contextOf(profile);
      const written = encode(canonical, context);
      return { written, notes: context.notes.map(({ code, feature, path }) => `${code} ${feature} ${path}`) };
    },
  };
}

/** What becomes of a field in each of the others. It is said when a change of it changes what is written. */
export function fatesOf(field: Field, route: Route, others: readonly Abroad[]): Record<string, Fate> {
  const values: unknown[] = [0, 1].map((n) => sampleOf(field, n, route.samples));
  if (field.optional) values.push(undefined);
  const questions = values.flatMap((value) => {
    try {
      return [route.travel(withoutHoles(route.complete(bodyWith(field, value, route.samples)))).canonical];
    } catch {
      return [];
    }
  });
  return Object.fromEntries(others.map((other) => [other.name, fateOf(questions, other, usualNotes(route, other))]));
}

function fateOf(questions: readonly unknown[], { write }: Abroad, usual: ReadonlySet<string>): Fate {
  try {
    const letters = questions.map((question) => write(question as never)); // what the route reads is what it writes
    const isSaid = letters.some(({ written }) => differences(letters[0]?.written, written).length > 0);
    const told = letters.slice(0, 2).flatMap(({ notes }) => notes.filter((note) => !usual.has(note)));
    const has = (code: string): boolean => told.some((note) => note.startsWith(code));
    if (!isSaid && has('DROPPED')) return 'dropped';
    if (has('APPROXIMATED') || has('DROPPED')) return 'approximated';
    return isSaid ? 'said' : 'silent';
  } catch {
    return 'refused';
  }
}

const usual = new WeakMap<Abroad, ReadonlySet<string>>();

/** What is told of every body: a default that the other protocol asks for. */
function usualNotes(route: Route, other: Abroad): ReadonlySet<string> {
  const known = usual.get(other) ?? new Set(notesOf(route, other));
  usual.set(other, known);
  return known;
}

function notesOf(route: Route, { write }: Abroad): readonly string[] {
  try {
    return write(route.travel(withoutHoles(route.complete({}))).canonical as never).notes;
  } catch {
    return [];
  }
}
