import type { ProtocolId, Provider } from '@sluice/core';
import { didYouMean } from '@sluice/lab/text';
import { completeBaseUrl, leadsTo } from '../providers/base-url.ts';
import { isOwnAddress, PROVIDER_IDS, profileIdOf, rowOf, rowsOf } from '../providers/lookup.ts';
import type { ProviderRow } from '../providers/row.ts';
import type { ProviderId } from '../providers/table.ts';
import { type Limits, type Passthrough, PROVIDER_LIMITS, type ProviderLimits, type ProviderOptions } from './options.ts';
import { addressIn, keyIn, type Lookup, type Secret, versionIn } from './secrets.ts';
import { isOurs, type World, warn } from './world.ts';

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
function demoProvider(times: ProviderLimits): ConfiguredProvider {
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

/** All that was decided about a provider, from the file or the environment. */
interface Draft {
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

function configured(draft: Draft): ConfiguredProvider {
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

function pickTimes(limits: Limits): ProviderLimits {
  return Object.fromEntries(PROVIDER_LIMITS.map((key) => [key, limits[key]])) as ProviderLimits; // one a key
}

/** A step that did not succeed: what is wrong, and with which setting. */
class Fault extends Error {
  readonly setting: string | undefined;

  constructor(message: string, setting?: string) {
    super(message);
    this.setting = setting;
  }
}

/** A provider as the file describes it; undefined when that does not do. What it leaves out is as in the row it is like. */
function fromFile(id: string, settings: ProviderOptions, world: World): ConfiguredProvider | undefined {
  const { source, problems } = world;
  try {
    return configured(buildDraft(id, settings, world));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const isSet = error.setting !== undefined && Object.hasOwn(settings, error.setting);
    problems.push(source.problem(['providers', id, ...(isSet ? [error.setting] : [])], error.message, isSet ? 'value' : 'key'));
    return undefined;
  }
}

function buildDraft(id: string, settings: ProviderOptions, world: World): Draft {
  const { rowId, row, protocol } = findLikeness(id, settings);
  const address = readAddress(settings, row, world);
  const isOwn = row !== undefined && (settings.base_url === undefined || isOwnAddress(row, address));
  const key = readKey(settings, isOwn ? row : undefined, world);
  if (row && !isOwn && key === undefined) warnOfKey(id, row, world);
  const api_version = settings.api_version ?? (row && versionIn(world.env, row));
  return {
    id,
    protocol,
    address,
    settings,
    limits: world.source.options.limits,
    ...(rowId !== undefined && { rowId }),
    ...(key && { key }),
    ...(api_version !== undefined && { api_version }),
  };
}

interface Likeness {
  rowId?: string;
  row?: ProviderRow;
  protocol: ProtocolId;
}

/** Which row it is like, and what it speaks. */
function findLikeness(id: string, settings: ProviderOptions): Likeness {
  if (id === DEMO_ID) throw new Fault('is built in and has no settings');
  const named = settings.extends ?? id;
  const row = rowOf(named);
  if (!row && settings.extends !== undefined)
    throw new Fault(`is no provider that is known by name${didYouMean(named, PROVIDER_IDS)}`, 'extends');
  if (!row) return { protocol: ownProtocol(id, settings) };
  const { protocol = row.protocol } = settings;
  if (protocol === row.protocol || settings.base_url !== undefined) return { rowId: named, row, protocol };
  const sibling = rowsOf(named).find((other) => rowOf(other)?.protocol === protocol);
  if (sibling === undefined) throw new Fault(`${named} is not known to speak ${protocol}: say where, with base_url`, 'protocol');
  return { rowId: sibling, row: rowOf(sibling) ?? row, protocol };
}

/** A name that no row has: a provider of the operator's own, or a slip. */
function ownProtocol(id: string, { protocol, base_url }: ProviderOptions): ProtocolId {
  if (protocol !== undefined && base_url !== undefined) return protocol;
  const lacking = protocol !== undefined ? 'base_url' : base_url !== undefined ? 'protocol' : 'protocol and base_url';
  throw new Fault(`is not known by name${didYouMean(id, PROVIDER_IDS)} (a provider of your own needs ${lacking})`);
}

function readAddress({ base_url, api_key }: ProviderOptions, row: ProviderRow | undefined, world: World): string {
  const { env, listen } = world;
  if (base_url !== undefined) {
    if (leadsTo(base_url, listen)) throw new Fault('is the address of the gateway itself', 'base_url');
    return base_url;
  }
  // A key of the file is for the vendor: an address that the shell happens to have is not what it is meant for.
  if (api_key && row?.base_url !== undefined && !row.local) return row.base_url;
  const found = row && addressIn(env, row);
  if (found && 'fault' in found) throw new Fault(`${found.from} ${found.fault}`);
  if (found && !leadsTo(found.value, listen)) return found.value;
  if (found) warn(world, isOurs(found.from));
  if (row?.base_url !== undefined) return row.base_url;
  throw new Fault(`needs base_url${row?.base_env ? `, or ${row.base_env.join(' or ')} in the environment` : ''}`);
}

const CREDENTIALS = /^(authorization|x-api-key|x-goog-api-key|api-key)$/i;

/** The key of the file; else that of the environment, but only where the vendor it is kept for will see it. */
function readKey(settings: ProviderOptions, own: ProviderRow | undefined, { env }: World): Draft['key'] {
  if (settings.api_key) return { secret: settings.api_key, from: 'file', isToken: false };
  if (Object.keys(settings.headers ?? {}).some((name) => CREDENTIALS.test(name)) || !own) return undefined;
  const found = keyIn(env, own);
  if (found && 'fault' in found) throw new Fault(`${found.from} ${found.fault}`);
  if (found) return { secret: found.value.key, from: found.from, isToken: found.value.isToken };
  if (own.local) return undefined;
  throw new Fault(`has no key: set ${[...own.key_env, ...(own.token_env ?? [])].join(' or ')}, or api_key`);
}

function warnOfKey(id: string, row: ProviderRow, { env, source, warnings }: World): void {
  const found = keyIn(env, row);
  if (found === undefined) return;
  const message = `${found.from} is not sent to this address; if it should be, say so: api_key: \${${found.from}}`;
  // The other rows of the vendor have the same address.
  if (!warnings.some((warning) => warning.message === message))
    warnings.push(source.problem(['providers', id, 'base_url'], message));
}

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
