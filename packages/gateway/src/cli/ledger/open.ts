/** Chooses where a command reads from: the admin API of a running gateway, or the data folder. */

import { existsSync } from 'node:fs';
import { oneLine } from '@sluice/lab/text';
import { findDefaultFolder, listFiles, MEMORY, StoreError } from '../../store/index.ts';
import { describeAddress, isPostgres } from '../../store/postgres/address.ts';
import { EXIT, UnreadableError, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import {
  findGateway,
  formatTrail,
  type GatewayIo,
  type GatewayOptions,
  type NoGateway,
  requireGateway,
  summarize,
} from '../find-gateway.ts';
import { describeData, type Home, type HomeIo, readHome } from '../home.ts';
import { AdminClient, ApiError } from './admin-client.ts';
import { FolderSource } from './folder-source.ts';
import { GatewaySource } from './gateway-source.ts';
import type { LedgerSource } from './source.ts';

/** The options that choose a source. */
export interface SourceOptions extends GatewayOptions {
  readonly data: string | undefined;
  readonly key: string | undefined;
}

/** Calls `use` with the source that the options choose. */
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

/** Opens the source that the options choose. */
export async function openSource(options: SourceOptions, io: GatewayIo): Promise<LedgerSource> {
  const place = await choosePlace(options, io, 'read');
  return place.kind === 'gateway' ? new GatewaySource(place.client) : openFolder(place.folder, place.why);
}

/** Where data is: behind the admin API, or in a folder or database; `why` is the reason why the gateway is not used. */
export type Place = { readonly kind: 'gateway'; readonly client: AdminClient } | FolderPlace;

/** A folder or database. */
export interface FolderPlace {
  readonly kind: 'folder';
  readonly folder: string;
  readonly why: string | undefined;
  /** What was looked at before, for errors; empty when the folder was named. */
  readonly details: string;
}

/** What a command does with the data. `create`: the data folder may be new. */
export type Access = 'read' | 'change' | 'create';

/**
 * Chooses by the options. The gateway of the configuration is used if it permits, or else its data. A gateway that is named with
 * `--url` or `SLUICE_URL` is never replaced by a folder, which may belong to another one.
 */
export async function choosePlace(options: SourceOptions, io: GatewayIo, access: Access): Promise<Place> {
  const { data, url, key } = options;
  if (data !== undefined && url !== undefined)
    throw new UsageError('--url names a running gateway and --data a folder; use one of them');
  if (options.config !== undefined && url !== undefined)
    throw new UsageError('--url names a running gateway and --config the file of one; use one of them');
  if (data !== undefined) return { kind: 'folder', folder: data, why: undefined, details: '' };
  const found = await findGateway(options, io);
  if (found.kind === 'none') return chooseOffline(found, access);
  if (found.kind === 'named') await requireGateway(found);
  const client = new AdminClient(found.url, key ?? (io.env['SLUICE_ADMIN_KEY'] || undefined));
  const refusal = found.kind === 'named' ? undefined : await client.findRefusal();
  if (found.kind === 'named' || refusal === undefined) return { kind: 'gateway', client };
  const why = `${client.name}: ${refusal.message}`;
  if (access !== 'read' && found.home.data.kind !== 'database')
    throw new UsageError(`${oneLine(why)}${REMEDIES.get(refusal.status) ?? `; ${SET_KEY}`}`);
  return chooseData(found.home, why, access, '');
}

/** What to add to a refusal, by status. The texts of these two say what to set: that of 403 comes from the gateway, which does not know the command. */
const REMEDIES: ReadonlyMap<number, string> = new Map([
  [401, ''],
  [403, '; then set SLUICE_ADMIN_KEY or --key here'],
]);

/** What a refused change needs. */
export const SET_KEY = 'set admin.key in the configuration of the gateway, and SLUICE_ADMIN_KEY or --key here';

/** The data itself. A gateway that responds in the place of the right one may be the one that is meant, so nothing is changed then. */
function chooseOffline(found: NoGateway, access: Access): Place {
  const { home, other, trail } = found;
  if (other !== undefined && access !== 'read' && home.data.kind !== 'database') throw createOtherError(other, found);
  return chooseData(home, summarize(found), access, `\n${formatTrail(trail)}`);
}

function createOtherError(url: string, { home: { file, data }, trail }: NoGateway): UsageError {
  const own = file === undefined ? describeData(data) : `${file} (${describeData(data)})`;
  const folder = data.kind === 'folder' ? `, or change the folder with --data ${data.folder}` : '';
  return new UsageError(
    `the gateway at ${url} is not the one of ${oneLine(own)}; nothing was changed\n${formatTrail(trail)}\nUse that gateway with --url ${url}${oneLine(folder)}`,
  );
}

function chooseData({ data }: Home, why: string, access: Access, details: string): Place {
  switch (data.kind) {
    case 'database':
      return { kind: 'folder', folder: data.url, why, details };
    case 'folder':
      if (access === 'create' || existsSync(listFiles(data.folder).database))
        return { kind: 'folder', folder: data.folder, why, details };
      throw createMissingError(why, `${data.folder} has no data`, details);
    case 'memory':
      throw createMissingError(why, 'data is kept in memory', details);
  }
}

const createMissingError = (why: string, where: string, details: string): UsageError =>
  new UsageError(
    `${oneLine(why)}, and ${oneLine(where)}; start "sluice serve", or name a gateway or folder with --url or --data${details}`,
  );

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

/** The folder of `--data`, or the one that `sluice serve` would use here if it had no database. */
export async function chooseFolder({ data, config }: FolderOptions, io: HomeIo): Promise<string> {
  const folder = data ?? findFolder(await readHome(config, io), io);
  if (folder === MEMORY) throw new UsageError('data is kept in memory; name a folder with --data');
  return folder;
}

function findFolder({ data, folder }: Home, { env }: HomeIo): string {
  switch (data.kind) {
    case 'folder':
      return data.folder;
    case 'memory':
      return MEMORY;
    case 'database':
      return folder ?? findDefaultFolder(env);
  }
}

/** The options that choose a folder. */
export type FolderOptions = Pick<SourceOptions, 'data' | 'config'>;

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
