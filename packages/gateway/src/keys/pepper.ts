/** The pepper: 32 random bytes outside of the database. Without them, the digests in the database are of no use. */

import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { createSecretFile, readSecretFile, SECRET_BYTES, type SecretFile } from './secret-file.ts';

/** Makes digests of keys. */
export class Pepper {
  readonly #key: KeyObject;
  /** Identifies the pepper without revealing it. */
  readonly fingerprint: string;

  constructor(bytes: Buffer = randomBytes(SECRET_BYTES)) {
    this.#key = createSecretKey(bytes);
    this.fingerprint = this.digest('sluice pepper').toString('hex').slice(0, 16);
  }

  /** The digest of a key text. */
  digest(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }

  /** A secret for another purpose, from which neither the pepper nor the secret of any other purpose can be found. */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, '', purpose, SECRET_BYTES));
  }
}

/** The pepper of a file; undefined when the file does not exist. Throws when it cannot be read or is not a pepper. */
export function readPepper(file: string): Pepper | undefined {
  const bytes = readSecretFile(describe(file));
  return bytes && new Pepper(bytes);
}

/** Creates the file, which must not exist, readable by its user alone. It is on disk when this returns. */
export const createPepper = (file: string): Pepper => new Pepper(createSecretFile(describe(file)));

const describe = (file: string): SecretFile => ({
  file,
  title: 'the pepper file',
  whenDamaged: 'restore it from a copy',
  whenNotCreated: 'set auth.pepper_file to a file in a writable folder',
});
