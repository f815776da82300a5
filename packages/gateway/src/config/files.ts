/** Files that settings refer to: secrets and certificates. They are read whole, with a limit, and watched for changes. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemCode } from '@sluice/lab/text';
import { ABSENT, formatStamp, readStamp } from '../files/stamp.ts';
import { KEY_VARIABLES } from '../providers/lookup.ts';
import type { Problem } from './problems.ts';
import { type Env, readEnv } from './secrets.ts';

/** The files that one configuration refers to, and what they were when they were read. */
export class SettingFiles {
  readonly #folder: string;
  readonly #stamps = new Map<string, string>();

  /** Relative paths begin at `folder`, that of the configuration file. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The absolute path of a setting. */
  resolve(path: string): string {
    return resolve(this.#folder, path);
  }

  /** The content of a file, or why it cannot be used. The reason names the path and never quotes the content. */
  read(path: string, maxBytes: number): FileText {
    const absolute = this.resolve(path);
    try {
      const { text, stamp } = readWhole(absolute, maxBytes);
      this.#stamps.set(absolute, stamp);
      return text === undefined ? { fault: `${absolute} must be a file of at most ${maxBytes / 1024} KiB` } : { text };
    } catch (error) {
      this.#stamps.set(absolute, ABSENT);
      return { fault: `${absolute} cannot be read (${systemCode(error) ?? 'unknown error'})` };
    }
  }

  /** A secret: the content without its last newline. */
  readSecret(path: string): FileText {
    const read = this.read(path, MAX_SECRET_BYTES);
    if ('fault' in read) return read;
    const text = read.text.replace(/\r?\n$/, '');
    return text === '' ? { fault: `${this.resolve(path)} is empty` } : { text };
  }

  /** Whether a file is not what it was when it was read. */
  async haveChanged(): Promise<boolean> {
    const current = await this.readStamps();
    return current !== [...this.#stamps.values()].join();
  }

  /** The state of all files now. */
  async readStamps(): Promise<string> {
    const stamps = await Promise.all([...this.#stamps.keys()].map(readStamp));
    return stamps.join();
  }
}

/** The content of a file, or why it cannot be used. */
export type FileText = { readonly text: string } | { readonly fault: string };

/** Keys and tokens have some hundred bytes. */
const MAX_SECRET_BYTES = 64 * 1024;

/** Without text when it is too large or not a file. Stamp and content are of the same file, even if its name is replaced. */
function readWhole(path: string, maxBytes: number): { text: string | undefined; stamp: string } {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    const stamp = formatStamp(stats);
    if (!stats.isFile() || stats.size > maxBytes) return { text: undefined, stamp };
    const bytes = Buffer.alloc(stats.size);
    return { text: bytes.toString('utf8', 0, readSync(file, bytes, 0, stats.size, 0)), stamp };
  } finally {
    closeSync(file);
  }
}

/** Variables that may name a file instead: `OPENAI_API_KEY_FILE`, as images of Docker have it. */
const FILE_VARIABLES: readonly string[] = [...KEY_VARIABLES, 'SLUICE_KEYS', 'SLUICE_ADMIN_KEY'];

/** The environment with the secrets of its `_FILE` variables, and those that cannot be read. */
export function readFileVariables(env: Env, files: SettingFiles): { env: Env; problems: readonly Problem[] } {
  const added: Record<string, string> = {};
  const problems: Problem[] = [];
  for (const name of FILE_VARIABLES) {
    const path = readEnv(env, `${name}_FILE`);
    if (path === undefined) continue;
    const read = files.readSecret(path);
    if (readEnv(env, name) !== undefined)
      problems.push({ message: `${name} and ${name}_FILE are both set; unset one`, path: [] });
    else if ('fault' in read) problems.push({ message: `${name}_FILE: ${read.fault}`, path: [] });
    else added[name] = read.text;
  }
  return { env: Object.keys(added).length === 0 ? env : { ...env, ...added }, problems };
}
