/** Decides request by request whether a connection is handed over to another protocol. */

import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The class of requests for a server with an `upgrade` listener. Node hands over the connection of every request that
 * offers an upgrade, such as h2c, as soon as there is a listener; the others are to be served as if they had offered
 * nothing. The method, URL and headers are known when node reads the property.
 */
export function createUpgradableRequest(accepts: (request: IncomingMessage) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    declare isOffered: boolean;

    constructor(socket: Socket) {
      super(socket);
      // Not a field with a value: the constructor above sets `upgrade` before fields exist.
      this.isOffered = false;
    }

    get upgrade(): boolean {
      return this.isOffered && accepts(this);
    }

    set upgrade(isOffered: boolean | null) {
      this.isOffered = isOffered === true;
    }
  };
}

/** Whether a request asks for WebSocket. */
export const isWebSocketOffer = ({ method, headers: { upgrade = '' } }: Pick<IncomingMessage, 'method' | 'headers'>): boolean =>
  method === 'GET' && /(?:^|[,\s])websocket(?:$|[,\s])/i.test(upgrade);
