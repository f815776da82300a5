/** What the admin API returns: one schema per resource, and the functions that build it. */

import { z } from 'zod';
import type { BudgetStatus } from '../admission/gate.ts';
import type { Capture, CaptureSummary } from '../capture/capture.ts';
import { formatCapture, toSnakeCase } from '../capture/json.ts';
import type { ClientSetup } from '../clients/setup.ts';
import { LIMITS, type LimitKey } from '../config/options.ts';
import { type ConfiguredProvider, listEndpoints } from '../config/providers.ts';
import type { GatewayState, ModelTarget } from '../config/resolve.ts';
import { PERIODS } from '../keys/amounts.ts';
import { BUCKET_NAMES, chooseRates, type Rates } from '../prices/rates.ts';
import type { ModelPrice, PriceTable } from '../prices/table.ts';
import { placeEndpoint } from '../routing/endpoints.ts';
import { type AttemptRow, classify, type ExchangeRow, type SessionSummary, SUM_COLUMNS, type UsageRow } from '../store/index.ts';
import type { PausedTarget } from '../upstream/breaker.ts';
import { AUDIT_ENTRY, KEY } from './keys.ts';

const time = z.iso.datetime().describe('RFC 3339, UTC.');

const count = z.int().min(0);

const text = z.string().nullable();

const number = count.nullable();

/** The columns that exchanges and attempts share. */
const OUTCOME = {
  state: z.enum(['open', 'settled', 'crashed']),
  provider: text,
  upstream_protocol: text,
  model: text.describe('The model as requested from the upstream.'),
  model_answered: text,
  input_tokens: number.describe('All prompt tokens; cached ones are part of it.'),
  cache_read_tokens: number,
  cache_creation_tokens: number,
  output_tokens: number.describe('All generated tokens; reasoning is part of it.'),
  reasoning_tokens: number,
  input_audio_tokens: number,
  output_audio_tokens: number,
  provenance: z.enum(['reported', 'derived', 'estimated', 'uncertain']).nullable(),
  cost_micros: number.describe('Millionths of a US dollar, as far as prices are known; null when none is.'),
  price_version: text,
  connect_ms: number,
  first_byte_ms: number,
  first_token_ms: number,
  total_ms: number,
  http_status: number,
  ending: text,
  error_code: text,
  possibly_billed: z.boolean(),
} satisfies z.ZodRawShape;

/** One exchange. */
export const EXCHANGE = z.strictObject({
  id: z.string(),
  request_id: text.describe('The id that the client got in x-sluice-request-id.'),
  created_at: time,
  settled_at: time.nullable(),
  outcome: z.enum(['live', 'ok', 'aborted', 'error']),
  ...OUTCOME,
  node_id: z.string(),
  key_id: text,
  key_name: text,
  tags: z.array(z.string()),
  session_id: text,
  client_protocol: text,
  client_name: text,
  user_agent: text,
  endpoint: text,
  model_requested: text,
  is_stream: z.boolean(),
  queue_ms: number,
  route_rule: text.describe('The rule of the configuration that chose the model.'),
  affinity: text.describe('Whether the conversation stayed with its target: hit, miss or new.'),
  cache_break: text.describe('The first block of the prompt that changed since the turn before.'),
  attempts: count.describe('Number of attempts.'),
  assumed_micros: count.describe('What attempts without usage may have cost, which only budgets count.'),
  notes_count: count,
  notes: z
    .array(
      z.strictObject({
        code: z.string(),
        path: z.string().optional(),
        feature: z.string().optional(),
        message: z.string().optional(),
      }),
    )
    .describe('The first losses and repairs of the conversion; messages only with a key or session.'),
  rules: z.array(z.string()).describe('Rules that the upstream broke.'),
});

/** Names that the parameter `fields` accepts. */
export const EXCHANGE_FIELDS: readonly string[] = Object.keys(EXCHANGE.shape);

/** An exchange, or the fields of it that were selected. */
export const SELECTED_EXCHANGE = z.union([EXCHANGE, EXCHANGE.partial().required({ id: true })]);

type Exchange = z.infer<typeof EXCHANGE>;

type SelectedExchange = z.infer<typeof SELECTED_EXCHANGE>;

const formatTime = (ms: number): string => new Date(Math.min(MAX_DATE_MS, Math.max(0, ms))).toISOString();

/** The last year with four digits. */
const MAX_DATE_MS = Date.UTC(9999, 11, 31);

const formatOptionalTime = (ms: number | null): string | null => (ms === null ? null : formatTime(ms));

type View = (row: ExchangeRow, mayReadSensitive: boolean) => unknown;

/** Fields that are not columns of the ledger. */
const COMPUTED_FIELDS: ReadonlyMap<string, View> = new Map<keyof Exchange, View>([
  ['created_at', ({ ts }) => formatTime(ts)],
  ['settled_at', ({ settled_ts }) => formatOptionalTime(settled_ts)],
  ['outcome', classify],
  // Messages may quote the request, so not every caller may read them.
  ['notes', ({ notes }, maySee) => (maySee ? notes : notes.map(({ message: _, ...note }) => note))],
]);

/**
 * An exchange of the ledger, or the selected fields and the id of it. Field by field, because a rest of 40 properties
 * takes 18 us, which is 18 ms a page.
 */
export function viewExchange(
  row: ExchangeRow,
  { mayReadSensitive }: { mayReadSensitive: boolean },
  fields?: ReadonlySet<string>,
): Exchange | SelectedExchange {
  const view: Record<string, unknown> = {};
  for (const name of EXCHANGE_FIELDS) {
    if (fields && name !== 'id' && !fields.has(name)) continue;
    const compute = COMPUTED_FIELDS.get(name);
    view[name] = compute ? compute(row, mayReadSensitive) : row[name as keyof ExchangeRow]; // all others are columns
  }
  return view as SelectedExchange; // it has the names of the schema; tests hold the values
}

/** One attempt of an exchange. */
export const ATTEMPT = z.strictObject({
  number: count,
  created_at: time,
  ...OUTCOME,
  upstream_request_id: text,
});

/** An attempt of the ledger. */
export function viewAttempt({ ts, exchange_id: _, boot_id: __, ...rest }: AttemptRow): z.infer<typeof ATTEMPT> {
  return { ...rest, created_at: formatTime(ts) };
}

/** A session: the exchanges that a client marked as one conversation. */
export const SESSION = z.strictObject({
  id: z.string(),
  first_at: time,
  last_at: time,
  exchanges: count,
  input_tokens: count,
  output_tokens: count,
  cost_micros: count,
});

/** A session of the ledger. */
export const viewSession = ({ session_id, first_ts, last_ts, ...sums }: SessionSummary): z.infer<typeof SESSION> => ({
  id: session_id,
  first_at: formatTime(first_ts),
  last_at: formatTime(last_ts),
  ...sums,
});

/** Usage of one group. */
export const USAGE = z.strictObject({
  group: text.describe('The value of `by`; empty where there is none, null for usage by day.'),
  bucket_at: time.nullable().describe('The start of the hour or day; null without a bucket.'),
  // Every sum of the ledger.
  ...(Object.fromEntries(SUM_COLUMNS.map((column) => [column, count])) as Record<(typeof SUM_COLUMNS)[number], typeof count>),
});

/** Usage of the ledger. */
export const viewUsage = ({ ts, ...rest }: UsageRow): z.infer<typeof USAGE> => ({ ...rest, bucket_at: formatOptionalTime(ts) });

/** A budget and what is left of it. */
export const BUDGET = z.strictObject({
  by: z.enum(['key', 'tag']),
  id: z.string().describe('The id of the key, or the tag.'),
  name: z.string().describe('The name of the key, or the tag.'),
  period: z.enum(PERIODS),
  limit_micros: count.describe('Millionths of a US dollar, as the other amounts.'),
  spent_micros: count,
  reserved_micros: count.describe('Held by running requests.'),
  left_micros: count.describe('What new requests can still reserve.'),
  resets_at: time.nullable().describe('When the period ends; null for total.'),
});

/** A budget of the gate. */
export const viewBudget = (status: BudgetStatus): z.infer<typeof BUDGET> => ({
  by: status.by,
  id: status.id,
  name: status.name,
  period: status.period,
  limit_micros: status.limit,
  spent_micros: status.spent,
  reserved_micros: status.reserved,
  left_micros: status.left,
  resets_at: formatOptionalTime(status.resetsAt),
});

/** A provider and its health. */
export const PROVIDER = z.strictObject({
  id: z.string(),
  title: z.string(),
  protocol: z.string(),
  origin: z.string().nullable().describe('Scheme, host and port; null for the built-in demo model.'),
  has_key: z.boolean(),
  key_from: text.describe('The variable that the key was read from, or `file`.'),
  is_official: z.boolean(),
  is_local: z.boolean(),
  passthrough: z.string(),
  health: z.enum(['up', 'paused']).describe('`paused` while a target of it is paused after failures.'),
  endpoints: count.describe('Keys and addresses that share its requests.'),
  paused: z.array(
    z.strictObject({
      model: z.string(),
      endpoint: z.string().nullable().describe('Which of several keys or addresses, such as `key 2`.'),
      remaining_ms: count,
      failures: count,
      reason: z.string(),
    }),
  ),
  recent: z
    .strictObject({ requests: count, errors: count, mean_ms: count.nullable() })
    .describe('Since the start of the hour before.'),
});

/** A provider of the configuration. `paused`: the breakers of its models. `usage`: the sums of the last hours. */
export function viewProvider(
  configured: ConfiguredProvider,
  paused: readonly PausedTarget[],
  usage: UsageRow | undefined,
): z.infer<typeof PROVIDER> {
  const { id, title, provider, origin, key, keyFrom, official, local, passthrough, isDemo } = configured;
  const endpoints = listEndpoints(configured);
  const places = endpoints.map((endpoint) => placeEndpoint(configured, endpoint));
  const own = paused.filter(({ target }) => target.startsWith(`${id}/`));
  const { requests = 0, errors = 0, total_ms = 0 } = usage ?? {};
  return {
    id,
    title,
    protocol: provider.protocol,
    origin: isDemo ? null : origin,
    has_key: key !== undefined,
    key_from: keyFrom ?? null,
    is_official: official,
    is_local: local,
    passthrough,
    health: own.length > 0 ? 'paused' : 'up',
    endpoints: endpoints.length,
    paused: own.map(({ target, ms, failures, reason }) => {
      const place = places.find(({ suffix }) => suffix !== '' && target.endsWith(suffix));
      const model = target.slice(id.length + 1, target.length - (place?.suffix.length ?? 0));
      return { model, endpoint: place?.title.trim().slice(1, -1) ?? null, remaining_ms: ms, failures, reason };
    }),
    recent: { requests, errors, mean_ms: requests > 0 ? Math.round(total_ms / requests) : null },
  };
}

/** What a model costs. */
export const PRICE = z.strictObject({
  source: z.string().describe('configuration, snapshot, default_price, free or unknown.'),
  listed_as: text.describe('The id of the model in the price snapshot.'),
  context_window: number,
  rates: z
    .record(
      z.string(),
      z.strictObject({
        micros_per_million: count,
        tiers: z.array(z.strictObject({ above_input_tokens: count, micros_per_million: count })),
      }),
    )
    .describe('Millionths of a US dollar per million tokens, requests or searches, at this moment.'),
});

/** The price of a model. */
export const viewPrice = ({ source, periods, listedAs, contextWindow }: ModelPrice, now: number): z.infer<typeof PRICE> => ({
  source,
  listed_as: listedAs ?? null,
  context_window: contextWindow ?? null,
  rates: viewRates(chooseRates(periods, now) ?? {}),
});

/** A trillionth of a dollar per unit is a millionth per million units. */
const viewRates = (rates: Rates): z.infer<typeof PRICE>['rates'] =>
  Object.fromEntries(
    BUCKET_NAMES.flatMap((bucket) => {
      const rate = rates[bucket];
      const tiers = rate?.tiers.map(({ above, picos }) => ({ above_input_tokens: above, micros_per_million: picos })) ?? [];
      return rate ? [[bucket, { micros_per_million: rate.base, tiers }]] : [];
    }),
  );

/** A model name of the configuration and its targets. */
export const MODEL = z.strictObject({
  id: z.string(),
  targets: z.array(
    z.strictObject({ provider: z.string(), model: z.string(), max_output_tokens: count.nullable(), price: PRICE }),
  ),
});

/** A model name. `findLimit`: the output limit that is known of a target. */
export const viewModel = (
  id: string,
  targets: readonly ModelTarget[],
  { prices, findLimit, now }: { prices: PriceTable; findLimit: (target: ModelTarget) => number | null; now: number },
): z.infer<typeof MODEL> => ({
  id,
  targets: targets.map((target) => ({
    provider: target.provider.id,
    model: target.model,
    max_output_tokens: findLimit(target),
    price: viewPrice(prices.find(target.provider.id, target.model), now),
  })),
});

/** How a client is pointed at the gateway. */
export const CLIENT = z.strictObject({
  id: z.string(),
  title: z.string(),
  install: text.describe('The command that installs it.'),
  start: text.describe('A line for a shell that starts it once; null for libraries.'),
  setup: z.string().describe('Lines for a shell, or code.'),
});

/** A client of the table. */
export const viewClient = ({ id, title, install, start, setup }: ClientSetup): z.infer<typeof CLIENT> => ({
  id,
  title,
  install: install ?? null,
  start: start ?? null,
  setup,
});

/** The configuration in force, without secrets. */
export const CONFIG = z.strictObject({
  file: text,
  listen: z.strictObject({ host: z.string(), port: count }),
  client_keys: count.describe('Number of client keys of the configuration.'),
  stored_keys: count.describe('Number of stored client keys that are not revoked.'),
  has_admin_key: z.boolean(),
  has_metrics_key: z.boolean(),
  metrics_listen: z.strictObject({ host: z.string(), port: count }).nullable(),
  data_folder: text.describe('Null without one. Whether data outlives the gateway is `is_persistent` of the store.'),
  durability: z.enum(['strict', 'relaxed']),
  retention_days: count.nullable(),
  log_level: z.string(),
  limits: z.record(z.string(), z.number()).describe('Milliseconds, bytes, counts and shares, by their names in the file.'),
  providers: z.array(z.string()),
  models: z.array(z.string()),
  warnings: z.array(z.string()),
});

/** The configuration. Lists every field by name: what is added to the state later may be secret. */
export function viewConfig(
  state: GatewayState,
  { file, folder, storedKeys }: { file: string | null; folder: string | null; storedKeys: number },
): z.infer<typeof CONFIG> {
  const limits = Object.entries(LIMITS) as [LimitKey, (typeof LIMITS)[LimitKey]][];
  return {
    file,
    listen: { host: state.listen.host, port: state.listen.port },
    client_keys: state.keys.length,
    stored_keys: storedKeys,
    has_admin_key: state.adminKey !== undefined,
    has_metrics_key: state.metricsKey !== undefined,
    metrics_listen: state.metricsListen ? { host: state.metricsListen.host, port: state.metricsListen.port } : null,
    data_folder: folder,
    durability: state.durability,
    retention_days: state.retentionDays,
    log_level: state.log.level,
    limits: Object.fromEntries(limits.map(([key, { name }]) => [name, state.limits[key]])),
    providers: [...state.providers.keys()],
    models: [...state.models],
    warnings: state.warnings.map(({ message }) => message),
  };
}

/** An error, as RFC 9457 describes it. */
export const PROBLEM = z.strictObject({
  type: z.literal('about:blank'),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  request_id: z.string(),
  errors: z
    .array(z.strictObject({ field: z.string(), detail: z.string(), start: count.optional(), end: count.optional() }))
    .optional(),
});

/** The schemas that the document names. */
export const NAMED_SCHEMAS = {
  Exchange: EXCHANGE,
  Attempt: ATTEMPT,
  Session: SESSION,
  Usage: USAGE,
  Provider: PROVIDER,
  Price: PRICE,
  Model: MODEL,
  Client: CLIENT,
  Budget: BUDGET,
  Config: CONFIG,
  Key: KEY,
  AuditEntry: AUDIT_ENTRY,
  Problem: PROBLEM,
} as const satisfies Record<string, z.ZodType>;

const CAPTURE_FACTS = {
  id: z.string(),
  request_id: z.string(),
  at: z.string(),
  endpoint: z.string(),
  protocol: z.string(),
  model: z.string().nullable(),
  is_stream: z.boolean(),
  ending: z.string(),
  is_truncated: z.boolean(),
  is_redacted: z.boolean(),
};

/** A capture without its bodies. */
export const CAPTURE_SUMMARY = z.strictObject({
  ...CAPTURE_FACTS,
  status: z.int().nullable(),
  attempts: z.int(),
  place: z.enum(['memory', 'folder']),
});

/** A capture. docs/capture.md describes its parts; a later version may add some. */
export const CAPTURE = z.looseObject({
  ...CAPTURE_FACTS,
  request: z.looseObject({ method: z.string(), path: z.string(), body: z.base64() }),
  attempts: z.array(z.looseObject({})),
  response: z.looseObject({ status: z.int(), body: z.base64() }).nullable(),
});

/** A capture as JSON: names in snake case, bodies in base64. */
export const viewCapture = (capture: Capture): Record<string, unknown> =>
  formatCapture(capture, (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'));

/** What a list shows of a capture. */
export const viewCaptureSummary = (summary: CaptureSummary): Record<string, unknown> =>
  Object.fromEntries(Object.entries(summary).map(([name, value]) => [toSnakeCase(name), value]));
