import type { Sharing } from '../../src/config/models.ts';
import type { Routable } from '../../src/routing/order.ts';
import { type Plan, Router } from '../../src/routing/router.ts';
import { Breakers } from '../../src/upstream/breaker.ts';

/** Numbers from 0 to 1 that are the same in every run (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A target without a network. */
export interface FleetTarget extends Routable {
  isUp: boolean;
  /** Milliseconds to the first token. */
  ms: number;
  served: number;
  requests: number;
}

interface FleetOptions {
  sharing?: Sharing;
  weights?: readonly number[];
  affinityMs?: number | null;
  seed?: number;
  price?: (model: string) => number | undefined;
}

/** Targets of one model behind a router, by a clock that stands still until it is set. */
export class Fleet {
  readonly targets: FleetTarget[];
  readonly breakers: Breakers;
  readonly router: Router;
  now = 1;
  readonly #affinityMs: number | null;
  readonly #prices: never;

  constructor({ sharing = 'weighted', weights = [1, 1, 1], affinityMs = 300_000, seed = 1, price }: FleetOptions = {}) {
    const random = createRandom(seed);
    const now = (): number => this.now;
    this.breakers = new Breakers(now, { random });
    this.router = new Router({ breakers: this.breakers, now, random });
    this.#affinityMs = affinityMs;
    const find = (_: string, model: string): object => {
      const base = price?.(model);
      return base === undefined
        ? { source: 'unknown', periods: [] }
        : { source: 'configuration', periods: [{ rates: { input: { base } } }] };
    };
    this.#prices = { find } as never; // only `find` is used
    this.targets = weights.map((weight, i) => ({
      key: `p/m${i}`,
      provider: { id: 'p' },
      model: `m${i}`,
      tier: 0,
      sharing,
      weight,
      isShared: weights.length > 1,
      endpointId: undefined,
      isUp: true,
      ms: 100,
      served: 0,
      requests: 0,
    }));
  }

  plan(conversation?: string): Plan<FleetTarget> {
    return this.router.plan(this.targets, {
      kind: 'stream',
      affinityMs: this.#affinityMs,
      nameConversation: () => conversation,
      prices: this.#prices,
    });
  }

  /** Sends a request as `AttemptLoop` does: paused targets are skipped, failures go to the next one. */
  request(conversation?: string): { target: FleetTarget | undefined; plan: Plan<FleetTarget> } {
    const plan = this.plan(conversation);
    for (const target of plan.candidates) {
      const admission = this.breakers.admit(target.key);
      if (admission === 'resting') continue;
      target.requests++;
      if (target.isUp) {
        target.served++;
        this.breakers.succeeded(target.key);
        this.router.responded(plan, target, 'stream', target.ms);
      } else this.breakers.failed(target.key, 'down');
      if (admission === 'probe') this.breakers.endProbe(target.key);
      if (target.isUp) return { target, plan };
    }
    return { target: undefined, plan };
  }
}
