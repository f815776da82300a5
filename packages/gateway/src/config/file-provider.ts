import type { ProtocolId } from '@sluice/core';
import { didYouMean } from '../cli/suggest.ts';
import { leadsTo } from '../providers/base-url.ts';
import { isOwnAddress, PROVIDER_IDS, rowOf, rowsOf } from '../providers/lookup.ts';
import type { ProviderRow } from '../providers/row.ts';
import { addressIn, keyIn, versionIn } from './environment.ts';
import type { ProviderOptions } from './options.ts';
import { type ConfiguredProvider, DEMO_ID } from './provider.ts';
import { configured, type Draft } from './provider-draft.ts';
import { isOurs, type World, warn } from './world.ts';

/** A step that did not succeed: what is wrong, and with which setting. */
class Fault extends Error {
  readonly setting: string | undefined;

  constructor(message: string, setting?: string) {
    super(message);
    this.setting = setting;
  }
}

/** A provider as the file describes it; undefined when that does not do. What it leaves out is as in the row it is like. */
export function fromFile(id: string, settings: ProviderOptions, world: World): ConfiguredProvider | undefined {
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
