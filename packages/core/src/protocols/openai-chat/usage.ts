import { isSet, type JsonObject } from '../../accumulate/overlay.ts';
import type { Note } from '../../canonical/notes.ts';
import type { CanonicalUsage, UsageDetails } from '../../canonical/usage.ts';
import { countOf, objectOf, within } from '../shared/read.ts';

/** `prompt_tokens` includes what was cached, `completion_tokens` what was reasoned: the canonical counts do too. */
export function decodeUsage(raw: JsonObject, note: (note: Note) => void): CanonicalUsage {
  const prompt = objectOf(raw['prompt_tokens_details']);
  const completion = objectOf(raw['completion_tokens_details']);
  const { input_tokens, output_tokens } = wholeCounts(raw);
  const cached = countOf(prompt['cached_tokens']) ?? countOf(raw['prompt_cache_hit_tokens']) ?? countOf(raw['num_cached_tokens']);
  const read = within(cached, input_tokens, 'cached_tokens', note);
  const written = countOf(prompt['cache_write_tokens']);
  const reasoned = countOf(completion['reasoning_tokens']) ?? countOf(raw['reasoning_tokens']);
  const reasoning = within(reasoned, output_tokens, 'reasoning_tokens', note);
  const details = decodeDetails(prompt, completion);
  return {
    input_tokens,
    output_tokens,
    ...(read !== undefined && { cache_read_tokens: read }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(details && { details }),
    extensions: { 'openai-chat': raw },
  };
}

/**
 * Tokens that only the total shows. xAI and Gemini's compatible endpoint leave reasoning out of `completion_tokens`; Mistral leaves audio out
 * of `prompt_tokens`.
 */
function wholeCounts(raw: JsonObject): { input_tokens: number; output_tokens: number } {
  const input = countOf(raw['prompt_tokens']) ?? 0;
  const output = countOf(raw['completion_tokens']) ?? 0;
  const isCounted = input + output > 0;
  const outside = isCounted ? Math.max(0, (countOf(raw['total_tokens']) ?? 0) - input - output) : 0;
  return isSet(raw['prompt_audio_seconds'])
    ? { input_tokens: input + outside, output_tokens: output }
    : { input_tokens: input, output_tokens: output + outside };
}

/** Where each detail stands on the wire; zeros say nothing. */
const PROMPT_DETAILS = { audio_tokens: 'input_audio', image_tokens: 'input_image' } as const;
const COMPLETION_DETAILS = {
  audio_tokens: 'output_audio',
  image_tokens: 'output_image',
  accepted_prediction_tokens: 'accepted_prediction',
  rejected_prediction_tokens: 'rejected_prediction',
} as const;

function decodeDetails(prompt: JsonObject, completion: JsonObject): UsageDetails | undefined {
  const inputs = readDetails(prompt, PROMPT_DETAILS);
  const outputs = readDetails(completion, COMPLETION_DETAILS);
  return inputs || outputs ? { ...inputs, ...outputs } : undefined;
}

function readDetails(source: JsonObject, fields: Record<string, keyof UsageDetails>): UsageDetails | undefined {
  let details: UsageDetails | undefined;
  for (const wire in fields) {
    const name = fields[wire];
    const count = countOf(source[wire]);
    if (name && count) details = { ...details, [name]: count };
  }
  return details;
}

/** Over what the wire had, so that counts nobody knows survive. The details are always objects: clients read through them. */
export function encodeUsage({ extensions, details = {}, ...usage }: CanonicalUsage): JsonObject {
  const raw = objectOf(extensions?.['openai-chat']);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const { cache_read_tokens: read = 0, cache_creation_tokens: written, reasoning_tokens: reasoning = 0 } = usage;
  return {
    ...raw,
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      ...objectOf(raw['prompt_tokens_details']),
      ...encodeDetails(details, PROMPT_DETAILS),
      cached_tokens: Math.min(Math.max(0, read), input),
      ...(written !== undefined && { cache_write_tokens: Math.max(0, written) }),
    },
    completion_tokens_details: {
      ...objectOf(raw['completion_tokens_details']),
      ...encodeDetails(details, COMPLETION_DETAILS),
      reasoning_tokens: Math.min(Math.max(0, reasoning), output),
    },
  };
}

function encodeDetails(details: UsageDetails, fields: Record<string, keyof UsageDetails>): JsonObject {
  const entries = Object.entries(fields).map(([wire, name]) => [wire, details[name]] as const);
  return Object.fromEntries(entries.filter(([, count]) => count !== undefined));
}
