/** The format of tapes: folders with an `exchange.json` and the bodies beside it. docs/tapes.md describes it. */

import { findProtocol, type ProtocolId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { oneLine } from '../text.ts';

/** One exchange of a tape, wherever it was read from. Bodies are read on demand. */
export interface Exchange {
  /** Its folder or file, unique on the tape. */
  name: string;
  /** undefined for paths that Sluice does not know. */
  protocol: ProtocolId | undefined;
  model: string;
  /** The request asked for a stream. */
  isStream: boolean;
  ending: Ending;
  request: { method: string; path: string; readBody(): Promise<Uint8Array> };
  /** undefined when there was no response. */
  response: RecordedResponse | undefined;
}

/** The recorded response of an exchange. */
export interface RecordedResponse {
  status: number;
  headers: Record<string, string>;
  /** Empty where the reads are not known. */
  reads: readonly Read[];
  readBody(): Promise<Uint8Array>;
}

/** A network read: milliseconds since the request was sent, and bytes. */
export type Read = readonly [atMs: number, bytes: number];

/** How a response ended. */
export type Ending = (typeof ENDINGS)[number];

/** How a response ended. For all but the first, the tape has what was read until then. */
const ENDINGS = ['complete', 'upstream_cut', 'client_gone', 'too_large', 'unreachable'] as const;

/** Reads an empty body. */
export const readNoBody = async (): Promise<Uint8Array> => new Uint8Array();

// ---- exchange.json

/** The name of the file that makes a folder an exchange. */
export const FACTS_FILE = 'exchange.json';

/** Raised when readers of the previous version would misread a tape. */
const TAPE_VERSION = 1;

/** The contents of `exchange.json`. Bodies are files beside it. */
export interface Facts {
  tape: typeof TAPE_VERSION;
  /** ISO 8601. */
  recorded: string;
  /** null for paths that Sluice does not know. */
  protocol: ProtocolId | null;
  model: string | null;
  /** The request asked for a stream. */
  stream: boolean;
  end: Ending;
  request: { method: string; path: string; headers: Record<string, string>; body: string | null };
  /** null when there was no response. */
  response: { status: number; headers: Record<string, string>; body: string | null; redacted?: true; reads: Read[] } | null;
}

/**
 * Writes readable JSON with one line per read. Strings cannot contain line ends, so the pattern matches only pairs of
 * numbers.
 */
export const writeFacts = (facts: Omit<Facts, 'tape'>): string =>
  `${JSON.stringify({ tape: TAPE_VERSION, ...facts }, null, 2).replace(/\[\n\s+(\d+),\n\s+(\d+)\n\s+\]/g, '[$1, $2]')}\n`;

/** Reads `exchange.json`. Throws a TapeError that names the invalid field. */
export function readFacts(text: string, file: string): Facts {
  const facts = parseFacts(text, file);
  facts.oneOf('tape', [TAPE_VERSION], `${TAPE_VERSION}, the tape version that this sluice reads`);
  const request = facts.object('request');
  const response = facts.objectOrNull('response');
  return {
    tape: TAPE_VERSION,
    recorded: facts.text('recorded', ''),
    protocol: facts.protocolOrNull('protocol'),
    model: facts.textOrNull('model'),
    stream: facts.flag('stream'),
    end: facts.oneOf('end', ENDINGS),
    request: {
      method: request.text('method', 'POST'),
      path: request.text('path', '/'),
      headers: request.headers('headers'),
      body: request.fileName('body'),
    },
    response: response && {
      status: response.status('status'),
      headers: response.headers('headers'),
      body: response.fileName('body'),
      ...(response.flag('redacted') && { redacted: true }),
      reads: response.pairs('reads'),
    },
  };
}

/** A tape that cannot be read: the message names the file, the field and the expected value. */
export class TapeError extends Error {}

/** Reads the fields of a JSON file. Tapes are edited by hand, so errors name the field. */
function parseFacts(text: string, file: string): FactsReader {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TapeError(`${oneLine(file)} is not JSON: ${oneLine(error instanceof Error ? error.message : String(error))}`);
  }
  if (!isFields(value)) throw new TapeError(`${oneLine(file)}: must be a JSON object`);
  return new FactsReader(value, file, '');
}

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

class FactsReader {
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
    return typeof value === 'string' ? value : this.#refuse(name, 'a string');
  }

  textOrNull(name: string): string | null {
    const value = this.#get(name) ?? null;
    return value === null || typeof value === 'string' ? value : this.#refuse(name, 'a string or null');
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
      : this.#refuse(name, 'an HTTP status');
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
    return isBag ? (value as Record<string, string>) : this.#refuse(name, 'an object of header names and strings'); // all entries were checked
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
    return isList ? (value as [number, number][]) : this.#refuse(name, 'a list of [milliseconds, bytes]'); // all entries were checked
  }

  #get(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }

  #refuse(name: string, expected: string): never {
    throw new TapeError(`${oneLine(this.#file)}: "${this.#path}${name}" must be ${expected}`);
  }
}

/** Header names that HTTP allows. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/** A file of the same folder: tapes are shared, so they must not refer to other places. */
const FILE_NAME = /^[\w-][\w.-]{0,200}$/;

// ---- paths

/** The path to which a client of a protocol sends its request. */
export function pathFor(protocol: ProtocolId, model: string, stream: boolean): string {
  const provider = { id: '', protocol, base_url: PLACEHOLDER_URL };
  return CODECS[protocol].buildUrl('CHAT', { provider, model, stream }).slice(PLACEHOLDER_URL.length);
}

const PLACEHOLDER_URL = 'http://localhost';

/** Appends a client's path to the path of a base URL. Segments that both have (`/v1`) appear once. */
export function joinPaths(base: string, path: string): string {
  const [bare = '', query] = path.split(/\?(.*)/s, 2);
  const above = base.split('/').filter((part) => part !== '');
  const below = bare.split('/').filter((part) => part !== '');
  const shared = above.findIndex((_, at) => above.slice(at).every((part, i) => part === below[i]));
  const parts = [...(shared < 0 ? above : above.slice(0, shared)), ...below];
  const isFolder = bare.endsWith('/') && below.length > 0;
  return `/${parts.join('/')}${isFolder ? '/' : ''}${query === undefined ? '' : `?${query}`}`;
}
