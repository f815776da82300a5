import { collect } from '../upstream/collect.ts';
import type { Call } from '../upstream/dialer.ts';
import type { Attempt } from './attempt.ts';
import { connectionError, STOPPED } from './failures.ts';
import type { Outcome } from './outcome.ts';
import { readAnswer } from './read-reply.ts';

/** Asks one upstream for a whole answer. */
export async function attemptWhole(call: Call, attempt: Attempt): Promise<Outcome> {
  const { dialer, limits, candidate, presence, onAgain } = attempt;
  const { headersMs, firstEventMs, betweenEventsMs, totalMs } = candidate.times;
  try {
    const reply = await collect(dialer, call, {
      presence,
      maxBytes: limits.answerBytes,
      // A model writes its whole answer before the head of it is sent: it gets the time that a stream would have.
      headMs: headersMs + firstEventMs + betweenEventsMs,
      pieceMs: betweenEventsMs,
      totalMs,
      onAgain,
    });
    return readAnswer(reply, attempt);
  } catch (error) {
    if (presence.isGone) return { is: 'gone' };
    return { is: 'failed', error: presence.isStopped ? STOPPED : connectionError(error) };
  }
}
