/**
 * Finds the gateway of a command. An address that the user has named is used as it is. At every other one the gateway must be that of
 * the configuration, so that a command never changes the keys of another project.
 */

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { oneLine } from '@sluice/lab/text';
import { isLoopback } from '../providers/base-url.ts';
import { digestConfig } from '../server/instance.ts';
import { StoreError } from '../store/errors.ts';
import { UsageError } from '../terminal/errors.ts';
import type { CliIo } from '../terminal/io.ts';
import { describeData, type Home, type HomeIo, readHome } from './home.ts';
import { MISSING_GATEWAY, probeGateway } from './probe.ts';

/** The options that choose a gateway. */
export interface GatewayOptions {
  readonly url: string | undefined;
  readonly config: string | undefined;
}

/** The part of the outside world that a gateway is looked for in. */
export type GatewayIo = HomeIo & Pick<CliIo, 'defaultUrl'>;

/** What was looked at, and what was found there. */
interface Finding {
  readonly place: string;
  readonly found: string;
  /** The address; absent where there was none. */
  readonly url?: string;
  readonly state: 'other' | 'none';
}

/** The gateway that the user has named. Whether it runs is not known yet. */
interface NamedGateway {
  readonly kind: 'named';
  readonly url: string;
  readonly place: NamedSource['place'];
}

/** The running gateway of the configuration. */
interface OwnGateway {
  readonly kind: 'own';
  readonly url: string;
  readonly home: Home;
}

/** No gateway of the configuration runs. */
export interface NoGateway {
  readonly kind: 'none';
  /** Where it would listen; undefined when that is any free port. */
  readonly url: string | undefined;
  /** Where another gateway responds instead; undefined when none does. */
  readonly other: string | undefined;
  readonly home: Home;
  readonly trail: readonly Finding[];
}

/** Where an address comes from: the user, or a place where the gateway of the configuration may be. */
interface NamedSource {
  readonly place: '--url' | 'SLUICE_URL';
  /** How the user takes it back. */
  readonly undo: string;
  readonly absent: string;
  readonly read: (options: GatewayOptions, io: GatewayIo) => string | undefined;
}

interface FoundSource {
  readonly place: (home: Home) => string;
  /** The address, or why there is none. */
  readonly look: (home: Home, io: GatewayIo) => Lead | Promise<Lead>;
}

type Lead = { readonly url: string } | { readonly absent: string };

/** Every source of an address. The first of them that has a gateway counts. */
const SOURCES = {
  named: [
    { place: '--url', undo: 'omit it', absent: 'not given', read: ({ url }) => url },
    { place: 'SLUICE_URL', undo: 'unset it', absent: 'not set', read: (_, { env }) => env['SLUICE_URL'] || undefined },
  ],
  found: [
    { place: ({ file }) => (file === undefined ? 'sluice.yaml' : oneLine(file)), look: findConfigured },
    { place: ({ data }) => oneLine(describeData(data)), look: findHolding },
    { place: () => 'default address', look: findDefault },
  ],
} as const satisfies { named: readonly NamedSource[]; found: readonly FoundSource[] };

/** Looks at the sources in their order. */
export async function findGateway(options: GatewayOptions, io: GatewayIo): Promise<NamedGateway | OwnGateway | NoGateway> {
  for (const { place, read } of SOURCES.named) {
    const text = read(options, io);
    if (text !== undefined) return { kind: 'named', url: parseAddress(place, text), place };
  }
  const home = await readHome(options.config, io);
  const trail: Finding[] = SOURCES.named.map(({ place, absent }) => ({ place, found: absent, state: 'none' }));
  for (const { place, look } of SOURCES.found) {
    const result = await examine(await look(home, io), home);
    if (result.state === 'own') return { kind: 'own', url: result.url, home };
    trail.push({ place: place(home), ...result });
  }
  const [url] = listAddresses(trail);
  return { kind: 'none', url, other: trail.find(({ state }) => state === 'other')?.url, home, trail };
}

/** Throws unless a gateway responds at the address that the user has named. */
export async function requireGateway({ url, place }: NamedGateway): Promise<void> {
  const { state } = await probeGateway(url);
  if (state === 'gateway') return;
  const undo = SOURCES.named.find((source) => source.place === place)?.undo ?? '';
  throw new UsageError(MISSING_GATEWAY[state](url, place, undo));
}

const listAddresses = (trail: readonly Finding[]): string[] => trail.flatMap(({ url }) => url ?? []);

/** What was found at addresses, in one line. The configuration and the data folder may have the same one. */
export function summarize({ trail }: NoGateway): string {
  const found = trail.filter(({ url }) => url !== undefined).map((finding) => finding.found);
  return found.length === 0 ? 'no gateway was found' : [...new Set(found)].join('; ');
}

/** All that was looked at, one line each. */
export const formatTrail = (trail: readonly Finding[]): string =>
  ['Looked at:', ...trail.map(({ place, found }) => `  ${place}: ${found}`)].join('\n');

// ---- addresses

/** The address where a gateway listens unless it is configured. */
const DEFAULT_URL = 'http://127.0.0.1:4141';

/** Parses an address that the user has named. A version path is removed because each client adds its own. */
function parseAddress(name: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && (url.username !== '' || url.password !== ''))
    throw new UsageError(`${name} must not contain a user name or password; use --key, or SLUICE_ADMIN_KEY`);
  const isUsable = url !== undefined && /^https?:$/.test(url.protocol) && url.search === '';
  // What is before an "@" may be a password.
  const shown = text.includes('@') ? '' : `, not "${oneLine(text.slice(0, 200))}"`;
  if (!isUsable) throw new UsageError(`${name} must be an address such as ${DEFAULT_URL}${shown}`);
  return url.origin + url.pathname.replace(/\/+(v1(beta)?)?\/*$/, '');
}

/** The address of `listen` in the configuration. */
function findConfigured({ file, listen }: Home): Lead {
  if (file === undefined) return { absent: 'no such file in this folder' };
  if (listen === undefined) return { absent: 'has no listen' };
  const { host, port, tls } = listen;
  if (port === 0) return { absent: 'listen.port is 0, any free port' };
  const url = buildUrl(tls ? 'https' : 'http', host, port);
  return url === undefined ? { absent: 'listen.host is not an address that can be connected to' } : { url };
}

function buildUrl(scheme: string, host: string, port: number): string | undefined {
  const text = `${scheme}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  return /[/@?#\\\s]/.test(host) || !URL.canParse(text) ? undefined : connectable(new URL(text)).origin;
}

/** Replaces a wildcard address, which clients cannot connect to. */
function connectable(url: URL): URL {
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  return url;
}

/** The address of the process that owns the data folder. */
async function findHolding({ data }: Home): Promise<Lead> {
  if (data.kind !== 'folder') return { absent: 'has no lock with an address' };
  const { findHolder } = await loadStore();
  const holder = findHolder(data.folder);
  switch (holder.state) {
    case 'free':
      return { absent: 'not in use' };
    case 'unknown':
      return { absent: `its lock cannot be read (${holder.code})` };
    case 'held': {
      const owner = holder.owner === undefined ? 'a process' : `process ${holder.owner.pid}`;
      const url = findLocalUrl(holder.owner?.url ?? '');
      return url === undefined ? { absent: `in use by ${owner}, which has no address` } : { url };
    }
  }
}

/** On demand: it loads SQLite. */
const loadStore = (): Promise<typeof import('../store/index.ts')> => import('../store/index.ts');

/** Gateways write addresses of this machine only. Another one would get the admin key. */
function findLocalUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? connectable(new URL(text)) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return isIP(host) !== 0 && (isLoopback(host) || isOwnAddress(host)) ? url.origin : undefined;
}

const isOwnAddress = (host: string): boolean =>
  Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === host));

function findDefault({ listen }: Home, { defaultUrl = DEFAULT_URL }: GatewayIo): Lead {
  return listen === undefined ? { url: defaultUrl } : { absent: 'not used, because the file has listen' };
}

// ---- identity

/** What is at an address: the gateway of the configuration, another one, or none. */
type Examined = { readonly state: 'own'; readonly url: string } | Omit<Finding, 'place'>;

async function examine(lead: Lead, home: Home): Promise<Examined> {
  if ('absent' in lead) return { state: 'none', found: lead.absent };
  const { url } = lead;
  const { state, instance } = await probeGateway(url);
  switch (state) {
    case 'nothing':
      return { state: 'none', url, found: `no gateway responds at ${url}` };
    case 'untrusted':
      return { state: 'none', url, found: `the certificate of ${url} is not trusted, or names another host` };
    case 'other':
      return { state: 'none', url, found: `the server at ${url} is not a Sluice gateway` };
    case 'gateway': {
      const fault = await findFault(instance, home);
      return fault === undefined ? { state: 'own', url } : { state: 'other', url, found: `the gateway at ${url} ${fault}` };
    }
  }
}

/** Why a gateway is not the one of the configuration; undefined when it is. */
async function findFault(instance: string | undefined, { file, data }: Home): Promise<string | undefined> {
  if (instance === undefined) return 'is of another version and cannot be identified';
  if (instance === digestConfig(file)) return undefined;
  switch (data.kind) {
    case 'memory':
      return 'is another one';
    case 'folder': {
      const { findHolder } = await loadStore();
      const holder = findHolder(data.folder);
      if (holder.state === 'unknown') return `cannot be identified: the lock of the data folder cannot be read (${holder.code})`;
      return holder.state === 'held' && holder.owner?.boot === instance ? undefined : 'is another one';
    }
    case 'database':
      return findDatabaseFault(data.url, instance);
  }
}

async function findDatabaseFault(url: string, instance: string): Promise<string | undefined> {
  const { hasLiveNode } = await loadStore();
  try {
    return (await hasLiveNode(url, instance)) ? undefined : 'is another one';
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return `cannot be identified: ${oneLine(error.message)}`;
  }
}
