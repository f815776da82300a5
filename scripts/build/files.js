/** Files on every system: renames while others read, and paths as texts. */
import { renameSync } from 'node:fs';
import { sep } from 'node:path';

const IN_USE = new Set(['EPERM', 'EACCES', 'EBUSY']);
const DELAYS_MS = [5, 10, 20, 40, 80, 160, 320, 640];

/** Renames, and tries again for about a second: Windows refuses while a program, or a virus scanner, has one of both files open. */
export function renameFile(from, to) {
  for (const delay of DELAYS_MS) {
    try {
      return renameSync(from, to);
    } catch (error) {
      if (!IN_USE.has(error.code)) throw error;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delay);
  }
  renameSync(from, to);
}

/** A path with slashes, which names of packages, of entry points and in manifests have on every system. */
export const toSlashes = (path, separator = sep) => path.split(separator).join('/');
