/** Builds the providers from the file and the environment. */

import type { ProtocolId, Provider } from '@sluice/core';
import { didYouMean } from '@sluice/lab/text';
import { completeBaseUrl, pointsAt } from '../providers/base-url.ts';
import { findProfileId, findRow, isOwnAddress, listVendorRows, PROVIDER_IDS } from '../providers/lookup.ts';
import type { ProviderRow } from '../providers/row.ts';
import type { ProviderId } from '../providers/table.ts';
import { CertificateError, chooseNetwork, DIRECT, type Network } from './network.ts';
import {
  type Limits,
  type OnMalformed,
  type Passthrough,
  PROVIDER_LIMITS,
  type ProviderLimits,
  type ProviderOptions,
} from './options.ts';
import { findAddress, findKey, findVersion, type Lookup, type Secret } from './secrets.ts';
import { describeOwnAddress, type ResolveContext, warn } from './world.ts';

/** Providers of the file, those whose key or address is in the environment, and the demo. */
export function configureProviders(world: ResolveContext): ReadonlyMap<string, ConfiguredProvider> {
  const { providers: configured, limits } = world.source.options;
  const providers = new Map<string, ConfiguredProvider>();
  for (const [id, settings] of Object.entries(configured)) {
    const provider = settings === false ? undefined : buildFromFile(id, settings, world);
    if (provider) providers.set(id, provider);
  }
  for (const id of PROVIDER_IDS) {
    if (Object.hasOwn(configured, id)) continue;
    const provider = buildFromVendor(id, providers, world);
    if (provider) providers.set(id, provider);
  }
  return providers.set(DEMO_ID, buildDemoProvider(pickTimes(limits)));
}

/** Settings of a vendor apply to all its rows with the same address. */
function buildFromVendor(
  id: ProviderId,
  providers: ReadonlyMap<string, ConfiguredProvider>,
  world: ResolveContext,
): ConfiguredProvider | undefined {
  const vendor = findProfileId(id);
  const row = findRow(id);
  const { providers: configured } = world.source.options;
  const settings = Object.hasOwn(configured, vendor) ? configured[vendor] : undefined;
  if (!row || settings === false) return undefined;
  if (!settings) return buildFromEnvironment(id, row, world);
  const isElsewhere = settings.base_url !== undefined && findRow(vendor)?.base_url !== row.base_url;
  if (!providers.has(vendor) || isElsewhere || settings.extends !== undefined) return undefined;
  const { protocol: _, profile: __, path: ___, ...shared } = settings;
  return buildFromFile(id, shared, world);
}

/** A provider that the file does not mention is used when its key is set; a local server, when its address is. */
function buildFromEnvironment(id: ProviderId, row: ProviderRow, world: ResolveContext): ConfiguredProvider | undefined {
  const { env, source } = world;
  const key = findKey(env, row);
  if (row.local ? findAddress(env, row) === undefined : key === undefined) return undefined;
  const address = chooseAddress(row, world);
  for (const found of [key, address]) {
    if (!found || !('fault' in found)) continue;
    warn(world, `${found.from} ${found.fault}; provider "${id}" is skipped`);
    return undefined;
  }
  if (!address || 'fault' in address) return undefined;
  const api_version = findVersion(env, row);
  return buildProvider({
    id,
    protocol: row.protocol,
    address: address.value,
    settings: {},
    network: readNetwork(address.value, {}, world),
    limits: source.options.limits,
    ...(key && 'value' in key && { key: { secret: key.value.key, from: key.from, isToken: key.value.isToken } }),
    ...(api_version !== undefined && { api_version }),
  });
}

/** The address in the environment, unless it is our own; else that of the table. */
function chooseAddress(row: ProviderRow, world: ResolveContext): Lookup<string> {
  const found = findAddress(world.env, row);
  const tableAddress = row.base_url === undefined || row.local ? undefined : { value: row.base_url, from: 'table' };
  if (found === undefined) return tableAddress;
  if ('fault' in found || !pointsAt(found.value, world.listen)) return found;
  warn(world, describeOwnAddress(found.from));
  return tableAddress;
}

/** A provider of the file; undefined when its settings are invalid. Defaults come from the row it extends. */
function buildFromFile(id: string, settings: ProviderOptions, world: ResolveContext): ConfiguredProvider | undefined {
  const { source, problems } = world;
  try {
    const [first, ...others] = splitEndpoints(settings).map((own) => buildProvider(buildDraft(id, own, world)));
    return first && others.length > 0 ? Object.freeze({ ...first, others }) : first;
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    const isSet = error.setting !== undefined && Object.hasOwn(settings, error.setting);
    problems.push(source.problem(['providers', id, ...(isSet ? [error.setting] : [])], error.message, isSet ? 'value' : 'key'));
    return undefined;
  }
}

/** The settings of every key at every address. */
function splitEndpoints(settings: ProviderOptions): ProviderOptions[] {
  const { base_urls, api_keys, ...shared } = settings;
  if (base_urls && settings.base_url !== undefined)
    throw new SettingError('cannot be combined with base_url; use one of them', 'base_urls');
  if (api_keys && settings.api_key) throw new SettingError('cannot be combined with api_key; use one of them', 'api_keys');
  const addresses = base_urls ? base_urls.map((base_url) => ({ ...shared, base_url })) : [shared];
  const endpoints = addresses.flatMap((own) => (api_keys ? api_keys.map((api_key) => ({ ...own, api_key })) : [own]));
  if (endpoints.length > MAX_ENDPOINTS)
    throw new SettingError(`must have at most ${MAX_ENDPOINTS} combinations of base_urls and api_keys`);
  return endpoints;
}

const MAX_ENDPOINTS = 64;

/** A problem with a setting of a provider. */
class SettingError extends Error {
  readonly setting: string | undefined;

  constructor(message: string, setting?: string) {
    super(message);
    this.setting = setting;
  }
}

function buildDraft(id: string, settings: ProviderOptions, world: ResolveContext): Draft {
  const { rowId, row, protocol } = findBaseRow(id, settings);
  const address = readAddress(settings, row, world);
  const isOwn = row !== undefined && (settings.base_url === undefined || isOwnAddress(row, address));
  const key = readKey(settings, isOwn ? row : undefined, world);
  if (row && !isOwn && key === undefined) warnOfKey(id, row, world);
  const api_version = settings.api_version ?? (row && findVersion(world.env, row));
  return {
    id,
    protocol,
    address,
    settings,
    network: readNetwork(address, settings, world),
    limits: world.source.options.limits,
    ...(rowId !== undefined && { rowId }),
    ...(key && { key }),
    ...(api_version !== undefined && { api_version }),
  };
}

/** How an address is reached. */
function readNetwork(address: string, settings: ProviderOptions, world: ResolveContext): Network {
  const { env, source } = world;
  try {
    const context = { env, files: source.files, warn: (message: string) => warn(world, message) };
    return chooseNetwork(new URL(address).origin, settings, context);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    throw new SettingError(error.message, 'ca');
  }
}

interface BaseRow {
  rowId?: string;
  row?: ProviderRow;
  protocol: ProtocolId;
}

/** Finds the row that a provider extends, and its protocol. */
function findBaseRow(id: string, settings: ProviderOptions): BaseRow {
  if (id === DEMO_ID) throw new SettingError('is built in and cannot be configured');
  const named = settings.extends ?? id;
  const row = findRow(named);
  if (!row && settings.extends !== undefined)
    throw new SettingError(`is not a known provider${didYouMean(named, PROVIDER_IDS)}`, 'extends');
  if (!row) return { protocol: readOwnProtocol(id, settings) };
  const { protocol = row.protocol } = settings;
  if (protocol === row.protocol || settings.base_url !== undefined) return { rowId: named, row, protocol };
  const sibling = listVendorRows(named).find((other) => findRow(other)?.protocol === protocol);
  if (sibling === undefined) throw new SettingError(`${named} has no known ${protocol} endpoint; set base_url`, 'protocol');
  return { rowId: sibling, row: findRow(sibling) ?? row, protocol };
}

/** A name without a row: the operator's own provider, or a typo. */
function readOwnProtocol(id: string, { protocol, base_url }: ProviderOptions): ProtocolId {
  if (protocol !== undefined && base_url !== undefined) return protocol;
  const lacking = protocol !== undefined ? 'base_url' : base_url !== undefined ? 'protocol' : 'protocol and base_url';
  throw new SettingError(`is not a known provider${didYouMean(id, PROVIDER_IDS)} (a custom provider needs ${lacking})`);
}

function readAddress({ base_url, api_key }: ProviderOptions, row: ProviderRow | undefined, world: ResolveContext): string {
  const { env, listen } = world;
  if (base_url !== undefined) {
    if (pointsAt(base_url, listen)) throw new SettingError('must not be the address of the gateway itself', 'base_url');
    return base_url;
  }
  // A key of the file belongs to the vendor, so an address in the environment is ignored.
  if (api_key && row?.base_url !== undefined && !row.local) return row.base_url;
  const found = row && findAddress(env, row);
  if (found && 'fault' in found) throw new SettingError(`${found.from} ${found.fault}`);
  if (found && !pointsAt(found.value, listen)) return found.value;
  if (found) warn(world, describeOwnAddress(found.from));
  if (row?.base_url !== undefined) return row.base_url;
  throw new SettingError(`requires base_url${row?.base_env ? `, or ${row.base_env.join(' or ')} in the environment` : ''}`);
}

const CREDENTIAL_HEADER = /^(authorization|x-api-key|x-goog-api-key|api-key)$/i;

/** The key of the file, or else of the environment, but only for an address of the vendor it belongs to. */
function readKey(settings: ProviderOptions, own: ProviderRow | undefined, { env }: ResolveContext): Draft['key'] {
  if (settings.api_key) return { secret: settings.api_key, from: 'file', isToken: false };
  if (Object.keys(settings.headers ?? {}).some((name) => CREDENTIAL_HEADER.test(name)) || !own) return undefined;
  const found = findKey(env, own);
  if (found && 'fault' in found) throw new SettingError(`${found.from} ${found.fault}`);
  if (found) return { secret: found.value.key, from: found.from, isToken: found.value.isToken };
  if (own.local) return undefined;
  throw new SettingError(`has no API key; set ${[...own.key_env, ...(own.token_env ?? [])].join(' or ')}, or api_key`);
}

function warnOfKey(id: string, row: ProviderRow, { env, source, warnings }: ResolveContext): void {
  const found = findKey(env, row);
  if (found === undefined) return;
  const message = `${found.from} is not sent to this address; to allow it, set api_key: \${${found.from}}`;
  // Several rows of a vendor share an address and would repeat the warning.
  if (!warnings.some((warning) => warning.message === message))
    warnings.push(source.problem(['providers', id, 'base_url'], message));
}

/** Everything decided about a provider, from the file or the environment. */
interface Draft {
  readonly id: string;
  /** The row that it is or extends. */
  readonly rowId?: string;
  readonly protocol: ProtocolId;
  readonly address: string;
  readonly key?: { readonly secret: Secret; readonly from: string; readonly isToken: boolean };
  readonly api_version?: string;
  readonly settings: ProviderOptions;
  readonly network: Network;
  readonly limits: Limits;
}

function buildProvider(draft: Draft): ConfiguredProvider {
  const { id, rowId = id, key, settings, network, limits } = draft;
  const row = findRow(rowId);
  const provider = buildCoreProvider(draft, row);
  const official = isOfficial(row, provider);
  return Object.freeze({
    id,
    title: row && rowId === id ? row.title : id,
    provider,
    profileId: findProfileId(rowId),
    origin: new URL(provider.base_url).origin,
    ...(key && { key: key.secret, keyFrom: key.from }),
    headers: settings.headers ?? {},
    network,
    official,
    local: row?.local ?? false,
    repair: settings.repair ?? !official,
    drains: settings.on_disconnect === 'drain',
    passthrough: settings.passthrough ?? 'known',
    onMalformed: settings.on_malformed ?? 'fail',
    times: { ...pickTimes(limits), ...settings.times },
    isDemo: false,
  });
}

/** At another address it is a server that claims to be the vendor. */
const isOfficial = (row: ProviderRow | undefined, { protocol, base_url }: Provider): boolean =>
  row?.official === true && row.protocol === protocol && isOwnAddress(row, base_url);

function buildCoreProvider({ id, protocol, address, key, api_version, settings }: Draft, row: ProviderRow | undefined): Provider {
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
  return Object.fromEntries(PROVIDER_LIMITS.map((key) => [key, limits[key]])) as ProviderLimits; // every key is set
}

/** A provider that can be called. `unlock` adds its secrets for sending. */
export interface ConfiguredProvider {
  readonly id: string;
  readonly title: string;
  /** The provider for core, without secrets. */
  readonly provider: Provider;
  /** The id of its profile in core: `profileFor(profileId, model)`. */
  readonly profileId: string;
  /** Scheme, host and port that the key belongs to; it is sent nowhere else. */
  readonly origin: string;
  readonly key?: Secret;
  /** Where the key comes from: a variable, or `file`. */
  readonly keyFrom?: string;
  readonly headers: Readonly<Record<string, Secret>>;
  /** How its servers are reached. */
  readonly network: Network;
  /** The vendor that defines the protocol, at its own address. */
  readonly official: boolean;
  readonly local: boolean;
  /** Decode and encode streams even if client and provider have the same protocol. */
  readonly repair: boolean;
  /** Read a response to its end after its client has left. */
  readonly drains: boolean;
  /** Endpoints that are passed on without conversion. */
  readonly passthrough: Passthrough;
  /** What happens to an event of a stream whose data is not JSON. */
  readonly onMalformed: OnMalformed;
  readonly times: ProviderLimits;
  /** The same provider with its other keys and at its other addresses, if there are any. */
  readonly others?: readonly ConfiguredProvider[];
  /** The built-in model, which has no address. */
  readonly isDemo: boolean;
}

/** A provider with each of its keys at each of its addresses. */
export const listEndpoints = (provider: ConfiguredProvider): readonly ConfiguredProvider[] => [
  provider,
  ...(provider.others ?? []),
];

/** The provider with its secrets, as `buildHeaders` needs it. For sending to `origin` only. */
export function unlock({ provider, key, headers }: ConfiguredProvider): Provider {
  const secret = Object.entries(headers).map(([name, value]) => [name, value.reveal()]);
  return {
    ...provider,
    ...(key && { api_key: key.reveal() }),
    ...(secret.length > 0 && { adapter_config: { ...provider.adapter_config, headers: Object.fromEntries(secret) } }),
  };
}

/** Id of the built-in demo model. */
export const DEMO_ID = 'demo';

/** The built-in model. It supports every protocol; `protocol` and `base_url` only satisfy the type. */
function buildDemoProvider(times: ProviderLimits): ConfiguredProvider {
  const base_url = 'http://demo.invalid/v1';
  return {
    id: DEMO_ID,
    title: 'built-in demo model',
    provider: { id: DEMO_ID, protocol: 'openai-chat', base_url },
    profileId: DEMO_ID,
    origin: new URL(base_url).origin,
    headers: {},
    network: DIRECT,
    official: false,
    local: true,
    repair: true,
    drains: false,
    passthrough: 'off',
    onMalformed: 'fail',
    times,
    isDemo: true,
  };
}
