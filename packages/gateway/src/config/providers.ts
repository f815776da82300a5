import { leadsTo } from '../providers/base-url.ts';
import { PROVIDER_IDS, profileIdOf, rowOf } from '../providers/lookup.ts';
import type { ProviderRow } from '../providers/row.ts';
import type { ProviderId } from '../providers/table.ts';
import { addressIn, keyIn, type Lookup, versionIn } from './environment.ts';
import { fromFile } from './file-provider.ts';
import { type ConfiguredProvider, DEMO_ID, demoProvider } from './provider.ts';
import { configured, pickTimes } from './provider-draft.ts';
import { isOurs, type World, warn } from './world.ts';

/** Those of the file, those whose keys or addresses are in the environment, and the demo. */
export function configureProviders(world: World): ReadonlyMap<string, ConfiguredProvider> {
  const { providers: settled, limits } = world.source.options;
  const providers = new Map<string, ConfiguredProvider>();
  for (const [id, settings] of Object.entries(settled)) {
    const provider = settings === false ? undefined : fromFile(id, settings, world);
    if (provider) providers.set(id, provider);
  }
  for (const id of PROVIDER_IDS) {
    if (Object.hasOwn(settled, id)) continue;
    const provider = unmentioned(id, providers, world);
    if (provider) providers.set(id, provider);
  }
  return providers.set(DEMO_ID, demoProvider(pickTimes(limits)));
}

/** What the file says of a vendor holds for all its rows, as far as they do not stand elsewhere. */
function unmentioned(
  id: ProviderId,
  providers: ReadonlyMap<string, ConfiguredProvider>,
  world: World,
): ConfiguredProvider | undefined {
  const vendor = profileIdOf(id);
  const row = rowOf(id);
  const { providers: settled } = world.source.options;
  const settings = Object.hasOwn(settled, vendor) ? settled[vendor] : undefined;
  if (!row || settings === false) return undefined;
  if (!settings) return fromEnvironment(id, row, world);
  const isElsewhere = settings.base_url !== undefined && rowOf(vendor)?.base_url !== row.base_url;
  if (!providers.has(vendor) || isElsewhere || settings.extends !== undefined) return undefined;
  const { protocol: _, profile: __, path: ___, ...shared } = settings;
  return fromFile(id, shared, world);
}

/** A provider that nobody mentions is there when its key is; a server of the operator's own, when its address is. */
function fromEnvironment(id: ProviderId, row: ProviderRow, world: World): ConfiguredProvider | undefined {
  const { env, source } = world;
  const key = keyIn(env, row);
  if (row.local ? addressIn(env, row) === undefined : key === undefined) return undefined;
  const address = addressFor(row, world);
  for (const found of [key, address]) {
    if (!found || !('fault' in found)) continue;
    warn(world, `${found.from} ${found.fault}; ${id} is left out`);
    return undefined;
  }
  if (!address || 'fault' in address) return undefined;
  const api_version = versionIn(env, row);
  return configured({
    id,
    protocol: row.protocol,
    address: address.value,
    settings: {},
    limits: source.options.limits,
    ...(key && 'value' in key && { key: { secret: key.value.key, from: key.from, isToken: key.value.isToken } }),
    ...(api_version !== undefined && { api_version }),
  });
}

/** The address in the environment, unless it is our own; else that of the table. */
function addressFor(row: ProviderRow, world: World): Lookup<string> {
  const found = addressIn(world.env, row);
  const ofTable = row.base_url === undefined || row.local ? undefined : { value: row.base_url, from: 'table' };
  if (found === undefined) return ofTable;
  if ('fault' in found || !leadsTo(found.value, world.listen)) return found;
  warn(world, isOurs(found.from));
  return ofTable;
}
