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

/** A provider that requests can be sent to, with its key. */
export interface ProviderEndpoint {
  provider: Provider;
  /** Scheme, host and port that the key belongs to. */
  origin: string;
  times: ProviderLimits;
  /** Which endpoints are forwarded without conversion. */
  passthrough: Passthrough;
}

/** A provider and model that a request may be sent to. */
export interface Candidate extends ProviderEndpoint {
  /** The provider's name of the model. */
  model: string;
  /** `provider/model`: the key of its breaker. */
  key: string;
  /** What the provider and the model are known to accept. */
  profile: ProviderProfile;
  /** Same protocol on both sides: repair the stream instead of forwarding its bytes. */
  repair: boolean;
  /**
   * Same protocol on both sides: whether the request is forwarded unchanged, by how much is known about the provider
   * and the model.
   */
  passRequest: PassRequest;
  /** Whether the configuration names this model; otherwise the name is the client's text. */
  isConfigured: boolean;
  /** Read a response to its end after the client has disconnected, to learn its usage. */
  drains: boolean;
  /** Responds inside this process; absent for providers on the network. */
  transport?: Transport;
}

/** Which provider serves which model: a snapshot of the configuration. An exchange keeps the one it began with. */
export interface Directory {
  /** Candidates for a model, in the order in which they are tried. */
  resolve(model: string, client: ProtocolId): readonly Candidate[];
  /** Why no provider serves a model. */
  whyUnknown(model: string): string;
  /**
   * Providers that have the endpoints of this protocol, for requests that are only forwarded. Those whose `passthrough`
   * is not `off` come first, then those of the protocol itself.
   */
  providersFor(protocol: ProtocolId): readonly ProviderEndpoint[];
  /** Model names for clients. */
  readonly models: readonly string[];
  /** Providers whose models are not configured; their lists are requested. */
  readonly unlisted: readonly ProviderEndpoint[];
  readonly gatekeeper: Gatekeeper;
  /** Hosts that are redacted for clients. */
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
  /** Removes secrets and private hosts from text for clients. */
  readonly redact: (text: string) => string;
  /** The same for upstream text: also removes private addresses and internal host names. */
  readonly redactUpstream: (text: string) => string;
}
