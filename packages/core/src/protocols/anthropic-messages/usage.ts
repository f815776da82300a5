import { isObject, type JsonObject, overlay } from '../../accumulate/overlay.ts';
import type { CanonicalUsage, UsageDetails } from '../../canonical/usage.ts';
import { countOf, objectOf } from '../shared/read.ts';

/**
 * Lays a snapshot over the one before: field by field the last non-null value wins, and counters may fall (server tools). A snapshot of
 * nothing but zeros, which relays put where they know no counts, replaces no real one. `false`: it was such a snapshot.
 */
export function mergeUsage(target: JsonObject, snapshot: JsonObject): boolean {
  if (hasOnlyZeros(snapshot) && !hasOnlyZeros(target)) return false;
  overlay(target, snapshot);
  return true;
}

function hasOnlyZeros(usage: JsonObject): boolean {
  for (const key in usage) if (typeof usage[key] === 'number' && usage[key] !== 0) return false;
  return true;
}

/** `input_tokens` of the wire leaves out what was read from and written to the cache; the canonical count is all of it. */
export function decodeUsage(raw: JsonObject): CanonicalUsage {
  const outside = compactionOf(raw['iterations']);
  const read = countOf(raw['cache_read_input_tokens']);
  const written = countOf(raw['cache_creation_input_tokens']);
  const output = (countOf(raw['output_tokens']) ?? 0) + outside.output;
  const reasoning = countOf(objectOf(raw['output_tokens_details'])['thinking_tokens']);
  const details = decodeDetails(raw);
  return {
    input_tokens:
      (countOf(raw['input_tokens']) ?? 0) + (read ?? 0) + (written ?? 0) + outside.input + outside.read + outside.written,
    output_tokens: output,
    ...(read !== undefined && { cache_read_tokens: read + outside.read }),
    ...(written !== undefined && { cache_creation_tokens: written + outside.written }),
    ...(reasoning !== undefined && { reasoning_tokens: Math.min(reasoning, output) }),
    ...(Object.keys(details).length > 0 && { details }),
    extensions: { 'anthropic-messages': raw },
  };
}

/** The summary that a compaction wrote is charged, but stands outside the totals (three of three recorded streams). */
function compactionOf(iterations: unknown): { input: number; read: number; written: number; output: number } {
  const sum = { input: 0, read: 0, written: 0, output: 0 };
  if (!Array.isArray(iterations)) return sum;
  for (const entry of iterations) {
    if (!isObject(entry) || entry['type'] !== 'compaction') continue;
    sum.input += countOf(entry['input_tokens']) ?? 0;
    sum.read += countOf(entry['cache_read_input_tokens']) ?? 0;
    sum.written += countOf(entry['cache_creation_input_tokens']) ?? 0;
    sum.output += countOf(entry['output_tokens']) ?? 0;
  }
  return sum;
}

function decodeDetails(raw: JsonObject): UsageDetails {
  const written = objectOf(raw['cache_creation']);
  const tools = objectOf(raw['server_tool_use']);
  const short = countOf(written['ephemeral_5m_input_tokens']);
  const long = countOf(written['ephemeral_1h_input_tokens']);
  const searches = countOf(tools['web_search_requests']);
  const fetches = countOf(tools['web_fetch_requests']);
  return {
    ...(short !== undefined && { cache_creation_5m: short }),
    ...(long !== undefined && { cache_creation_1h: long }),
    ...(searches !== undefined && { web_search_requests: searches }),
    ...(fetches !== undefined && { web_fetch_requests: fetches }),
  };
}
