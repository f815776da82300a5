/** A capture as JSON, in files and in the admin API. The console reads it, so this file runs in browsers, too. */

import { CODECS } from '@sluice/core/engine';
import { CAPTURE_VERSION, type Capture } from './capture.ts';

/** The objects of a capture whose fields are ours. Profiles, errors and providers have the names of the core. */
interface OwnFields {
  limits: object;
  response: object | null;
  attempts: readonly { conversion: object | null }[];
}

/** Writes the names of our own fields in snake case, as JSON has them, or back. */
export function renameFacts<Facts extends OwnFields>(facts: Facts, rename: (name: string) => string): Facts {
  const renamed = renameFields(facts, rename);
  return {
    ...renamed,
    limits: renameFields(renamed.limits, rename),
    response: renamed.response && renameFields(renamed.response, rename),
    attempts: renamed.attempts.map((one) => {
      const attempt = renameFields(one, rename);
      return { ...attempt, conversion: attempt.conversion && renameFields(attempt.conversion, rename) };
    }),
  };
}

const renameFields = <T extends object>(fields: T, rename: (name: string) => string): T =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [rename(name), value])) as T; // the other spelling of the same fields

/** `startMs` as `start_ms`. */
export const toSnakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** `start_ms` as `startMs`. */
export const toCamelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Regular expressions, which profiles have, as JSON. For `JSON.stringify`. */
export const writeRegex = (_: string, value: unknown): unknown => (value instanceof RegExp ? { [REGEX]: value.source } : value);

/** The reverse, for `JSON.parse`. */
export const readRegex = (_: string, value: unknown): unknown =>
  isRecord(value) && REGEX in value ? new RegExp(String(value[REGEX])) : value;

const REGEX = '$regex';

/** A capture as a JSON value: names in snake case, bodies by `encode` in base64. */
export function formatCapture(capture: Capture, encode: (bytes: Uint8Array) => string): Record<string, unknown> {
  const write = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return encode(value);
    if (Array.isArray(value)) return value.map(write);
    if (value instanceof RegExp) return writeRegex('', value);
    return isRecord(value) ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, write(inner)])) : value;
  };
  return Object.fromEntries(Object.entries(renameFacts(capture, toSnakeCase)).map(([name, value]) => [name, write(value)]));
}

/** Whether a JSON value is meant to be a capture. */
export const isCaptureJson = (value: unknown): boolean => isRecord(value) && 'capture' in value && 'attempts' in value;

/** Reads a capture that was written as a JSON value. Throws an Error that says what is wrong. */
export function parseCapture(value: unknown): Capture {
  const { capture, protocol, request, response, attempts, limits } = expectRecord(value, 'the file');
  if (capture !== CAPTURE_VERSION) throw new Error(`capture: must be ${CAPTURE_VERSION}, the version of the format`);
  expectProtocol(protocol, 'protocol');
  expectRecord(limits, 'limits');
  if (!Array.isArray(attempts)) throw new Error('attempts: must be an array');
  const parts = {
    ...expectRecord(value, 'the file'),
    request: readBody(request, 'request'),
    response: readResponse(response, 'response'),
    attempts: attempts.map((attempt, index) => readAttempt(attempt, `attempts[${index}]`)),
  };
  return renameFacts(parts as unknown as Capture, toCamelCase); // everything that the derivation reads was checked above
}

function readAttempt(value: unknown, path: string): object {
  const attempt = expectRecord(value, path);
  expectProtocol(attempt['protocol'], `${path}.protocol`);
  if (typeof attempt['start_ms'] !== 'number') throw new Error(`${path}.start_ms: must be a number`);
  if (!isNumbers(attempt['clock'])) throw new Error(`${path}.clock: must be an array of numbers`);
  const { conversion } = attempt;
  if (conversion !== null)
    expectRecord(expectRecord(conversion, `${path}.conversion`)['provider'], `${path}.conversion.provider`);
  return {
    ...attempt,
    conversion: reviveRegexes(conversion),
    request: readBody(attempt['request'], `${path}.request`),
    response: readResponse(attempt['response'], `${path}.response`),
  };
}

function readResponse(value: unknown, path: string): object | null {
  if (value === null) return null;
  const response = readBody(value, path);
  const { reads, fills = [] } = response;
  if (!Array.isArray(reads) || !reads.every((read) => isNumbers(read) && read.length === 2))
    throw new Error(`${path}.reads: must be an array of pairs of numbers`);
  if (!isNumbers(fills)) throw new Error(`${path}.fills: must be an array of numbers`);
  return { ...response, fills };
}

function readBody(value: unknown, path: string): Record<string, unknown> {
  const message = expectRecord(value, path);
  const { body } = message;
  if (typeof body !== 'string') throw new Error(`${path}.body: must be a text in base64`);
  return { ...message, body: decodeBase64(body, `${path}.body`) };
}

function decodeBase64(text: string, path: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    throw new Error(`${path}: must be a text in base64`);
  }
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

const reviveRegexes = (value: unknown): unknown => JSON.parse(JSON.stringify(value), readRegex);

const isNumbers = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'number' && item >= 0);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function expectRecord(value: unknown, path: string): Record<string, unknown> {
  if (!isRecord(value)) throw new Error(`${path}: must be a JSON object`);
  return value;
}

function expectProtocol(value: unknown, path: string): void {
  if (typeof value !== 'string' || !Object.hasOwn(CODECS, value)) throw new Error(`${path}: is not the name of a protocol`);
}
