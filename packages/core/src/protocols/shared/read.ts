import { isObject, type JsonObject, setOwn } from '../../accumulate/overlay.ts';
import type { Note } from '../../canonical/notes.ts';

// What comes from strangers is unknown until it is looked at; these look, and never throw.

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const isTexts = (value: JsonObject): value is Record<string, string> =>
  Object.values(value).every((item) => typeof item === 'string');

/** A place in a list. */
export const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** A count of something; undefined when it is none. */
export const countOf = (value: unknown): number | undefined => (typeof value === 'number' && value >= 0 ? value : undefined);

/** The fields outside `known` that say something (null says as little as absence); undefined when there are none. */
export function unknownFields(source: object, known: ReadonlySet<string>): JsonObject | undefined {
  let found: JsonObject | undefined;
  for (const key of Object.keys(source)) {
    if (known.has(key)) continue;
    const value: unknown = Reflect.get(source, key);
    if (value === null) continue;
    found ??= {};
    setOwn(found, key, value);
  }
  return found;
}

/** A part of a usage count is at most the whole. */
export function within(part: number | undefined, whole: number, name: string, note: (note: Note) => void): number | undefined {
  if (part === undefined || part <= whole) return part;
  noteUsage(note, name, part, whole, 'reduced to it');
  return whole;
}

/** The cached tokens that an input count leaves out: all of them when they exceed it (Azure's Grok: 387 of 293), otherwise none. */
export function cachedOutside(cached: number | undefined, input: number, note: (note: Note) => void): number {
  if (cached === undefined || cached <= input) return 0;
  noteUsage(note, 'cached_tokens', cached, input, 'added to it, usage is uncertain');
  return cached;
}

export function noteUsage(note: (note: Note) => void, name: string, part: number, whole: number, what: string): void {
  const message = `${name}: ${part} is more than the ${whole} it should be a part of; ${what}`;
  note({ code: 'REPAIRED', path: `/usage/${name}`, feature: `usage.${name}`, message });
}
