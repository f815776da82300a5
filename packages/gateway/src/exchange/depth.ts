/** Levels of JSON in the body of an error, as in any other response. */
export const MAX_ERROR_DEPTH = 256;

/** Whether parsed JSON is nested deeper than this. */
// `for in` makes no list of what is in there: requests are large. JSON has nothing but own fields.
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (Array.isArray(value)) return limit === 0 || value.some((item) => isDeeperThan(item, limit - 1));
  if (typeof value !== 'object' || value === null) return false;
  if (limit === 0) return true;
  for (const key in value) if (isDeeperThan((value as Record<string, unknown>)[key], limit - 1)) return true; // parsed JSON
  return false;
}
