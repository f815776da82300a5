import type { CanonicalError, Exchange, ProviderProfile, TranslateOptions } from '@sluice/core';
import type { Call } from '../upstream/dialer.ts';
import type { RefusedField } from '../upstream/refusals.ts';
import type { Outcome } from './outcome.ts';
import type { Candidate } from './services.ts';

/**
 * A request converted for a candidate. `call` is a failed outcome when the candidate's protocol cannot express the
 * request.
 */
export interface PreparedRequest {
  exchange: Exchange;
  call: Call | Outcome;
}

/** The steps of one attempt at a candidate. */
export interface AttemptSteps {
  prepare(profile: ProviderProfile): PreparedRequest;
  dispatch(request: PreparedRequest): Promise<Outcome>;
  /** Counts the same request without a field that the candidate rejected. False when there is no retry left for it. */
  repeatWithout(field: RefusedField, error: CanonicalError): boolean;
}

/** What chat and the side endpoints do differently; `Conversation` has what they share. */
export interface Endpoint {
  readonly kind: 'chat' | 'side';
  /** Whether the client requested a stream. */
  readonly isStream: boolean;
  /** How requests and responses are converted for a candidate. */
  conversion(candidate: Candidate, profile: ProviderProfile): TranslateOptions;
  /** A response that needs no upstream; undefined when the request has to be sent. */
  respondLocally(candidate: Candidate): Outcome | undefined;
  /** Sends the request to one candidate. */
  request(candidate: Candidate, steps: AttemptSteps): Promise<Outcome>;
}
