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
export const findRoute = (url: string, headers: HeaderBag): Route => REGISTERED.find(url, headers);

type Routed = Codec & { routing: Routing };

/**
 * The protocols below a vendor prefix such as `/openai`. The headers are those by which `detectInterface` recognises
 * the vendor's clients.
 */
interface Mount {
  clients: readonly [Codec, ...Codec[]];
  headers: HeaderBag;
}

/** A version before another version: base URLs often include one, and SDKs add theirs. The last one is the SDK's. */
const DOUBLED_VERSION = /^(?:\/v\d+(?:(?:alpha|beta)\d*)?)+(?=\/v\d+(?:(?:alpha|beta)\d*)?\/)/;

/** The routes of a set of protocols. The first protocol gets the paths that no other one claims. */
export class Router {
  readonly #fallback: Codec;
  /** The protocols of clients, in the order in which a path is offered to them. */
  readonly #byRank: readonly Routed[];
  /** Most requests use the exact path of a protocol, so the whole URL is looked up first. */
  readonly #exact: ReadonlyMap<string | undefined, Codec>;
  readonly #mounts: ReadonlyMap<string | undefined, Mount>;
  /** A vendor prefix with something after it. */
  readonly #mount: RegExp;

  constructor(codecs: readonly [Codec, ...Codec[]]) {
    [this.#fallback] = codecs;
    this.#byRank = codecs
      .filter((codec): codec is Routed => codec.routing !== undefined)
      .toSorted((a, b) => a.routing.rank - b.routing.rank);
    this.#exact = new Map(this.#byRank.map((codec) => [codec.routing.path, codec]));
    this.#mounts = buildMounts(codecs);
    this.#mount = new RegExp(`^/(${[...this.#mounts.keys()].join('|')})(?=/.)`);
  }

  /** The protocol and the endpoint of a request. */
  find(url: string, headers: HeaderBag): Route {
    const exact = this.#exact.get(url);
    if (exact) return { client: exact, type: 'CHAT', path: url };
    const { path, mount } = this.#normalise(url);
    return mount ? this.#findMounted(path, mount) : this.#findOpen(path, headers);
  }

  /** Requests below a vendor prefix can only have one of the vendor's protocols. */
  #findMounted(path: string, { clients, headers }: Mount): Route {
    for (const client of clients) {
      const type = client.detectInterface(path, headers);
      if (type !== 'PASSTHROUGH') return { client, type, path };
    }
    const language = this.#findByPrefix(path);
    return { client: clients.includes(language) ? language : clients[0], type: 'PASSTHROUGH', path };
  }

  #findOpen(path: string, headers: HeaderBag): Route {
    const hinted = this.#findHinted(path, headers);
    const candidates = hinted ? [hinted, ...this.#byRank] : this.#byRank;
    for (const client of candidates) {
      const type = client.detectInterface(path, headers);
      // OpenAI's protocols take everything below `/models/` for a model name, even Gemini's `imagen:predict`.
      const isForeign = hinted !== undefined && client !== hinted && type.startsWith('MODEL');
      if (type !== 'PASSTHROUGH' && !isForeign) return { client, type, path };
    }
    return { client: hinted ?? this.#findByPrefix(path), type: 'PASSTHROUGH', path };
  }

  /**
   * Finds the protocol by a path that no other protocol has, or by a header: clients send headers of other vendors, too.
   * Of two headers the one of the higher rank counts.
   */
  #findHinted(path: string, headers: HeaderBag): Codec | undefined {
    const byPath = this.#byRank.find(({ routing }) => routing.isExclusive && routing.ownsPath?.(path));
    if (byPath) return byPath;
    return this.#byRank.findLast(({ routing: { header } }) => header !== undefined && Object.hasOwn(headers, header));
  }

  /** The protocol of an unknown endpoint, by the prefix of its path. */
  #findByPrefix(path: string): Codec {
    return this.#byRank.find(({ routing }) => routing.ownsPath?.(path)) ?? this.#fallback;
  }

  /** Doubled slashes come from base URLs that end in one; absolute URLs come from proxies. */
  #normalise(url: string): { path: string; mount: Mount | undefined } {
    const [path = '', query] = splitQuery(url.replace(/^https?:\/\/[^/?#]*/i, ''));
    const plain = `/${path}`.replace(/\/{2,}/g, '/');
    const vendor = this.#mount.exec(plain)?.[1];
    const below = vendor === undefined ? plain : plain.slice(vendor.length + 1);
    const native = this.#byRank.reduce(
      (path, { routing }) => routing.normalise?.(path) ?? path,
      below.replace(DOUBLED_VERSION, ''),
    );
    return { path: query === undefined ? native : `${native}?${query}`, mount: this.#mounts.get(vendor) };
  }
}

function buildMounts(codecs: readonly Codec[]): Map<string | undefined, Mount> {
  const mounts = new Map<string | undefined, Mount>();
  for (const codec of codecs) {
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

function splitQuery(url: string): [string, string?] {
  const at = url.indexOf('?');
  return at < 0 ? [url] : [url.slice(0, at), url.slice(at + 1)];
}

const REGISTERED = /* @__PURE__ */ new Router(Object.values(CODECS) as [Codec, ...Codec[]]); // a table that is not empty
