/** Files with a secret of 32 random bytes, as 64 hexadecimal digits. */

import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { readCode } from '@sluice/lab/text';

export const SECRET_BYTES = 32;

/** A file with a secret: its name in messages, and what to do when it is damaged or cannot be created. */
export interface SecretFile {
  readonly file: string;
  /** `the pepper file`. */
  readonly title: string;
  readonly whenDamaged: string;
  readonly whenNotCreated: string;
}

/** The secret; undefined when the file does not exist. Throws when it cannot be read or has no secret. */
export function readSecretFile({ file, title, whenDamaged }: SecretFile): Buffer | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (readCode(error) === 'ENOENT') return undefined;
    throw new Error(`${title} "${file}" cannot be read (${readCode(error) ?? 'unknown error'}); check its permissions`);
  }
  if (!/^[0-9a-f]{64}$/i.test(text))
    throw new Error(`${title} "${file}" is damaged: it must have 64 hexadecimal digits; ${whenDamaged}`);
  return Buffer.from(text, 'hex');
}

/** Creates the file, which must not exist, readable by its user alone. It is on disk when this returns. */
export function createSecretFile({ file, title, whenNotCreated }: SecretFile): Buffer {
  const bytes = randomBytes(SECRET_BYTES);
  let handle: number;
  try {
    handle = openSync(file, 'wx', 0o600);
  } catch (error) {
    throw new Error(`${title} "${file}" cannot be created (${readCode(error) ?? 'unknown error'}); ${whenNotCreated}`);
  }
  try {
    writeSync(handle, `${bytes.toString('hex')}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  return bytes;
}
