/** Who is at the other end of a request: the peer, or the client that a trusted proxy names. */

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4 } from 'node:net';

/** Addresses and ranges: those of trusted proxies, and those that a key may be used from. */
export class AddressRanges {
  readonly #list = new BlockList();
  readonly isEmpty: boolean;

  /** Addresses and ranges, as `findRangeFault` accepts them. */
  constructor(ranges: readonly string[]) {
    this.isEmpty = ranges.length === 0;
    for (const range of ranges) {
      const [address = '', bits] = range.split('/', 2);
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      this.#list.addSubnet(address, Number(bits ?? (family === 'ipv4' ? 32 : 128)), family);
    }
  }

  /** Whether an address is one of them. */
  has(address: string): boolean {
    const family = isIP(address);
    return !this.isEmpty && family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  }
}

/** What is wrong with an address or range (CIDR); undefined when it is valid. */
export function findRangeFault(text: string): string | undefined {
  const [, address = '', bits] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  if (family === 0) return RANGE_ERROR;
  return Number(bits ?? 0) > (family === 4 ? 32 : 128) ? RANGE_ERROR : undefined;
}

/** The same for proxies, which must not be everybody. */
export const findProxyRangeFault = (text: string): string | undefined =>
  /\/0+$/.test(text) ? 'must not contain all addresses: every client could choose its own' : findRangeFault(text);

const RANGE_ERROR = 'must be an address or a range such as 10.0.0.0/8 or fd00::/8';

/** The client of a request. */
export interface ClientAddress {
  /** An IP address; `unknown` when a trusted proxy sent headers that name none. `unknown` is in no range. */
  readonly address: string;
  /** Whether the peer is a trusted proxy. Such a request is never local, whatever its headers say. */
  readonly isProxied: boolean;
  /** The scheme that the client used. */
  readonly scheme: 'http' | 'https';
  /** The host that the client used, if the proxy says so. */
  readonly host: string | undefined;
}

/** The parts of a request that name its client. */
export type AddressedRequest = Pick<IncomingMessage, 'headers'> & {
  readonly socket: { readonly remoteAddress?: string | undefined; readonly encrypted?: unknown };
};

/** Finds the client. The headers of anybody but a trusted proxy are ignored, because every client can send them. */
export function readClientAddress({ socket, headers }: AddressedRequest, proxies: AddressRanges): ClientAddress {
  const peer = normalize(socket.remoteAddress ?? '') ?? UNKNOWN;
  const scheme = socket.encrypted === true ? 'https' : 'http';
  if (proxies.isEmpty || !proxies.has(peer)) return { address: peer, isProxied: false, scheme, host: undefined };
  const forwarded = readText(headers['forwarded']);
  const chain = readText(headers['x-forwarded-for']);
  const standard = forwarded === undefined ? undefined : walkForwarded(forwarded, proxies);
  const common = chain === undefined ? undefined : walkChain(chain, proxies);
  // The proxy writes one of them; a client may have sent the other.
  const isAmbiguous = standard && common !== undefined && standard.address !== common;
  return {
    address: isAmbiguous ? UNKNOWN : (common ?? standard?.address ?? peer),
    isProxied: true,
    scheme: readScheme(readLast(headers['x-forwarded-proto']) ?? standard?.proto) ?? scheme,
    host: readHost(readLast(headers['x-forwarded-host']) ?? standard?.host),
  };
}

/** The address of a client that cannot be known. */
const UNKNOWN = 'unknown';

/** More proxies in a row are a mistake or an attack. */
const MAX_HOPS = 32;

/** Walks from the nearest hop to the first that is not a trusted proxy. */
function walkChain(chain: string, proxies: AddressRanges): string {
  let address = UNKNOWN;
  let hops = 0;
  for (const hop of readBackwards(chain, ',')) {
    address = (++hops <= MAX_HOPS ? parseNode(hop) : undefined) ?? UNKNOWN;
    if (!proxies.has(address)) return address;
  }
  return address;
}

interface ForwardedClient {
  address: string;
  proto: string | undefined;
  host: string | undefined;
}

/** The same for `Forwarded` (RFC 7239), whose elements also have the scheme and the host. */
function walkForwarded(header: string, proxies: AddressRanges): ForwardedClient {
  let client: ForwardedClient = { address: UNKNOWN, proto: undefined, host: undefined };
  let hops = 0;
  for (const element of readBackwards(header, ',')) {
    const pairs = readPairs(element);
    const address = (++hops <= MAX_HOPS ? parseNode(pairs.get('for') ?? '') : undefined) ?? UNKNOWN;
    client = { address, proto: pairs.get('proto'), host: pairs.get('host') };
    if (!proxies.has(address)) return client;
  }
  return client;
}

/** The parts of a text from the last to the first, without splitting it: only the last ones are needed. Quotes protect separators. */
function* readBackwards(text: string, separator: ',' | ';'): Iterable<string> {
  let end = text.length;
  let isQuoted = false;
  for (let at = text.length - 1; at >= 0; at--) {
    if (text[at] === '"') isQuoted = !isQuoted;
    if (text[at] !== separator || isQuoted) continue;
    yield text.slice(at + 1, end).trim();
    end = at;
  }
  yield text.slice(0, end).trim();
}

/** `for=192.0.2.1;proto=https` */
function readPairs(element: string): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  let count = 0;
  for (const pair of readBackwards(element, ';')) {
    if (++count > MAX_PAIRS) break;
    const at = pair.indexOf('=');
    if (at > 0) pairs.set(pair.slice(0, at).trim().toLowerCase(), pair.slice(at + 1).trim());
  }
  return pairs;
}

/** The standard has four; proxies may add their own. */
const MAX_PAIRS = 16;

/** The address of a hop: with or without a port, quotes and brackets. Undefined for `unknown`, `_hidden` and anything else. */
function parseNode(text: string): string | undefined {
  if (text.length > MAX_NODE_LENGTH) return undefined;
  const [, bracketed, plain] = NODE.exec(text.replace(/^"(.*)"$/, '$1')) ?? [];
  return normalize(bracketed ?? plain ?? text);
}

/** `[2001:db8::1]:4711`, `[2001:db8::1]`, `192.0.2.1:4711`. A bare IPv6 address has no port. */
const NODE = /^(?:\[([\da-f:.]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/i;

/** An IPv6 address in brackets with a port and quotes has 56 characters. */
const MAX_NODE_LENGTH = 64;

/** IPv4 addresses in IPv6 form, and zones of link-local addresses, would not match ranges. */
function normalize(address: string): string | undefined {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%[^%]*$/, '');
  return isIP(plain) === 0 ? undefined : plain;
}

const readText = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value.join(',') : value);

/** The value of the nearest proxy. */
function readLast(value: string | string[] | undefined): string | undefined {
  const text = readText(value);
  return text === undefined ? undefined : text.slice(text.lastIndexOf(',') + 1).trim();
}

const readScheme = (text: string | undefined): 'http' | 'https' | undefined => {
  const scheme = text?.toLowerCase();
  return scheme === 'http' || scheme === 'https' ? scheme : undefined;
};

function readHost(text: string | undefined): string | undefined {
  const host = text?.replace(/^"(.*)"$/, '$1') ?? '';
  return /^[\w.:[\]-]{1,261}$/.test(host) ? host : undefined;
}
