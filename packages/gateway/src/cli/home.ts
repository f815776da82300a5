/** What a command belongs to: the configuration that `sluice serve` would use here, and where that keeps its data. */

import { resolve } from 'node:path';
import { oneLine } from '@sluice/lab/text';
import type { Source } from '../config/load.ts';
import type { Options } from '../config/options.ts';
import { ConfigError } from '../config/problems.ts';
import { findDefaultFolder, MEMORY } from '../store/location.ts';
import { describeAddress } from '../store/postgres/address.ts';
import { toUnreadable, UsageError } from '../terminal/errors.ts';
import type { CliIo } from '../terminal/io.ts';

/** The configuration of a command. */
export interface Home {
  /** Its file; undefined without one. */
  readonly file: string | undefined;
  /** Where its gateway listens; undefined where the file does not have it. */
  readonly listen: Options['listen'] | undefined;
  readonly data: DataPlace;
  readonly pepperFile: string | undefined;
  /** The data folder that is configured; undefined for memory, and when none is. */
  readonly folder: string | undefined;
}

/** Where a gateway keeps its data. */
export type DataPlace =
  | { readonly kind: 'memory' }
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 'database'; readonly url: string };

/** The part of the outside world that a configuration is read from. */
export type HomeIo = Pick<CliIo, 'env' | 'folder' | 'openFile'>;

/** Reads the file of `--config`, or that in this folder, or the environment alone. */
export async function readHome(config: string | undefined, io: HomeIo): Promise<Home> {
  // Imported on demand: the schema takes longer to load than the rest of a command.
  const { findConfig } = await import('../config/load.ts');
  const file = config ?? findConfig(io.folder);
  const source = file === undefined ? undefined : await load(file, io);
  const chosen = io.env['SLUICE_DATA'] || source?.options.data;
  return {
    file,
    listen: source?.settings.includes('listen') ? source.options.listen : undefined,
    data: chooseData(source, chosen, io),
    pepperFile: source?.options.auth.pepper_file,
    folder: chosen === undefined || chosen === MEMORY ? undefined : resolve(io.folder, chosen),
  };
}

function chooseData(source: Source | undefined, chosen: string | undefined, io: HomeIo): DataPlace {
  const store = source?.options.store;
  if (store) return { kind: 'database', url: store.reveal() };
  const folder = chosen ?? findDefaultFolder(io.env);
  return folder === MEMORY ? { kind: 'memory' } : { kind: 'folder', folder: resolve(io.folder, folder) };
}

/** References that other settings have, such as the keys of providers, need not be set for a command. */
const NEEDED = /^(listen|data|store|auth\.pepper_file)\b/;

async function load(file: string, io: HomeIo): Promise<Source> {
  const text = await readText(file, io);
  const { loadConfig } = await import('../config/load.ts');
  try {
    const source = loadConfig(file, text, io.env);
    const missing = source.missing.filter(({ path }) => NEEDED.test(path.join('.')));
    if (missing.length > 0) throw new ConfigError(missing);
    return source;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new UsageError(
      `${oneLine(file)} cannot be used to find the gateway and its data; correct it, or name them with --url or --data:\n${error.message}`,
      { cause: error },
    );
  }
}

/** Not by `readFileBytes`, whose module loads all protocols. */
async function readText(file: string, io: HomeIo): Promise<string> {
  try {
    const { chunks } = await io.openFile(file);
    const pieces: Uint8Array[] = [];
    for await (const chunk of chunks) pieces.push(chunk);
    return Buffer.concat(pieces).toString();
  } catch (error) {
    throw toUnreadable(error, file);
  }
}

/** A place for messages, without the password of a database. */
export function describeData(data: DataPlace): string {
  switch (data.kind) {
    case 'memory':
      return 'memory';
    case 'folder':
      return `data folder ${data.folder}`;
    case 'database':
      return `database ${describeAddress(data.url)}`;
  }
}
