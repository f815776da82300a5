/** Reads what is to be inspected: captures, tapes, cases and bodies of responses. It runs in browsers, too. */

import { findProtocol, type ProtocolId } from '@sluice/core';
import type { Read } from '@sluice/lab/tape';
import { formatCapture, isCaptureJson, parseCapture } from '../json.ts';
import { decodeText } from './captured.ts';
import { InspectError, type InspectInput, type RecordedBody } from './inspect.ts';

/** A file by its name, with or without folders. */
export interface InputFile {
  name: string;
  bytes: Uint8Array;
}

/**
 * Reads one or more files: a capture of the admin API, a case of `sluice shrink`, the folder of a recorded exchange, or a
 * body. Throws an InspectError that says what to choose.
 */
export function readFiles(files: readonly InputFile[]): InspectInput {
  const facts = files.find(({ name }) => findBaseName(name) === FACTS_NAME);
  if (facts) return readExchange(facts, files);
  const [file, another] = files;
  if (!file) throw new InspectError('choose a file');
  if (another) throw new InspectError(`choose one file, or all files of a recorded exchange with its ${FACTS_NAME}`);
  return readFile(file);
}

const FACTS_NAME = 'exchange.json';

const findBaseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function readFile({ name, bytes }: InputFile): InspectInput {
  // Captures and cases are JSON objects; so are whole responses.
  const value = bytes[0] === OPEN_BRACE ? parseFirst(decodeText(bytes)) : undefined;
  if (isCaptureJson(value)) return { is: 'capture', name, capture: readCapture(value) };
  const isCase = isRecord(value) && typeof value['raw'] === 'string' && typeof value['protocol'] === 'string';
  if (!isCase) return { is: 'body', name, body: bytes, reads: [] };
  const { raw, protocol, id } = value;
  const body = new TextEncoder().encode(String(raw));
  return { is: 'body', name: typeof id === 'string' ? id : name, body, reads: [], protocol: findProtocol(String(protocol))?.id };
}

const OPEN_BRACE = 0x7b;

/** The JSON of a file, or of its first line. */
const parseFirst = (text: string): unknown => parseJson(text) ?? parseJson(text.split('\n', 1).join());

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readCapture(value: unknown): ReturnType<typeof parseCapture> {
  try {
    return parseCapture(value);
  } catch (error) {
    throw new InspectError(`this capture cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The response of a recorded exchange, with its reads. */
function readExchange(facts: InputFile, files: readonly InputFile[]): InspectInput {
  const value = parseJson(decodeText(facts.bytes));
  const response = isRecord(value) ? value['response'] : undefined;
  const named = isRecord(response) ? response['body'] : undefined;
  const body = files.find(({ name }) => findBaseName(name) === named && findFolder(name) === findFolder(facts.name));
  if (!isRecord(value) || !isRecord(response) || typeof named !== 'string')
    throw new InspectError(`${FACTS_NAME} has no response with a body`);
  if (!body) throw new InspectError(`choose ${named} together with its ${FACTS_NAME}`);
  const protocol = typeof value['protocol'] === 'string' ? findProtocol(value['protocol'])?.id : undefined;
  return { is: 'body', name: findFolder(facts.name) || named, body: body.bytes, reads: readReads(response['reads']), protocol };
}

const findFolder = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));

const readReads = (value: unknown): Read[] =>
  Array.isArray(value)
    ? value.filter((read): read is Read => Array.isArray(read) && read.length === 2 && read.every(isAmount))
    : [];

const isAmount = (value: unknown): boolean => typeof value === 'number' && value >= 0;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

// ---- pages

/** An input as JSON, for a page that contains it. `encode` writes base64. */
export function formatInput(input: InspectInput, encode: (bytes: Uint8Array) => string): object {
  return input.is === 'capture'
    ? { ...input, capture: formatCapture(input.capture, encode) }
    : { ...input, body: encode(input.body) };
}

/** Reads an input of a page. */
export function parseInput(text: string): InspectInput {
  const value = parseJson(text);
  if (!isRecord(value)) throw new InspectError('this page has no data');
  const { is, name, capture, body, reads, protocol, to } = value;
  if (is === 'capture') return { is, name: String(name), capture: readCapture(capture) };
  if (typeof body !== 'string') throw new InspectError('this page has no data');
  const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  const protocols: Pick<RecordedBody, 'protocol' | 'to'> = { protocol: readProtocol(protocol), to: readProtocol(to) };
  return { is: 'body', name: String(name), body: bytes, reads: readReads(reads), ...protocols };
}

const readProtocol = (value: unknown): ProtocolId | undefined =>
  typeof value === 'string' ? findProtocol(value)?.id : undefined;
