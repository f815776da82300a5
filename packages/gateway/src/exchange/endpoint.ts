/** Chat and the side endpoints: how their requests are converted, sent and repeated. */

import type { CanonicalError, ClientRequest, Codec, Exchange, ExchangeOptions, Note, ProviderProfile } from '@sluice/core';
import { buildTokenEstimate, CODECS } from '@sluice/core/engine';
import { repairInPlace } from '@sluice/core/internal';
import type { ModelInAnswer } from '../config/options.ts';
import type { Logger } from '../observe/log.ts';
import type { Call } from '../upstream/dialer.ts';
import { findRefusal, type RefusedField, removeFields } from '../upstream/retry.ts';
import type { AttemptObserver } from './observer.ts';
import { type Candidate, type Outcome, type Services, toFailedOutcome } from './types.ts';

/** What chat and the side endpoints do differently; `Conversation` has what they share. */
export interface Endpoint {
  readonly kind: 'chat' | 'side';
  /** Whether the client requested a stream. */
  readonly isStream: boolean;
  /** Whether providers charge for it. */
  readonly isCharged: boolean;
  /** How requests and responses are converted for a candidate. */
  conversion(candidate: Candidate, profile: ProviderProfile): ExchangeOptions;
  /** A response that needs no upstream; undefined when the request has to be sent. */
  respondLocally(candidate: Candidate): Outcome | undefined;
  /** Sends the request to one candidate. */
  request(candidate: Candidate, steps: AttemptSteps): Promise<Outcome>;
}

/** The steps of one attempt at a candidate. */
export interface AttemptSteps {
  prepare(profile: ProviderProfile): PreparedRequest;
  dispatch(request: PreparedRequest): Promise<Outcome>;
  /** Counts the same request without a field that the candidate rejected. False when there is no retry left for it. */
  repeatWithout(field: RefusedField, error: CanonicalError): boolean;
}

/**
 * A request converted for a candidate. `call` is a failed outcome when the candidate's protocol cannot express the
 * request.
 */
export interface PreparedRequest {
  exchange: Exchange;
  call: Call | Outcome;
  observer: AttemptObserver | undefined;
  /** What the candidate does not get of the state that the request refers to. */
  notes: readonly Note[];
}

/** Chat requests: streams or whole responses. A request is repeated without optional fields that its target rejects. */
export class ChatEndpoint implements Endpoint {
  readonly kind = 'chat';
  readonly isCharged = true;
  readonly isStream: boolean;
  readonly #services: Services;
  readonly #policy: Policy;

  constructor(isStream: boolean, services: Services, modelInAnswer: ModelInAnswer) {
    this.isStream = isStream;
    this.#services = services;
    this.#policy = POLICIES[modelInAnswer];
  }

  conversion({ provider, model, repair, passRequest, onMalformed }: Candidate, profile: ProviderProfile): ExchangeOptions {
    const { eventBytes } = this.#services.limits;
    return {
      provider,
      model,
      policy: this.#policy,
      profile,
      stream: this.isStream,
      // Passed bytes contain what is to be skipped.
      passthrough: !repair && onMalformed === 'fail',
      passRequest,
      repair: repairInPlace,
      tap: 'usage',
      now: readWallClock,
      maxLineBytes: eventBytes,
      maxEventBytes: eventBytes,
      malformed: onMalformed,
    };
  }

  respondLocally(): undefined {
    return undefined;
  }

  async request(candidate: Candidate, steps: AttemptSteps): Promise<Outcome> {
    const { refusals } = this.#services;
    const profile = refusals.findProfile(candidate);
    const without: RefusedField[] = [];
    let request = steps.prepare(profile);
    for (;;) {
      const outcome = await steps.dispatch(request);
      const error = outcome.is === 'failed' ? outcome.error : undefined;
      const field = error && this.#refusedField(error, candidate);
      if (error && field && !without.includes(field)) {
        without.push(field);
        const next = steps.prepare(removeFields(profile, without));
        if (isDifferent(next, request) && steps.repeatWithout(field, error)) {
          request = next;
          continue;
        }
      }
      if (outcome.is === 'answered' && without.length > 0) refusals.learn(candidate, without);
      return outcome;
    }
  }

  #refusedField(error: CanonicalError, { provider }: Candidate): RefusedField | undefined {
    const field = provider.protocol === 'openai-chat' ? findRefusal(error) : undefined;
    // Only streams get this field from the gateway; elsewhere it is the client's own mistake.
    return field === 'stream_options' && !this.isStream ? undefined : field;
  }
}

type Policy = NonNullable<ExchangeOptions['policy']>;

/** What clients see of a response. Created once, not for every request. */
export const POLICIES = {
  requested: {},
  answered: { modelInAnswer: 'answered' },
} as const satisfies Record<ModelInAnswer, Policy>;

/** If leaving out a field does not change the request, the field was not sent and cannot be what was rejected. */
const isDifferent = ({ call: next }: PreparedRequest, { call: last }: PreparedRequest): boolean =>
  !('is' in next) && !('is' in last) && next.body !== last.body;

const readWallClock = (): number => Math.floor(Date.now() / 1000);

/**
 * Token counts, embeddings and rankings: one whole response. Token counts are estimated where the upstream has no
 * endpoint for them.
 */
export class SideEndpoint implements Endpoint {
  readonly kind = 'side';
  readonly isStream = false;
  readonly #request: SideRequest;
  readonly #log: Logger;
  readonly #isCount: boolean;

  constructor(request: SideRequest, log: Logger) {
    const { client, wire } = request;
    this.#request = request;
    this.#log = log;
    this.#isCount = client.detectInterface(wire.path, wire.headers) === 'COUNT_TOKENS';
  }

  get isCharged(): boolean {
    return !this.#isCount;
  }

  conversion({ provider, model, repair }: Candidate, profile: ProviderProfile): ExchangeOptions {
    return { provider, model, profile, passthrough: !repair };
  }

  /** Claude Code counts tokens all the time, and stops using a server that cannot. */
  respondLocally({ provider }: Candidate): Outcome | undefined {
    return this.#isCount && !CODECS[provider.protocol].supports('COUNT_TOKENS') ? this.#estimate() : undefined;
  }

  async request(candidate: Candidate, steps: AttemptSteps): Promise<Outcome> {
    try {
      const local = this.respondLocally(candidate);
      if (local) return local;
      return this.#estimateInstead(await steps.dispatch(steps.prepare(candidate.profile)), candidate);
    } catch (error) {
      return toFailedOutcome(error);
    }
  }

  /** Compatible servers often have the chat endpoint only. A count that fails for another reason stays an error. */
  #estimateInstead(outcome: Outcome, { provider }: Candidate): Outcome {
    const status = outcome.is === 'failed' ? outcome.error.upstream?.status : undefined;
    if (!this.#isCount || !NO_ENDPOINT_STATUSES.has(status)) return outcome;
    const { id } = this.#request;
    this.#log.info({ request_id: id, provider: provider.id, status }, 'upstream does not count tokens; estimated');
    return this.#estimate();
  }

  #estimate(): Outcome {
    const { client, wire } = this.#request;
    return { is: 'answered', reply: { status: 200, headers: {}, body: buildTokenEstimate(wire, client) } };
  }
}

/** A request to a side endpoint: token counts, embeddings or rankings. */
export interface SideRequest {
  id: string;
  client: Codec;
  wire: ClientRequest;
}

/** Statuses of servers that do not have this endpoint: they know neither its path, nor its method, nor its function. */
const NO_ENDPOINT_STATUSES: ReadonlySet<unknown> = new Set([404, 405, 501]);
