import type { PassRequest, ProtocolId, Provider, ProviderProfile } from '@sluice/core';
import type { Limits, ProviderLimits } from '../config/limits.ts';
import type { Passthrough } from '../config/options.ts';
import type { Clock } from '../http/clock.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Gatekeeper } from '../server/auth.ts';
import type { MemoryGuard } from '../server/memory-guard.ts';
import type { ModelLists } from '../server/model-lists.ts';
import type { Streams } from '../server/streams.ts';
import type { Breakers } from '../upstream/breaker.ts';
import type { Dialer, Transport } from '../upstream/dialer.ts';
import type { LearnedRefusals } from '../upstream/refusals.ts';
import type { RetryBudget } from '../upstream/retry-budget.ts';

/** Somebody who can be asked, with the key for it. */
export interface Speaker {
  provider: Provider;
  /** Scheme, host and port that the key belongs to. */
  origin: string;
  times: ProviderLimits;
  /** Which endpoints are passed on without conversion. */
  passthrough: Passthrough;
}

/** One of those who may answer. */
export interface Candidate extends Speaker {
  /** The name under which the provider knows the model. */
  model: string;
  /** `provider/model`: under this name it is remembered whether it is well. */
  key: string;
  /** What the provider, and the model there, is known to accept. */
  profile: ProviderProfile;
  /** Same protocol on both sides: mended on the way, instead of passed through untouched. */
  repair: boolean;
  /** Same protocol on both sides: whether the request goes as the client sent it, by how much is known of the provider and the model. */
  passRequest: PassRequest;
  /** The configuration names this model; otherwise it is the client's text. */
  isConfigured: boolean;
  /** An answer whose client has left is read to its end, so that what it used is known. */
  drains: boolean;
  /** Answers in this process; absent for providers that are called over the network. */
  transport?: Transport;
}

/** Who answers for what: a snapshot of the configuration. An exchange keeps the one it began with. */
export interface Directory {
  /** In the order in which they are asked. */
  resolve(model: string, client: ProtocolId): readonly Candidate[];
  /** Why nobody answers for a name. */
  whyUnknown(model: string): string;
  /**
   * Providers that have the endpoints of this protocol, for those that are only passed on. First those whose `passthrough` is not `off`; among
   * these, those of the protocol itself.
   */
  speakers(protocol: ProtocolId): readonly Speaker[];
  /** Names that clients may ask for. */
  readonly models: readonly string[];
  /** Providers whose models nobody has written down: they are asked for them. */
  readonly unlisted: readonly Speaker[];
  readonly gatekeeper: Gatekeeper;
  /** Hosts that clients do not learn of. */
  readonly privateHosts: readonly string[];
}

/** What every exchange needs. */
export interface Services {
  directory(): Directory;
  readonly limits: Limits;
  readonly dialer: Dialer;
  readonly breakers: Breakers;
  readonly budget: RetryBudget;
  readonly refusals: LearnedRefusals;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
  /** The same as `clock.now`. */
  readonly now: () => number;
  readonly random: () => number;
  readonly streams: Streams;
  /** Connections of clients that are open at the same time. */
  readonly maxConnections: number;
  readonly memory: MemoryGuard;
  readonly modelLists: ModelLists;
  /** Takes secrets, and where upstreams stand, out of what clients are about to read. */
  readonly redact: (text: string) => string;
  /** The same for text that an upstream wrote: private addresses and internal host names are redacted, too. */
  readonly redactUpstream: (text: string) => string;
}
