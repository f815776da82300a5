import { BlockList, isIP } from 'node:net';
import type { ProtocolId } from '@sluice/core';
import type { ProviderRow } from './row.ts';

/** What a bare host is followed by: the version that each SDK adds by itself. */
const ROOTS = {
  'openai-chat': '/v1',
  'openai-responses': '/v1',
  'anthropic-messages': '/v1',
  gemini: '/v1beta',
} as const satisfies Record<ProtocolId, string>;

/** By custom a base URL of these ends before the version, also below a path (`https://api.deepseek.com/anthropic`). */
const VERSION_IS_ADDED: ReadonlySet<ProtocolId> = new Set(['anthropic-messages', 'gemini']);

const VERSION = /^v\d+((alpha|beta)\d*)?$/;

const ENDPOINT = /\/(chat\/completions|completions|responses|messages|models|embeddings)\/?$/;

/** What is wrong with a base URL, or undefined. Nothing of the URL is repeated: it may carry a password. */
export function faultOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return 'must be a URL that begins with http:// or https://';
  if (url.username !== '' || url.password !== '') return 'must not carry a user or a password: use api_key or headers';
  if (url.search !== '' || url.hash !== '') return 'must not have a query or a fragment: use api_version or api_key';
  const endpoint = ENDPOINT.exec(url.pathname)?.[1];
  return endpoint === undefined ? undefined : `must end before the endpoint: leave off /${endpoint}`;
}

interface Shape {
  protocol: ProtocolId;
  /** Azure with a dated version has paths of its own, which core builds. */
  api_version?: string | undefined;
  row?: ProviderRow | undefined;
}

/** The base URL up to the endpoint. `path` is set where nothing may come in between, and core would add the version. */
export function completeBaseUrl(text: string, { protocol, api_version, row }: Shape): { base_url: string; path?: string } {
  const url = new URL(text);
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  const path = segments.map((segment) => `/${segment}`).join('');
  if (api_version !== undefined) return { base_url: url.origin + path };
  const root = row?.root ?? ROOTS[protocol];
  if (segments.length === 0) return { base_url: url.origin + root, ...(root === '' && { path: '' }) };
  const lacksVersion = VERSION_IS_ADDED.has(protocol) && !segments.some((segment) => VERSION.test(segment));
  return { base_url: url.origin + path + (lacksVersion ? ROOTS[protocol] : '') };
}

/**
 * `OLLAMA_HOST` is what the server listens on: a host, a port, both, or a URL. A server that listens on every address is reached on this
 * machine.
 */
export function fromHost(text: string, defaultPort: number): string {
  const hasScheme = /^https?:\/\//i.test(text);
  const named = text.startsWith(':') ? `127.0.0.1${text}` : text;
  if (!URL.canParse(hasScheme ? named : `http://${named}`)) return text;
  const url = new URL(hasScheme ? named : `http://${named}`);
  // The port of the scheme is no port to URL: 80 has to be looked for in the text.
  const hasPort = /:\d+(\/|$)/.test(named.replace(/^https?:\/\//i, ''));
  if (url.port === '' && !hasScheme && !hasPort) url.port = String(defaultPort);
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return url.href.replace(/\/$/, '');
}

const LOOPBACK = new BlockList();

// IPv6 spellings of these (::ffff:127.0.0.1) match as well.
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');

LOOPBACK.addAddress('::1', 'ipv6');

const ANY_ADDRESS = /^(0\.0\.0\.0|\[?::\]?)$/;

/** A host that only this machine reaches. */
export function isLoopback(host: string): boolean {
  if (/^localhost\.?$/i.test(host)) return true;
  const address = host.replace(/^\[|\]$/g, '');
  const family = isIP(address);
  return family !== 0 && LOOPBACK.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/** Whether a URL leads to the gateway itself: a shell that was set up for its clients says so of every provider. */
export function leadsTo(baseUrl: string, { host, port }: { host: string; port: number }): boolean {
  if (!URL.canParse(baseUrl)) return false;
  const url = new URL(baseUrl);
  const urlPort = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  if (urlPort !== port || port === 0) return false;
  return isLoopback(url.hostname) || ANY_ADDRESS.test(url.hostname) || url.hostname === host.toLowerCase();
}
