import { MAX_SHRINK_DEPTH, plainFor } from './json.ts';
import type { Part } from './parts.ts';

// Streams repeat themselves: what is done to a field is tried on all its copies at once, and costs one try.

type Shows = (parts: readonly Part[]) => Promise<boolean>;

/** The keys that lead to a place, each behind a mark; positions in lists are all the same place. */
type Place = string;
const MARK = '\0';
const ELEMENT = '[]';
const placeOf = (place: Place, key: string): Place => place + MARK + key;

/** Where the four protocols have what a model says. */
const TEXTS: ReadonlySet<string> = new Set(
  'arguments content delta input output_text partial_json reasoning reasoning_content refusal summary text thinking'.split(' '),
);

/** Silences the model: some protocols say a text several times, and no copy of it can change or go alone. */
export async function withoutTexts(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  const silent = parts.map((part) => (typeof part === 'string' ? part : { ...part, value: silenced(part.value, '', 0) }));
  return (await shows(silent)) ? silent : parts;
}

function silenced(value: unknown, key: string, depth: number): unknown {
  if (typeof value === 'string') return TEXTS.has(key) ? '' : value;
  if (typeof value !== 'object' || value === null || depth > MAX_SHRINK_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => silenced(item, key, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, silenced(item, name, depth + 1)]));
}

/** Leaves out the fields that it does not take, everywhere; the outer ones first. */
export async function withoutFields(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  let best = parts;
  for (const place of placesOf(parts, () => true)) {
    const fewer = changed(best, place, () => undefined);
    if (fewer !== best && (await shows(fewer))) best = fewer;
  }
  return best;
}

/** Makes texts plain, everywhere. */
export async function withPlainTexts(parts: readonly Part[], shows: Shows): Promise<readonly Part[]> {
  let best = parts;
  for (const place of placesOf(parts, (value) => typeof value === 'string')) {
    for (const at of [0, 1, 2, 3]) {
      const plainer = changed(best, place, (value) => (typeof value === 'string' ? (plainFor(value)[at] ?? value) : value));
      if (plainer === best || !(await shows(plainer))) continue;
      best = plainer;
      break;
    }
  }
  return best;
}

/** Outer places before inner ones. */
function placesOf(parts: readonly Part[], isWanted: (value: unknown) => boolean): Place[] {
  const found = new Map<Place, number>();
  const visit = (value: unknown, place: Place, depth: number): void => {
    if (depth > 0 && isWanted(value) && !found.has(place)) found.set(place, depth);
    if (typeof value !== 'object' || value === null || depth > MAX_SHRINK_DEPTH) return;
    if (Array.isArray(value)) for (const item of value) visit(item, placeOf(place, ELEMENT), depth + 1);
    else for (const [key, item] of Object.entries(value)) visit(item, placeOf(place, key), depth + 1);
  };
  for (const part of parts) if (typeof part !== 'string') visit(part.value, '', 0);
  return [...found].toSorted(([, a], [, b]) => a - b).map(([place]) => place);
}

/** The parts with a value changed, or left out, wherever the place is met; the same list when it is met nowhere. */
function changed(parts: readonly Part[], wanted: Place, change: (value: unknown) => unknown): readonly Part[] {
  let isChanged = false;
  const visit = (value: unknown, place: Place): unknown => {
    if (place === wanted) {
      const next = change(value);
      isChanged ||= next !== value;
      return next;
    }
    // Only the places above the wanted one lead to it: all others stay as they are, and the same objects.
    if (typeof value !== 'object' || value === null || !wanted.startsWith(place + MARK)) return value;
    if (Array.isArray(value))
      return value.map((item) => visit(item, placeOf(place, ELEMENT))).filter((item) => item !== undefined);
    const fields = Object.entries(value).map(([key, item]): [string, unknown] => [key, visit(item, placeOf(place, key))]);
    return Object.fromEntries(fields.filter(([, item]) => item !== undefined));
  };
  const next = parts.map((part) => (typeof part === 'string' ? part : { ...part, value: visit(part.value, '') }));
  return isChanged ? next : parts;
}
