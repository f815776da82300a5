import type { InterfaceType } from '../canonical/interfaces.ts';
import { CODECS } from '../protocols/index.ts';
import type { Codec, HeaderBag, Routing } from '../protocols/shared/codec.ts';

/** What a client wants, and in which language it wants it. */
export interface Route {
  client: Codec;
  type: InterfaceType;
  /** With its query; one form for everybody who looks at it. */
  path: string;
}

const REGISTERED: readonly Codec[] = Object.values(CODECS);

type Routed = Codec & { routing: Routing };

const BY_RANK = REGISTERED.filter((codec): codec is Routed => codec.routing !== undefined).toSorted(
  (a, b) => a.routing.rank - b.routing.rank,
);

/** The protocol of paths that no other one claims. */
const FALLBACK = CODECS['openai-chat'];

/** The protocols of a vendor. The headers are those by which `detectInterface` tells its clients from others. */
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

/** By the whole URL: nearly all requests are found here. */
const EXACT: ReadonlyMap<string | undefined, Codec> = new Map(BY_RANK.map((codec) => [codec.routing.path, codec]));

/** The protocol of a request by its path, and by its headers where protocols share a path (`/v1/models`). */
export function routeOf(url: string, headers: HeaderBag): Route {
  const exact = EXACT.get(url);
  if (exact) return { client: exact, type: 'CHAT', path: url };
  const { path, mount } = canonicalPath(url);
  return mount ? mountedRoute(path, mount) : openRoute(path, headers);
}

/** Requests below the name of a vendor are for its protocols alone. */
function mountedRoute(path: string, { clients, headers }: Mount): Route {
  for (const client of clients) {
    const type = client.detectInterface(path, headers);
    if (type !== 'PASSTHROUGH') return { client, type, path };
  }
  const language = languageOf(path);
  return { client: clients.includes(language) ? language : clients[0], type: 'PASSTHROUGH', path };
}

function openRoute(path: string, headers: HeaderBag): Route {
  const hinted = findHinted(path, headers);
  const candidates = hinted ? [hinted, ...BY_RANK] : BY_RANK;
  for (const client of candidates) {
    const type = client.detectInterface(path, headers);
    // To OpenAI's protocols everything below `/models/` is the name of a model, also `imagen:predict`.
    const isForeign = hinted !== undefined && client !== hinted && type.startsWith('MODEL');
    if (type !== 'PASSTHROUGH' && !isForeign) return { client, type, path };
  }
  return { client: hinted ?? languageOf(path), type: 'PASSTHROUGH', path };
}

/** By a header, or by a path that no other protocol has. Of two headers the one of the higher rank counts. */
function findHinted(path: string, headers: HeaderBag): Codec | undefined {
  const byHeader = BY_RANK.findLast(({ routing: { header } }) => header !== undefined && Object.hasOwn(headers, header));
  return byHeader ?? BY_RANK.find(({ routing }) => routing.isExclusive && routing.ownsPath?.(path));
}

/** The protocol of an endpoint that Sluice does not know, by the prefix of its path. */
const languageOf = (path: string): Codec => BY_RANK.find(({ routing }) => routing.ownsPath?.(path)) ?? FALLBACK;

/** A vendor's name before something else. */
const MOUNT = new RegExp(`^/(${[...MOUNTS.keys()].join('|')})(?=/.)`);

/** Versions before another version: base URLs often have one, and SDKs add theirs. The last one is the SDK's. */
const DOUBLED_VERSION = /^(?:\/v\d+(?:(?:alpha|beta)\d*)?)+(?=\/v\d+(?:(?:alpha|beta)\d*)?\/)/;

/** Doubled slashes come from base URLs that end in one; absolute forms from proxies. */
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
