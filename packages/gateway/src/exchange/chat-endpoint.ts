import type { CanonicalError, ProviderProfile, TranslateOptions } from '@sluice/core';
import { findRefusal, profileWithout, type RefusedField } from '../upstream/refusals.ts';
import type { AttemptSteps, Endpoint, PreparedRequest } from './endpoint.ts';
import type { Outcome } from './outcome.ts';
import type { Candidate, Services } from './services.ts';

/** Chat requests: streams or whole responses. A request is repeated without optional fields that its target rejects. */
export class ChatEndpoint implements Endpoint {
  readonly kind = 'chat';
  readonly isStream: boolean;
  readonly #services: Services;

  constructor(isStream: boolean, services: Services) {
    this.isStream = isStream;
    this.#services = services;
  }

  conversion({ provider, model, repair, passRequest }: Candidate, profile: ProviderProfile): TranslateOptions {
    const { eventBytes } = this.#services.limits;
    return {
      provider,
      model,
      profile,
      stream: this.isStream,
      passthrough: !repair,
      passRequest,
      tap: 'usage',
      now: wallClock,
      maxLineBytes: eventBytes,
      maxEventBytes: eventBytes,
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
        const next = steps.prepare(profileWithout(profile, without));
        if (isOther(next, request) && steps.repeatWithout(field, error)) {
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

/** If leaving out a field does not change the request, the field was not sent and cannot be what was rejected. */
const isOther = ({ call: next }: PreparedRequest, { call: last }: PreparedRequest): boolean =>
  !('is' in next) && !('is' in last) && next.body !== last.body;

const wallClock = (): number => Math.floor(Date.now() / 1000);
