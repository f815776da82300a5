import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type CanonicalError, CodecError, type WireReply } from '@sluice/core';

/** An error for a request that the gateway itself rejects. */
export const refusal = (
  http_status: number,
  code: CanonicalError['code'],
  message: string,
  retry_after_ms?: number,
): CodecError => new CodecError({ code, message, http_status, ...(retry_after_ms !== undefined && { retry_after_ms }) });

/** An error for a method that the path does not have. `details.allow` becomes the Allow header. */
export function refuseMethod(endpoint: string, allow: readonly string[], more = ''): CodecError {
  const message = `${endpoint} is not allowed; use ${allow.join(' or ')}${more}`;
  return new CodecError({ code: 'UNSUPPORTED_INTERFACE', message, http_status: 405, details: { allow } });
}

/** The Allow header of such an error. */
export function readAllow({ details }: CanonicalError): string | undefined {
  const allow = details?.['allow'];
  return Array.isArray(allow) ? allow.join(', ') : undefined;
}

/** Writes an error to a connection that node serves no more, and closes it. `redact` removes secrets, for errors that quote. */
export function endWithReply(
  socket: Duplex,
  { status, body }: WireReply,
  id: string,
  redact: (text: string) => string = (text) => text,
): void {
  const text = redact(JSON.stringify(body));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nx-sluice-request-id: ${id}\r\n\r\n${text}`,
    () => socket.destroy(),
  );
}
