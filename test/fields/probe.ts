import type { Field } from '../../scripts/fields/fields.js';
import { valuesAt } from '../../scripts/fields/pattern.js';
import { bodyWith, type Samples, sampleOf } from '../../scripts/fields/sample.js';

/** What happens to a body: read, and written again in the same language. */
interface Trip {
  canonical: unknown;
  /** Bodies, or the payloads of a stream. */
  written: unknown;
  notes: readonly { code: string; path: string }[];
}

export interface Route {
  /** Where a request is sent. */
  path?: string;
  samples: Samples;
  /** Makes a body that holds little more than one field one that the protocol accepts. */
  complete(body: unknown): unknown;
  travel(body: unknown): Trip;
}

export interface Observed {
  /** The value is where it was, or at the place that the ledger names. */
  survives: boolean;
  /** Something stands in its place. */
  isWritten: boolean;
  /** The two values differ, or the field may be left out: there is something to see. */
  varies: boolean;
  /** Canonical paths that a change of the field changes. */
  places: string[];
  notes: string[];
  /** What the codec threw. */
  error?: string;
}

/** Sets the field to two values, and leaves it out where it may be: what is written again, and what differs in the canonical model. */
export function probe(field: Field, route: Route, writtenAs?: string): Observed {
  const values = [0, 1].map((n) => sampleOf(field, n, route.samples));
  const travel = (value: unknown): Trip => route.travel(withoutHoles(route.complete(bodyWith(field, value, route.samples))));
  const varies = field.optional || JSON.stringify(values[0]) !== JSON.stringify(values[1]);
  try {
    const [first, second] = [travel(values[0]), travel(values[1])];
    const others = field.optional ? [second, ...attempt(() => travel(undefined))] : [second];
    const places = new Set(others.flatMap((other) => differences(first.canonical, other.canonical)));
    return {
      survives: [first, second].every(({ written }, n) =>
        isThere(written, writtenAs ?? field.path, values[n], writtenAs !== undefined),
      ),
      isWritten: valuesAt(first.written, field.path).length > 0,
      varies,
      places: [...places].toSorted(),
      notes: [first, second].flatMap(({ notes }) => notes.map(({ code, path }) => `${code} ${path}`)),
    };
  } catch (error) {
    return { survives: false, isWritten: false, varies, places: [], notes: [], error: String(error) };
  }
}

/** Types say that much may be left out which the protocol asks for. */
function attempt(travel: () => Trip): Trip[] {
  try {
    return [travel()];
  } catch {
    return [];
  }
}

/** undefined is what JSON cannot say. */
export const withoutHoles = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

/** Elsewhere a value may have become an item of a list or a part of a text. */
function isThere(written: unknown, path: string, value: unknown, isElsewhere: boolean): boolean {
  const found = valuesAt(written, path);
  if (found.some((candidate) => covers(candidate, value))) return true;
  if (!isElsewhere) return false;
  return found.flat().some((item) => covers(item, value) || (typeof item === 'string' && item.includes(String(value))));
}

/** Objects may come back with more: defaults that the protocol asks for. Lists of parts may have grown in `complete`. */
function covers(found: unknown, value: unknown): boolean {
  if (Array.isArray(value)) return Array.isArray(found) && value.every((item) => found.some((other) => covers(other, item)));
  if (!isObject(value)) return found === value;
  return isObject(found) && Object.entries(value).every(([name, item]) => covers(found[name], item));
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Paths at which two values differ, without numbers: `messages[].content[].text`. */
export function differences(a: unknown, b: unknown, path = ''): string[] {
  if (Object.is(a, b)) return [];
  if (Array.isArray(a) && Array.isArray(b)) {
    const length = Math.max(a.length, b.length);
    return unique(Array.from({ length }, (_, i) => differences(a[i], b[i], `${path}[]`)).flat());
  }
  if (isObject(a) && isObject(b)) {
    const names = new Set([...Object.keys(a), ...Object.keys(b)]);
    return unique([...names].flatMap((name) => differences(a[name], b[name], path === '' ? name : `${path}.${name}`)));
  }
  return [path];
}

const unique = <T>(list: T[]): T[] => [...new Set(list)];
