/** The pepper: 32 random bytes outside of the database. Without them, the digests in the database are of no use. */

import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { readCode } from '@sluice/lab/text';

const PEPPER_BYTES = 32;

/** Makes digests of keys. */
export class Pepper {
  readonly #key: KeyObject;
  /** Identifies the pepper without revealing it. */
  readonly fingerprint: string;

  constructor(bytes: Buffer = randomBytes(PEPPER_BYTES)) {
    this.#key = createSecretKey(bytes);
    this.fingerprint = this.digest('sluice pepper').toString('hex').slice(0, 16);
  }

  /** The digest of a key text. */
  digest(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }

  /** A secret for another purpose, from which neither the pepper nor the secret of any other purpose can be found. */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, '', purpose, PEPPER_BYTES));
  }
}

/** The pepper of a file; undefined when the file does not exist. Throws when it cannot be read or is not a pepper. */
export function readPepper(file: string): Pepper | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (readCode(error) === 'ENOENT') return undefined;
    throw new Error(`the pepper file "${file}" cannot be read (${readCode(error) ?? 'unknown error'}); check its permissions`);
  }
  if (!/^[0-9a-f]{64}$/i.test(text))
    throw new Error(`the pepper file "${file}" is damaged: it must have 64 hexadecimal digits; restore it from a copy`);
  return new Pepper(Buffer.from(text, 'hex'));
}

/** Creates the file, which must not exist, readable by its user alone. It is on disk when this returns. */
export function createPepper(file: string): Pepper {
  const bytes = randomBytes(PEPPER_BYTES);
  let handle: number;
  try {
    handle = openSync(file, 'wx', 0o600);
  } catch (error) {
    const code = readCode(error) ?? 'unknown error';
    throw new Error(`the pepper file "${file}" cannot be created (${code}); set auth.pepper_file to a file in a writable folder`);
  }
  try {
    writeSync(handle, `${bytes.toString('hex')}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  return new Pepper(bytes);
}
