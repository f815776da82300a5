/** JSON values: guards, own fields, equality, and parsing and writing without exceptions. */
import { MAX_JSON_DEPTH, MAX_UNSCANNED_JSON } from './limits.ts';
import { isTextDeeperThan } from './scanner.ts';

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** Whether a value is an object and not an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a value is a non-empty string. */
export const isFilledText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** The value of an own field; inherited ones such as `constructor` are ignored. */
export const getOwn = <T>(source: Record<string, T>, key: unknown): T | undefined =>
  typeof key === 'string' && Object.hasOwn(source, key) ? source[key] : undefined;

/** Sets a field. Assigning to `__proto__` would change the prototype; here every key is data. */
export function setOwn(target: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  else target[key] = value;
}

/** Adds all fields of `source`, including `__proto__`: like a spread, without copying the target. */
export function assignOwn(target: JsonObject, source: JsonObject): void {
  for (const key of Object.keys(source)) setOwn(target, key, source[key]);
}

/** How messages describe a value that is deeper than MAX_JSON_DEPTH. */
export const TOO_DEEP: string = `nested more than ${MAX_JSON_DEPTH} levels deep`;

/** Whether parsed JSON has more levels of objects and arrays than `limit`. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (limit === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeperThan(item, limit - 1));
  // `for in` allocates no list, and parsed JSON has only own fields.
  for (const name in value) if (isDeeperThan((value as JsonObject)[name], limit - 1)) return true; // an object of JSON.parse
  return false;
}

/**
 * Whether two JSON values are equal; key order does not matter. Values deeper than MAX_JSON_DEPTH count as different.
 */
export function sameJson(a: unknown, b: unknown, depth = 0): boolean {
  if (a === b) return true;
  if (depth > MAX_JSON_DEPTH) return false;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i], depth + 1));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key], depth + 1));
}

/** JSON text; undefined for values nested too deeply to be written. */
export function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Whether a text is too deep to be parsed at all. False for short texts, whose depth is checked when they are parsed. */
export const isDeepText = (text: string, limit: number): boolean =>
  text.length > MAX_UNSCANNED_JSON && isTextDeeperThan(text, limit);

/** Parses JSON; undefined when the text is not JSON, or is nested deeper than MAX_JSON_DEPTH. */
export function parseJson(text: string): unknown {
  if (isDeepText(text, MAX_JSON_DEPTH)) return undefined;
  const value = parseAny(text);
  return isLong(text) && isDeeperThan(value, MAX_JSON_DEPTH) ? undefined : value;
}

/** Whether a text is JSON that `parseJson` rejects only because of its depth. */
export const isDeepJson = (text: string): boolean =>
  isDeepText(text, MAX_JSON_DEPTH) || (isLong(text) && isDeeperThan(parseAny(text), MAX_JSON_DEPTH));

/** Every level takes two brackets, so most texts are too short to be deep. */
const isLong = (text: string): boolean => text.length > 2 * MAX_JSON_DEPTH;

function parseAny(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
