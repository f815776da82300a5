/** The order in which the targets of one tier are tried, by how they share requests. */

import type { Sharing } from '../config/models.ts';
import type { Breakers } from '../upstream/breaker.ts';
import type { ResponseKind, TargetStats } from './target-stats.ts';

/** What routing knows of a target. */
export interface Routable {
  /** The key of its breaker. */
  readonly key: string;
  readonly provider: { readonly id: string };
  readonly model: string;
  /** Targets of a lower tier are tried first; those of one tier share the requests. */
  readonly tier: number;
  readonly sharing: Sharing;
  /** Its share of the requests of its tier. */
  readonly weight: number;
  /** Whether there are other targets in its tier. */
  readonly isShared: boolean;
  /** Which key at which address of a provider that has several; undefined if there is one. */
  readonly endpointId: string | undefined;
}

/** What an order depends on. */
export interface OrderContext {
  readonly breakers: Breakers;
  readonly stats: TargetStats;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly kind: ResponseKind;
  /** The price of a target; undefined when it is unknown. Any unit. */
  readonly findPrice: (target: Routable) => number | undefined;
}

/** Orders the targets of one tier. A target whose pause has ended comes first, because a request has to try it. */
export function orderTier<T extends Routable>(tier: readonly T[], context: OrderContext): readonly T[] {
  const [first] = tier;
  if (!first || tier.length === 1) return tier;
  const { breakers, random } = context;
  // A target that has become faster is noticed only if it is tried.
  const isExploring = first.sharing === 'fastest' && random() < EXPLORED_SHARE;
  const findScore = isExploring ? findNoScore : SCORES[first.sharing];
  const ranked = tier.map((target) => ({
    target,
    score: breakers.isDue(target.key) ? Number.NEGATIVE_INFINITY : findScore(target, context),
    draw: drawByWeight(target.weight, random),
  }));
  return ranked.sort((a, b) => compare(a.score, b.score) || a.draw - b.draw).map(({ target }) => target);
}

/** Scores of targets, the lowest first. Targets with the same score share requests by their weights. */
const SCORES = {
  weighted: () => 0,
  least_busy: ({ key, weight }, { stats }) => stats.countRunning(key) / weight,
  // A target without a known time is tried first.
  fastest: ({ key }, { stats, kind }) => stats.findTime(key, kind) ?? 0,
  cheapest: (target, { findPrice }) => findPrice(target) ?? Number.POSITIVE_INFINITY,
} as const satisfies Record<Sharing, (target: Routable, context: OrderContext) => number>;

const findNoScore = (): number => 0;

/** Not a subtraction, because scores may be infinite. */
const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);

/**
 * An exponential variable: among several, each is the smallest with a probability in proportion to its weight
 * (Efraimidis and Spirakis).
 */
const drawByWeight = (weight: number, random: () => number): number => -Math.log(1 - random()) / weight;

/** The share of requests for which `fastest` tries any target. */
const EXPLORED_SHARE = 0.05;
