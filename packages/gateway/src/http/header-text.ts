/** Texts of request headers. */

import { isUtf8 } from 'node:buffer';

/** The text of a header, which clients send as UTF-8 and node reads as latin1. Text that is not UTF-8 stays as it is. */
export function readHeaderText(value: string): string {
  if (!BEYOND_ASCII.test(value)) return value;
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

const BEYOND_ASCII = /[\x80-\xff]/;
