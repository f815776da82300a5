import { BoundedCache, type CacheLimits } from '@sluice/core/internal';

/**
 * `find`, called once per key as long as the key is in use. Bounded, because clients can invent any number of model
 * names.
 */
export function memo<T extends NonNullable<unknown>>(limits: CacheLimits, find: (key: string) => T): (key: string) => T {
  const cache = new BoundedCache<T>(limits);
  return (key) => {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const value = find(key);
    cache.set(key, value);
    return value;
  };
}
