/**
 * Reading untrusted values. `expectX` throws a CodecError with the path of a wrong value; the other readers never throw
 * and fall back to an empty value.
 */
import type { CodecError, Note } from '../canonical/notes.ts';
import { isDeeperThan, isDeepJson, isObject, type JsonObject, parseJson, setOwn, TOO_DEEP } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { invalid, missing } from './report.ts';

// ---- readers that throw

/** The value as an object; throws a CodecError for anything else. */
export function expectObject(value: unknown, param: string): JsonObject {
  if (isObject(value)) return value;
  throw describeMismatch(value, param, 'an object');
}

/** The value as a list; throws a CodecError for anything else. */
export function expectList(value: unknown, param: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw describeMismatch(value, param, 'a list');
}

/** The value as a string; throws a CodecError for anything else. */
export function expectText(value: unknown, param: string): string {
  if (typeof value === 'string') return value;
  throw describeMismatch(value, param, 'a string');
}

/** The value as a non-empty string, as names and ids are. */
export function expectName(value: unknown, param: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw describeMismatch(value, param, 'a non-empty string');
}

/** A positive number, which some clients send as text; undefined for anything else. */
export function findAmount(value: unknown): number | undefined {
  const amount = typeof value === 'string' ? Number(value) : value;
  return typeof amount === 'number' && amount > 0 && Number.isFinite(amount) ? amount : undefined;
}

/** The value as a finite number: JSON.parse reads 1e999 as Infinity. */
export function expectNumber(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw describeMismatch(value, param, 'a number');
}

/** The value as a positive integer. */
export function expectCount(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  throw describeMismatch(value, param, 'a positive integer');
}

/** The value as a boolean; throws a CodecError for anything else. */
export function expectBoolean(value: unknown, param: string): boolean {
  if (typeof value === 'boolean') return value;
  throw describeMismatch(value, param, 'true or false');
}

/** `expect` for an optional field: null and undefined give undefined. */
export function optional<T>(value: unknown, param: string, expect: (value: unknown, param: string) => T): T | undefined {
  return value === undefined || value === null ? undefined : expect(value, param);
}

const describeMismatch = (value: unknown, param: string, wanted: string): CodecError =>
  value === undefined || value === null ? missing(param) : invalid(param, `must be ${wanted}`);

/** Throws when a list is longer than any conversation. Servers apply the smaller limits of `checkRequestLimits`. */
export function expectConversation(list: readonly unknown[], param: string): void {
  if (list.length > MAX_MESSAGES) throw invalid(param, `has ${list.length} entries; the limit is ${MAX_MESSAGES}`);
}

const MAX_MESSAGES = 100_000;

/** Throws when a body is nested so deeply that the recursion of passes and encoders could overflow the stack. */
export function expectShallow(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    if (!isDeeperThan(value, MAX_JSON_DEPTH - 1)) continue;
    const at = Array.isArray(value) ? value.findIndex((item) => isDeeperThan(item, MAX_JSON_DEPTH - 2)) : -1;
    throw invalid(at < 0 ? name : `${name}[${at}]`, TOO_DEEP);
  }
}

/** Parses arguments; undefined when they are not JSON. Throws when they are nested too deeply. */
export function expectShallowJson(text: string, param: string): unknown {
  const value = parseJson(text);
  if (value === undefined && isDeepJson(text)) throw invalid(param, TOO_DEEP);
  return value;
}

// ---- readers that never throw

/** The value if it is an object, else `{}`. */
export const objectOrEmpty = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** The value if it is a list, else `[]`. */
export const listOrEmpty = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The value if it is a string, else "". */
export const textOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The value if it is a number that is not negative, else undefined. */
export const toCount = (value: unknown): number | undefined => (typeof value === 'number' && value >= 0 ? value : undefined);

/** Whether all values of an object are strings. */
export const isTextRecord = (value: JsonObject): value is Record<string, string> =>
  Object.values(value).every((item) => typeof item === 'string');

/** Whether a value can be an index of a list. */
export const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** The fields outside `known` whose value is not null; undefined when there are none. */
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

// ---- paths

/** The JSON pointer of a JSON path: `/messages/3/content` for `messages[3].content`. */
export function toPointer(param: string): string {
  // Called for every node of a request: regular expressions would take longer than the rest of decoding it.
  let pointer = '/';
  let inIndex = false;
  for (let at = 0; at < param.length; at++) {
    const char = param.charAt(at);
    if (char === '[' && isDigit(param.charCodeAt(at + 1))) {
      inIndex = true;
      pointer += '/';
    } else if (char === ']' && inIndex) inIndex = false;
    else pointer += char === '.' ? '/' : char;
  }
  return pointer;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

// ---- usage counts

/** Limits a part of a usage count to the whole, with a note. */
export function limitToWhole(
  part: number | undefined,
  whole: number,
  name: string,
  note: (note: Note) => void,
): number | undefined {
  if (part === undefined || part <= whole) return part;
  noteUsage(note, name, part, whole, 'reduced to that');
  return whole;
}

/**
 * Fits cached tokens to the input count that should contain them. If they exceed it, the total decides: they are added
 * where it counts them (29 + 157 + 6 = 192) or is absent, and otherwise reduced (Azure's Grok: 387 of 293, with a total
 * of 293 + 58).
 */
export function fitCached(
  cached: number | undefined,
  { input, output, total }: TokenCounts,
  note: (note: Note) => void,
): FittedCache {
  if (cached === undefined || cached <= input) return { read: cached, outside: 0, isUncertain: false };
  const isCounted = !total || total >= input + output + cached;
  noteUsage(note, 'cached_tokens', cached, input, `${isCounted ? 'added' : 'reduced'} to that; usage is uncertain`);
  return { read: isCounted ? cached : input, outside: isCounted ? cached : 0, isUncertain: true };
}

/** The counts of a usage object that decide about its cached tokens. */
interface TokenCounts {
  input: number;
  output: number;
  total: number | undefined;
}

interface FittedCache {
  read: number | undefined;
  /** How many tokens the input count leaves out. */
  outside: number;
  isUncertain: boolean;
}

/** Notes a usage count that exceeds the count it should be a part of. `what`: what was done about it. */
export function noteUsage(note: (note: Note) => void, name: string, part: number, whole: number, what: string): void {
  const message = `usage ${name} is ${part}, more than the total of ${whole} that contains it; ${what}`;
  note({ code: 'REPAIRED', path: `/usage/${name}`, feature: `usage.${name}`, message });
}
