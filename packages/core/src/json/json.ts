import { MAX_JSON_DEPTH } from './limits.ts';

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isFilledText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** The value of an own field: `constructor` is not in a table just because every object has one. */
export const getOwn = <T>(source: Record<string, T>, key: unknown): T | undefined =>
  typeof key === 'string' && Object.hasOwn(source, key) ? source[key] : undefined;

/** Assigning to `__proto__` would change the prototype; here every key is data. */
export function setOwn(target: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  else target[key] = value;
}

/** Adds all fields of `source`, `__proto__` too: what a spread does, without a copy of what is there already. */
export function assignOwn(target: JsonObject, source: JsonObject): void {
  for (const key of Object.keys(source)) setOwn(target, key, source[key]);
}

export const TOO_DEEP: string = `nested more than ${MAX_JSON_DEPTH} levels deep`;

/** Whether parsed JSON has more levels of objects and arrays than `limit`. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (limit === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeperThan(item, limit - 1));
  // `for in` makes no list. JSON has nothing but own fields.
  for (const name in value) if (isDeeperThan((value as JsonObject)[name], limit - 1)) return true; // any object that JSON.parse makes
  return false;
}

/** Equality of JSON values; key order does not matter. Beyond the depth that real arguments have, values count as different. */
export function sameJson(a: unknown, b: unknown, depth = 0): boolean {
  if (a === b) return true;
  if (depth > MAX_JSON_DEPTH) return false;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i], depth + 1));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key], depth + 1));
}

/** JSON text; undefined for what is nested too deeply to be written. */
export function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** `undefined` when the text is not JSON (JSON itself has no undefined), or nested too deeply for anything but the parser. */
export function parseJson(text: string): unknown {
  const value = parseAny(text);
  return isLong(text) && isDeeperThan(value, MAX_JSON_DEPTH) ? undefined : value;
}

/** Whether the depth alone is why `parseJson` does not read it. */
export const isDeepJson = (text: string): boolean => isLong(text) && isDeeperThan(parseAny(text), MAX_JSON_DEPTH);

/** Every level takes two brackets, so most texts are too short to be deep. */
const isLong = (text: string): boolean => text.length > 2 * MAX_JSON_DEPTH;

function parseAny(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
