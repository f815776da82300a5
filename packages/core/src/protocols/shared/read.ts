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

/** A part of a usage count is at most the whole; vendors break that (cached 387 of prompt 293). */
export function within(part: number | undefined, whole: number, name: string, note: (note: Note) => void): number | undefined {
  if (part === undefined || part <= whole) return part;
  const message = `${name} ${part} is more than the whole of ${whole}; the whole is taken`;
  note({ code: 'REPAIRED', path: `/usage/${name}`, feature: `usage.${name}`, message });
  return whole;
}
