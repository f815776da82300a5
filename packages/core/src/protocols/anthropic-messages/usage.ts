import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalUsage, UsageDetails } from '../../canonical/usage.ts';
import { countOf, objectOf } from '../shared/read.ts';

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

/** What the official type of `message_delta` requires: counters that do not apply are null. */
const DELTA_FIELDS: JsonObject = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  output_tokens_details: null,
  server_tool_use: null,
};

/** And that of a whole message. */
const MESSAGE_FIELDS: JsonObject = {
  ...DELTA_FIELDS,
  cache_creation: null,
  service_tier: null,
  inference_geo: null,
  speed: null,
};

/** The usage of a whole message and of `message_start`. It is never null: the SDK writes into it. */
export const encodeUsage = (usage: Partial<CanonicalUsage> | undefined): JsonObject => ({
  ...MESSAGE_FIELDS,
  ...countersOf(usage ?? {}),
});

export const encodeDeltaUsage = (usage: Partial<CanonicalUsage> | undefined): JsonObject => ({
  ...DELTA_FIELDS,
  ...countersOf(usage ?? {}),
});

/** The wire's own counters where they still say what the usage says. */
function countersOf(usage: Partial<CanonicalUsage>): JsonObject {
  const raw = objectOf(usage.extensions?.['anthropic-messages']);
  const said = decodeUsage(raw);
  const isSame = said.input_tokens === (usage.input_tokens ?? 0) && said.output_tokens === (usage.output_tokens ?? 0);
  if (!isSame) return { ...raw, ...splitOf(usage) };
  return { ...raw, input_tokens: countOf(raw['input_tokens']) ?? 0, output_tokens: countOf(raw['output_tokens']) ?? 0 };
}

/** `input_tokens` of the wire is what no cache had (P99). */
function splitOf(usage: Partial<CanonicalUsage>): JsonObject {
  const { input_tokens: input = 0, output_tokens: output = 0, reasoning_tokens: reasoning, details = {} } = usage;
  const read = Math.min(Math.max(0, usage.cache_read_tokens ?? 0), input);
  const written = Math.min(Math.max(0, usage.cache_creation_tokens ?? 0), input - read);
  const {
    cache_creation_5m: short,
    cache_creation_1h: long,
    web_search_requests: searches,
    web_fetch_requests: fetches,
  } = details;
  return {
    input_tokens: Math.max(0, input - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: Math.max(0, output),
    ...(reasoning !== undefined && { output_tokens_details: { thinking_tokens: Math.min(Math.max(0, reasoning), output) } }),
    ...((short !== undefined || long !== undefined) && {
      cache_creation: { ephemeral_5m_input_tokens: short ?? 0, ephemeral_1h_input_tokens: long ?? 0 },
    }),
    ...((searches !== undefined || fetches !== undefined) && {
      server_tool_use: { web_search_requests: searches ?? 0, web_fetch_requests: fetches ?? 0 },
    }),
  };
}
