/** The schema of the configuration file, as a validator and as JSON Schema for editors. */

import { z } from 'zod';
import { findProxyRangeFault } from '../http/client-address.ts';
import { BUDGET_PATTERN, parseBudget } from '../keys/amounts.ts';
import { isDate, KEY_SETTINGS, KeySettingError, type KeySettings, NO_TERMS, readKeyName, readTerms } from '../keys/settings.ts';
import { readAddress } from '../store/postgres/address.ts';
import {
  CACHE_SCOPES,
  type CacheOptions,
  type CaptureOptions,
  DURABILITIES,
  type IdempotencyOptions,
  type KeyOptions,
  LIMITS,
  type Limits,
  type LimitsStoreOptions,
  type ListenAddress,
  LOG_LEVELS,
  MODELS_IN_ANSWER,
  type ModelOptions,
  ON_BREAK,
  type Options,
  PRICE_FIELDS,
  type PriceOptions,
  pickLimits,
  RESPONSE_STORES,
  type RecoveryOptions,
  type ResponsesOptions,
  type RuleOptions,
  STRATEGIES,
  type TagBudget,
} from './options.ts';
import { providers } from './schema-providers.ts';
import {
  createLimit,
  DURATION_PATTERN,
  duration,
  durationOrOff,
  HEADER_NAME,
  KEY,
  key,
  listKeys,
  namePattern,
  oneOrMore,
  readDuration,
  size,
} from './schema-values.ts';
import { Secret } from './secrets.ts';

/** Validates a value as configuration. */
export function parseOptions(value: unknown): { options: Options } | { issues: readonly Issue[] } {
  const { success, data, error } = SCHEMA.safeParse(value);
  return success ? { options: data } : { issues: error.issues };
}

/** A validation error of zod. */
export type Issue = z.core.$ZodIssue;

/** The configuration as JSON Schema. Numbers and booleans may also be references. */
export function buildJsonSchema(): z.core.JSONSchema.BaseSchema {
  const schema = z.toJSONSchema(SCHEMA, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema: node }) => {
      const { type, description, default: preset, ...rest } = node;
      if ((type !== 'number' && type !== 'integer' && type !== 'boolean') || 'const' in node) return;
      for (const name of Object.keys(node)) delete node[name as keyof typeof node]; // zod passes a plain object
      Object.assign(node, { anyOf: [{ type, ...rest }, { $ref: '#/$defs/reference' }] }, description && { description });
      if (preset !== undefined) node.default = preset;
    },
  });
  return { ...schema, $defs: { reference: REFERENCE } };
}

/** Text that refers to a variable. */
const REFERENCE = {
  type: 'string',
  pattern: '^(\\$\\{[A-Za-z_]\\w*\\}|env[:.][A-Za-z_]\\w*|os\\.environ/[A-Za-z_]\\w*)$',
} as const;

/** The content of `sluice.schema.json`, which editors use to check a configuration. */
export function schemaFile(): string {
  const { $schema, ...schema } = buildJsonSchema();
  return formatSchema({ $schema, $id: SCHEMA_ID, title: 'Configuration of the Sluice gateway', ...schema });
}

/** A schema as the text of its file. */
export const formatSchema = (schema: object): string => `${JSON.stringify(schema, null, 2).replace(FLAT_LIST, joinList)}\n`;

const SCHEMA_ID = 'https://unpkg.com/sluice/sluice.schema.json';

const LINE_WIDTH = 130;

/** A list of scalars, printed on one line if it fits, as the formatter of this repository does. */
const FLAT_LIST = /^(.*)\[\n([^[\]{}]*)\n *\](,?)$/gm;

function joinList(list: string, head: string, items: string, comma: string): string {
  const line = `${head}[${items.trim().replace(/,\n */g, ', ')}]${comma}`;
  return line.length <= LINE_WIDTH ? line : list;
}

const DEFAULT_HOST = '127.0.0.1';

const DEFAULT_PORT = 4141;

const LIMIT_KEYS = listKeys(LIMITS);

const limits: z.ZodType<Limits, unknown> = z
  .strictObject(Object.fromEntries(LIMIT_KEYS.map((name) => [LIMITS[name].name, createLimit(LIMITS[name])])))
  .transform((values) => pickLimits(LIMIT_KEYS, values) as Limits) // every limit has a default
  .prefault({})
  .describe('Limits and timeouts. Durations: 500ms, 5s, 2m, 1h. Sizes: 64KiB, 32MiB.');

const MAX_RULES = 100;

const target = z
  .union(
    [
      z.string().min(1),
      z.strictObject({
        target: z.string().min(1).describe('provider/model, or another model name.'),
        weight: z
          .number()
          .gt(0)
          .max(1000)
          .describe('Share of the requests, compared with the other targets. Default: 1.')
          .exactOptional(),
      }),
    ],
    { error: 'must be "provider/model", or a map with target and weight' },
  )
  .transform((value) => (typeof value === 'string' ? { target: value } : value));

const targets = z.array(target).min(1);

const model: z.ZodType<ModelOptions, unknown> = z
  .union(
    [
      z.string().min(1),
      targets,
      z.strictObject({
        targets: targets.describe('Where requests for this name may go.'),
        strategy: z
          .enum(STRATEGIES)
          .describe(
            'How the target is chosen: order (one after the other), weighted (by weights), least_busy (fewest running requests), fastest (shortest time to the first token), cheapest (lowest price). Default: order, or weighted if there are weights.',
          )
          .exactOptional(),
      }),
    ],
    { error: 'must be "provider/model", a list of these, or a map with targets and strategy' },
  )
  .transform((value): ModelOptions => {
    if (typeof value === 'string') return { form: 'text', strategy: 'order', targets: [{ target: value, weight: 1 }] };
    const listed = Array.isArray(value) ? { targets: value } : value;
    const hasWeights = listed.targets.some(({ weight }) => weight !== undefined);
    return {
      form: Array.isArray(value) ? 'list' : 'map',
      strategy: ('strategy' in listed ? listed.strategy : undefined) ?? (hasWeights ? 'weighted' : 'order'),
      targets: listed.targets.map(({ target: name, weight = 1 }) => ({ target: name, weight })),
    };
  });

const models = z
  .record(z.string().min(1), model)
  .prefault({})
  .describe(
    'Model names for clients: a name or a pattern with one *, and the provider/model it maps to. A list is tried in order.',
  );

const conditions = z
  .strictObject({
    model: oneOrMore(namePattern).describe('Requested model names, with at most one *.').exactOptional(),
    background: z
      .boolean()
      .describe('Whether a small model for side tasks is requested, as agents do: its name contains "haiku".')
      .exactOptional(),
    images: z.boolean().describe('Whether the request has images.').exactOptional(),
    tools: z.boolean().describe('Whether the request has tools.').exactOptional(),
    thinking: z.boolean().describe('Whether the request enables thinking.').exactOptional(),
    web_search: z.boolean().describe("Whether the request has the provider's web search.").exactOptional(),
    input_tokens_above: z.int().min(1).describe('Estimated input tokens that the request exceeds.').exactOptional(),
    header: z
      .record(z.string().regex(HEADER_NAME, { error: 'is not a valid header name' }), namePattern)
      .transform((values) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name.toLowerCase(), value])))
      .describe('Values of request headers, with at most one *.')
      .exactOptional(),
    tag: oneOrMore(z.string().min(1)).describe('Tags of the client key, such as team=a; one of them is needed.').exactOptional(),
  })
  .refine((when) => Object.keys(when).length > 0, { error: 'must have at least one condition' });

const rules: z.ZodType<readonly RuleOptions[], unknown> = z
  .array(
    z.strictObject({
      name: z
        .string()
        .regex(/^[\w.-]{1,64}$/, { error: 'must have 1 to 64 letters, digits, ".", "_" and "-"' })
        .describe('Shown in the log and in x-sluice-rule.')
        .exactOptional(),
      when: conditions.describe('All of these conditions must be met.'),
      use: z.string().min(1).describe('The model name that is used instead: provider/model, or a name of models.'),
    }),
  )
  .max(MAX_RULES)
  .prefault([])
  .describe('Rules that send chat requests to another model by what they contain. The first that matches counts.');

const AFFINITY_ERROR = 'must be a duration such as 5m or 1h, or off';

const affinity: z.ZodType<number | null, unknown> = z
  .string({ error: AFFINITY_ERROR })
  .regex(new RegExp(`${DURATION_PATTERN}|^off$`), { error: AFFINITY_ERROR })
  .prefault('5m')
  .transform((text) => (text === 'off' ? null : (readDuration(text) ?? null)))
  .describe(
    'How long a conversation stays with the target and key that served it last, so that its prompt cache is used; or off. Only where targets share requests.',
  );

const PRICE_ERROR = 'must be US dollars per million tokens, at most 1000000 and with at most six decimals: 0.075';

const amount = z
  .union([z.number(), z.string()], { error: PRICE_ERROR })
  .transform(String)
  .refine((text) => /^\d{1,7}(\.\d{1,6})?$/.test(text) && Number(text) <= 1_000_000, { error: PRICE_ERROR });

const PRICE_TEXTS = {
  input: 'Input tokens.',
  cached_input: 'Input tokens that are read from a cache. Default: as input.',
  cache_write: 'Input tokens that are written to a cache. Default: as input.',
  cache_write_1h: 'The same, when they are kept for an hour. Default: as cache_write.',
  input_audio: 'Audio in the input. Default: as input.',
  output: 'Output tokens.',
  reasoning: 'Reasoning, where it is not charged as output.',
  output_audio: 'Audio in the output. Default: as output.',
} as const satisfies Record<(typeof PRICE_FIELDS)[number], string>;

const optionalPrices = Object.fromEntries(
  PRICE_FIELDS.filter((name) => name !== 'input').map((name) => [name, amount.describe(PRICE_TEXTS[name]).exactOptional()]),
);

const price: z.ZodType<PriceOptions, unknown> = z.union(
  [z.literal('free'), z.strictObject({ input: amount.describe(PRICE_TEXTS.input), ...optionalPrices })],
  { error: 'must be a map of prices, or free' },
);

const prices = z
  .record(
    z.string().regex(/^[^*/]+\/[^*]*\*?[^*]*$/, { error: 'must be provider/model, with at most one * in the model' }),
    price,
  )
  .prefault({})
  .describe('Prices by provider/model, in US dollars per million tokens, instead of those that Sluice knows.');

const listen = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .prefault(DEFAULT_HOST)
      .describe('Address to listen on. Any address other than loopback requires auth.keys.'),
    port: z.int().min(0).max(65_535).prefault(DEFAULT_PORT),
    tls: z
      .strictObject({
        cert: z.string().min(1).describe('Path of the certificate with its chain (PEM).'),
        key: z.string().min(1).describe('Path of its private key (PEM).'),
      })
      .describe('Serve HTTPS. Both files are read again when they change.')
      .exactOptional(),
  })
  .prefault({})
  .describe('Listening address.');

const trustedProxies = z
  .array(
    z.string().superRefine((text, context) => {
      const fault = findProxyRangeFault(text);
      if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
    }),
  )
  .prefault([])
  .describe('Addresses and ranges of the proxies in front, whose X-Forwarded-* and Forwarded headers are read.');
const texts = z.union([z.string(), z.array(z.string())], { error: 'must be a text, or a list of texts' });

const amountOrCount = z.union([z.number(), z.string()], { error: 'must be a number such as 60 or 100k' });

const CLIENT_KEY_ERROR = 'must be a key, or a map with name, key and what the key allows';

const clientKey = z
  .union(
    [
      z.string(),
      z.strictObject({
        name: z.string().describe('Name of the key, for usage, logs and captures. A stable name is advised.').exactOptional(),
        key: z.string().describe(`The key. Use a reference such as \${ALICE_KEY} instead of the key itself.`),
        models: texts.describe('Models that the key allows, with at most one *: gpt-*, openai/*. Default: all.').exactOptional(),
        budget: texts.describe('How much may be spent: 20usd/month; periods are day, week, month and total.').exactOptional(),
        rpm: amountOrCount.describe('Requests per minute: 60.').exactOptional(),
        tpm: amountOrCount.describe('Tokens per minute: 100k.').exactOptional(),
        concurrency: amountOrCount.describe('Requests at the same time: 8.').exactOptional(),
        expires: z.string().describe('When the key ends: 2027-01-31 or 2027-01-31T08:00Z.').exactOptional(),
        ip: texts.describe('Addresses and ranges that the key may be used from: 10.0.0.0/8.').exactOptional(),
        tags: texts.describe('Added to the tags of every request: team=a.').exactOptional(),
      }),
    ],
    { error: CLIENT_KEY_ERROR },
  )
  .transform((value, context): KeyOptions => {
    const { key: text, name, ...settings } = typeof value === 'string' ? { key: value } : value;
    const fail = (setting: string, message: string): void =>
      void context.addIssue({ code: 'custom', message, path: typeof value === 'string' ? [] : [setting] });
    if (!KEY.test(text.trim())) fail('key', 'must be printable ASCII without spaces');
    return {
      key: new Secret(text.trim()),
      ...(name !== undefined && { name: readSetting(() => readKeyName(name), name, fail) }),
      terms: readClientTerms(settings, fail),
    };
  });

/** Reads one setting after the other, so that all errors are reported. */
function readClientTerms(settings: KeySettings, fail: (setting: string, message: string) => void): KeyOptions['terms'] {
  // The file does not show when it was written, so a duration would begin again with every start.
  if (typeof settings.expires === 'string' && !isDate(settings.expires)) {
    fail('expires', 'must be a time such as 2027-01-31 or 2027-01-31T08:00Z; durations work with "sluice keys create"');
    return NO_TERMS;
  }
  return KEY_SETTINGS.reduce(
    (terms, setting) => readSetting(() => readTerms(pickSetting(settings, setting), 0, terms), terms, fail),
    NO_TERMS,
  );
}

const pickSetting = (settings: KeySettings, name: (typeof KEY_SETTINGS)[number]): KeySettings =>
  settings[name] === undefined ? {} : { [name]: settings[name] };

function readSetting<Value>(read: () => Value, otherwise: Value, fail: (setting: string, message: string) => void): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof KeySettingError)) throw error;
    fail(error.setting, error.message);
    return otherwise;
  }
}

const auth = z
  .strictObject({
    keys: z.array(clientKey).min(1).describe('Keys that clients may use: texts, or maps with a name and limits.').default([]),
    pepper_file: z
      .string()
      .min(1)
      .describe('File with the pepper of keys that are created by "sluice keys create". Default: pepper in the data folder.')
      .exactOptional(),
  })
  .prefault({})
  .describe('Client authentication. Without keys, every process on this machine may use the gateway.');

const admin = z
  .strictObject({
    key: key
      .describe(`Key of the admin API. Use a reference such as \${SLUICE_ADMIN_KEY} instead of the key itself.`)
      .exactOptional(),
  })
  .prefault({})
  .describe('Access to /admin. Without a key, it is open to programs on this machine as long as there are no client keys.');

const ADDRESS_ERROR = 'must be host:port, such as 127.0.0.1:9464 or [::1]:9464';

/** `host:port`; an IPv6 address is in brackets. */
const address = z
  .string({ error: ADDRESS_ERROR })
  .regex(/^(?:\[[\da-fA-F:.]+\]|[^\s:[\]]+):\d{1,5}$/, { error: ADDRESS_ERROR })
  .transform((text): ListenAddress => {
    const colon = text.lastIndexOf(':');
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= 65_535, { error: ADDRESS_ERROR });

const metrics = z
  .strictObject({
    key: key.describe('Key of /metrics.').exactOptional(),
    listen: address.describe('host:port of a listener that serves /metrics alone.').exactOptional(),
  })
  .prefault({})
  .describe('Access to /metrics.');

const log = z.strictObject({ level: z.enum(LOG_LEVELS).prefault('info') }).prefault({});

const reset = z
  .boolean()
  .prefault(false)
  .describe(
    'Confirms that a reload may remove all client keys or the last provider. Delete it after that reload: as long as it is set, such reloads are not rejected.',
  );

const RETENTION_ERROR = 'must be a number of days such as 400d, or forever';

const retention = z
  .string({ error: RETENTION_ERROR })
  .regex(/^(?:[1-9]\d{0,4}d|forever)$/, { error: RETENTION_ERROR })
  .prefault('400d')
  .transform((text) => (text === 'forever' ? null : Number.parseInt(text, 10)))
  .describe('How long recorded exchanges are kept: 400d, or forever. Hourly sums are kept for ever.');

const CAPTURE_RETENTION_ERROR = 'must be a number of days or hours such as 7d or 12h';

const createRetention = (preset: string) =>
  z
    .string({ error: CAPTURE_RETENTION_ERROR })
    .regex(/^[1-9]\d{0,4}[dh]$/, { error: CAPTURE_RETENTION_ERROR })
    .prefault(preset)
    .transform((text) => Number.parseInt(text, 10) * (text.endsWith('d') ? 24 : 1) * 3_600_000);

const responses: z.ZodType<ResponsesOptions, unknown> = z
  .strictObject({
    store: z
      .enum(RESPONSE_STORES, { error: 'must be memory, disk or off' })
      .prefault('memory')
      .describe('Where responses are kept for previous_response_id, conversations and background: memory, disk, or off.'),
    ttl: createRetention('1h').describe('How long responses are kept in memory after their last use: 1h, 2d.'),
    retention: createRetention('30d').describe('How long responses are kept on disk after their last use: 30d.'),
    max_bytes: size.prefault('256MiB').describe('Size of all kept responses; the least recently used are removed first.'),
    max_bytes_per_key: size.prefault('32MiB').describe('The same for the responses of one client key.'),
    websocket: z
      .boolean({ error: 'must be true or false' })
      .prefault(true)
      .describe('Whether clients may use Responses over WebSocket at /v1/responses. It needs a store.'),
  })
  .transform(({ store, ttl, retention: kept, max_bytes: maxBytes, max_bytes_per_key: maxBytesPerKey, websocket }) => ({
    store,
    ttlMs: ttl,
    retentionMs: kept,
    maxBytes,
    maxBytesPerKey,
    websocket,
  }))
  .prefault({})
  .describe('Responses that clients can continue. They contain prompts and responses.');

const namePatterns = z.array(namePattern).prefault([]);

const capture: z.ZodType<CaptureOptions, unknown> = z
  .strictObject({
    ring: z
      .enum(['on', 'off'], { error: 'must be on or off' })
      .prefault('on')
      .describe('Keep the last 100 exchanges with bodies in memory. Only without client keys.'),
    models: namePatterns.describe('Store exchanges of these models: names of clients or provider/model, with at most one *.'),
    providers: namePatterns.describe('Store exchanges with these providers.'),
    keys: namePatterns.describe('Store exchanges of the client keys with these names.'),
    retention: createRetention('7d').describe('How long stored exchanges are kept: 7d, 12h.'),
    max_bytes: size.prefault('1GB').describe('Size of all stored exchanges; the oldest are deleted first.'),
    exchange_bytes: size.prefault('8MB').describe('Size of one stored exchange; the rest of a longer one is dropped.'),
  })
  .transform(({ ring, retention: retentionMs, max_bytes: maxBytes, exchange_bytes: exchangeBytes, ...names }) => ({
    ring: ring === 'on',
    retentionMs,
    maxBytes,
    exchangeBytes,
    ...names,
  }))
  .prefault({})
  .describe('Which exchanges are kept with their bodies. They contain prompts and responses.');

const BUDGET_ERROR = 'must be US dollars and a period: 20usd/day, 100usd/week, 0.50usd/month or 1000usd/total';

const tag = z
  .string()
  .regex(/^[^\s"\\,[\]\p{Cc}]{1,64}$/u, { error: 'must be one tag such as team=a, without spaces, commas and quotes' });

const budget = z
  .string({ error: BUDGET_ERROR })
  .regex(BUDGET_PATTERN, { error: BUDGET_ERROR })
  .transform((text, context) => {
    const read = parseBudget(text);
    if (!read) context.addIssue({ code: 'custom', message: BUDGET_ERROR });
    return read ?? z.NEVER;
  });

const budgets: z.ZodType<readonly TagBudget[], unknown> = z
  .array(
    z.strictObject({
      tag: tag.describe('All requests with this tag, from their key or from x-sluice-tags, share the budget.'),
      limit: budget.describe('US dollars and a period: 20usd/day, 100usd/week, 300usd/month, 1000usd/total.'),
    }),
  )
  .prefault([])
  .describe('How much the requests of a tag may cost. A request that could exceed a budget is refused.');

const timeZone = z
  .string()
  .refine(isTimeZone, { error: 'must be an IANA time zone such as Europe/Berlin, or UTC' })
  .prefault('UTC')
  .describe('Time zone of the days, weeks and months of budgets: an IANA name such as Europe/Berlin. Weeks begin on Monday.');

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    // Offsets such as +02:00 have no summer time, and depend on the version of Node.
    return /^[A-Za-z]/.test(name);
  } catch {
    return false;
  }
}

const idempotency: z.ZodType<IdempotencyOptions | undefined, unknown> = z
  .union(
    [
      z.literal('off'),
      z.strictObject({
        ttl: duration.prefault('24h').describe('How long a response is kept after its end.'),
        max_bytes: size
          .prefault('64MiB')
          .describe('Size of all responses in memory; one of them may take an eighth. The oldest are dropped first.'),
      }),
    ],
    { error: 'must be off, or an object with ttl and max_bytes' },
  )
  .transform((value) => (value === 'off' ? undefined : { ttlMs: value.ttl, maxBytes: value.max_bytes }))
  .prefault({})
  .describe('Requests with the same Idempotency-Key share one response. off: the header is only forwarded.');

const recovery: z.ZodType<RecoveryOptions, unknown> = z
  .strictObject({
    retry_same_target: durationOrOff
      .prefault('off')
      .describe(
        'When another target is available: retry the failed one once first, if the wait (Retry-After or the pause between retries) is at most this long. off: the next target at once.',
      ),
    on_break: z
      .enum(ON_BREAK)
      .prefault('error')
      .describe(
        'When an upstream dies or stalls in the middle of a stream: "error" ends the stream with an error; "continue" lets the next target continue it.',
      ),
    hedge_after: durationOrOff
      .prefault('off')
      .describe(
        'Request a stream from the next target, too, when the first has sent no content for this long. The first content wins; both may be billed.',
      ),
  })
  .transform(({ retry_same_target: retrySameTargetMs, on_break: onBreak, hedge_after: hedgeAfterMs }) => ({
    retrySameTargetMs,
    onBreak,
    hedgeAfterMs,
  }))
  .prefault({})
  .describe('What happens when an upstream fails or is slow.');

const cache: z.ZodType<CacheOptions, unknown> = z
  .strictObject({
    models: namePatterns
      .unwrap()
      .prefault(['*'])
      .describe('Models whose responses are cached: names of clients or provider/model, with at most one *.'),
    ttl: duration.prefault('1h').describe('How long a response is sent again.'),
    max_bytes: size
      .prefault('64MiB')
      .describe('Size of all responses in memory; one of them may take an eighth. The least recently used are dropped first.'),
    scope: z
      .enum(CACHE_SCOPES)
      .prefault('key')
      .describe('key: a client key gets only responses to its own requests. shared: all clients share them.'),
  })
  .transform(({ models: names, ttl, max_bytes, scope }) => ({ models: names, ttlMs: ttl, maxBytes: max_bytes, scope }))
  .describe('Sends the response to an equal chat request again, from memory. Off without this section.');

const store = z
  .string()
  .trim()
  .superRefine((text, context) => {
    try {
      readAddress(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
    }
  })
  .transform((text) => new Secret(text))
  .describe(
    `PostgreSQL database of keys and usage, shared by all nodes: postgres://user:password@host/database. Use a reference such as \${SLUICE_STORE}, because it has a password.`,
  );

const nodeLease = duration
  .refine((ms) => ms >= 1000 && ms <= 600_000, { error: 'must be from 1s to 10m' })
  .prefault('15s')
  .describe(
    'With store: how long after its last heartbeat a node is dead, so that another one closes its requests. All nodes need the same.',
  );

const REDIS_ERROR =
  'must be redis://HOST:PORT or rediss://HOST:PORT, with user, password and database where needed, or "store" or "memory"';

const limitsPlace = z
  .string({ error: REDIS_ERROR })
  .trim()
  .refine((text) => isWord(text) || isRedisUrl(text), { error: REDIS_ERROR })
  .transform((text) => (isWord(text) ? text : new Secret(text)));

const isWord = (text: string): text is 'store' | 'memory' => text === 'store' || text === 'memory';

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname } = new URL(text);
  return /^rediss?:$/.test(protocol) && hostname !== '' && /^(\/\d{0,4})?$/.test(pathname);
}

const limitsStore: z.ZodType<LimitsStoreOptions, unknown> = z
  .preprocess(
    (value) => (typeof value === 'string' ? { url: value } : value),
    z.strictObject({
      url: limitsPlace.describe(
        'redis:// or rediss:// (TLS), store for the PostgreSQL database of store, or memory. Use a reference such as env:REDIS_URL when it has a password.',
      ),
      expected_nodes: z
        .int()
        .min(1)
        .max(1000)
        .prefault(1)
        .describe('How many gateways share the limits. Each uses this part of every limit while the server cannot be used.'),
      prefix: z
        .string()
        .regex(/^[\w:.-]{1,64}$/, { error: 'must have 1 to 64 letters, digits, ":", ".", "_" and "-"' })
        .prefault('sluice:')
        .describe('Before the name of every key.'),
      timeout: duration.describe('How long one call may take. Default: 50ms with Redis, 250ms with PostgreSQL.').exactOptional(),
      connect_timeout: duration
        .describe('How long a connection may take. Default: 200ms with Redis, 1s with PostgreSQL.')
        .exactOptional(),
    }),
  )
  .transform(({ url, expected_nodes: nodes, prefix, timeout, connect_timeout }) => ({
    url,
    nodes,
    prefix,
    timeoutMs: timeout ?? (url === 'store' ? 250 : 50),
    connectTimeoutMs: connect_timeout ?? (url === 'store' ? 1000 : 200),
  }))
  .describe(
    'Where limits are kept that several gateways share: the URL of Redis or Valkey, store (the PostgreSQL database of store), or memory (of each gateway alone); or a map with url. Default: store if there is one, else memory.',
  );

/** Limits in the database of the store, unless something else is configured. */
export const DATABASE_LIMITS: LimitsStoreOptions = limitsStore.parse('store');

const SCHEMA: z.ZodType<Options & { $schema?: string }, unknown> = z.strictObject({
  $schema: z.string().exactOptional(),
  listen,
  trusted_proxies: trustedProxies,
  auth,
  admin,
  metrics,
  providers,
  models,
  rules,
  affinity,
  model_in_answer: z
    .enum(MODELS_IN_ANSWER)
    .prefault('requested')
    .describe(
      'The model name in responses: the one that the client requested, or the one that the upstream reports. In the same protocol, only an alias or a prefix replaces the latter.',
    ),
  prices,
  default_price: price.describe('The price of models without a known one. Without it, their cost is unknown.').exactOptional(),
  budgets,
  time_zone: timeZone,
  limits_store: limitsStore.exactOptional(),
  data: z
    .string()
    .min(1)
    .describe('Folder for usage data, or memory. Default: a folder of the user, such as ~/.local/share/sluice.')
    .exactOptional(),
  store: store.exactOptional(),
  config: z
    .enum(['store'])
    .describe(
      'store: the configuration is in the database of "store", and this file has the settings of this node: listen, data, store and auth.pepper_file.',
    )
    .exactOptional(),
  node_lease: nodeLease,
  durability: z
    .enum(DURABILITIES)
    .prefault('strict')
    .describe('strict: a client receives the end of its response when its usage is on disk. relaxed: it does not wait.'),
  retention,
  capture,
  responses,
  idempotency,
  recovery,
  cache: cache.exactOptional(),
  limits,
  log,
  reset,
});
