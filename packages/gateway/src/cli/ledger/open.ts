/** Chooses where a command reads from: the admin API of a running gateway, or the data folder. */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { oneLine } from '@sluice/lab/text';
import { chooseUrl } from '../../clients/clients.ts';
import type { Options } from '../../config/options.ts';
import { defaultDataFolder, listFiles, StoreError } from '../../store/index.ts';
import { describeAddress, isPostgres } from '../../store/postgres/address.ts';
import { EXIT, UnreadableError, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import { MISSING_GATEWAY, probeGateway } from '../probe.ts';
import { AdminClient, ApiError } from './admin-client.ts';
import { FolderSource } from './folder-source.ts';
import { GatewaySource } from './gateway-source.ts';
import type { LedgerSource } from './source.ts';

/** The options that choose a source. */
export interface SourceOptions {
  readonly data: string | undefined;
  readonly url: string | undefined;
  readonly key: string | undefined;
}

/**
 * Calls `use` with the source that the options choose. By default that is the gateway at the default address if it permits, or
 * else the data folder. A gateway that is named with `--url` is never replaced by a folder, which may belong to another one.
 */
export async function withSource<T>(options: SourceOptions, io: CliIo, use: (source: LedgerSource) => Promise<T>): Promise<T> {
  const source = await openSource(options, io).catch((error: unknown) => {
    throw explainError(error, 'the gateway');
  });
  try {
    const { dim } = chooseColors(io.stderr, io.env);
    await io.stderr.write(`${dim(`sluice: reading ${oneLine(source.name)}`)}\n`);
    return await use(source);
  } catch (error) {
    throw explainError(error, source.name);
  } finally {
    await source.close();
  }
}

/** Errors of a source become errors of an input. */
export function explainError(error: unknown, name: string): unknown {
  if (error instanceof StoreError && error.code === 'query') return new UsageError(oneLine(error.message), { cause: error });
  const isKnown = error instanceof ApiError || error instanceof StoreError;
  return isKnown ? new UnreadableError(name, toFailure(error.message), error) : error;
}

const toFailure = (message: string): UnreadableError['failure'] => ({ code: 'unavailable', message, canonical: 'NOT_FOUND' });

/** Opens the source that the options choose; `defaultUrl` is where a gateway is looked for. */
export async function openSource(options: SourceOptions, io: Pick<CliIo, 'env'>, defaultUrl?: string): Promise<LedgerSource> {
  const place = await choosePlace(options, io, { defaultUrl });
  return place.kind === 'gateway' ? new GatewaySource(place.client) : openFolder(place.folder, place.why);
}

/** Where data is: behind the admin API, or in a folder or database; `why` is the reason why the gateway is not used. */
export type Place =
  | { readonly kind: 'gateway'; readonly client: AdminClient }
  | { readonly kind: 'folder'; readonly folder: string; readonly why: string | undefined };

/** Chooses by the options. `mayBeNew`: the folder needs no data yet. */
export async function choosePlace(
  { data, url, key }: SourceOptions,
  io: Pick<CliIo, 'env'>,
  { defaultUrl, mayBeNew = false }: { defaultUrl?: string | undefined; mayBeNew?: boolean } = {},
): Promise<Place> {
  if (data !== undefined && url !== undefined)
    throw new UsageError('--url names a running gateway and --data a folder; use one of them');
  if (data !== undefined) return { kind: 'folder', folder: data, why: undefined };
  const address = chooseUrl(url ?? defaultUrl);
  const found = await probeGateway(address);
  const adminKey = key ?? (io.env['SLUICE_ADMIN_KEY'] || undefined);
  if (url !== undefined && found !== 'gateway') throw new UsageError(MISSING_GATEWAY[found](address));
  const client = new AdminClient(address, adminKey);
  if (url !== undefined) return { kind: 'gateway', client };
  const refusal = found === 'gateway' ? await client.findRefusal() : 'no gateway runs at the default address';
  if (refusal === undefined) return { kind: 'gateway', client };
  const store = (await readConfigured(io.env))?.store;
  if (store) return { kind: 'folder', folder: store.reveal(), why: refusal };
  const folder = await chooseFolder(undefined, io.env);
  if (folder !== undefined && (mayBeNew || existsSync(listFiles(folder).database)))
    return { kind: 'folder', folder, why: refusal };
  const where = folder === undefined ? 'data is kept in memory' : `${folder} has no data`;
  throw new UsageError(
    `${oneLine(refusal)}, and ${oneLine(where)}; start "sluice serve", or name a gateway or folder with --url or --data`,
  );
}

async function openFolder(folder: string, why?: string): Promise<LedgerSource> {
  requireDatabase(folder);
  try {
    return await FolderSource.open(folder, why);
  } catch (error) {
    throw explainError(error, describePlace(folder));
  }
}

/** A folder, or the place of a database without its password. */
export const describePlace = (place: string): string => (isPostgres(place) ? describeAddress(place) : place);

/** Throws when a folder has no database. */
export function requireDatabase(folder: string): void {
  if (!isPostgres(folder) && !existsSync(listFiles(folder).database))
    throw new UnreadableError(folder, toFailure('no usage data (sluice.db); name the folder of the gateway with --data'));
}

/** The data folder that `sluice serve` would use here; undefined when it would keep data in memory. */
export async function chooseFolder(data: string | undefined, env: CliIo['env']): Promise<string | undefined> {
  const chosen = data ?? (env['SLUICE_DATA'] || (await readConfigured(env))?.data);
  return chosen === 'memory' ? undefined : (chosen ?? defaultDataFolder(env));
}

/** The options of the configuration in this folder; undefined when there is none. */
export async function readConfigured(env: CliIo['env']): Promise<Options | undefined> {
  // Imported on demand: most users have no such file.
  const { findConfig, loadConfig } = await import('../../config/load.ts');
  const file = findConfig(process.cwd());
  if (file === undefined) return undefined;
  try {
    return loadConfig(file, await readFile(file, 'utf8'), env).options;
  } catch (error) {
    throw new UsageError(`${oneLine(file)} cannot be used to find the data folder; name it with --data`, { cause: error });
  }
}

/** Runs `work`; an error of the store is a failed job (1), a file that exists already is wrong usage (2). */
export async function reportStoreErrors(io: CliIo, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error.code === 'exists') throw new UsageError(oneLine(error.message), { cause: error });
    const { red } = chooseColors(io.stderr, io.env);
    await io.stderr.write(`${red('sluice:')} ${oneLine(error.message)}\n`);
    return EXIT.failed;
  }
}
