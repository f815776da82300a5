import { createHash } from 'node:crypto';
import type { InterfaceType, ProtocolId } from '@sluice/core';
import { findRoute } from '@sluice/core/engine';
import type { Exchange } from '@sluice/lab/tape';
import { parseJson } from './incoming.ts';
import { Scrubber } from './scrub.ts';

/** Finds the recorded exchange for a request. */
export class Chooser {
  readonly #entries: readonly Entry[];
  readonly #isStrict: boolean;

  private constructor(entries: readonly Entry[], isStrict: boolean) {
    this.#entries = entries;
    this.#isStrict = isStrict;
  }

  /** `isStrict`: a request that matches no exchange gets none, instead of the next in order. */
  static async open(exchanges: readonly Exchange[], isStrict: boolean): Promise<Chooser> {
    const entries: Entry[] = [];
    for (const exchange of exchanges) entries.push(await createEntry(exchange));
    return new Chooser(entries, isStrict);
  }

  /** The exchange with this name. */
  named(name: string): Choice | undefined {
    // Headers hold ASCII only, so names may come URI-encoded.
    const entry = this.#entries.find(({ exchange }) => exchange.name === name || encodeURI(exchange.name) === name);
    return entry && createChoice(entry, 'named');
  }

  /** The closest match; the least often served one if several match equally. */
  choose(sought: RequestFacts): Choice | undefined {
    const chatTiers = this.#isStrict ? CHAT_TIERS : [...CHAT_TIERS, ...ORDER_TIERS];
    for (const [why, matches] of sought.type === 'CHAT' ? chatTiers : OTHER_TIERS) {
      const matching = this.#entries.filter((entry) => matches(entry, sought));
      // The sort is stable: among equally often served exchanges, the first on the tape.
      const [entry] = matching.toSorted((a, b) => Number(isIncomplete(a)) - Number(isIncomplete(b)) || a.served - b.served);
      if (entry) return createChoice(entry, why);
    }
    return undefined;
  }
}

/** What is known of a request. */
export interface RequestFacts {
  protocol: ProtocolId;
  type: InterfaceType;
  method: string;
  path: string;
  model: string;
  isStream: boolean;
  /** Digest of the body without keys and personal data. */
  digest: string;
}

/** A chosen exchange. */
export interface Choice {
  exchange: Exchange;
  /** What it has in common with the request. */
  why: string;
  /** Marks the exchange as served: other matches take precedence from now on. */
  serve(): void;
}

interface Entry extends Omit<RequestFacts, 'protocol'> {
  protocol: ProtocolId | undefined;
  exchange: Exchange;
  served: number;
}

type Tier = readonly [why: string, matches: (entry: Entry, sought: RequestFacts) => boolean];

/** Criteria for chat requests, closest match first. */
const CHAT_TIERS: readonly Tier[] = [
  ['same request', (entry, sought) => entry.protocol === sought.protocol && entry.digest === sought.digest],
  [
    'same model',
    (entry, sought) => isSameModel(entry, sought) && entry.protocol === sought.protocol && entry.isStream === sought.isStream,
  ],
  ['same model', isSameModel],
];

const ORDER_TIERS: readonly Tier[] = [['next in order', ({ type }) => type === 'CHAT']];

const OTHER_TIERS: readonly Tier[] = [
  ['same request', (entry, sought) => isSamePath(entry, sought) && entry.digest === sought.digest],
  ['same path', isSamePath],
];

function isSameModel({ type, model }: Entry, sought: RequestFacts): boolean {
  return type === 'CHAT' && model === sought.model;
}

function isSamePath({ method, path }: Entry, sought: RequestFacts): boolean {
  return method === sought.method && path === sought.path;
}

/** The recording was cut by the client or by the size limit, not by the upstream. */
const isIncomplete = ({ exchange: { ending } }: Entry): boolean => ending === 'client_gone' || ending === 'too_large';

const createChoice = (entry: Entry, why: string): Choice => ({ exchange: entry.exchange, why, serve: () => void entry.served++ });

async function createEntry(exchange: Exchange): Promise<Entry> {
  const { protocol, model, isStream, request } = exchange;
  const { type } = findRoute(request.path, {});
  const body = await request.readBody();
  const path = new Scrubber().path(request.path);
  return { exchange, protocol, type, method: request.method, path, model, isStream, digest: computeDigest(body), served: 0 };
}

/**
 * Equal for equal JSON however it is formatted, without keys and personal data. `model` replaces the name in the body,
 * which may have a fault appended.
 */
export function computeDigest(body: Uint8Array, model?: string): string {
  const clean = new Scrubber().requestBody(Buffer.from(body));
  const value = parseJson(clean);
  const hash = createHash('sha256');
  if (value === undefined) return hash.update(clean).digest('hex');
  const isNamed = model !== undefined && typeof value === 'object' && value !== null && 'model' in value;
  return hash.update(stringifySorted(isNamed ? { ...value, model } : value)).digest('hex');
}

/** JSON with sorted keys. */
const stringifySorted = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
