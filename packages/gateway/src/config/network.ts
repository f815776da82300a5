/** How providers are reached: through a proxy or directly, and with which certificate authorities. */

import { createHash, X509Certificate } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { isLoopback } from '../providers/base-url.ts';
import type { SettingFiles } from './files.ts';
import { type Env, readEnv, Secret } from './secrets.ts';

/** How the servers of a provider are reached. */
export interface Network {
  /** Equal for equal networks, so that connections of others are not used. Contains no secret. */
  readonly id: string;
  readonly proxy?: OutboundProxy;
  /** Certificates in PEM that are trusted instead of the public ones. */
  readonly ca?: string;
}

/** A proxy that opens tunnels (CONNECT). */
export interface OutboundProxy {
  readonly origin: string;
  /** The value of `Proxy-Authorization`. */
  readonly authorization?: Secret;
  /** For redaction. */
  readonly password?: Secret;
}

/** Without a proxy, and with the certificates of node. */
export const DIRECT: Network = Object.freeze({ id: '' });

/** What is wrong with the address of a proxy; undefined when it is valid. Never quotes it. */
export function findProxyFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    return 'must be a URL starting with http:// or https://, or direct';
  return /^\/?$/.test(url.pathname) && url.search === '' && url.hash === ''
    ? undefined
    : 'must be scheme, host and port only, such as http://proxy.example:3128';
}

/** The settings of a provider that decide about its network. */
export interface NetworkOptions {
  /** The URL of a proxy, or `direct`. */
  readonly proxy?: Secret;
  readonly ca?: string;
}

interface NetworkContext {
  readonly env: Env;
  readonly files: SettingFiles;
  readonly warn: (message: string) => void;
}

/** The network for an origin. Throws a message about `ca`. */
export function chooseNetwork(origin: string, { proxy, ca }: NetworkOptions, { env, files, warn }: NetworkContext): Network {
  const url = proxy ? readSetting(proxy) : findEnvProxy(origin, env, warn);
  return buildNetwork(url, ca === undefined ? undefined : readCertificates(ca, files));
}

/** The network for an origin by the environment alone, for commands without a configuration. */
export const chooseEnvNetwork = (origin: string, env: Env, warn: (message: string) => void): Network =>
  buildNetwork(findEnvProxy(origin, env, warn), undefined);

function buildNetwork(url: URL | undefined, ca: string | undefined): Network {
  if (!url && ca === undefined) return DIRECT;
  return Object.freeze({
    id: createHash('sha256')
      .update(`${url?.href ?? ''}\n${ca ?? ''}`)
      .digest('base64url'),
    ...(url && { proxy: readProxy(url) }),
    ...(ca !== undefined && { ca }),
  });
}

const readSetting = (proxy: Secret): URL | undefined => (proxy.reveal() === 'direct' ? undefined : new URL(proxy.reveal()));

function readProxy({ origin, username, password }: URL): OutboundProxy {
  if (username === '' && password === '') return { origin };
  const words = [username, password].map(decode);
  const authorization = new Secret(`Basic ${Buffer.from(words.join(':')).toString('base64')}`);
  return { origin, authorization, password: new Secret(words[1] ?? '') };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The proxy of the environment. Lower case first, as in curl. A value without a scheme is an HTTP proxy. */
function findEnvProxy(origin: string, env: Env, warn: (message: string) => void): URL | undefined {
  const { protocol, hostname, port } = new URL(origin);
  const upper = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const name = readEnv(env, upper.toLowerCase()) === undefined ? upper : upper.toLowerCase();
  const value = readEnv(env, name);
  if (value === undefined || isLoopback(hostname)) return undefined;
  const excluded = readEnv(env, 'no_proxy') ?? readEnv(env, 'NO_PROXY') ?? '';
  if (isExcluded(excluded, hostname, port || (protocol === 'https:' ? '443' : '80'))) return undefined;
  const text = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  if (findProxyFault(text) === undefined) return new URL(text);
  warn(`${name} is not the http:// or https:// URL of a proxy and is ignored`);
  return undefined;
}

/** Whether `NO_PROXY` names a host: `*`, names and all below them, addresses, ranges (CIDR), each with or without a port. */
export function isExcluded(list: string, hostname: string, port: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => matchesEntry(entry, host, port));
}

function matchesEntry(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const [, bracketed, plain, entryPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [undefined, undefined, entry];
  if (entryPort !== undefined && entryPort !== port) return false;
  const name = bracketed ?? plain ?? '';
  if (isIP(host) !== 0) return matchesAddress(name, host);
  const suffix = name.replace(/^\*?\./, '');
  return suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`));
}

function matchesAddress(range: string, host: string): boolean {
  const [address = '', bits] = range.split('/', 2);
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  const size = family === 'ipv6' ? 128 : 32;
  const prefix = bits === undefined ? size : Number(bits);
  if (isIP(address) === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > size) return false;
  const list = new BlockList();
  list.addSubnet(address, prefix, family);
  return list.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4');
}

const MAX_CA_BYTES = 1024 * 1024;

function readCertificates(path: string, files: SettingFiles): string {
  const read = files.read(path, MAX_CA_BYTES);
  if ('fault' in read) throw new CertificateError(read.fault);
  const blocks = read.text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0 || !blocks.every(isCertificate))
    throw new CertificateError(`${files.resolve(path)} must contain certificates in PEM`);
  return blocks.join('\n');
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).fingerprint256 !== '';
  } catch {
    return false;
  }
}

/** The file of `ca` cannot be used. The message names it. */
export class CertificateError extends Error {}
