import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Note } from '../../canonical/notes.ts';
import type { CanonicalUsage } from '../../canonical/usage.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { cachedOutside, countOf, objectOf, within } from '../shared/read.ts';

/** `input_tokens` includes what was cached, `output_tokens` what was reasoned: the canonical counts do too. */
export function decodeUsage(raw: JsonObject, note: (note: Note) => void): CanonicalUsage {
  const input = objectOf(raw['input_tokens_details']);
  const output = objectOf(raw['output_tokens_details']);
  const counted = countOf(raw['input_tokens']) ?? countOf(raw['prompt_tokens']) ?? 0;
  const cached = countOf(input['cached_tokens']);
  const outside = cachedOutside(cached, counted, note);
  const input_tokens = counted + outside;
  const output_tokens = countOf(raw['output_tokens']) ?? countOf(raw['completion_tokens']) ?? 0;
  const written = within(countOf(input['cache_write_tokens']), input_tokens - (cached ?? 0), 'cache_write_tokens', note);
  const reasoning = within(countOf(output['reasoning_tokens']), output_tokens, 'reasoning_tokens', note);
  return {
    input_tokens,
    output_tokens,
    ...(cached !== undefined && { cache_read_tokens: cached }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(outside > 0 && { uncertain: true }),
    extensions: { 'openai-responses': raw },
  };
}

/**
 * The usage of an answer that has come to its end. Who told none gets zeros: the AI SDK takes an end without counts for none, and agents on it ask
 * again, for ever.
 */
export function encodeFinalUsage(usage: CanonicalUsage | undefined, context: CodecContext): JsonObject {
  if (usage) return encodeUsage(usage);
  const message = 'the upstream told no usage; where OpenAI Responses needs one, zeros stand for it';
  approximate(context, { path: '/usage', feature: 'usage', message });
  return encodeUsage({ input_tokens: 0, output_tokens: 0 });
}

/** Over what the wire had, so that counts nobody knows survive. The details are required objects. */
export function encodeUsage({ extensions, ...usage }: CanonicalUsage): JsonObject {
  const raw = objectOf(extensions?.['openai-responses']);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const read = Math.min(Math.max(0, usage.cache_read_tokens ?? 0), input);
  const written = Math.min(Math.max(0, usage.cache_creation_tokens ?? 0), input - read);
  const reasoning = Math.min(Math.max(0, usage.reasoning_tokens ?? 0), output);
  return {
    ...raw,
    input_tokens: input,
    input_tokens_details: { ...objectOf(raw['input_tokens_details']), cached_tokens: read, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { ...objectOf(raw['output_tokens_details']), reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}
