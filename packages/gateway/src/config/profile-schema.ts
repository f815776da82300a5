import type { ProviderProfile } from '@sluice/core';
import { z } from 'zod';

const flag = z.boolean();
const count = z.int().min(1);

const pattern = z
  .string()
  .refine((text) => compiled(text) !== undefined, { error: 'must be a regular expression' })
  .transform((text) => compiled(text) ?? /(?:)/)
  .meta({ format: 'regex' });

function compiled(text: string): RegExp | undefined {
  try {
    return new RegExp(text);
  } catch {
    return undefined;
  }
}

const names = z.strictObject({ pattern, max: count });

/** A field of `ProviderProfile` each; the type keeps the two together. */
const FIELDS = {
  max_tokens_field: z.enum(['max_completion_tokens', 'max_tokens']),
  stream_usage: flag,
  reasoning_field: z.enum(['reasoning_content', 'reasoning', 'parts', 'none']),
  reasoning_replay: z.enum(['never', 'as_sent', 'tool_turns', 'always']),
  reasoning_additive: flag,
  encrypted_reasoning: flag,
  effort_values: z.array(z.string()),
  thinking_field: z.enum(['reasoning_effort', 'thinking', 'reasoning', 'enable_thinking']),
  cache_breakpoints: flag,
  cache_control: flag,
  web_search_options: flag,
  prefix: flag,
  audio_text: flag,
  supports_sampling: flag,
  supports_stop: flag,
  system_role: z.enum(['system', 'developer']),
  strict_alternation: flag,
  content_parts: flag,
  tool_images: flag,
  custom_tools: flag,
  allowed_tools: flag,
  json_schema: flag,
  max_stop: count,
  max_tools: count,
  official: flag,
  thinking_mode: z.enum(['adaptive', 'budget', 'none', 'as_sent']),
  accepts_budget: flag,
  rejects_sampling: flag,
  prefill: flag,
  mid_system: flag,
  max_output_tokens: count,
  structured_outputs: flag,
  temperature_xor_top_p: flag,
  rejects_disabled_above_high: flag,
  anthropic_version: z.iso.date(),
  gemini3: flag,
  thinking_budgets: z.strictObject({ least: z.int(), most: z.int(), off: flag }),
  json_schema_params: flag,
  function_call_ids: flag,
  tools_with_json_output: flag,
  builtin_with_functions: flag,
  tool_name: names,
  tool_id: names,
} satisfies { [K in keyof Required<ProviderProfile>]: z.ZodType<Required<ProviderProfile>[K]> };

const optional = <T extends z.ZodType>(schema: T): z.ZodExactOptional<T> => schema.exactOptional();

/** What the operator knows better of a provider. */
export const profileSchema: z.ZodType<Partial<ProviderProfile>> = z
  .strictObject(
    // The keys and types of FIELDS, each of them optional.
    Object.fromEntries(Object.entries(FIELDS).map(([name, schema]) => [name, optional(schema)])) as {
      [K in keyof typeof FIELDS]: z.ZodExactOptional<(typeof FIELDS)[K]>;
    },
  )
  .describe('What the provider accepts, where that differs from what is known of it.');
