import { findProtocol, type ProtocolId } from '@sluice/core';
import { oneLine } from '../cli/escape.ts';

/** A tape that cannot be read: the message names the file, the field and what it should be. */
export class TapeError extends Error {}

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of a JSON file. People edit tapes by hand: what is wrong is said in their words. */
export function factsReader(text: string, file: string): FactsReader {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TapeError(`${oneLine(file)} is not JSON: ${oneLine(error instanceof Error ? error.message : String(error))}`);
  }
  if (!isFields(value)) throw new TapeError(`${oneLine(file)}: an object is expected`);
  return new FactsReader(value, file, '');
}

/** Names of headers as HTTP has them. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** A file of the same folder: tapes are handed around, and lead nowhere else. */
const FILE_NAME = /^[\w-][\w.-]{0,200}$/;

export class FactsReader {
  readonly #fields: Fields;
  readonly #file: string;
  readonly #path: string;

  constructor(fields: Fields, file: string, path: string) {
    this.#fields = fields;
    this.#file = file;
    this.#path = path;
  }

  text(name: string, preset: string): string {
    const value = this.#get(name) ?? preset;
    return typeof value === 'string' ? value : this.#refuse(name, 'a text');
  }

  textOrNull(name: string): string | null {
    const value = this.#get(name) ?? null;
    return value === null || typeof value === 'string' ? value : this.#refuse(name, 'a text or null');
  }

  flag(name: string): boolean {
    const value = this.#get(name) ?? false;
    return typeof value === 'boolean' ? value : this.#refuse(name, 'true or false');
  }

  oneOf<T extends string | number>(name: string, known: readonly T[], why = `one of ${known.join(', ')}`): T {
    const value = this.#get(name);
    return known.find((one) => one === value) ?? this.#refuse(name, why);
  }

  status(name: string): number {
    const value = this.#get(name);
    return typeof value === 'number' && Number.isInteger(value) && value >= 200 && value < 600
      ? value
      : this.#refuse(name, 'a status of HTTP');
  }

  protocolOrNull(name: string): ProtocolId | null {
    const value = this.textOrNull(name);
    return value === null ? null : (findProtocol(value)?.id ?? this.#refuse(name, 'a protocol or null'));
  }

  object(name: string): FactsReader {
    return this.objectOrNull(name) ?? this.#refuse(name, 'an object');
  }

  objectOrNull(name: string): FactsReader | null {
    const value = this.#get(name) ?? null;
    if (value === null) return null;
    return isFields(value)
      ? new FactsReader(value, this.#file, `${this.#path}${name}.`)
      : this.#refuse(name, 'an object or null');
  }

  headers(name: string): Record<string, string> {
    const value = this.#get(name) ?? {};
    const isBag =
      isFields(value) &&
      Object.entries(value).every(([key, text]) => TOKEN.test(key) && typeof text === 'string' && !/[\r\n\0]/.test(text));
    return isBag ? (value as Record<string, string>) : this.#refuse(name, 'names of headers and texts'); // every one was looked at
  }

  fileName(name: string): string | null {
    const value = this.textOrNull(name);
    return value === null || FILE_NAME.test(value) ? value : this.#refuse(name, 'the name of a file in the same folder');
  }

  pairs(name: string): (readonly [number, number])[] {
    const value = this.#get(name) ?? [];
    const isPair = (pair: unknown): boolean =>
      Array.isArray(pair) && pair.length === 2 && pair.every((part) => Number.isFinite(part) && part >= 0);
    const isList = Array.isArray(value) && value.every(isPair);
    return isList ? (value as [number, number][]) : this.#refuse(name, 'a list of [milliseconds, bytes]'); // every one was looked at
  }

  #get(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }

  #refuse(name: string, expected: string): never {
    throw new TapeError(`${oneLine(this.#file)}: "${this.#path}${name}" must be ${expected}`);
  }
}
