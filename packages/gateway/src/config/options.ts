/** The options of a configuration file after validation, and the table of limits. */

import type { ProtocolId, ProviderProfile } from '@sluice/core';
import { REQUEST_LIMITS } from '@sluice/core/engine';
import type { TlsFiles } from '../http/tls.ts';
import type { Budget } from '../keys/caller.ts';
import type { KeyTerms } from '../keys/settings.ts';
import type { Secret } from './secrets.ts';

/** A validated configuration file, without anything from the environment. */
export interface Options {
  readonly listen: ListenAddress & { readonly tls?: TlsFiles };
  /** Addresses and ranges of proxies whose forwarding headers are read. */
  readonly trusted_proxies: readonly string[];
  readonly auth: { readonly keys: readonly KeyOptions[]; readonly pepper_file?: string };
  readonly admin: { readonly key?: Secret };
  readonly metrics: { readonly key?: Secret; readonly listen?: ListenAddress };
  /** `false` disables a provider even if its key is in the environment. */
  readonly providers: Readonly<Record<string, ProviderOptions | false>>;
  /** Names, or patterns with one `*`, and their targets. */
  readonly models: Readonly<Record<string, ModelOptions>>;
  /** Rules that send requests to another model; the first that matches counts. */
  readonly rules: readonly RuleOptions[];
  /** How long a conversation stays with its target, in milliseconds; null for not at all. */
  readonly affinity: number | null;
  /** Which model name responses have: the one that the client requested, or the one that the upstream reports. */
  readonly model_in_answer: ModelInAnswer;
  /** `provider/model`, with at most one `*` in the model, and its price. */
  readonly prices: Readonly<Record<string, PriceOptions>>;
  /** The price of models without a known one. */
  readonly default_price?: PriceOptions | undefined;
  /** Budgets of tags. */
  readonly budgets: readonly TagBudget[];
  /** The time zone whose days, weeks and months budgets are for. */
  readonly time_zone: string;
  /** Where limits are kept that several gateways share; by default in the database, else in memory. */
  readonly limits_store?: LimitsStoreOptions | undefined;
  /** The data folder, or `memory`; by default a folder of the user. */
  readonly data?: string | undefined;
  /** The address of a PostgreSQL database, which holds keys and usage instead of the data folder. */
  readonly store?: Secret | undefined;
  /** `store`: everything but the settings of a node is in the database. */
  readonly config?: 'store' | undefined;
  /** Milliseconds after its last heartbeat that a node of the database is taken for dead. */
  readonly node_lease: number;
  /** Whether responses wait until their usage is on disk. */
  readonly durability: Durability;
  /** Days that recorded exchanges are kept; null for ever. */
  readonly retention: number | null;
  /** Which exchanges are kept with their bodies. */
  readonly capture: CaptureOptions;
  /** Where responses are kept for clients that continue them. */
  readonly responses: ResponsesOptions;
  /** Whether requests with the same `Idempotency-Key` share a response; undefined when they do not. */
  readonly idempotency: IdempotencyOptions | undefined;
  /** What happens when an upstream fails or is slow. */
  readonly recovery: RecoveryOptions;
  /** Which responses are sent again for equal requests; undefined when none are. */
  readonly cache?: CacheOptions | undefined;
  readonly limits: Limits;
  readonly log: { readonly level: LogLevel };
  /** Confirms that a reload may remove all client keys or the last provider. */
  readonly reset: boolean;
}

/** A server that keeps the limits of several gateways. */
export interface LimitsStoreOptions {
  /** `redis://` or `rediss://`, which may have a password. `store`: the database. `memory`: each gateway has its own limits. */
  readonly url: Secret | 'store' | 'memory';
  /** How many gateways share the limits. */
  readonly nodes: number;
  /** Before the name of every key. */
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
}

/** A client key of the file. */
export interface KeyOptions {
  readonly key: Secret;
  /** Without a name, the key is shown by its place: `key-1`. */
  readonly name?: string;
  readonly terms: KeyTerms;
}

/** Where a listener is bound. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** How the next target of a model is chosen. */
export const STRATEGIES = ['order', 'weighted', 'least_busy', 'fastest', 'cheapest'] as const;

/** One of `STRATEGIES`. */
export type Strategy = (typeof STRATEGIES)[number];

/** What a model name stands for. */
export interface ModelOptions {
  /** How it is written in the file: a text, a list, or a map with `targets`. */
  readonly form: 'text' | 'list' | 'map';
  readonly strategy: Strategy;
  readonly targets: readonly TargetOptions[];
}

/** A target of a model name. */
interface TargetOptions {
  /** `provider/model`, or another model name. */
  readonly target: string;
  /** Its share of the requests, compared with the other targets. */
  readonly weight: number;
}

/** A rule: requests that meet all conditions go to another model. */
export interface RuleOptions {
  readonly name?: string;
  readonly when: RuleConditions;
  /** The model name that is used instead. */
  readonly use: string;
}

/** What a request must be like; absent conditions are met. */
export interface RuleConditions {
  /** Requested model names, with at most one `*`. */
  readonly model?: readonly string[];
  /** A small model that agents use for side tasks: the name contains "haiku". */
  readonly background?: boolean;
  readonly images?: boolean;
  readonly tools?: boolean;
  readonly thinking?: boolean;
  readonly web_search?: boolean;
  readonly input_tokens_above?: number;
  /** Values by header name, with at most one `*`. */
  readonly header?: Readonly<Record<string, string>>;
  /** Tags of client keys, one of which is needed. */
  readonly tag?: readonly string[];
}

/** Which model name responses have. */
export const MODELS_IN_ANSWER = ['requested', 'answered'] as const;

/** One of `MODELS_IN_ANSWER`. */
export type ModelInAnswer = (typeof MODELS_IN_ANSWER)[number];

/** The settings of one provider. */
export interface ProviderOptions {
  /** The known provider to take defaults from. Default: the one with the same name. */
  readonly extends?: string;
  readonly protocol?: ProtocolId;
  readonly base_url?: string;
  /** Several addresses, which share the requests. */
  readonly base_urls?: readonly string[];
  readonly api_key?: Secret;
  /** Several keys, which share the requests. Each is used at every address. */
  readonly api_keys?: readonly Secret[];
  readonly auth?: 'bearer' | 'api-key';
  readonly headers?: Readonly<Record<string, Secret>>;
  readonly organization?: string;
  readonly project?: string;
  /** The URL of a proxy, or `direct`. */
  readonly proxy?: Secret;
  /** Path of the certificates that are trusted instead of the public ones. */
  readonly ca?: string;
  readonly api_version?: string;
  readonly path?: string;
  readonly profile?: Partial<ProviderProfile>;
  readonly repair?: boolean;
  readonly on_disconnect?: 'abort' | 'drain';
  readonly passthrough?: Passthrough;
  readonly on_malformed?: OnMalformed;
  /** Overrides of `limits`. */
  readonly times?: Partial<ProviderLimits>;
}

/** What happens when an upstream fails or is slow. */
export interface RecoveryOptions {
  /** A failed target is retried before the next one if the wait is at most this long, in milliseconds; 0: never. */
  readonly retrySameTargetMs: number;
  readonly onBreak: (typeof ON_BREAK)[number];
  /** Milliseconds without content after which a stream is also requested from the next target; 0: never. */
  readonly hedgeAfterMs: number;
}

/** A stream that breaks off after content: it ends in an error, or the next target continues it. */
export const ON_BREAK = ['error', 'continue'] as const;

/** An event of a stream whose data is not JSON: it ends the stream in an error, or is skipped. */
export const ON_MALFORMED = ['fail', 'skip'] as const;

/** One of `ON_MALFORMED`. */
export type OnMalformed = (typeof ON_MALFORMED)[number];

/** Which exchanges are kept with their bodies, and for how long. */
export interface CaptureOptions {
  /** Whether the last exchanges are kept in memory, on a gateway without client keys. */
  readonly ring: boolean;
  /** Names with at most one `*`: exchanges of these models, providers and keys are stored in the data folder. */
  readonly models: readonly string[];
  readonly providers: readonly string[];
  readonly keys: readonly string[];
  readonly retentionMs: number;
  /** Bytes of all stored captures. */
  readonly maxBytes: number;
  /** Bytes of one capture; the rest of a longer exchange is left out. */
  readonly exchangeBytes: number;
}

/** Where responses are kept for clients of OpenAI Responses. */
export const RESPONSE_STORES = ['memory', 'disk', 'off'] as const;

/** How responses are kept for clients that continue them, and for how long. */
export interface ResponsesOptions {
  readonly store: (typeof RESPONSE_STORES)[number];
  /** In memory: how long after their last use. */
  readonly ttlMs: number;
  /** On disk: how long after their last use. */
  readonly retentionMs: number;
  readonly maxBytes: number;
  readonly maxBytesPerKey: number;
  /** Whether clients may use Responses over WebSocket. */
  readonly websocket: boolean;
}

/** How much all requests with a tag may cost together. */
export interface TagBudget {
  /** As in `x-sluice-tags`: `team=a`. */
  readonly tag: string;
  readonly limit: Budget;
}

/** Whose responses are sent again for equal requests, and for how long. */
export interface CacheOptions {
  /** Names with at most one `*`: models as clients name them, or `provider/model`. */
  readonly models: readonly string[];
  readonly ttlMs: number;
  /** Bytes of all responses. */
  readonly maxBytes: number;
  readonly scope: (typeof CACHE_SCOPES)[number];
}

/** `key`: a caller gets only responses to its own requests. `shared`: all callers share them. */
export const CACHE_SCOPES = ['key', 'shared'] as const;

/** How long responses are kept for requests that clients repeat. */
export interface IdempotencyOptions {
  readonly ttlMs: number;
  /** Bytes of all responses. */
  readonly maxBytes: number;
}

/** `strict`: a client receives the end of its response when its usage is on disk. `relaxed`: it does not wait. */
export const DURABILITIES = ['strict', 'relaxed'] as const;

/** One of `DURABILITIES`. */
export type Durability = (typeof DURABILITIES)[number];

/** Prices that can be configured, in US dollars per million tokens. */
export const PRICE_FIELDS = [
  'input',
  'cached_input',
  'cache_write',
  'cache_write_1h',
  'input_audio',
  'output',
  'reasoning',
  'output_audio',
] as const;

/** A configured price: `free`, or decimal texts by field. */
export type PriceOptions = 'free' | Readonly<{ input: string } & Partial<Record<(typeof PRICE_FIELDS)[number], string>>>;

/** Endpoints that are passed on without conversion: none, those that the vendor documents, or every path. */
export const PASSTHROUGH = ['off', 'known', 'all'] as const;

/** Which endpoints are passed on without conversion. */
export type Passthrough = (typeof PASSTHROUGH)[number];

/** Log levels from least to most verbose, and `silent`. */
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** A log level. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * All limits: the key used in code, and name, default and description under `limits` in the file. The defaults suit one
 * process.
 */
export const LIMITS = {
  headerBytes: {
    name: 'header_bytes',
    kind: 'bytes',
    preset: '16KiB',
    about: 'Total size of the headers of a request; larger ones get 431.',
  },
  headers: { name: 'header_count', kind: 'count', preset: 100, about: 'Number of headers of a request; more get 431.' },
  requestBytes: {
    name: 'request_bytes',
    kind: 'bytes',
    preset: '32MiB',
    about: 'Size of a request body after decompression; larger ones get 413.',
  },
  pendingBytes: {
    name: 'pending_bytes',
    kind: 'bytes',
    preset: '256MiB',
    about:
      'Bytes of all requests that are being received; more get 503. One client key may use half of them; more get 429. Never less than twice `request_bytes`.',
  },
  requestDepth: {
    name: 'request_depth',
    kind: 'count',
    preset: 64,
    about: 'Nesting depth of the JSON of a request; deeper ones get 400.',
  },
  tools: {
    name: 'tools',
    kind: 'count',
    preset: REQUEST_LIMITS.tools,
    about: 'Tools of a request, including those in namespaces and function declarations; more get 400.',
  },
  messages: { name: 'messages', kind: 'count', preset: REQUEST_LIMITS.messages, about: 'Messages of a request; more get 400.' },
  contentParts: {
    name: 'content_parts',
    kind: 'count',
    preset: REQUEST_LIMITS.contentParts,
    about: 'Content parts of a request in all messages and tool results; more get 400.',
  },
  callsPerMessage: {
    name: 'calls_per_message',
    kind: 'count',
    preset: REQUEST_LIMITS.callsPerMessage,
    about: 'Tool calls of one message of a request; more get 400.',
  },
  metadataKeys: {
    name: 'metadata_keys',
    kind: 'count',
    preset: REQUEST_LIMITS.metadataKeys,
    about: 'Keys of `metadata` (Gemini: `labels`); more get 400.',
  },
  topLevelKeys: {
    name: 'top_level_keys',
    kind: 'count',
    preset: REQUEST_LIMITS.topLevelKeys,
    about: 'Top-level keys of a request body; more get 400.',
  },
  objectKeys: {
    name: 'object_keys',
    kind: 'count',
    preset: REQUEST_LIMITS.objectKeys,
    about: 'Keys of any other object of a request, such as the properties of a schema; more get 400.',
  },
  headersReadMs: {
    name: 'header_timeout',
    kind: 'duration',
    preset: '10s',
    about: 'Timeout for receiving the headers of a request.',
  },
  requestReadMs: { name: 'request_timeout', kind: 'duration', preset: '60s', about: 'Timeout for receiving the whole request.' },
  // Longer than the 60 s of load balancers, which would otherwise send requests into a closing connection.
  keepAliveMs: { name: 'keep_alive', kind: 'duration', preset: '75s', about: 'How long an idle client connection is kept open.' },

  connectMs: { name: 'connect_timeout', kind: 'duration', preset: '5s', about: 'Timeout for connecting to an upstream.' },
  headersMs: {
    name: 'response_timeout',
    kind: 'duration',
    preset: '60s',
    about: 'Timeout for the headers of an upstream response.',
  },
  firstEventMs: {
    name: 'first_event_timeout',
    kind: 'duration',
    preset: '120s',
    about: 'Timeout for the first event of an upstream stream.',
  },
  betweenEventsMs: {
    name: 'idle_timeout',
    kind: 'duration',
    preset: '120s',
    about: 'Timeout between two events of an upstream stream.',
  },
  totalMs: { name: 'total_timeout', kind: 'duration', preset: '30m', about: 'Timeout for the whole upstream response.' },
  upstreamKeepAliveMs: {
    name: 'upstream_keep_alive',
    kind: 'duration',
    preset: '4s',
    about: 'How long an idle upstream connection is kept open.',
  },

  // An event may hold an image.
  eventBytes: { name: 'event_bytes', kind: 'bytes', preset: '32MiB', about: 'Size of one line or event of an upstream stream.' },
  choices: { name: 'choices', kind: 'count', preset: 128, about: 'Choices of a response.' },
  toolCalls: { name: 'tool_calls', kind: 'count', preset: 128, about: 'Tool calls of a response.' },
  contentBlocks: {
    name: 'content_blocks',
    kind: 'count',
    preset: 1024,
    about: 'Content blocks of a response; Claude starts a new one at every citation.',
  },
  argumentBytes: { name: 'argument_bytes', kind: 'bytes', preset: '16MiB', about: 'Size of the arguments of one tool call.' },
  argumentDepth: { name: 'argument_depth', kind: 'count', preset: 128, about: 'Nesting depth of the arguments of a tool call.' },
  answerBytes: {
    name: 'answer_bytes',
    kind: 'bytes',
    preset: '64MiB',
    about: 'Size of a non-streaming response after decompression.',
  },
  streamBytes: { name: 'stream_bytes', kind: 'bytes', preset: '256MiB', about: 'Total size of a streaming response.' },
  errorBytes: { name: 'error_bytes', kind: 'bytes', preset: '1MiB', about: 'How much of an upstream error response is read.' },
  compressionRatio: {
    name: 'compression_ratio',
    kind: 'count',
    preset: 100,
    about: 'How many times larger a compressed request or response may become when decompressed.',
  },

  writeBufferBytes: {
    name: 'write_buffer',
    kind: 'bytes',
    preset: '64KiB',
    about: 'Bytes buffered for a slow client before its upstream is paused.',
  },
  stallMs: {
    name: 'stall_timeout',
    kind: 'duration',
    preset: '60s',
    about: 'How long a client may stop reading before its stream is cancelled.',
  },
  connections: {
    name: 'connections',
    kind: 'count',
    preset: 0,
    least: 0,
    about:
      'Concurrent client connections; further ones are closed immediately. 0: half of the open file limit (ulimit -n) after a reserve of 64, and as many as half of the memory is enough for.',
  },
  streams: {
    name: 'streams',
    kind: 'count',
    preset: 2000,
    about: 'Concurrent requests, limited by the available file descriptors; more get 503.',
  },
  heapShed: { name: 'heap_shed', kind: 'share', preset: 0.85, about: 'Share of memory in use above which new requests get 503.' },
  heapCancel: {
    name: 'heap_cancel',
    kind: 'share',
    preset: 0.95,
    about: 'Share of memory in use above which the stream that stalled longest is cancelled.',
  },

  retriesPerProvider: {
    name: 'retries_per_provider',
    kind: 'count',
    preset: 2,
    least: 0,
    about:
      'Retries per upstream, as long as nothing was sent to the client. Includes the retry after a kept-alive connection was closed.',
  },
  retries: {
    name: 'retries',
    kind: 'count',
    preset: 4,
    least: 0,
    about: 'Retries per client request across all upstreams.',
  },
  retryShare: { name: 'retry_share', kind: 'share', preset: 0.1, about: 'Share of all requests that may be retries.' },
  retryAfterMs: {
    name: 'retry_after',
    kind: 'duration',
    preset: '10s',
    about: 'Longest Retry-After the gateway waits for; a longer one is passed to the client.',
  },
  pauseMs: {
    name: 'pause',
    kind: 'duration',
    preset: '5s',
    most: '60s',
    about:
      'Longest pause of an upstream that keeps failing, between two requests that try it again; at most 60s. The first pause is 1s, and each one doubles.',
  },

  heartbeatMs: {
    name: 'heartbeat',
    kind: 'duration',
    preset: '15s',
    about: 'How long a stream may be silent before the client gets a heartbeat.',
  },
  holdMs: {
    name: 'hold',
    kind: 'duration',
    preset: '15s',
    about: 'How long the response status is held back while the upstream has sent nothing.',
  },
  drainDelayMs: {
    name: 'drain_delay',
    kind: 'duration',
    preset: 'off',
    about:
      'How long the gateway still accepts requests after SIGTERM, while `/health/ready` responds 503: as long as a load balancer needs to notice.',
  },
  drainMs: { name: 'drain', kind: 'duration', preset: '115s', about: 'How long running streams may continue after SIGTERM.' },
} as const satisfies Readonly<Record<string, LimitRow>>;

/** One limit, with its default as it would be written in the file. */
export type LimitRow = {
  readonly name: string;
  readonly about: string;
} /** A preset of `off` may be written in the file, too. */ & (
  | { readonly kind: 'duration'; readonly preset: string; readonly most?: string }
  | { readonly kind: 'bytes'; readonly preset: string }
  /** The minimum is 1, unless 0 makes sense. */
  | { readonly kind: 'count'; readonly preset: number; readonly least?: 0 }
  | { readonly kind: 'share'; readonly preset: number }
);

/** Name of a limit in code. */
export type LimitKey = keyof typeof LIMITS;

/** All limits in milliseconds, bytes, counts or shares. */
export type Limits = { readonly [K in LimitKey]: number };

/** Limits that a provider may override under the same names. */
export const PROVIDER_LIMITS = [
  'connectMs',
  'headersMs',
  'firstEventMs',
  'betweenEventsMs',
  'totalMs',
] as const satisfies readonly LimitKey[];

/** The limits that apply to one provider. */
export type ProviderLimits = Pick<Limits, (typeof PROVIDER_LIMITS)[number]>;

/** Maps limits from their names in the file to those in code. */
export function pickLimits<K extends LimitKey>(
  keys: readonly K[],
  values: Readonly<Record<string, unknown>>,
): Partial<Record<K, number>> {
  const entries = keys.map((key) => [key, values[LIMITS[key].name]] as const).filter(([, value]) => typeof value === 'number');
  return Object.fromEntries(entries) as Partial<Record<K, number>>; // only numbers under known keys remain
}
