import { countKeys, isSet, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalUsage, UsageDetails } from '../../canonical/usage.ts';
import type { Context } from '../shared/context.ts';
import { cachedOutside, countOf, noteUsage, objectOf, within } from '../shared/read.ts';

type UsageContext = Pick<Context, 'note' | 'profile'>;

/** The spellings of one count, in the details of the prompt or beside them. */
const READ = [
  'cached_tokens', // Moonshot: at the top level
  'prompt_cache_hit_tokens',
  'num_cached_tokens',
  'precached_prompt_tokens', // GigaChat
  'cache_read_input_tokens', // LiteLLM, and Anthropic's own
];
const WRITTEN = [
  'cache_write_tokens',
  'cache_creation_input_tokens', // LiteLLM, and Anthropic's own
  'cache_creation_tokens', // LiteLLM
  'cached_creation_tokens', // new-api
];

/** `prompt_tokens` includes what was cached, `completion_tokens` what was reasoned: the canonical counts do too. */
export function decodeUsage(raw: JsonObject, { note, profile }: UsageContext): CanonicalUsage {
  const prompt = objectOf(raw['prompt_tokens_details'] ?? raw['input_tokens_details']);
  const completion = objectOf(raw['completion_tokens_details'] ?? raw['output_tokens_details']);
  const read = largest(READ, prompt, raw);
  const written = largest(WRITTEN, prompt, raw);
  const reasoned = largest(['reasoning_tokens'], completion, raw);
  let input = countOf(raw['prompt_tokens']) || countOf(raw['input_tokens']) || 0;
  let output = countOf(raw['completion_tokens']) || countOf(raw['output_tokens']) || 0;
  const isCounted = input + output > 0;
  // Anthropic's own counts leave out what the cache had.
  if (!countOf(raw['prompt_tokens']) && isSet(raw['cache_read_input_tokens'] ?? raw['cache_creation_input_tokens']))
    input += (read ?? 0) + (written ?? 0);
  const excluded = cachedOutside(read, input, note);
  input += excluded;
  let uncertain = excluded > 0;
  // Tokens that only the total shows: xAI and Gemini's compatible endpoint leave out reasoning, Mistral leaves out audio of the prompt.
  const outside = isCounted ? Math.max(0, (countOf(raw['total_tokens']) ?? 0) - input - output) : 0;
  const additive = profile?.reasoning_additive;
  if (isSet(raw['prompt_audio_seconds'])) input += outside;
  else if (additive !== false) output += outside || (additive && reasoned) || 0;
  let reasoning = reasoned;
  if (additive === undefined && reasoned !== undefined && reasoned > output) {
    uncertain = true;
    noteUsage(note, 'reasoning_tokens', `${reasoned} reasoning tokens exceed ${output} output tokens; usage is uncertain`);
  } else reasoning = within(reasoned, output, 'reasoning_tokens', note);
  const details = decodeDetails(raw, prompt, completion);
  return {
    input_tokens: input,
    output_tokens: output,
    ...(read !== undefined && { cache_read_tokens: read }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(details && { details }),
    ...(uncertain && { uncertain }),
    extensions: { 'openai-chat': raw },
  };
}

/** Relays fill in one spelling and leave zeros in the others. */
function largest(names: readonly string[], ...sources: readonly JsonObject[]): number | undefined {
  const counts = sources.flatMap((source) => names.flatMap((name) => countOf(source[name]) ?? []));
  return counts.length > 0 ? Math.max(...counts) : undefined;
}

/** Where each detail stands on the wire; zeros say nothing. */
const PROMPT_DETAILS = { audio_tokens: 'input_audio', image_tokens: 'input_image' } as const;
const COMPLETION_DETAILS = {
  audio_tokens: 'output_audio',
  image_tokens: 'output_image',
  accepted_prediction_tokens: 'accepted_prediction',
  rejected_prediction_tokens: 'rejected_prediction',
} as const;

/** How long the cache keeps what was written to it: Anthropic and LiteLLM, and new-api. */
const CREATION_DETAILS = {
  ephemeral_5m_input_tokens: 'cache_creation_5m',
  ephemeral_1h_input_tokens: 'cache_creation_1h',
  claude_cache_creation_5_m_tokens: 'cache_creation_5m',
  claude_cache_creation_1_h_tokens: 'cache_creation_1h',
} as const;

function decodeDetails(raw: JsonObject, prompt: JsonObject, completion: JsonObject): UsageDetails | undefined {
  const details = {
    ...readDetails(prompt, PROMPT_DETAILS),
    ...readDetails(completion, COMPLETION_DETAILS),
    ...readDetails(
      { ...raw, ...objectOf(raw['cache_creation']), ...objectOf(prompt['cache_creation_token_details']) },
      CREATION_DETAILS,
    ),
  };
  return countKeys(details) > 0 ? details : undefined;
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
