import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../observe/log.ts';

/** What could not be read as a request: too large, too late, or no HTTP. */
const STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Answers what is not even a request, and closes. Nothing of it is repeated. */
export function answerUnread(error: Error, socket: Socket, log: Logger): void {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = STATUSES[code] ?? 400;
  const id = randomUUID();
  log.info({ request_id: id, status, ending: 'refused', error: code }, 'unreadable request');
  const body = `${STATUS_CODES[status]}\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\nx-sluice-request-id: ${id}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
