import type { IncomingMessage } from 'node:http';

/** The address that a request comes from; empty when the connection is already closed. IPv4 is never in its IPv6 form. */
export const readClientAddress = ({ socket: { remoteAddress = '' } }: Pick<IncomingMessage, 'socket'>): string =>
  remoteAddress.startsWith('::ffff:') ? remoteAddress.slice('::ffff:'.length) : remoteAddress;
