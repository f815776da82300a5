/** The schema of `providers`. */

import { PROTOCOLS, type ProtocolId, type ProviderProfile } from '@sluice/core';
import { PROTOCOL_ALIASES } from '@sluice/core/engine';
import { z } from 'zod';
import { findUrlFault } from '../providers/base-url.ts';
import { findProxyFault } from './network.ts';
import { LIMITS, ON_MALFORMED, PASSTHROUGH, PROVIDER_LIMITS, type ProviderOptions, pickLimits } from './options.ts';
import { count, duration, flag, HEADER_NAME, key, listKeys } from './schema-values.ts';
import { Secret } from './secrets.ts';

const pattern = z
  .string()
  .refine((text) => compileRegex(text) !== undefined, { error: 'must be a valid regular expression' })
  .transform((text) => compileRegex(text) ?? /(?:)/)
  .meta({ format: 'regex' });

function compileRegex(text: string): RegExp | undefined {
  try {
    return new RegExp(text);
  } catch {
    return undefined;
  }
}

const names = z.strictObject({ pattern, max: count });

/** One schema per field of `ProviderProfile`; the type keeps both in step. */
const PROFILE_FIELDS = {
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
  reasons_by_default: flag,
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
  max_tool_uses: count,
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

/** The operator's corrections of a profile. */
const profileSchema: z.ZodType<Partial<ProviderProfile>> = z
  .strictObject(
    // Same keys and types as PROFILE_FIELDS, each optional.
    Object.fromEntries(Object.entries(PROFILE_FIELDS).map(([name, schema]) => [name, optional(schema)])) as {
      [K in keyof typeof PROFILE_FIELDS]: z.ZodExactOptional<(typeof PROFILE_FIELDS)[K]>;
    },
  )
  .describe('Capabilities of the provider that differ from the built-in profile.');

const HEADER_VALUE = /^[\t\x20-\x7e]+$/;

/** Headers of the connection, which the configuration must not set. */
const CONNECTION_HEADERS = /^(host|connection|content-length|transfer-encoding|keep-alive|te|trailer|upgrade|expect|proxy-.*)$/i;

const protocol = z
  .enum([...listKeys(PROTOCOLS), ...listKeys(PROTOCOL_ALIASES)])
  .transform((name): ProtocolId => (Object.hasOwn(PROTOCOL_ALIASES, name) ? resolveAlias(name) : (name as ProtocolId))) // every other name is an id
  .describe('Protocol of the provider.');

const resolveAlias = (name: string): ProtocolId => PROTOCOL_ALIASES[name as keyof typeof PROTOCOL_ALIASES];

const baseUrl = z.string().superRefine((text, context) => {
  const fault = findUrlFault(text);
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
});

const proxy = z
  .string()
  .superRefine((text, context) => {
    const fault = text === 'direct' ? undefined : findProxyFault(text);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  })
  .transform((text) => new Secret(text));

const headers = z.record(
  z
    .string()
    .regex(HEADER_NAME, { error: 'is not a valid header name' })
    .refine((name) => !CONNECTION_HEADERS.test(name), { error: 'is a connection header and cannot be set' }),
  z
    .string()
    .regex(HEADER_VALUE, { error: 'must be one line of printable ASCII' })
    .transform((text) => new Secret(text)),
);

/** Keys and addresses of one provider. */
const MAX_LISTED = 16;

const settings = z.strictObject({
  extends: z.string().describe('Known provider to take defaults from; by default the one with the same name.').exactOptional(),
  protocol: protocol.exactOptional(),
  base_url: baseUrl.describe('Base URL without the endpoint, for example https://api.example.com/v1.').exactOptional(),
  base_urls: z
    .array(baseUrl)
    .min(1)
    .max(MAX_LISTED)
    .describe('Several base URLs instead of base_url: servers with the same models, which share the requests.')
    .exactOptional(),
  api_key: key.describe(`API key. Use a reference such as \${EXAMPLE_API_KEY} instead of the key itself.`).exactOptional(),
  api_keys: z
    .array(key)
    .min(1)
    .max(MAX_LISTED)
    .describe('Several API keys instead of api_key, which share the requests. A key that is rejected or rate limited rests.')
    .exactOptional(),
  auth: z.enum(['bearer', 'api-key']).describe('How the key is sent; by default as the protocol defines.').exactOptional(),
  headers: headers.describe('Sent with every request.').exactOptional(),
  organization: z.string().min(1).describe('OpenAI-Organization.').exactOptional(),
  project: z.string().min(1).describe('OpenAI-Project.').exactOptional(),
  proxy: proxy
    .describe('Proxy for this provider: http://host:port, or direct. Default: HTTPS_PROXY or HTTP_PROXY of the environment.')
    .exactOptional(),
  ca: z
    .string()
    .min(1)
    .describe('Path of the certificate authorities (PEM) that are trusted for this provider instead of the public ones.')
    .exactOptional(),
  api_version: z.string().min(1).describe('Azure: the dated API version; without it the v1 API is used.').exactOptional(),
  path: z.string().describe('Path between base_url and the endpoint, used unchanged.').exactOptional(),
  profile: profileSchema.exactOptional(),
  repair: z
    .boolean()
    .describe(
      'Repair what violates the protocol in responses to clients of the same protocol; what conforms is passed through. Default: true except for the official vendors.',
    )
    .exactOptional(),
  on_disconnect: z
    .enum(['abort', 'drain'])
    .describe(
      'When a client disconnects early: "abort" cancels the upstream request; "drain" reads the response to its end, so that usage is known. Default: abort.',
    )
    .exactOptional(),
  passthrough: z
    .enum(PASSTHROUGH)
    .describe(
      'Endpoints passed through without conversion: off, known (endpoints that the vendor documents; no stored objects when client keys are set), or all. Default: known.',
    )
    .exactOptional(),
  on_malformed: z
    .enum(ON_MALFORMED)
    .describe(
      'An event of a stream whose data is not JSON: "fail" ends the stream with an error; "skip" leaves it out, so that text may be missing. Default: fail.',
    )
    .exactOptional(),
});

const times = Object.fromEntries(
  PROVIDER_LIMITS.map((key) => [LIMITS[key].name, duration.describe(LIMITS[key].about).exactOptional()]),
);

const provider: z.ZodType<ProviderOptions, unknown> = settings.extend(times).transform((values) => {
  const own = listKeys(settings.shape).filter((name) => Object.hasOwn(values, name));
  return { ...Object.fromEntries(own.map((name) => [name, values[name]])), times: pickLimits(PROVIDER_LIMITS, values) };
});

/** Providers by their names. */
export const providers = z
  .record(
    z.string().regex(/^[A-Za-z0-9][\w.-]{0,63}$/, { error: 'must contain only letters, digits, ".", "_" and "-"' }),
    z
      .union([z.literal(false), z.null(), provider], { error: 'must be a map of settings, or false' })
      .transform((value) => value ?? {}),
  )
  .prefault({})
  .describe('Upstream providers. Known providers whose API key is in the environment need no entry; false disables one.');
