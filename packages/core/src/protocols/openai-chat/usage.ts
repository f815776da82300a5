import { countKeys, isSet, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalUsage, UsageDetails } from '../../canonical/usage.ts';
import type { Context } from '../shared/context.ts';
import { cachedOutside, countOf, noteUsage, objectOf, within } from '../shared/read.ts';

type UsageContext = Pick<Context, 'note' | 'profile'>;

/**
 * The spellings of one count, in the details of the prompt or beside them: `cached_tokens` (Moonshot: at the top level), `num_cached_tokens`,
 * `precached_prompt_tokens` (GigaChat), `prompt_cache_hit_tokens` (DeepSeek), `cache_read_input_tokens` (LiteLLM, and Anthropic's own).
 */
const READ = /^(num_|pre)?cached(_prompt)?_tokens$|_cache_hit_|^cache_read_/;
/** `cache_write_tokens`, `cache_creation_tokens` and `cache_creation_input_tokens` (LiteLLM), `cached_creation_tokens` (new-api). */
const WRITTEN = /^cached?_(write|creation)(_input)?_tokens$/;
const REASONING = 'reasoning_tokens';

/** `prompt_tokens` includes what was cached, `completion_tokens` what was reasoned: the canonical counts do too. */
export function decodeUsage(raw: JsonObject, { note, profile }: UsageContext): CanonicalUsage {
  const prompt = objectOf(raw['prompt_tokens_details'] ?? raw['input_tokens_details']);
  const completion = objectOf(raw['completion_tokens_details'] ?? raw['output_tokens_details']);
  const read = largest(READ, prompt, raw);
  const written = largest(WRITTEN, prompt, raw);
  const reasoned = countOf(completion[REASONING]) ?? countOf(raw[REASONING]);
  const counted = countOf(raw['prompt_tokens']);
  let input = counted || countOf(raw['input_tokens']) || 0;
  let output = countOf(raw['completion_tokens']) || countOf(raw['output_tokens']) || 0;
  const isCounted = input + output > 0;
  // Anthropic's own counts leave out what the cache had.
  if (!counted && isSet(raw['cache_read_input_tokens'] ?? raw['cache_creation_input_tokens']))
    input += (read ?? 0) + (written ?? 0);
  const excluded = cachedOutside(read, input, note);
  input += excluded;
  // Tokens that only the total shows: xAI and Gemini's compatible endpoint leave out reasoning, Mistral leaves out audio of the prompt.
  const outside = isCounted ? Math.max(0, (countOf(raw['total_tokens']) ?? 0) - input - output) : 0;
  const additive = profile?.reasoning_additive;
  if (isSet(raw['prompt_audio_seconds'])) input += outside;
  else if (additive !== false) output += outside || (additive && reasoned) || 0;
  const isOver = additive === undefined && reasoned !== undefined && reasoned > output;
  if (isOver) noteUsage(note, REASONING, reasoned, output, 'usage is uncertain');
  const reasoning = isOver ? reasoned : within(reasoned, output, REASONING, note);
  const details = { ...readDetails(prompt, PROMPT_DETAILS), ...readDetails(completion, COMPLETION_DETAILS) };
  return {
    input_tokens: input,
    output_tokens: output,
    ...(read !== undefined && { cache_read_tokens: read }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(countKeys(details) > 0 && { details }),
    ...((isOver || excluded > 0) && { uncertain: true }),
    extensions: { 'openai-chat': raw },
  };
}

/** Relays fill in one spelling and leave zeros in the others. */
function largest(names: RegExp, ...sources: readonly JsonObject[]): number | undefined {
  let most: number | undefined;
  for (const source of sources)
    for (const key in source) if (names.test(key)) most = Math.max(most ?? 0, countOf(source[key]) ?? 0);
  return most;
}

/** Where each detail stands on the wire; zeros say nothing. */
const PROMPT_DETAILS = { audio_tokens: 'input_audio', image_tokens: 'input_image' } as const;
const COMPLETION_DETAILS = {
  audio_tokens: 'output_audio',
  image_tokens: 'output_image',
  accepted_prediction_tokens: 'accepted_prediction',
  rejected_prediction_tokens: 'rejected_prediction',
} as const;

function readDetails(source: JsonObject, fields: Record<string, keyof UsageDetails>): UsageDetails {
  const details: UsageDetails = {};
  for (const [wire, name] of Object.entries(fields)) {
    const count = countOf(source[wire]);
    if (count) details[name] = count;
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
