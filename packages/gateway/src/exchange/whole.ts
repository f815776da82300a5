import { collect, type Interruptible } from '../upstream/body.ts';
import type { Call } from '../upstream/dialer.ts';
import type { ClientConnection } from './client-connection.ts';
import { readResponse } from './read-reply.ts';
import { type Attempt, createConnectionError, formatProvider, type Outcome } from './types.ts';

/** Requests a whole response from one upstream. */
export async function attemptWhole(call: Call, attempt: Attempt): Promise<Outcome> {
  const { transport, limits, candidate, connection, onAgain } = attempt;
  const { headersMs, firstEventMs, betweenEventsMs, totalMs } = candidate.times;
  try {
    const reply = await collect(transport, call, {
      clock: connection.clock,
      connection: candidate.drains ? watchShutdown(connection) : connection,
      maxBytes: limits.answerBytes,
      maxErrorBytes: limits.errorBytes,
      // Servers send the headers of a whole response when it is complete, so it gets the time that a stream would have.
      headMs: headersMs + firstEventMs + betweenEventsMs,
      pieceMs: betweenEventsMs,
      totalMs,
      onAgain,
      onConnected: () => attempt.log.connected(),
      onStart: (status, headers) => attempt.log.responded(status, headers),
    });
    // Also read when the client has disconnected, because its usage is counted.
    const outcome = readResponse(reply, attempt);
    return connection.isGone ? { is: 'gone' } : outcome;
  } catch (error) {
    if (connection.isGone) return { is: 'gone' };
    const failure = connection.stopError ?? createConnectionError(error, formatProvider(candidate), candidate.times.connectMs);
    return { is: 'failed', error: failure };
  }
}

/** Interrupted only by a shutdown: a response that is drained needs no client. */
function watchShutdown(connection: ClientConnection): Interruptible {
  let onChange: (() => void) | undefined;
  return {
    get isInterrupted() {
      return connection.isStopped;
    },
    listen(listener) {
      onChange = () => {
        if (connection.isStopped) listener();
      };
      connection.listen(onChange);
    },
    unlisten() {
      if (onChange) connection.unlisten(onChange);
    },
  };
}
