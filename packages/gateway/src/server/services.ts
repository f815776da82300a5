import type { Limits } from '../config/limits.ts';
import type { Services } from '../exchange/services.ts';
import { type Clock, REAL_CLOCK } from '../http/clock.ts';
import { Metrics } from '../observe/metrics.ts';
import { hidingAddresses, hidingHosts } from '../observe/redact.ts';
import { Breakers } from '../upstream/breaker.ts';
import { Dialer } from '../upstream/dialer.ts';
import { LearnedRefusals } from '../upstream/refusals.ts';
import { RetryBudget } from '../upstream/retry-budget.ts';
import { ownConnectionShare } from './descriptors.ts';
import { MemoryGuard } from './memory-guard.ts';
import { ModelLists } from './model-lists.ts';
import { Streams } from './streams.ts';

type Given = Pick<Services, 'directory' | 'log' | 'redact'> & { limits: Limits; clock?: Clock };

/** Creates the services of one gateway. */
export function createServices(given: Given): Services {
  const { limits, redact, directory, log, clock = REAL_CLOCK } = given;
  const { now } = clock;
  const dialer = new Dialer(limits);
  const share = ownConnectionShare();
  const streams = new Streams(Math.min(limits.streams, share));
  const redactHosts = hidingHosts(redact, () => directory().privateHosts);
  return {
    ...given,
    redact: redactHosts,
    redactUpstream: hidingAddresses(redactHosts),
    clock,
    now,
    random: Math.random,
    streams,
    maxConnections: limits.connections > 0 ? limits.connections : share,
    dialer,
    breakers: new Breakers(now),
    budget: new RetryBudget(limits.retryShare, now),
    refusals: new LearnedRefusals(),
    metrics: new Metrics(() => streams.count),
    modelLists: new ModelLists({
      dialer,
      clock,
      onFailure: (provider, reason) => log.warn({ provider, reason }, 'no list of models'),
    }),
    memory: new MemoryGuard({ limits, clock, onScarce: () => streams.cancelLongestStalled() }),
  };
}
