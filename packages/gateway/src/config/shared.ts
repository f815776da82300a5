/** The configuration of several nodes: a small file on each of them, and a document in their database with everything else. */

import type { StoredConfig } from '../store/configs.ts';
import { StoreError } from '../store/errors.ts';
import { describeAddress } from '../store/postgres/address.ts';
import { loadConfig, type Source } from './load.ts';
import { ConfigError, type Path, type Problem } from './problems.ts';
import type { Env } from './secrets.ts';

/** Settings that belong to a node. Each setting has one place: these are in its file, all others in the document. */
const NODE_SETTINGS: ReadonlySet<string> = new Set(['config', 'store', 'listen', 'data', 'auth.pepper_file']);

/** Allowed in both. */
const SCHEMA_KEY = '$schema';

const toPath = (setting: string): Path => setting.split('.');

/** Whether the file leaves everything but the settings of its node to the database. */
export const isNodeFile = ({ options }: Source): boolean => options.config === 'store';

/** What is wrong with the file of a node. */
export function findNodeProblems(source: Source): Problem[] {
  if (!isNodeFile(source)) return [];
  const { settings, problem, options } = source;
  const problems = settings
    .filter((setting) => setting !== SCHEMA_KEY && !NODE_SETTINGS.has(setting))
    .map((setting) => problem(toPath(setting), MOVE_TO_STORE, 'key'));
  return options.store ? problems : [problem(['config'], 'needs the database: set store: postgres://…'), ...problems];
}

const MOVE_TO_STORE =
  'with "config: store" this setting is part of the shared configuration; move it there with "sluice config push"';

/** What a shared document must not have. */
export const findMisplaced = ({ settings, problem }: Pick<Source, 'settings' | 'problem'>): Problem[] =>
  settings
    .filter((setting) => NODE_SETTINGS.has(setting))
    .map((setting) => problem(toPath(setting), 'is a setting of each node; move it to the file of the node', 'key'));

/** Reads the version in force from the database of a node's file. Rejects with a `ConfigError`. */
export async function readShared(source: Source): Promise<StoredConfig | undefined> {
  if (!isNodeFile(source)) return undefined;
  const problems = [...source.missing, ...findNodeProblems(source)];
  if (problems.length > 0 || !source.options.store) throw new ConfigError(problems);
  const url = source.options.store.reveal();
  const place = describeAddress(url);
  // Loaded only where it is needed, with its driver.
  const { withConfigVersions } = await import('../store/postgres/store.ts');
  try {
    const current = await withConfigVersions(url, { mayChange: false }, (versions) => versions.get());
    if (current) return current;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new ConfigError([source.problem(['store'], `the database ${place} cannot be used: ${error.message}`)]);
  }
  throw new ConfigError([
    source.problem(['config'], `the database ${place} has no configuration yet; store one with "sluice config push FILE"`),
  ]);
}

/** Loads a file, with the shared part if it is that of a node. Rejects with a `ConfigError`. */
export async function loadWhole(file: string, text: string, env: Env): Promise<Source> {
  const source = loadConfig(file, text, env);
  const shared = await readShared(source);
  return shared ? joinShared(source, shared, env) : source;
}

/** The text of the version in force; empty for a file that has everything, or that cannot be read. Rejects with a `ConfigError`. */
export async function readSharedText(file: string, text: string, env: Env): Promise<string> {
  const source = tryLoad(file, text, env);
  return (source && (await readShared(source))?.text) ?? '';
}

function tryLoad(file: string, text: string, env: Env): Source | undefined {
  try {
    return loadConfig(file, text, env);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

/** The whole configuration: the settings of the node, and those of the document. Throws a `ConfigError`. */
export function joinShared(node: Source, { version, text }: StoredConfig, env: Env): Source {
  const shared = loadConfig(`configuration version ${version}`, text, env, node.files);
  const misplaced = findMisplaced(shared);
  if (misplaced.length > 0) throw new ConfigError(misplaced);
  const { config, store, listen, data, auth } = node.options;
  const { pepper_file } = auth;
  return {
    options: {
      ...shared.options,
      ...{ config, store, listen, data },
      auth: { keys: shared.options.auth.keys, ...(pepper_file !== undefined && { pepper_file }) },
    },
    missing: [...node.missing, ...shared.missing],
    // Those of the document are not in a file of this machine.
    literalSecrets: node.literalSecrets,
    settings: [...node.settings, ...shared.settings],
    files: node.files,
    problem: (path, message, at) => (isOfNode(path) ? node : shared).problem(path, message, at),
  };
}

/** A problem of the whole file is one of the node: the document cannot be cut. */
const isOfNode = ([section, key = '']: Path): boolean =>
  section === undefined || NODE_SETTINGS.has(String(section)) || NODE_SETTINGS.has(`${section}.${key}`);
