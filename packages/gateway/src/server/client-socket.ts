/** The requests of one connection to a client. */

import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ClientConnection } from '../exchange/client-connection.ts';

/**
 * One connection to a client. A request is served when its response can be sent, so requests that were sent ahead (pipelining) are
 * served one after the other. Until then they hold nothing, and from then on whatever they hold ends with the connection at the latest:
 * node emits `close` only for a response that has the connection.
 */
export class ClientSocket {
  readonly #socket: Duplex;
  /** Requests that wait for the connection. */
  #waiting = 0;
  #served: ServerResponse | undefined;
  /** The exchange that is served; undefined for others than requests to models. */
  exchange: ClientConnection | undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** The response that has the connection; undefined between requests. */
  get served(): ServerResponse | undefined {
    return this.#served;
  }

  /** Serves a request now, or when the responses before it have been sent. Too many waiting requests end the connection. */
  serve(response: ServerResponse, run: () => void): void {
    if (response.socket) {
      this.#take(response);
      run();
    } else if (this.#waiting < MAX_WAITING) this.#wait(response, run);
    else this.#socket.destroy();
  }

  #wait(response: ServerResponse, run: () => void): void {
    this.#waiting++;
    response.once('socket', (socket) => {
      this.#waiting--;
      this.#take(response);
      // The response before may have left its own.
      socket.setTimeout(0);
      // By then the request before has given back what it held.
      setImmediate(() => {
        if (!response.destroyed) run();
      });
    });
  }

  #take(response: ServerResponse): void {
    this.#served = response;
    this.exchange = undefined;
    response.once('close', () => {
      if (this.#served !== response) return;
      this.#served = undefined;
      this.exchange = undefined;
    });
  }
}

/**
 * Requests that may wait. Programs that send ahead have a few under way; node reads on while they wait, so their number needs a limit.
 */
const MAX_WAITING = 128;
