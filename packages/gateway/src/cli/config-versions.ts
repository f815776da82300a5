/** Versions of the configuration in a PostgreSQL database: `sluice config push`, `history`, `show` and `rollback`. */

import { hostname, userInfo } from 'node:os';
import { oneLine } from '@sluice/lab/text';
import { viewVersion } from '../admin/config.ts';
import { ConfigError } from '../config/problems.ts';
import { expandReferences } from '../config/secrets.ts';
import { looksSecret } from '../config/stored-secrets.ts';
import { findSharedProblems } from '../config/validate.ts';
import { type ConfigVersion, type ConfigVersions, type StoredConfig, StoreError } from '../store/index.ts';
import { describeAddress } from '../store/postgres/address.ts';
import { EXIT, UsageError } from '../terminal/errors.ts';
import { readFileBytes } from '../terminal/inputs.ts';
import type { CliIo } from '../terminal/io.ts';
import { type Colors, chooseColors, formatColumns, formatJsonLine } from '../terminal/text.ts';
import { type HomeIo, readHome } from './home.ts';
import { reportStoreErrors } from './ledger/open.ts';

/** The options of the commands. */
export interface VersionOptions {
  readonly store: string | undefined;
  readonly comment: string | undefined;
  readonly expect: string | undefined;
  readonly limit: string | undefined;
  readonly json: boolean;
}

/** Prints what is wrong with a document, and returns the exit code. */
type ReportProblems = (file: string, error: ConfigError) => Promise<number>;

/** One run of a command. */
interface Call {
  readonly word: string | undefined;
  readonly options: VersionOptions;
  readonly io: CliIo;
  readonly report: ReportProblems;
}

/** Stores a file as the next version. */
export async function pushConfig(call: Call): Promise<number> {
  const { word: file, options, io, report } = call;
  if (file === undefined) throw new UsageError('name the file to store: sluice config push FILE');
  const text = (await readFileBytes(file, io)).toString('utf8');
  return change(call, async (versions, current) => {
    const problems = findSharedProblems(file, text, current?.text);
    if (problems.length > 0) return report(file, new ConfigError(problems));
    if (current?.text === text) return printChange({ added: current, current }, options, io);
    return add(versions, current, { text, rollback_of: null }, options, io);
  });
}

/** Stores the text of an earlier version as the next one. */
export async function rollBackConfig(call: Call): Promise<number> {
  const { word, options, io, report } = call;
  const wanted = readVersion(word, 'name the version to return to: sluice config rollback VERSION');
  return change(call, async (versions, current) => {
    const old = await versions.get(wanted);
    if (!old) throw createUnknown(wanted);
    if (current?.text === old.text) return printChange({ added: current, current }, options, io);
    // What was valid once may not be so for this release.
    const problems = findSharedProblems(`version ${wanted}`, old.text, current?.text);
    if (problems.length > 0) return report(`version ${wanted}`, new ConfigError(problems));
    return add(versions, current, { text: old.text, rollback_of: wanted }, options, io);
  });
}

/** Lists the versions. */
export async function listConfigs({ word, options, io }: Call): Promise<number> {
  if (word !== undefined) throw new UsageError(`unexpected argument "${oneLine(word)}"`);
  const limit = readNumber('--limit', options.limit, MAX_LISTED) ?? DEFAULT_LISTED;
  return withVersions(options, io, { mayChange: false }, async (versions) => {
    const found = await versions.list(limit);
    if (options.json) for (const version of found) await printJson(viewVersion(version), io);
    else await io.stdout.write(formatVersions(found, chooseColors(io.stdout, io.env)));
    return EXIT.ok;
  });
}

/** Prints a version as it was stored. */
export async function showConfig({ word, options, io }: Call): Promise<number> {
  const wanted = word === undefined ? undefined : readVersion(word, '');
  return withVersions(options, io, { mayChange: false }, async (versions) => {
    const found = await versions.get(wanted);
    if (!found) throw wanted === undefined ? new StoreError('query', NO_VERSION) : createUnknown(wanted);
    if (options.json) await printJson({ ...viewVersion(found), text: found.text }, io);
    else await io.stdout.write(found.text);
    return EXIT.ok;
  });
}

const DEFAULT_LISTED = 50;

const MAX_LISTED = 1000;

const NO_VERSION = 'the database has no configuration yet; store one with "sluice config push FILE"';

const createUnknown = (version: number): StoreError =>
  new StoreError('query', `there is no version ${version}; "sluice config history" lists them`);

/** Checks the options of a change, and reads the version in force. */
function change(
  { options, io }: Call,
  work: (versions: ConfigVersions, current: StoredConfig | undefined) => Promise<number>,
): Promise<number> {
  const expected = readNumber('--expect', options.expect, MAX_VERSION);
  checkComment(options.comment ?? '');
  return withVersions(options, io, { mayChange: true }, async (versions) => {
    const current = await versions.get();
    const version = current?.version ?? 0;
    if (expected !== undefined && expected !== version)
      throw new StoreError('conflict', `version ${version} is in force, not ${expected}; ${MERGE}`);
    return work(versions, current);
  });
}

const MERGE = 'compare it with yours ("sluice config show"), and repeat the command with its number as --expect';

const MAX_COMMENT = 500;

function checkComment(comment: string): void {
  if (comment.length > MAX_COMMENT) throw new UsageError(`--comment must have at most ${MAX_COMMENT} characters`);
  if (looksSecret(comment)) throw new UsageError('--comment has a text that looks like a secret; every operator can read it');
}

async function add(
  versions: ConfigVersions,
  current: StoredConfig | undefined,
  { text, rollback_of }: Pick<StoredConfig, 'text' | 'rollback_of'>,
  options: VersionOptions,
  io: CliIo,
): Promise<number> {
  const expected = current?.version ?? 0;
  const comment = oneLine(options.comment ?? '');
  try {
    const added = await versions.add({ text, rollback_of, expected, comment, author: describeAuthor(), actor: 'cli' });
    return await printChange({ added, current }, options, io);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'conflict') throw error;
    throw new StoreError('conflict', `another version was stored at the same moment; ${MERGE}`, error);
  }
}

/** The user of this process may have no name. */
function describeAuthor(): string {
  try {
    return oneLine(`${userInfo().username}@${hostname()}`);
  } catch {
    return oneLine(hostname());
  }
}

/** Calls `work` with the versions of the database that is chosen by `--store`, `SLUICE_STORE` or `sluice.yaml`. */
async function withVersions(
  { store }: VersionOptions,
  io: CliIo,
  access: { mayChange: boolean },
  work: (versions: ConfigVersions) => Promise<number>,
): Promise<number> {
  const url = await chooseStore(store, io);
  return reportStoreErrors(io, async () => {
    const place = describeAddress(url);
    const { withConfigVersions } = await import('../store/postgres/store.ts');
    const { dim } = chooseColors(io.stderr, io.env);
    await io.stderr.write(`${dim(`sluice: using ${oneLine(place)}`)}\n`);
    return withConfigVersions(url, access, work);
  });
}

async function chooseStore(given: string | undefined, io: CliIo): Promise<string> {
  const text = given ?? (io.env['SLUICE_STORE'] || undefined);
  if (text === undefined) return findConfiguredStore(io);
  const url = expandReferences(text, io.env);
  if ('fault' in url) throw new UsageError(`--store: ${url.fault}`);
  return url.text;
}

async function findConfiguredStore(io: HomeIo): Promise<string> {
  const { data } = await readHome(undefined, io);
  if (data.kind !== 'database')
    throw new UsageError('name the database: set SLUICE_STORE, or use --store env:NAME, or run this beside the file of a node');
  return data.url;
}

const MAX_VERSION = 2 ** 31 - 2;

function readVersion(text: string | undefined, missing: string): number {
  if (text === undefined) throw new UsageError(missing);
  return readNumber('VERSION', text, MAX_VERSION) ?? 0;
}

function readNumber(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,10}$/.test(text) && Number(text) <= most) return Number(text);
  throw new UsageError(`${name} must be a number up to ${most}, not "${oneLine(text.slice(0, 40))}"`);
}

interface Change {
  readonly added: ConfigVersion;
  /** The version before; the same when nothing was changed. */
  readonly current: ConfigVersion | undefined;
}

async function printChange({ added, current }: Change, { json }: VersionOptions, io: CliIo): Promise<number> {
  const { version, digest } = added;
  const changed = version !== current?.version;
  if (json) await printJson({ version, replaced: changed ? (current?.version ?? null) : null, digest, changed }, io);
  else if (changed)
    await io.stdout.write(
      `Version ${version} is in force${current ? ` instead of ${current.version}` : ''}. Nodes use it within a second; "sluice_config_version" of /metrics shows which one a node uses.\n`,
    );
  else await io.stdout.write(`Version ${version} has the same text and stays in force.\n`);
  return EXIT.ok;
}

function formatVersions(versions: readonly ConfigVersion[], { bold, dim }: Colors): string {
  if (versions.length === 0) return 'There are no versions. Store one with "sluice config push FILE".\n';
  const rows = versions.map(({ version, ts, author, comment, digest, rollback_of }) => [
    String(version),
    `${new Date(ts).toISOString().slice(0, 16).replace('T', ' ')}Z`,
    oneLine(author),
    digest.slice(0, 12),
    oneLine([...(rollback_of === null ? [] : [`rollback to ${rollback_of}`]), ...(comment === '' ? [] : [comment])].join(': ')),
  ]);
  const [title = '', first = '', ...older] = formatColumns([['VERSION', 'TIME', 'AUTHOR', 'SHA-256', 'COMMENT'], ...rows]);
  return `${[bold(title), first, ...older.map(dim)].map((line) => line.trimEnd()).join('\n')}\n`;
}

async function printJson(record: object, io: CliIo): Promise<void> {
  await io.stdout.write(formatJsonLine(record)?.join('') ?? '');
}
