import type { Provider } from '@sluice/core';
import type { ProviderLimits } from './limits.ts';
import type { Passthrough } from './options.ts';
import type { Secret } from './secret.ts';

/** A provider that can be asked. Its key is not in it, for whoever looks at it: `unlock` adds it, for the one who sends. */
export interface ConfiguredProvider {
  readonly id: string;
  readonly title: string;
  /** As core knows it, but for the secrets. */
  readonly provider: Provider;
  /** The name under which core knows its quirks: `profileFor(profileId, model)`. */
  readonly profileId: string;
  /** Scheme, host and port that the key belongs to; it is sent to no other. */
  readonly origin: string;
  readonly key?: Secret;
  /** Where the key was found: a variable, or `file`. For the screen. */
  readonly keyFrom?: string;
  readonly headers: Readonly<Record<string, Secret>>;
  /** The vendor of the protocol itself, at its own address. */
  readonly official: boolean;
  readonly local: boolean;
  /** Same protocol on both sides: read and written anew, instead of passed through. */
  readonly repair: boolean;
  /** An answer whose client has left is read to its end. */
  readonly drains: boolean;
  /** Endpoints that are passed on without conversion. */
  readonly passthrough: Passthrough;
  readonly times: ProviderLimits;
  /** The model that is built in: there is no address to call. */
  readonly isDemo: boolean;
}

/** The provider with its secrets, as `buildHeaders` wants it. Only for sending, and only to `origin`. */
export function unlock({ provider, key, headers }: ConfiguredProvider): Provider {
  const secret = Object.entries(headers).map(([name, value]) => [name, value.reveal()]);
  return {
    ...provider,
    ...(key && { api_key: key.reveal() }),
    ...(secret.length > 0 && { adapter_config: { ...provider.adapter_config, headers: Object.fromEntries(secret) } }),
  };
}

export const DEMO_ID = 'demo';

/** The built-in model. It speaks every protocol; `protocol` and `base_url` are there for the type. */
export function demoProvider(times: ProviderLimits): ConfiguredProvider {
  const base_url = 'http://demo.invalid/v1';
  return {
    id: DEMO_ID,
    title: 'built-in demo model',
    provider: { id: DEMO_ID, protocol: 'openai-chat', base_url },
    profileId: DEMO_ID,
    origin: new URL(base_url).origin,
    headers: {},
    official: false,
    local: true,
    repair: true,
    drains: false,
    passthrough: 'off',
    times,
    isDemo: true,
  };
}
