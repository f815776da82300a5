/** Base URLs of providers: checks, completion up to the endpoint, and addresses of this machine. */

import { BlockList, isIP } from 'node:net';
import type { ProtocolId } from '@sluice/core';
import type { ProviderRow } from './row.ts';

/** What is wrong with a base URL; undefined when it is valid. Never quotes the URL, which may contain a password. */
export function findUrlFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return 'must be a URL starting with http:// or https://';
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password; use api_key or headers';
  if (url.search !== '' || url.hash !== '') return 'must not have a query or fragment; use api_version or api_key';
  const endpoint = ENDPOINT.exec(url.pathname)?.[1];
  return endpoint === undefined ? undefined : `must not include the endpoint; remove /${endpoint}`;
}

const ENDPOINT = /\/(chat\/completions|completions|responses|messages|models|embeddings)\/?$/;

/** The base URL up to the endpoint. `path` is set to "" when core must not add a version path. */
export function completeBaseUrl(
  text: string,
  { protocol, api_version, row }: BaseUrlOptions,
): { base_url: string; path?: string } {
  const url = new URL(text);
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  const path = segments.map((segment) => `/${segment}`).join('');
  if (api_version !== undefined) return { base_url: url.origin + path };
  const root = row?.root ?? ROOTS[protocol];
  if (segments.length === 0) return { base_url: url.origin + root, ...(root === '' && { path: '' }) };
  const lacksVersion = VERSIONLESS_PROTOCOLS.has(protocol) && !segments.some((segment) => VERSION.test(segment));
  return { base_url: url.origin + path + (lacksVersion ? ROOTS[protocol] : '') };
}

interface BaseUrlOptions {
  protocol: ProtocolId;
  /** Azure with a dated version has its own paths, which core builds. */
  api_version?: string | undefined;
  row?: ProviderRow | undefined;
}

/** Version path that is added to a bare host, as the SDK of each protocol does. */
const ROOTS = {
  'openai-chat': '/v1',
  'openai-responses': '/v1',
  'anthropic-messages': '/v1',
  gemini: '/v1beta',
} as const satisfies Record<ProtocolId, string>;

/** Base URLs of these protocols end before the version, even below a path (`https://api.deepseek.com/anthropic`). */
const VERSIONLESS_PROTOCOLS: ReadonlySet<ProtocolId> = new Set(['anthropic-messages', 'gemini']);

const VERSION = /^v\d+((alpha|beta)\d*)?$/;

/**
 * A URL from `OLLAMA_HOST`, which is what the server listens on: a host, a port, both, or a URL. A wildcard address
 * becomes the loopback address.
 */
export function parseHost(text: string, defaultPort: number): string {
  const hasScheme = /^https?:\/\//i.test(text);
  const named = text.startsWith(':') ? `127.0.0.1${text}` : text;
  if (!URL.canParse(hasScheme ? named : `http://${named}`)) return text;
  const url = new URL(hasScheme ? named : `http://${named}`);
  // URL drops the default port of the scheme, so an explicit ":80" must be found in the text.
  const hasPort = /:\d+(\/|$)/.test(named.replace(/^https?:\/\//i, ''));
  if (url.port === '' && !hasScheme && !hasPort) url.port = String(defaultPort);
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return url.href.replace(/\/$/, '');
}

/** Whether a URL is the gateway itself. A shell that is set up for clients of the gateway has such variables. */
export function pointsAt(baseUrl: string, { host, port }: { host: string; port: number }): boolean {
  if (!URL.canParse(baseUrl)) return false;
  const url = new URL(baseUrl);
  const urlPort = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  if (urlPort !== port || port === 0) return false;
  return isLoopback(url.hostname) || ANY_ADDRESS.test(url.hostname) || url.hostname === host.toLowerCase();
}

const ANY_ADDRESS = /^(0\.0\.0\.0|\[?::\]?)$/;

/** Whether a host can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  if (/^localhost\.?$/i.test(host)) return true;
  const address = host.replace(/^\[|\]$/g, '');
  const family = isIP(address);
  return family !== 0 && LOOPBACK.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

const LOOPBACK = new BlockList();

// IPv4-mapped IPv6 addresses (::ffff:127.0.0.1) match as well.
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');

LOOPBACK.addAddress('::1', 'ipv6');
