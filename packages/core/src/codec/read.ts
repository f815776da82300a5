import type { CodecError, Note } from '../canonical/notes.ts';
import { isDeeperThan, isDeepJson, isObject, type JsonObject, parseJson, setOwn, TOO_DEEP } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { invalid, missing } from './report.ts';

// At the border of a request: the value is what it has to be, or the caller is told where it is not. (read.ts looks and never throws.)
const wrong = (value: unknown, param: string, wanted: string): CodecError =>
  value === undefined || value === null ? missing(param) : invalid(param, `must be ${wanted}`);

export function expectObject(value: unknown, param: string): JsonObject {
  if (isObject(value)) return value;
  throw wrong(value, param, 'an object');
}

export function expectList(value: unknown, param: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw wrong(value, param, 'a list');
}

const MAX_MESSAGES = 100_000;

/** More than any conversation has. Whoever takes requests from strangers has a smaller limit: `checkRequestLimits`. */
export function expectConversation(list: readonly unknown[], param: string): void {
  if (list.length > MAX_MESSAGES) throw invalid(param, `${list.length} entries; the limit is ${MAX_MESSAGES}`);
}

export function expectText(value: unknown, param: string): string {
  if (typeof value === 'string') return value;
  throw wrong(value, param, 'a string');
}

/** A text that says something: names and ids. */
export function expectName(value: unknown, param: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw wrong(value, param, 'a non-empty string');
}

/** JSON.parse makes Infinity of 1e999. */
export function expectNumber(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw wrong(value, param, 'a number');
}

/** How many of something there may be. */
export function expectCount(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  throw wrong(value, param, 'a positive integer');
}

export function expectBoolean(value: unknown, param: string): boolean {
  if (typeof value === 'boolean') return value;
  throw wrong(value, param, 'true or false');
}

/** null says as little as absence. */
export function optional<T>(value: unknown, param: string, expect: (value: unknown, param: string) => T): T | undefined {
  return value === undefined || value === null ? undefined : expect(value, param);
}

/** The JSON pointer of a JSON path: `messages[3].content` is `/messages/3/content`. */
export function pointerOf(param: string): string {
  // Every node of a request has one: without patterns, which take longer than the rest of reading it.
  let pointer = '/';
  let isIndex = false;
  for (let at = 0; at < param.length; at++) {
    const char = param.charAt(at);
    if (char === '[' && isDigit(param.charCodeAt(at + 1))) {
      isIndex = true;
      pointer += '/';
    } else if (char === ']' && isIndex) isIndex = false;
    else pointer += char === '.' ? '/' : char;
  }
  return pointer;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/** What the passes and encoders walk may not end their stack. */
export function expectShallow(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    if (!isDeeperThan(value, MAX_JSON_DEPTH - 1)) continue;
    const at = Array.isArray(value) ? value.findIndex((item) => isDeeperThan(item, MAX_JSON_DEPTH - 2)) : -1;
    throw invalid(at < 0 ? name : `${name}[${at}]`, TOO_DEEP);
  }
}

/** The value of arguments that are JSON in a text; undefined when they are not JSON. */
export function expectShallowJson(text: string, param: string): unknown {
  const value = parseJson(text);
  if (value === undefined && isDeepJson(text)) throw invalid(param, TOO_DEEP);
  return value;
}

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
