import type { ServerResponse } from 'node:http';

/** What ends a body in chunks. */
export const LAST_CHUNK = '0\r\n\r\n';

/** What is longer is not worth a copy. */
const MOST_COPIED = 16 * 1024;

/**
 * Writes one chunk of a body whose frames are ours: length, bytes, line end. As one text, which is one write and no queue of four; bytes are
 * the same in latin1. False when the client does not read as fast.
 */
export function writeChunk(response: ServerResponse, bytes: Uint8Array): boolean {
  const length = bytes.length.toString(16);
  const view = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length <= MOST_COPIED) return response.write(`${length}\r\n${view.toString('latin1')}\r\n`, 'latin1');
  response.write(`${length}\r\n`, 'latin1');
  response.write(view);
  return response.write('\r\n', 'latin1');
}
