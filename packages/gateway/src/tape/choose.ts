import { createHash } from 'node:crypto';
import { type InterfaceType, type ProtocolId, routeOf } from '@sluice/core';
import type { Exchange } from '@sluice/lab/tape';
import { parsed } from './incoming.ts';
import { Scrubber } from './scrub.ts';

/** What is known of a request when an answer is looked for. */
export interface Sought {
  protocol: ProtocolId;
  type: InterfaceType;
  method: string;
  path: string;
  model: string;
  isStream: boolean;
  /** Of the body, without keys and people. */
  digest: string;
}

export interface Choice {
  exchange: Exchange;
  /** What it has in common with the request. */
  why: string;
  /** The answer was given: of several that fit, the others come first from now on. */
  serve(): void;
}

interface Entry extends Omit<Sought, 'protocol'> {
  protocol: ProtocolId | undefined;
  exchange: Exchange;
  served: number;
}

type Tier = readonly [why: string, fits: (entry: Entry, sought: Sought) => boolean];

/** The nearest first. */
const CONVERSATION: readonly Tier[] = [
  ['same request', (entry, sought) => entry.protocol === sought.protocol && entry.digest === sought.digest],
  [
    'same model',
    (entry, sought) => isAlike(entry, sought) && entry.protocol === sought.protocol && entry.isStream === sought.isStream,
  ],
  ['same model', isAlike],
];

const IN_ORDER: readonly Tier[] = [['next in order', ({ type }) => type === 'CHAT']];

const ELSEWHERE: readonly Tier[] = [
  ['same request', (entry, sought) => isSamePlace(entry, sought) && entry.digest === sought.digest],
  ['same path', isSamePlace],
];

function isAlike({ type, model }: Entry, sought: Sought): boolean {
  return type === 'CHAT' && model === sought.model;
}

function isSamePlace({ method, path }: Entry, sought: Sought): boolean {
  return method === sought.method && path === sought.path;
}

/** Not the upstream cut it off: there is less on the tape than there was. */
const isOurCut = ({ exchange: { ending } }: Entry): boolean => ending === 'client_gone' || ending === 'too_large';

/** Finds the exchange that answers a request. */
export class Chooser {
  readonly #entries: readonly Entry[];
  readonly #isStrict: boolean;

  private constructor(entries: readonly Entry[], isStrict: boolean) {
    this.#entries = entries;
    this.#isStrict = isStrict;
  }

  /** `isStrict`: no request is answered just because an exchange is left. */
  static async open(exchanges: readonly Exchange[], isStrict: boolean): Promise<Chooser> {
    const entries: Entry[] = [];
    for (const exchange of exchanges) entries.push(await entryOf(exchange));
    return new Chooser(entries, isStrict);
  }

  named(name: string): Choice | undefined {
    // Headers carry no letters beyond ASCII.
    const entry = this.#entries.find(({ exchange }) => exchange.name === name || encodeURI(exchange.name) === name);
    return entry && choiceOf(entry, 'named');
  }

  choose(sought: Sought): Choice | undefined {
    const conversation = this.#isStrict ? CONVERSATION : [...CONVERSATION, ...IN_ORDER];
    for (const [why, fits] of sought.type === 'CHAT' ? conversation : ELSEWHERE) {
      const fitting = this.#entries.filter((entry) => fits(entry, sought));
      // Sorting is stable: of those served equally often, the first on the tape.
      const [entry] = fitting.toSorted((a, b) => Number(isOurCut(a)) - Number(isOurCut(b)) || a.served - b.served);
      if (entry) return choiceOf(entry, why);
    }
    return undefined;
  }
}

const choiceOf = (entry: Entry, why: string): Choice => ({ exchange: entry.exchange, why, serve: () => void entry.served++ });

async function entryOf(exchange: Exchange): Promise<Entry> {
  const { protocol, model, isStream, request } = exchange;
  const { type } = routeOf(request.path, {});
  const body = await request.readBody();
  const path = new Scrubber().path(request.path);
  return { exchange, protocol, type, method: request.method, path, model, isStream, digest: digestOf(body), served: 0 };
}

/** The same for the same JSON, however it is written, and for whoever asks. `model`: the name without what was asked of the replay. */
export function digestOf(body: Uint8Array, model?: string): string {
  const clean = new Scrubber().requestBody(Buffer.from(body));
  const value = parsed(clean);
  const hash = createHash('sha256');
  if (value === undefined) return hash.update(clean).digest('hex');
  const isNamed = model !== undefined && typeof value === 'object' && value !== null && 'model' in value;
  return hash.update(stable(isNamed ? { ...value, model } : value)).digest('hex');
}

/** JSON with its keys in order. */
const stable = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
