import { collect, type Interruptible } from '../upstream/collect.ts';
import type { Call } from '../upstream/dialer.ts';
import type { Attempt } from './attempt.ts';
import { connectionError, nameOf, STOPPED } from './failures.ts';
import type { Outcome } from './outcome.ts';
import type { Presence } from './presence.ts';
import { readAnswer } from './read-reply.ts';

/** Requests a whole response from one upstream. */
export async function attemptWhole(call: Call, attempt: Attempt): Promise<Outcome> {
  const { transport, limits, candidate, presence, onAgain } = attempt;
  const { headersMs, firstEventMs, betweenEventsMs, totalMs } = candidate.times;
  try {
    const reply = await collect(transport, call, {
      clock: presence.clock,
      presence: candidate.drains ? stopsOf(presence) : presence,
      maxBytes: limits.answerBytes,
      // Servers send the headers of a whole response when it is complete, so it gets the time that a stream would have.
      headMs: headersMs + firstEventMs + betweenEventsMs,
      pieceMs: betweenEventsMs,
      totalMs,
      onAgain,
    });
    // Also read when the client has disconnected, because its usage is counted.
    const outcome = readAnswer(reply, attempt);
    return presence.isGone ? { is: 'gone' } : outcome;
  } catch (error) {
    if (presence.isGone) return { is: 'gone' };
    const failure = presence.isStopped ? STOPPED : connectionError(error, nameOf(candidate), candidate.times.connectMs);
    return { is: 'failed', error: failure };
  }
}

/** Interrupted only by a shutdown: a response that is drained needs no client. */
function stopsOf(presence: Presence): Interruptible {
  let heard: (() => void) | undefined;
  return {
    get isInterrupted() {
      return presence.isStopped;
    },
    listen(listener) {
      heard = () => {
        if (presence.isStopped) listener();
      };
      presence.listen(heard);
    },
    unlisten() {
      if (heard) presence.unlisten(heard);
    },
  };
}
