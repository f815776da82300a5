/** A response that no client reads: exchanges that continue in the background write to it. */

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { ClientConnection } from '../exchange/client-connection.ts';
import type { Clock } from '../http/clock.ts';

/** Creates the connection of an exchange without a client. What is written to it is dropped. */
export function createDetachedConnection(clock: Clock): ClientConnection {
  const request = new IncomingMessage(new Socket());
  request.httpVersionMajor = 1;
  request.httpVersionMinor = 1;
  const response = new ServerResponse(request);
  const sink = new Sink();
  response.assignSocket(sink as unknown as Socket); // what node uses of a socket here is in `Sink`
  response.on('finish', () => sink.destroy());
  return new ClientConnection(response, clock);
}

/** Drops what is written. */
class Sink extends Duplex {
  constructor() {
    // Never full: without a server, node would not report that the sink has drained.
    super({ writableHighWaterMark: Number.MAX_SAFE_INTEGER });
  }

  override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
    done();
  }

  override _read(): void {}

  /** A sink never stalls. */
  setTimeout(): this {
    return this;
  }
}
