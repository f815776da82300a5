/** Routes of requests to protocols, by path and headers. Loads every protocol, so `engine/index.ts` does not export it. */

import type { InterfaceType } from '../canonical/request.ts';
import type { Codec, HeaderBag, Routing } from '../codec/protocol.ts';
import { CODECS } from '../protocols/index.ts';

/** The protocol and the endpoint of a request path. */
export interface Route {
  client: Codec;
  type: InterfaceType;
  /** With its query; normalised, so that all readers see one form. */
  path: string;
}

/** Finds the protocol of a request by its path, and by its headers where protocols share a path (`/v1/models`). */
export function routeOf(url: string, headers: HeaderBag): Route {
  const exact = EXACT.get(url);
  if (exact) return { client: exact, type: 'CHAT', path: url };
  const { path, mount } = canonicalPath(url);
  return mount ? mountedRoute(path, mount) : openRoute(path, headers);
}

/** Requests below a vendor prefix can only have one of the vendor's protocols. */
function mountedRoute(path: string, { clients, headers }: Mount): Route {
  for (const client of clients) {
    const type = client.detectInterface(path, headers);
    if (type !== 'PASSTHROUGH') return { client, type, path };
  }
  const language = findByPrefix(path);
  return { client: clients.includes(language) ? language : clients[0], type: 'PASSTHROUGH', path };
}

function openRoute(path: string, headers: HeaderBag): Route {
  const hinted = findHinted(path, headers);
  const candidates = hinted ? [hinted, ...BY_RANK] : BY_RANK;
  for (const client of candidates) {
    const type = client.detectInterface(path, headers);
    // OpenAI's protocols take everything below `/models/` for a model name, even Gemini's `imagen:predict`.
    const isForeign = hinted !== undefined && client !== hinted && type.startsWith('MODEL');
    if (type !== 'PASSTHROUGH' && !isForeign) return { client, type, path };
  }
  return { client: hinted ?? findByPrefix(path), type: 'PASSTHROUGH', path };
}

/**
 * Finds the protocol by a header, or by a path that no other protocol has. Of two headers the one of the higher rank
 * counts.
 */
function findHinted(path: string, headers: HeaderBag): Codec | undefined {
  const byHeader = BY_RANK.findLast(({ routing: { header } }) => header !== undefined && Object.hasOwn(headers, header));
  return byHeader ?? BY_RANK.find(({ routing }) => routing.isExclusive && routing.ownsPath?.(path));
}

const REGISTERED: readonly Codec[] = Object.values(CODECS);

type Routed = Codec & { routing: Routing };

const BY_RANK = REGISTERED.filter((codec): codec is Routed => codec.routing !== undefined).toSorted(
  (a, b) => a.routing.rank - b.routing.rank,
);

/** The protocol of paths that no other protocol claims. */
const FALLBACK = CODECS['openai-chat'];

/** The protocol of an unknown endpoint, by the prefix of its path. */
const findByPrefix = (path: string): Codec => BY_RANK.find(({ routing }) => routing.ownsPath?.(path)) ?? FALLBACK;

/** Most requests use the exact path of a protocol, so the whole URL is looked up first. */
const EXACT: ReadonlyMap<string | undefined, Codec> = new Map(BY_RANK.map((codec) => [codec.routing.path, codec]));

/**
 * The protocols below a vendor prefix such as `/openai`. The headers are those by which `detectInterface` recognises
 * the vendor's clients.
 */
interface Mount {
  clients: readonly [Codec, ...Codec[]];
  headers: HeaderBag;
}

const MOUNTS: ReadonlyMap<string | undefined, Mount> = buildMounts();

function buildMounts(): Map<string | undefined, Mount> {
  const mounts = new Map<string | undefined, Mount>();
  for (const codec of REGISTERED) {
    const { mount, header } = codec.routing ?? {};
    if (mount === undefined) continue;
    const { clients, headers } = mounts.get(mount) ?? {};
    mounts.set(mount, {
      clients: clients ? [...clients, codec] : [codec],
      headers: { ...headers, ...(header && { [header]: '' }) },
    });
  }
  return mounts;
}

/** A vendor prefix with something after it. */
const MOUNT = new RegExp(`^/(${[...MOUNTS.keys()].join('|')})(?=/.)`);

/** A version before another version: base URLs often include one, and SDKs add theirs. The last one is the SDK's. */
const DOUBLED_VERSION = /^(?:\/v\d+(?:(?:alpha|beta)\d*)?)+(?=\/v\d+(?:(?:alpha|beta)\d*)?\/)/;

/** Doubled slashes come from base URLs that end in one; absolute URLs come from proxies. */
function canonicalPath(url: string): { path: string; mount: Mount | undefined } {
  const [path = '', query] = splitQuery(url.replace(/^https?:\/\/[^/?#]*/i, ''));
  const plain = `/${path}`.replace(/\/{2,}/g, '/');
  const vendor = MOUNT.exec(plain)?.[1];
  const below = vendor === undefined ? plain : plain.slice(vendor.length + 1);
  const native = BY_RANK.reduce((path, { routing }) => routing.normalise?.(path) ?? path, below.replace(DOUBLED_VERSION, ''));
  return { path: query === undefined ? native : `${native}?${query}`, mount: MOUNTS.get(vendor) };
}

function splitQuery(url: string): [string, string?] {
  const at = url.indexOf('?');
  return at < 0 ? [url] : [url.slice(0, at), url.slice(at + 1)];
}
