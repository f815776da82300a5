import {
  type ClientRequest,
  CODECS,
  type Codec,
  estimateAnswer,
  type ProviderProfile,
  type TranslateOptions,
} from '@sluice/core';
import type { Logger } from '../observe/log.ts';
import type { AttemptSteps, Endpoint } from './endpoint.ts';
import { failedBy, type Outcome } from './outcome.ts';
import type { Candidate } from './services.ts';

export interface SideRequest {
  id: string;
  client: Codec;
  wire: ClientRequest;
}

/** Statuses of servers that do not have this endpoint: they know neither its path, nor its method, nor its function. */
const NO_ENDPOINT: ReadonlySet<unknown> = new Set([404, 405, 501]);

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

  conversion({ provider, model, repair }: Candidate, profile: ProviderProfile): TranslateOptions {
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
      return failedBy(error);
    }
  }

  /** Compatible servers often have the chat endpoint only. A count that fails for another reason stays an error. */
  #estimateInstead(outcome: Outcome, { provider }: Candidate): Outcome {
    const status = outcome.is === 'failed' ? outcome.error.upstream?.status : undefined;
    if (!this.#isCount || !NO_ENDPOINT.has(status)) return outcome;
    const { id } = this.#request;
    this.#log.info({ request_id: id, provider: provider.id, status }, 'upstream does not count tokens; estimated');
    return this.#estimate();
  }

  #estimate(): Outcome {
    const { client, wire } = this.#request;
    return { is: 'answered', reply: { status: 200, headers: {}, body: estimateAnswer(wire, client) } };
  }
}
