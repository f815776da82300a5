import {
  type CanonicalError,
  type ClientRequest,
  CODECS,
  type Codec,
  CodecError,
  encodeError,
  estimateAnswer,
  readAsked,
  translate,
} from '@sluice/core';
import type { Call } from '../upstream/dialer.ts';
import { type Attempt, callOf, labelsOf } from './attempt.ts';
import type { Result } from './conversation.ts';
import { INTERNAL, unanswerable } from './failures.ts';
import { endingOf, type Outcome, type Reply } from './outcome.ts';
import type { Presence } from './presence.ts';
import { type Progress, redactFor, sendReply } from './reply.ts';
import { Rounds } from './rounds.ts';
import type { Candidate, Directory, Services } from './services.ts';
import { attemptWhole } from './whole-attempt.ts';

export interface LaneQuestion {
  id: string;
  client: Codec;
  wire: ClientRequest;
  presence: Presence;
  directory: Directory;
}

/** Questions beside the conversation: counts, embeddings, rankings. One whole answer, by the first candidate that has one. */
export async function answerLane(question: LaneQuestion, services: Services): Promise<Result> {
  const { client, wire, directory, presence, id } = question;
  const { metrics } = services;
  const { model } = readAsked(client, wire);
  const candidates = directory.resolve(model, client.id);
  let [last] = candidates;
  const ask = (candidate: Candidate, repeat: Call['repeat']): Promise<Outcome> => {
    last = candidate;
    return askLane({ candidate, repeat, onAgain: () => rounds.repeated(candidate) }, question, services);
  };
  const rounds = new Rounds({ id, presence, ask }, services);
  // An estimate needs no upstream, and says nothing about whether one is well.
  const outcome =
    (last && estimated(last, question)) ?? (await rounds.ask(candidates, unanswerable(model, candidates, directory)));
  const progress: Progress = {
    id,
    attempts: rounds.attempts,
    notes: [],
    tried: rounds.tried,
    ...(last && { provider: last.provider.id, model: last.model, upstream: last.provider.protocol }),
  };
  const series = last && metrics.of(labelsOf(last, client.id));
  if (outcome.is === 'gone') return { ...progress, status: 499, ending: 'client_aborted', series };
  const error: CanonicalError | undefined = outcome.error;
  const reply: Reply = outcome.reply ?? encodeError(error ?? INTERNAL, { to: client });
  sendReply(presence.response, reply, progress, { stallMs: services.limits.stallMs, redact: redactFor(error, services) });
  return { ...progress, status: reply.status, ending: endingOf(error), ...(error && { error }), series };
}

const isCount = ({ client, wire }: LaneQuestion): boolean => client.detectInterface(wire.path, wire.headers) === 'COUNT_TOKENS';

/** Claude Code asks for counts all the time, and gives up on a server that has none (P129). */
const estimated = ({ provider }: Candidate, question: LaneQuestion): Outcome | undefined =>
  isCount(question) && !CODECS[provider.protocol].supports('COUNT_TOKENS') ? estimate(question) : undefined;

const estimate = ({ client, wire }: LaneQuestion): Outcome => ({
  is: 'answered',
  reply: { status: 200, headers: {}, body: estimateAnswer(wire, client) },
});

/** Statuses of servers that have the protocol but not this endpoint: they know neither path, method nor function. */
const NO_ENDPOINT: ReadonlySet<unknown> = new Set([404, 405, 501]);

/** Compatible servers often have the conversation only. A count that fails for any other reason stays an error. */
function estimateInstead(outcome: Outcome, { provider }: Candidate, question: LaneQuestion, { log }: Services): Outcome {
  const status = outcome.is === 'failed' ? outcome.error.upstream?.status : undefined;
  if (!NO_ENDPOINT.has(status) || !isCount(question)) return outcome;
  log.info({ request_id: question.id, provider: provider.id, status }, 'upstream does not count tokens; estimated');
  return estimate(question);
}

type LaneAttempt = Pick<Attempt, 'candidate' | 'onAgain'> & Pick<Call, 'repeat'>;

async function askLane(attempt: LaneAttempt, question: LaneQuestion, services: Services): Promise<Outcome> {
  const { candidate, repeat, onAgain } = attempt;
  const { id, client, wire, presence } = question;
  const { provider, model, profile, repair } = candidate;
  const { dialer, limits, log, metrics, redactUpstream } = services;
  try {
    const known = estimated(candidate, question);
    if (known) return known;
    const exchange = translate(client, CODECS[provider.protocol], { provider, model, profile, passthrough: !repair });
    const attempted = await attemptWhole(callOf(exchange, wire, candidate, repeat), {
      exchange,
      candidate,
      transport: candidate.transport ?? dialer,
      limits,
      presence,
      redact: redactUpstream,
      onAgain,
      onStrange: (head) => log.warn({ request_id: id, provider: provider.id, head }, 'strange answer'),
    });
    const outcome = estimateInstead(attempted, candidate, question, services);
    if (attempted.is === 'answered') metrics.answeredFor(provider.id, model);
    return outcome;
  } catch (error) {
    if (error instanceof CodecError) return { is: 'failed', error: error.error };
    throw error;
  }
}
