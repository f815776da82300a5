import type { Limits } from '../config/limits.ts';
import type { Services } from '../exchange/services.ts';
import { Metrics } from '../observe/metrics.ts';
import { hidingHosts } from '../observe/redact.ts';
import { Breakers } from '../upstream/breaker.ts';
import { Dialer } from '../upstream/dialer.ts';
import { RetryBudget } from '../upstream/retry-budget.ts';
import { MemoryGuard } from './memory-guard.ts';
import { Streams } from './streams.ts';

type Given = Pick<Services, 'directory' | 'log' | 'redact'> & { limits: Limits };

/** What every exchange needs, made for this process. */
export function createServices(given: Given): Services {
  const { limits, redact, directory } = given;
  const now = (): number => performance.now();
  const streams = new Streams(limits.streams);
  return {
    ...given,
    redact: hidingHosts(redact, () => directory().privateHosts),
    now,
    random: Math.random,
    streams,
    dialer: new Dialer(limits),
    breakers: new Breakers(now),
    budget: new RetryBudget(limits.retryShare, now),
    metrics: new Metrics(),
    memory: new MemoryGuard({ limits, onScarce: () => streams.cancelLongestStalled() }),
  };
}
