import { PROTOCOL_ALIASES, PROTOCOLS, type ProtocolId } from '@sluice/core';
import { z } from 'zod';
import { faultOf } from '../providers/base-url.ts';
import { keyed, LIMITS, type LimitRow, type Limits, PROVIDER_LIMITS } from './limits.ts';
import { LOG_LEVELS, type Options, PASSTHROUGH, type ProviderOptions } from './options.ts';
import { profileSchema } from './profile-schema.ts';
import { Secret } from './secret.ts';
import { DURATION_PATTERN, readDuration, readSize, SIZE_PATTERN } from './units.ts';

const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_PORT = 4141;

/** What a header can carry as one word. */
const KEY = /^[\x21-\x7e]+$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]+$/;
/** Headers that belong to the connection, and are not the operator's to set. */
const CONNECTION_HEADERS = /^(host|connection|content-length|transfer-encoding|keep-alive|te|trailer|upgrade|expect|proxy-.*)$/i;

const key = z
  .string()
  .trim()
  .regex(KEY, { error: 'must be one word of printable ASCII' })
  .transform((text) => new Secret(text));

const duration = quantity('must be a duration: 500ms, 5s, 2m, 1h', DURATION_PATTERN, readDuration);
const size = quantity('must be a size: 64KiB, 32MiB', SIZE_PATTERN, readSize);

/** A number, or text with a unit. */
function quantity(error: string, pattern: string, read: (text: string) => number | undefined) {
  return z
    .union([z.number(), z.string().regex(new RegExp(pattern), { error })], { error })
    .transform((value) => read(String(value)) ?? 0)
    .refine((amount) => amount > 0, { error: 'must be more than nothing' });
}

type Limit = z.ZodPrefault<z.ZodType<number, string | number>>;

function limit(row: LimitRow): Limit {
  switch (row.kind) {
    case 'duration':
      return duration.prefault(row.preset).describe(row.about);
    case 'bytes':
      return size.prefault(row.preset).describe(row.about);
    case 'count':
      return z
        .int()
        .min(row.least ?? 1)
        .prefault(row.preset)
        .describe(row.about);
    case 'share':
      return z.number().gt(0).max(1).prefault(row.preset).describe(row.about);
    default:
      return row satisfies never;
  }
}

const LIMIT_KEYS = listKeys(LIMITS);

const limits: z.ZodType<Limits, unknown> = z
  .strictObject(Object.fromEntries(LIMIT_KEYS.map((name) => [LIMITS[name].name, limit(LIMITS[name])])))
  .transform((values) => keyed(LIMIT_KEYS, values) as Limits) // each has a default
  .prefault({})
  .describe('What the gateway bears. Durations: 500ms, 5s, 2m, 1h. Sizes: 64KiB, 32MiB.');

const protocol = z
  .enum([...listKeys(PROTOCOLS), ...listKeys(PROTOCOL_ALIASES)])
  .transform((name): ProtocolId => (Object.hasOwn(PROTOCOL_ALIASES, name) ? aliased(name) : (name as ProtocolId))) // one of the two
  .describe('The language it speaks.');

const aliased = (name: string): ProtocolId => PROTOCOL_ALIASES[name as keyof typeof PROTOCOL_ALIASES];

function listKeys<K extends string>(record: Readonly<Record<K, unknown>>): K[] {
  return Object.keys(record) as K[]; // a literal has no others
}

const baseUrl = z.string().superRefine((text, context) => {
  const fault = faultOf(text);
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
});

const headers = z.record(
  z
    .string()
    .regex(HEADER_NAME, { error: 'is not the name of a header' })
    .refine((name) => !CONNECTION_HEADERS.test(name), { error: 'is a header of the connection and cannot be set' }),
  z
    .string()
    .regex(HEADER_VALUE, { error: 'must be one line of printable ASCII' })
    .transform((text) => new Secret(text)),
);

const settings = z.strictObject({
  extends: z.string().describe('The known provider it is like; by default the one of the same name.').exactOptional(),
  protocol: protocol.exactOptional(),
  base_url: baseUrl.describe('Its address up to the endpoint, for example https://api.example.com/v1.').exactOptional(),
  api_key: key.describe(`Better a reference, such as \${EXAMPLE_API_KEY}, than the key itself.`).exactOptional(),
  auth: z.enum(['bearer', 'api-key']).describe('How the key is sent; by default as the protocol does.').exactOptional(),
  headers: headers.describe('Sent with every request.').exactOptional(),
  organization: z.string().min(1).describe('OpenAI-Organization.').exactOptional(),
  project: z.string().min(1).describe('OpenAI-Project.').exactOptional(),
  api_version: z.string().min(1).describe('Azure: the dated version; without it the v1 API is used.').exactOptional(),
  path: z.string().describe('What stands between base_url and the endpoint; nothing is added to it.').exactOptional(),
  profile: profileSchema.exactOptional(),
  repair: z
    .boolean()
    .describe(
      'Reads and writes answers anew when client and upstream speak the same protocol. Default: for all but the official vendors.',
    )
    .exactOptional(),
  on_disconnect: z
    .enum(['abort', 'drain'])
    .describe(
      'When a client leaves before its answer is whole: abort calls the upstream off, drain lets it come to its end, so that what it used is known. Default: abort.',
    )
    .exactOptional(),
  passthrough: z
    .enum(PASSTHROUGH)
    .describe(
      'Endpoints that are passed on without conversion: off, known (those that the vendor documents; no stored objects when client keys are set), or all. Default: known.',
    )
    .exactOptional(),
});

const times = Object.fromEntries(
  PROVIDER_LIMITS.map((key) => [LIMITS[key].name, duration.describe(LIMITS[key].about).exactOptional()]),
);

const provider: z.ZodType<ProviderOptions, unknown> = settings.extend(times).transform((values) => {
  const own = listKeys(settings.shape).filter((name) => Object.hasOwn(values, name));
  return { ...Object.fromEntries(own.map((name) => [name, values[name]])), times: keyed(PROVIDER_LIMITS, values) };
});

const providers = z
  .record(
    z.string().regex(/^[A-Za-z0-9][\w.-]{0,63}$/, { error: 'must be letters, digits, ".", "_" and "-"' }),
    z
      .union([z.literal(false), z.null(), provider], { error: 'must be a map of settings, or false' })
      .transform((value) => value ?? {}),
  )
  .prefault({})
  .describe('Who answers. Known providers whose key is in the environment need no entry; false switches one off.');

const models = z
  .record(
    z.string().min(1),
    z
      .union([z.string().min(1), z.array(z.string().min(1)).min(1)], { error: 'must be "provider/model", or a list of these' })
      .transform((value): readonly string[] => [value].flat()),
  )
  .prefault({})
  .describe(
    'What clients may ask for: a name or a pattern with one *, and the provider/model it stands for. A list is tried in order.',
  );

const listen = z
  .strictObject({
    host: z.string().min(1).prefault(DEFAULT_HOST).describe('Any other address than a loopback one needs auth.keys.'),
    port: z.int().min(0).max(65_535).prefault(DEFAULT_PORT),
  })
  .prefault({})
  .describe('Where clients connect.');

const auth = z
  .strictObject({ keys: z.array(key).min(1).describe('Who shows one of these is let in.') })
  .default({ keys: [] })
  .describe('Keys of the clients. Without them everybody on this machine is let in.');

const log = z.strictObject({ level: z.enum(LOG_LEVELS).prefault('info') }).prefault({});

const reset = z
  .boolean()
  .prefault(false)
  .describe(
    'Confirms that a reload may remove all client keys or the last provider. Delete it after that reload: as long as it is set, such reloads are not rejected.',
  );

const SCHEMA: z.ZodType<Options & { $schema?: string }, unknown> = z.strictObject({
  $schema: z.string().exactOptional(),
  listen,
  auth,
  providers,
  models,
  limits,
  log,
  reset,
});

export type Issue = z.core.$ZodIssue;

/** The options in a value, or what is wrong with it. */
export function parseOptions(value: unknown): { options: Options } | { issues: readonly Issue[] } {
  const { success, data, error } = SCHEMA.safeParse(value);
  return success ? { options: data } : { issues: error.issues };
}

/** Text that a variable is put in for. */
const REFERENCE = {
  type: 'string',
  pattern: '^(\\$\\{[A-Za-z_]\\w*\\}|env\\.[A-Za-z_]\\w*|os\\.environ/[A-Za-z_]\\w*)$',
} as const;

/** The same as JSON Schema, for editors. A number or a switch may be a reference, too. */
export function jsonSchema(): z.core.JSONSchema.BaseSchema {
  const schema = z.toJSONSchema(SCHEMA, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema: node }) => {
      const { type, description, default: preset, ...rest } = node;
      if ((type !== 'number' && type !== 'integer' && type !== 'boolean') || 'const' in node) return;
      for (const name of Object.keys(node)) delete node[name as keyof typeof node]; // a plain object of zod's
      Object.assign(node, { anyOf: [{ type, ...rest }, { $ref: '#/$defs/reference' }] }, description && { description });
      if (preset !== undefined) node.default = preset;
    },
  });
  return { ...schema, $defs: { reference: REFERENCE } };
}
