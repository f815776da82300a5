import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Assembler, PROTOCOLS } from '@sluice/core';
import { oneLine } from '../cli/escape.ts';
import { systemCode } from '../cli/io.ts';
import { type Exchange, NO_BODY } from './exchange.ts';
import { TapeError } from './facts-reader.ts';
import { FACTS_FILE, readFacts } from './format.ts';
import { MANIFEST_FILE, readManifest } from './manifest.ts';
import { pathFor } from './paths.ts';

/**
 * The exchanges of a tape, in their order: a folder of exchanges, a single one, a folder with a manifest of recordings, saved streams
 * (`*.sse`), or one of them. Throws a TapeError where there is nothing to be found, or nothing to be read.
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
      code === 'ENOENT' ? `${shown}: no such tape; "sluice record" makes one` : `${shown} cannot be read: ${code}`,
    );
  }
  throw new TapeError(
    `${shown} has neither exchanges (*/${FACTS_FILE}) nor streams (*.sse); "sluice record --out ${shown}" makes some`,
  );
}

async function readFolder(folder: string): Promise<Exchange[]> {
  const entries = (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const isThere = (name: string): boolean => entries.some((entry) => entry.name === name && entry.isFile());
  if (isThere(FACTS_FILE)) return [await readExchange(folder)];
  if (isThere(MANIFEST_FILE)) return readManifest(folder);
  // What is being written begins with a dot.
  const visible = entries.filter(({ name }) => !name.startsWith('.'));
  const folders = await Promise.all(
    visible.filter((entry) => entry.isDirectory()).map(({ name }) => readIfExchange(join(folder, name))),
  );
  const exchanges = folders.flatMap((exchange) => exchange ?? []);
  if (exchanges.length > 0) return exchanges;
  const streams = visible.filter((entry) => entry.isFile() && entry.name.endsWith('.sse'));
  return Promise.all(streams.map(({ name }) => readStream(join(folder, name))));
}

/** Other folders may stand beside exchanges. */
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
  const { protocol, model, stream, end, request, response } = readFacts(await readFile(file, 'utf8'), file);
  const body = (name: string | null) => (name === null ? NO_BODY : () => readFile(join(folder, name)));
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

/** A saved stream alone. Its protocol and its model stand in it. */
async function readStream(path: string): Promise<Exchange> {
  const readBody = (): Promise<Uint8Array> => readFile(path);
  const assembler = new Assembler({ protocol: Object.values(PROTOCOLS) });
  assembler.push(await readBody());
  const { protocol, model } = assembler.end();
  if (protocol === null) throw new TapeError(`${oneLine(path)} is no response stream of a known protocol`);
  return {
    name: basename(path),
    protocol,
    model,
    isStream: true,
    ending: 'complete',
    request: { method: 'POST', path: pathFor(protocol, model, true), readBody: NO_BODY },
    response: { status: 200, headers: { 'content-type': 'text/event-stream' }, reads: [], readBody },
  };
}
