import type { ProtocolId, Provider } from '@sluice/core';
import { completeBaseUrl } from '../providers/base-url.ts';
import { isOwnAddress, profileIdOf, rowOf } from '../providers/lookup.ts';
import type { ProviderRow } from '../providers/row.ts';
import { type Limits, PROVIDER_LIMITS, type ProviderLimits } from './limits.ts';
import type { ProviderOptions } from './options.ts';
import type { ConfiguredProvider } from './provider.ts';
import type { Secret } from './secret.ts';

/** All that was decided about a provider, from the file or the environment. */
export interface Draft {
  readonly id: string;
  /** The row it is, or is like. */
  readonly rowId?: string;
  readonly protocol: ProtocolId;
  readonly address: string;
  readonly key?: { readonly secret: Secret; readonly from: string; readonly isToken: boolean };
  readonly api_version?: string;
  readonly settings: ProviderOptions;
  readonly limits: Limits;
}

export function configured(draft: Draft): ConfiguredProvider {
  const { id, rowId = id, key, settings, limits } = draft;
  const row = rowOf(rowId);
  const provider = coreProvider(draft, row);
  const official = isOfficial(row, provider);
  return Object.freeze({
    id,
    title: row && rowId === id ? row.title : id,
    provider,
    profileId: profileIdOf(rowId),
    origin: new URL(provider.base_url).origin,
    ...(key && { key: key.secret, keyFrom: key.from }),
    headers: settings.headers ?? {},
    official,
    local: row?.local ?? false,
    repair: settings.repair ?? !official,
    drains: settings.on_disconnect === 'drain',
    passthrough: settings.passthrough ?? 'known',
    times: { ...pickTimes(limits), ...settings.times },
    isDemo: false,
  });
}

/** At another address it is somebody who says to be the same. */
const isOfficial = (row: ProviderRow | undefined, { protocol, base_url }: Provider): boolean =>
  row?.official === true && row.protocol === protocol && isOwnAddress(row, base_url);

function coreProvider({ id, protocol, address, key, api_version, settings }: Draft, row: ProviderRow | undefined): Provider {
  const { organization, project, profile } = settings;
  const place =
    settings.path === undefined
      ? completeBaseUrl(address, { protocol, api_version, row })
      : { base_url: address, path: settings.path };
  const auth = settings.auth ?? (key?.isToken ? 'bearer' : row?.auth);
  const adapter = {
    ...(auth && { auth }),
    ...(place.path !== undefined && { path: place.path }),
    ...(api_version !== undefined && { api_version }),
    ...(organization !== undefined && { organization }),
    ...(project !== undefined && { project }),
  };
  return {
    id,
    protocol,
    base_url: place.base_url,
    ...(Object.keys(adapter).length > 0 && { adapter_config: adapter }),
    ...(profile && { profile }),
  };
}

export function pickTimes(limits: Limits): ProviderLimits {
  return Object.fromEntries(PROVIDER_LIMITS.map((key) => [key, limits[key]])) as ProviderLimits; // one a key
}
