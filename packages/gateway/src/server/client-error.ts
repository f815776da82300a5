import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type CodecError, encodeError, routeOf } from '@sluice/core';
import type { Logger } from '../observe/log.ts';
import { refusal } from './refusal.ts';

/** Errors for bytes that could not be read as a request: too large, too late, or not HTTP. */
const REFUSALS: ReadonlyMap<unknown, CodecError> = new Map([
  ['HPE_HEADER_OVERFLOW', refusal(431, 'INVALID_INPUT', 'the headers of the request are too large')],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', refusal(413, 'PAYLOAD_TOO_LARGE', 'the chunks of the request are too large')],
  ['ERR_HTTP_REQUEST_TIMEOUT', refusal(408, 'INVALID_INPUT', 'the request did not come in time')],
]);
const UNREADABLE = refusal(400, 'INVALID_INPUT', 'this is no request of HTTP');

const readCode = (error: Error): unknown => ('code' in error ? error.code : undefined);

/** The connection ended in the middle of a request. */
export const hasLeft = (error: Error): boolean => ['ECONNRESET', 'HPE_INVALID_EOF_STATE'].includes(String(readCode(error)));

/** The client's error for a failure of node's parser. */
export const explainUnreadable = (error: Error): CodecError => REFUSALS.get(readCode(error)) ?? UNREADABLE;

/** Responds on the raw socket and closes it. Quotes nothing of what was received. */
export function respondUnreadable(error: Error, socket: Socket, log: Logger): void {
  if (readCode(error) === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const id = randomUUID();
  const reply = encodeError(explainUnreadable(error).error, { to: routeOf(readTarget(error), {}).client });
  const { status } = reply;
  log.info({ request_id: id, status, ending: 'refused', error: String(readCode(error)) }, 'unreadable request');
  const body = JSON.stringify(reply.body);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-sluice-request-id: ${id}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

/** The request target of the first line, if it was read: it determines the client's protocol. */
function readTarget(error: Error): string {
  const packet = 'rawPacket' in error && error.rawPacket instanceof Buffer ? error.rawPacket : Buffer.alloc(0);
  return /^[A-Z]+ (\S+) HTTP\//.exec(packet.toString('latin1', 0, MAX_LINE_BYTES))?.[1] ?? '/';
}

const MAX_LINE_BYTES = 2048;
