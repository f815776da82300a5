/** Reads tapes: folders of exchanges, folders with a manifest of recordings, and saved streams. */

import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { findProtocol, PROTOCOLS } from '@sluice/core';
import { StreamAccumulator } from '@sluice/core/engine';
import { oneLine, systemCode } from '../text.ts';
import { type Exchange, FACTS_FILE, pathFor, type Read, readFacts, readNoBody, TapeError } from './format.ts';

/**
 * Reads the exchanges of a tape, in order: a folder of exchanges, a single exchange, a folder with a manifest, saved
 * streams (`*.sse`), or one stream. Throws a TapeError when nothing is found or readable.
 */
export async function readTape(path: string): Promise<Exchange[]> {
  const shown = oneLine(path);
  try {
    if (!(await stat(path)).isDirectory()) return [await readStream(path)];
    const found = await readFolder(path);
    if (found.length > 0) return found;
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    throw new TapeError(
      code === 'ENOENT' ? `${shown}: no such tape; create one with "sluice record"` : `${shown} cannot be read: ${code}`,
    );
  }
  throw new TapeError(
    `${shown} contains no exchanges (*/${FACTS_FILE}) and no streams (*.sse); create some with "sluice record --out ${shown}"`,
  );
}

async function readFolder(folder: string): Promise<Exchange[]> {
  const entries = (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const isThere = (name: string): boolean => entries.some((entry) => entry.name === name && entry.isFile());
  if (isThere(FACTS_FILE)) return [await readExchange(folder)];
  if (isThere(MANIFEST_FILE)) return readManifest(folder);
  // Names of unfinished exchanges begin with a dot.
  const visible = entries.filter(({ name }) => !name.startsWith('.'));
  const folders = await Promise.all(
    visible.filter((entry) => entry.isDirectory()).map(({ name }) => readIfExchange(join(folder, name))),
  );
  const exchanges = folders.flatMap((exchange) => exchange ?? []);
  if (exchanges.length > 0) return exchanges;
  const streams = visible.filter((entry) => entry.isFile() && entry.name.endsWith('.sse'));
  return Promise.all(streams.map(({ name }) => readStream(join(folder, name))));
}

/** Undefined for a folder that is not an exchange. */
async function readIfExchange(folder: string): Promise<Exchange | undefined> {
  try {
    return await readExchange(folder);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function readExchange(folder: string): Promise<Exchange> {
  const file = join(folder, FACTS_FILE);
  const { protocol, model, stream, end, request, response } = readFacts((await readInside(folder, FACTS_FILE)).toString(), file);
  const body = (name: string | null) => (name === null ? readNoBody : () => readInside(folder, name));
  return {
    name: basename(folder),
    protocol: protocol ?? undefined,
    model: model ?? '',
    isStream: stream,
    ending: end,
    request: { method: request.method, path: request.path, readBody: body(request.body) },
    response: response
      ? { status: response.status, headers: response.headers, reads: response.reads, readBody: body(response.body) }
      : undefined,
  };
}

/** Reads a file of a tape. A tape may come from others, so a link in it must not lead to other files of this machine. */
async function readInside(folder: string, name: string): Promise<Buffer> {
  const path = join(folder, name);
  const [root, file] = await Promise.all([realpath(folder), realpath(path)]);
  if (!file.startsWith(root.endsWith(sep) ? root : root + sep))
    throw new TapeError(`${oneLine(path)}: is a link to a file outside of the tape; copy that file into the tape`);
  return readFile(file);
}

/** Reads a saved stream; its protocol and model are taken from its content. */
async function readStream(path: string): Promise<Exchange> {
  const readBody = (): Promise<Uint8Array> => readFile(path);
  const accumulator = new StreamAccumulator({ protocol: Object.values(PROTOCOLS) });
  accumulator.push(await readBody());
  const { protocol, model } = accumulator.finish();
  if (protocol === null)
    throw new TapeError(
      `${oneLine(path)} is not a response stream of a known protocol; name a tape of "sluice record", or the body of a response`,
    );
  return {
    name: basename(path),
    protocol,
    model,
    isStream: true,
    ending: 'complete',
    request: { method: 'POST', path: pathFor(protocol, model, true), readBody: readNoBody },
    response: { status: 200, headers: { 'content-type': 'text/event-stream' }, reads: [], readBody },
  };
}

// ---- manifests

/** A list of recorded bodies: `[{ file, request?, protocol, model, stream, status }]`, with the files beside it. */
const MANIFEST_FILE = 'manifest.json';

/** The sizes of the network reads of some bodies: `{ file: [bytes, …] }`. */
const PACKETS_FILE = 'packets.json';

interface Entry {
  file: string;
  request?: string;
  protocol: string;
  model: string;
  stream: boolean;
  status: number;
}

async function readManifest(folder: string): Promise<Exchange[]> {
  const file = join(folder, MANIFEST_FILE);
  const entries = parse((await readInside(folder, MANIFEST_FILE)).toString(), file);
  if (!Array.isArray(entries)) throw new TapeError(`${oneLine(file)}: must be a JSON array`);
  const packets = await readPackets(folder);
  return entries.map((entry: unknown, at) => {
    if (!isEntry(entry)) throw new TapeError(`${oneLine(file)}: entry ${at} lacks file, protocol, model, stream or status`);
    return buildExchange(entry, folder, packets.get(entry.file) ?? []);
  });
}

/** Whether a path stays inside the folder. */
const isInside = (path: unknown): boolean =>
  typeof path === 'string' && /^[^/\\]/.test(path) && !path.split(/[/\\]/).includes('..');

function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null) return false;
  const { file, request, protocol, model, stream, status } = value as Record<string, unknown>; // each field is checked below
  const isKnown = typeof protocol === 'string' && findProtocol(protocol) !== undefined;
  const isStatus = typeof status === 'number' && status >= 200 && status < 600;
  const areFiles = isInside(file) && (request === undefined || isInside(request));
  return areFiles && isKnown && isStatus && typeof model === 'string' && typeof stream === 'boolean';
}

function buildExchange(entry: Entry, folder: string, sizes: readonly number[]): Exchange {
  const { file, request, model, stream, status } = entry;
  const protocol = findProtocol(entry.protocol)?.id;
  const type = file.endsWith('.sse') ? 'text/event-stream' : 'application/json';
  return {
    name: file,
    protocol,
    model,
    isStream: stream,
    ending: 'complete',
    request: {
      method: 'POST',
      path: protocol ? pathFor(protocol, model, stream) : '/',
      readBody: request === undefined ? readNoBody : () => readInside(folder, request),
    },
    response: {
      status,
      headers: { 'content-type': type },
      reads: sizes.map((bytes): Read => [0, bytes]),
      readBody: () => readInside(folder, file),
    },
  };
}

async function readPackets(folder: string): Promise<ReadonlyMap<string, readonly number[]>> {
  const file = join(folder, PACKETS_FILE);
  const text = await readInside(folder, PACKETS_FILE).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return '{}';
    throw error;
  });
  const isSizes = (value: unknown): value is number[] =>
    Array.isArray(value) && value.every((size) => Number.isInteger(size) && size > 0);
  const entries = Object.entries(parse(text.toString(), file) ?? {}).filter((entry): entry is [string, number[]] =>
    isSizes(entry[1]),
  );
  return new Map(entries);
}

function parse(text: string, file: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    throw new TapeError(`${oneLine(file)} is not JSON`);
  }
}
