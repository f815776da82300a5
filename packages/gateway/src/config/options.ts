import type { ProtocolId, ProviderProfile } from '@sluice/core';
import type { Limits, ProviderLimits } from './limits.ts';
import type { Secret } from './secret.ts';

/** A configuration file, validated. What the environment adds is not in it. */
export interface Options {
  readonly listen: { readonly host: string; readonly port: number };
  readonly auth: { readonly keys: readonly Secret[] };
  /** `false`: not even when its key is in the environment. */
  readonly providers: Readonly<Record<string, ProviderOptions | false>>;
  /** Names, or patterns with one `*`, and what they stand for: in order, the first that answers. */
  readonly models: Readonly<Record<string, readonly string[]>>;
  readonly limits: Limits;
  readonly log: { readonly level: LogLevel };
  /** Confirms that a reload may remove all client keys or the last provider. */
  readonly reset: boolean;
}

export interface ProviderOptions {
  /** The row of the table it is like. Default: the one of its own name. */
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
  /** Instead of those under `limits`. */
  readonly times?: Partial<ProviderLimits>;
}

/** Endpoints that are passed on without conversion: none, those that the vendor documents, or every path. */
export const PASSTHROUGH = ['off', 'known', 'all'] as const;

export type Passthrough = (typeof PASSTHROUGH)[number];

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];
