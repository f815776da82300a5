import type { Effort } from '../canonical/request.ts';

/** From least to most. */
export const EFFORTS: readonly Effort[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

export const isEffort = (word: unknown): word is Effort => EFFORTS.some((effort) => effort === word);

/** The largest budget that counts as this effort ("Effort and budgets" in docs/canonical.md). */
const MOST: readonly (readonly [number, Effort])[] = [
  [512, 'minimal'],
  [1024, 'low'],
  [8192, 'medium'],
  [24576, 'high'],
  [32768, 'xhigh'],
];

/** The effort of a budget in tokens; undefined for none, and for -1, which leaves it to the model. */
export function effortOf(budget: number | undefined): Effort | undefined {
  if (budget === undefined || budget < 0) return undefined;
  return MOST.find(([most]) => budget <= most)?.[1] ?? 'max';
}

const BUDGETS = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24576,
  xhigh: 32768,
  // "Model maximum": whoever knows the model's bounds the budget by it.
  max: 65536,
} satisfies Record<Effort, number>;

/** The tokens that stand for an effort; targets bound them by what the model takes. */
export const budgetOf = (effort: Effort): number => BUDGETS[effort];

/** The allowed effort next to the wanted one; of two, the lesser. */
export function nearestEffort(wanted: Effort, allowed: readonly string[]): Effort | undefined {
  const distance = (effort: Effort): number => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(wanted));
  return EFFORTS.filter((effort) => allowed.includes(effort)).toSorted((a, b) => distance(a) - distance(b))[0];
}
