import type { ServerResponse } from 'node:http';

/** The end of a chunked body. */
export const LAST_CHUNK = '0\r\n\r\n';

/** Above this size a copy costs more than it saves. */
const MAX_COPIED = 16 * 1024;

/**
 * Writes one chunk with its length and line end. One latin1 string keeps the bytes and is one write; node would queue
 * four. Returns false when the client reads too slowly.
 */
export function writeChunk(response: ServerResponse, bytes: Uint8Array): boolean {
  const length = bytes.length.toString(16);
  const view = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length <= MAX_COPIED) return response.write(`${length}\r\n${view.toString('latin1')}\r\n`, 'latin1');
  response.write(`${length}\r\n`, 'latin1');
  response.write(view);
  return response.write('\r\n', 'latin1');
}
