import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProtocol } from '@sluice/core';
import { oneLine } from '../cli/escape.ts';
import { systemCode } from '../cli/io.ts';
import { type Exchange, NO_BODY } from './exchange.ts';
import { TapeError } from './facts-reader.ts';
import type { Read } from './format.ts';
import { pathFor } from './paths.ts';

/** A list of recorded bodies: `[{ file, request?, protocol, model, stream, status }]`, the files beside it. */
export const MANIFEST_FILE = 'manifest.json';
/** For some of them, the sizes of the network reads: `{ file: [bytes, …] }`. */
const PACKETS_FILE = 'packets.json';

interface Entry {
  file: string;
  request?: string;
  protocol: string;
  model: string;
  stream: boolean;
  status: number;
}

export async function readManifest(folder: string): Promise<Exchange[]> {
  const file = join(folder, MANIFEST_FILE);
  const entries = parse(await readFile(file, 'utf8'), file);
  if (!Array.isArray(entries)) throw new TapeError(`${oneLine(file)}: a list is expected`);
  const packets = await readPackets(folder);
  return entries.map((entry: unknown, at) => {
    if (!isEntry(entry)) throw new TapeError(`${oneLine(file)}: entry ${at} lacks file, protocol, model, stream or status`);
    return exchangeOf(entry, folder, packets.get(entry.file) ?? []);
  });
}

/** No way out of the folder. */
const isInside = (path: unknown): boolean =>
  typeof path === 'string' && /^[^/\\]/.test(path) && !path.split(/[/\\]/).includes('..');

function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null) return false;
  const { file, request, protocol, model, stream, status } = value as Record<string, unknown>; // each is looked at below
  const isKnown = typeof protocol === 'string' && findProtocol(protocol) !== undefined;
  const isStatus = typeof status === 'number' && status >= 200 && status < 600;
  const areFiles = isInside(file) && (request === undefined || isInside(request));
  return areFiles && isKnown && isStatus && typeof model === 'string' && typeof stream === 'boolean';
}

function exchangeOf(entry: Entry, folder: string, sizes: readonly number[]): Exchange {
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
      readBody: request === undefined ? NO_BODY : () => readFile(join(folder, request)),
    },
    response: {
      status,
      headers: { 'content-type': type },
      reads: sizes.map((bytes): Read => [0, bytes]),
      readBody: () => readFile(join(folder, file)),
    },
  };
}

async function readPackets(folder: string): Promise<ReadonlyMap<string, readonly number[]>> {
  const file = join(folder, PACKETS_FILE);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return '{}';
    throw error;
  });
  const isSizes = (value: unknown): value is number[] =>
    Array.isArray(value) && value.every((size) => Number.isInteger(size) && size > 0);
  const entries = Object.entries(parse(text, file) ?? {}).filter((entry): entry is [string, number[]] => isSizes(entry[1]));
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
