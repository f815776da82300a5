import {
  type CanonicalError,
  type ClientRequest,
  CODECS,
  CodecError,
  encodeError,
  estimateAnswer,
  type ProtocolCodec,
  readAsked,
  translate,
} from '@sluice/core';
import { callOf, labelsOf } from './attempt.ts';
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
  client: ProtocolCodec;
  wire: ClientRequest;
  presence: Presence;
  directory: Directory;
}

/** Questions beside the conversation: counts, embeddings, rankings. One whole answer, by the first candidate that has one. */
export async function answerLane(question: LaneQuestion, services: Services): Promise<Result> {
  const { client, wire, directory, presence, id } = question;
  const { metrics } = services;
  const { model } = readAsked(client.id, wire);
  let last: Candidate | undefined;
  const ask = (candidate: Candidate): Promise<Outcome> => {
    last = candidate;
    return askLane(candidate, question, rounds, services);
  };
  const rounds = new Rounds({ id, presence, ask }, services);
  const candidates = directory.resolve(model, client.id);
  const outcome = await rounds.ask(candidates, unanswerable(model, candidates, directory));
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

async function askLane(candidate: Candidate, question: LaneQuestion, rounds: Rounds, services: Services): Promise<Outcome> {
  const { id, client, wire, presence } = question;
  const { provider, model, profile, repair } = candidate;
  const { dialer, limits, log, metrics, redactUpstream } = services;
  const upstream = CODECS[provider.protocol];
  // Claude Code asks for counts all the time, and gives up on a server that has none (P129).
  const isCount = client.detectInterface(wire.path, wire.headers) === 'COUNT_TOKENS';
  try {
    if (isCount && !upstream.supports('COUNT_TOKENS'))
      return { is: 'answered', reply: { status: 200, headers: {}, body: estimateAnswer(wire, client) } };
    const exchange = translate(client, upstream, { provider, model, profile, passthrough: !repair });
    const outcome = await attemptWhole(callOf(exchange, wire, candidate), {
      exchange,
      candidate,
      dialer,
      limits,
      presence,
      redact: redactUpstream,
      onAgain: () => rounds.count(),
      onStrange: (head) => log.warn({ request_id: id, provider: provider.id, head }, 'strange answer'),
    });
    if (outcome.is === 'answered') metrics.answeredFor(provider.id, model);
    return outcome;
  } catch (error) {
    if (error instanceof CodecError) return { is: 'failed', error: error.error };
    throw error;
  }
}
