/** Returns a number in [0, 1). */
export type Random = () => number;

/** Returns the same numbers for the same seed on every platform (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** An integer from 0 to `limit` - 1. */
export const below = (random: Random, limit: number): number => Math.floor(random() * limit);

/** True with this probability. */
export const chance = (random: Random, probability: number): boolean => random() < probability;

/** A random element of a list. */
export function pick<T>(random: Random, list: readonly [T, ...T[]]): T {
  return list[below(random, list.length)] ?? list[0];
}
