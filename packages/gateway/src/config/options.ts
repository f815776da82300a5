/** The options of a configuration file after validation, and the table of limits. */

import { type ProtocolId, type ProviderProfile, REQUEST_LIMITS } from '@sluice/core';
import type { Secret } from './secrets.ts';

/** A validated configuration file, without anything from the environment. */
export interface Options {
  readonly listen: { readonly host: string; readonly port: number };
  readonly auth: { readonly keys: readonly Secret[] };
  /** `false` disables a provider even if its key is in the environment. */
  readonly providers: Readonly<Record<string, ProviderOptions | false>>;
  /** Names, or patterns with one `*`, and their targets in order of preference. */
  readonly models: Readonly<Record<string, readonly string[]>>;
  readonly limits: Limits;
  readonly log: { readonly level: LogLevel };
  /** Confirms that a reload may remove all client keys or the last provider. */
  readonly reset: boolean;
}

/** The settings of one provider. */
export interface ProviderOptions {
  /** The known provider to take defaults from. Default: the one with the same name. */
  readonly extends?: string;
  readonly protocol?: ProtocolId;
  readonly base_url?: string;
  readonly api_key?: Secret;
  readonly auth?: 'bearer' | 'api-key';
  readonly headers?: Readonly<Record<string, Secret>>;
  readonly organization?: string;
  readonly project?: string;
  readonly api_version?: string;
  readonly path?: string;
  readonly profile?: Partial<ProviderProfile>;
  readonly repair?: boolean;
  readonly on_disconnect?: 'abort' | 'drain';
  readonly passthrough?: Passthrough;
  /** Overrides of `limits`. */
  readonly times?: Partial<ProviderLimits>;
}

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
    about: 'Headers of a request, all together; 431 above it.',
  },
  headers: { name: 'header_count', kind: 'count', preset: 100, about: 'Headers of a request; 431 above it.' },
  requestBytes: {
    name: 'request_bytes',
    kind: 'bytes',
    preset: '32MiB',
    about: 'Body of a request, decompressed; 413 above it.',
  },
  requestDepth: { name: 'request_depth', kind: 'count', preset: 64, about: 'Nesting of the JSON of a request; 400 above it.' },
  tools: {
    name: 'tools',
    kind: 'count',
    preset: REQUEST_LIMITS.tools,
    about: 'Tools of a request, with those in namespaces and function declarations; 400 above it.',
  },
  messages: { name: 'messages', kind: 'count', preset: REQUEST_LIMITS.messages, about: 'Messages of a request; 400 above it.' },
  contentParts: {
    name: 'content_parts',
    kind: 'count',
    preset: REQUEST_LIMITS.content_parts,
    about: 'Content parts of a request, all messages and tool results together; 400 above it.',
  },
  callsPerMessage: {
    name: 'calls_per_message',
    kind: 'count',
    preset: REQUEST_LIMITS.calls_per_message,
    about: 'Tool calls of one message of a request; 400 above it.',
  },
  metadataKeys: {
    name: 'metadata_keys',
    kind: 'count',
    preset: REQUEST_LIMITS.metadata_keys,
    about: 'Keys of `metadata` (Gemini: `labels`); 400 above it.',
  },
  topLevelKeys: {
    name: 'top_level_keys',
    kind: 'count',
    preset: REQUEST_LIMITS.top_level_keys,
    about: 'Keys of the body of a request itself; 400 above it.',
  },
  headersReadMs: { name: 'header_timeout', kind: 'duration', preset: '10s', about: 'Until the headers of a request have come.' },
  requestReadMs: { name: 'request_timeout', kind: 'duration', preset: '60s', about: 'Until the whole request has come.' },
  // Longer than the 60 s of load balancers, which would otherwise send requests into a closing connection.
  keepAliveMs: { name: 'keep_alive', kind: 'duration', preset: '75s', about: 'How long an idle connection of a client is kept.' },

  connectMs: { name: 'connect_timeout', kind: 'duration', preset: '5s', about: 'Until the connection to an upstream stands.' },
  headersMs: { name: 'response_timeout', kind: 'duration', preset: '60s', about: 'Until the headers of its answer have come.' },
  firstEventMs: { name: 'first_event_timeout', kind: 'duration', preset: '120s', about: 'Until the first event of its stream.' },
  betweenEventsMs: { name: 'idle_timeout', kind: 'duration', preset: '120s', about: 'Between two events of its stream.' },
  totalMs: { name: 'total_timeout', kind: 'duration', preset: '30m', about: 'For the whole answer.' },
  upstreamKeepAliveMs: {
    name: 'upstream_keep_alive',
    kind: 'duration',
    preset: '4s',
    about: 'How long an idle connection to an upstream is kept.',
  },

  // An event may hold an image.
  eventBytes: { name: 'event_bytes', kind: 'bytes', preset: '32MiB', about: 'One line or event of a stream.' },
  choices: { name: 'choices', kind: 'count', preset: 128, about: 'Choices of an answer.' },
  toolCalls: { name: 'tool_calls', kind: 'count', preset: 128, about: 'Tool calls of an answer.' },
  contentBlocks: {
    name: 'content_blocks',
    kind: 'count',
    preset: 1024,
    about: 'Content blocks of an answer; Claude begins one at every citation.',
  },
  argumentBytes: { name: 'argument_bytes', kind: 'bytes', preset: '16MiB', about: 'Arguments of one tool call.' },
  argumentDepth: { name: 'argument_depth', kind: 'count', preset: 128, about: 'Nesting of the arguments of a tool call.' },
  answerBytes: { name: 'answer_bytes', kind: 'bytes', preset: '64MiB', about: 'An answer that is not a stream, unpacked.' },
  streamBytes: { name: 'stream_bytes', kind: 'bytes', preset: '256MiB', about: 'An answer that is a stream, all of it.' },
  errorBytes: { name: 'error_bytes', kind: 'bytes', preset: '1MiB', about: 'What is read of an answer that is an error.' },
  compressionRatio: {
    name: 'compression_ratio',
    kind: 'count',
    preset: 100,
    about: 'How many times larger a compressed request or answer may become when it is decompressed.',
  },

  writeBufferBytes: {
    name: 'write_buffer',
    kind: 'bytes',
    preset: '64KiB',
    about: 'What waits for a slow client before its upstream is paused.',
  },
  stallMs: {
    name: 'stall_timeout',
    kind: 'duration',
    preset: '60s',
    about: 'How long a client may read nothing before its stream is cancelled.',
  },
  connections: {
    name: 'connections',
    kind: 'count',
    preset: 0,
    least: 0,
    about:
      'Connections of clients at a time; further ones are closed at once. 0: half of the open file limit (ulimit -n) after a reserve of 64.',
  },
  streams: {
    name: 'streams',
    kind: 'count',
    preset: 2000,
    about: 'Exchanges at a time, at most as many as there are file descriptors for; 503 above it.',
  },
  heapShed: { name: 'heap_shed', kind: 'share', preset: 0.85, about: 'Share of the memory above which new requests get 503.' },
  heapCancel: {
    name: 'heap_cancel',
    kind: 'share',
    preset: 0.95,
    about: 'Share of the memory above which the longest stalled stream is cancelled.',
  },

  retriesPerProvider: {
    name: 'retries_per_provider',
    kind: 'count',
    preset: 2,
    least: 0,
    about:
      'Further requests to one upstream, as long as nothing was sent to the client. Includes the repeat after a kept connection was closed.',
  },
  retries: {
    name: 'retries',
    kind: 'count',
    preset: 4,
    least: 0,
    about: 'Further requests upstream for one request of a client, all upstreams together.',
  },
  retryShare: { name: 'retry_share', kind: 'share', preset: 0.1, about: 'Share of all requests that may be retries.' },
  retryAfterMs: {
    name: 'retry_after',
    kind: 'duration',
    preset: '10s',
    about: 'The longest Retry-After that is waited for; a longer one goes to the client.',
  },

  heartbeatMs: {
    name: 'heartbeat',
    kind: 'duration',
    preset: '15s',
    about: 'Silence after which a stream shows the client that it lives.',
  },
  holdMs: {
    name: 'hold',
    kind: 'duration',
    preset: '15s',
    about: 'How long the status is held back while nothing has come from the upstream.',
  },
  drainMs: { name: 'drain', kind: 'duration', preset: '115s', about: 'How long running streams may go on after SIGTERM.' },
} as const satisfies Readonly<Record<string, LimitRow>>;

/** One limit, with its default as it would be written in the file. */
export type LimitRow = { readonly name: string; readonly about: string } & (
  | { readonly kind: 'duration' | 'bytes'; readonly preset: string }
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
