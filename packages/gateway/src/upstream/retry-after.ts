/** Converts a `Retry-After` date to seconds, because codecs have no clock. `now`: milliseconds of the wall clock. */
export function withRetrySeconds(headers: Record<string, string>, now: number): Record<string, string> {
  const value = headers['retry-after'];
  if (value === undefined || Number.isFinite(Number(value))) return headers;
  const date = Date.parse(value);
  if (Number.isNaN(date)) return headers;
  return { ...headers, 'retry-after': String(Math.max(0, Math.ceil((date - now) / 1000))) };
}
