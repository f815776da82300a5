/** Chooses in which order a request is sent to its targets, and remembers what their responses tell about them. */

import { chooseRates } from '../prices/rates.ts';
import type { PriceTable } from '../prices/table.ts';
import type { Breakers } from '../upstream/breaker.ts';
import { Affinity } from './affinity.ts';
import { CacheBreaks } from './cache-breaks.ts';
import { orderTier, type Routable } from './order.ts';
import { type ResponseKind, TargetStats } from './target-stats.ts';

/** Routes the requests of one process. What it knows of targets and conversations survives reloads of the configuration. */
export class Router {
  readonly #options: RouterOptions;
  readonly stats: TargetStats;
  readonly affinity: Affinity;
  readonly cacheBreaks = new CacheBreaks();

  constructor(options: RouterOptions) {
    this.#options = options;
    this.stats = new TargetStats(options.now);
    this.affinity = new Affinity(options.now);
  }

  /** Orders the candidates of a request. Costs nothing when there is only one. */
  plan<T extends Routable>(candidates: readonly T[], request: PlanRequest): Plan<T> {
    if (candidates.length < 2) return { candidates };
    const isShared = candidates.some((candidate) => candidate.isShared);
    const conversation = isShared && request.affinityMs !== null ? request.nameConversation() : undefined;
    const bound = conversation === undefined ? undefined : this.affinity.find(conversation);
    const context = {
      ...this.#options,
      stats: this.stats,
      kind: request.kind,
      findPrice: (target: Routable) => findPrice(target, request.prices),
    };
    const ordered = splitTiers(candidates).flatMap((tier) => this.#putFirst(bound, orderTier(tier, context)));
    return { candidates: this.#putRestingLast(ordered), conversation, bound, affinityMs: request.affinityMs ?? 0 };
  }

  /** A request to a candidate begins. The caller must call `ended`. */
  began({ isShared, key }: Routable): void {
    if (isShared) this.stats.began(key);
  }

  /** A request to a candidate has ended. */
  ended({ isShared, key }: Routable): void {
    if (isShared) this.stats.ended(key);
  }

  /** A candidate sent its first content, or its whole response, after this time. */
  responded<T extends Routable>(plan: Plan<T>, { isShared, key }: Routable, kind: ResponseKind, ms: number): void {
    if (!isShared) return;
    this.stats.responded(key, kind, ms);
    if (plan.conversation !== undefined) this.affinity.bind(plan.conversation, key, plan.affinityMs ?? 0);
  }

  /** The bound target stays first of its tier, as long as it is well. */
  #putFirst<T extends Routable>(bound: string | undefined, tier: readonly T[]): readonly T[] {
    const found = bound === undefined ? undefined : tier.find(({ key }) => key === bound);
    if (!found || found === tier[0] || !this.#isWell(found)) return tier;
    return [found, ...tier.filter((target) => target !== found)];
  }

  #isWell({ key, endpointId }: Routable): boolean {
    return this.#options.breakers.isWell(key) && !(endpointId !== undefined && this.stats.isResting(endpointId));
  }

  /** A key that rests is tried when nothing else is left. */
  #putRestingLast<T extends Routable>(ordered: readonly T[]): readonly T[] {
    const isResting = ({ endpointId }: T): boolean => endpointId !== undefined && this.stats.isResting(endpointId);
    if (!ordered.some(isResting)) return ordered;
    return [...ordered.filter((target) => !isResting(target)), ...ordered.filter(isResting)];
  }
}

/** What a router depends on. */
export interface RouterOptions {
  readonly breakers: Breakers;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** What is known of a request that is to be sent. */
export interface PlanRequest {
  readonly kind: ResponseKind;
  /** How long a conversation stays with its target; null for not at all. */
  readonly affinityMs: number | null;
  /** Names the conversation of the request; called only where targets share requests. */
  readonly nameConversation: () => string | undefined;
  readonly prices: PriceTable;
}

/** In which order a request is sent to its candidates. */
export interface Plan<T> {
  readonly candidates: readonly T[];
  /** The conversation that stays with its target, if it is one. */
  readonly conversation?: string | undefined;
  /** The key of the target that served the conversation before. */
  readonly bound?: string | undefined;
  readonly affinityMs?: number;
}

/** Whether a conversation stayed with its target. */
export type AffinityState = 'hit' | 'miss' | 'new';

/** Whether a candidate is the one that served the conversation before; undefined where targets do not share requests. */
export function findAffinity<T extends Routable>({ conversation, bound }: Plan<T>, candidate: T): AffinityState | undefined {
  if (conversation === undefined) return undefined;
  return bound === undefined ? 'new' : bound === candidate.key ? 'hit' : 'miss';
}

function splitTiers<T extends Routable>(candidates: readonly T[]): T[][] {
  const tiers: T[][] = [];
  for (const candidate of candidates) {
    const last = tiers.at(-1);
    if (last?.[0]?.tier === candidate.tier) last.push(candidate);
    else tiers.push([candidate]);
  }
  return tiers;
}

/** The price of a target for input and output in the usual proportion; undefined when it is unknown. */
export function findPrice({ provider, model }: Pick<Routable, 'provider' | 'model'>, prices: PriceTable): number | undefined {
  const { source, periods } = prices.find(provider.id, model);
  const rates = source === 'unknown' ? undefined : chooseRates(periods, Date.now());
  if (source === 'free') return 0;
  return rates && INPUT_PARTS * (rates.input?.base ?? 0) + (rates.output?.base ?? 0);
}

/** Input tokens for each output token, as agents and chats have them. */
const INPUT_PARTS = 3;
