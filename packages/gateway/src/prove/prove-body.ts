import type { ProtocolId } from '@sluice/core';
import { below, seededRandom } from '../mutate/random.ts';
import { checkCost } from './cost.ts';
import type { Failure } from './failure.ts';
import { checkPair } from './pairs.ts';
import { smallest } from './shrink.ts';
import { type Body, checkCuts, checkPieces, placesOf, thinned } from './splits.ts';
import { type OnNote, PROTOCOL_IDS } from './wire.ts';

/** What came of one property. */
export interface Proven {
  property: string;
  tried: number;
  failure?: Failure;
}

export interface ProveOptions {
  /** Milliseconds, of work rather than of the clock. Only the ratio of durations is looked at. */
  now(): number;
  onNote?: OnNote;
}

/** Bodies up to this many bytes are cut at every place. */
const EVERY = 8192;
/** So many bytes are framed anew to try cuts: of long bodies fewer cuts are tried. */
const BUDGET = 256 * 1024 * 1024;
const KWAY = 10;
/** So many pieces at most. */
const PIECES = 30;
const SEED = 1;

/** One property of a body. Undefined when it has no occasion to hold. */
interface Property {
  name: string;
  check(body: Body, options: ProveOptions): { tried: number; failure?: Failure } | undefined;
}

const one = (failure: Failure | undefined): { tried: number; failure?: Failure } => ({ tried: 1, ...(failure && { failure }) });

function twoWay(body: Body): { tried: number; failure?: Failure } {
  const places = placesOf(body.bytes, EVERY);
  return checkCuts(body, thinned(places, Math.max(64, Math.floor(BUDGET / body.bytes.length))));
}

function byteByByte(body: Body): { tried: number; failure?: Failure } {
  return one(
    checkPieces(
      body,
      Array.from(body.bytes, (_, at) => body.bytes.subarray(at, at + 1)),
      'byte by byte',
    ),
  );
}

/** The bytes between cuts at random places. */
export function randomPieces(bytes: Uint8Array, random: () => number): Uint8Array[] {
  const cuts = Array.from({ length: 1 + below(random, PIECES) }, () => below(random, bytes.length)).toSorted((a, b) => a - b);
  return [0, ...cuts].map((from, at) => bytes.subarray(from, cuts[at] ?? bytes.length));
}

function anyWay(body: Body): { tried: number; failure?: Failure } {
  const random = seededRandom(SEED);
  for (let tried = 1; tried <= KWAY; tried++) {
    const pieces = randomPieces(body.bytes, random);
    const failure = checkPieces(body, pieces, `in pieces of ${pieces.map(({ length }) => length).join()} bytes`);
    if (failure) return { tried, failure };
  }
  return { tried: KWAY };
}

const pairProperty = (from: ProtocolId, to: ProtocolId): Property => ({
  name: from === to ? `written again as ${to}` : `to ${to} and back`,
  check: ({ bytes }, { onNote }) => one(checkPair(from, to, [bytes], onNote)),
});

/** What is proven of a body of that protocol. */
const propertiesOf = (protocol: ProtocolId): Property[] => [
  { name: 'split in two', check: twoWay },
  { name: 'byte by byte', check: byteByByte },
  { name: 'split at random', check: anyWay },
  // First to itself: what fails there fails everywhere.
  ...[protocol, ...PROTOCOL_IDS.filter((id) => id !== protocol)].map((to) => pairProperty(protocol, to)),
  { name: 'linear cost', check: (body, { now }) => checkCost(body, now) },
];

export function* proveBody(body: Body, options: ProveOptions): Generator<Proven> {
  for (const { name, check } of propertiesOf(body.protocol)) {
    const outcome = check(body, options);
    if (outcome) yield { property: name, ...outcome };
  }
}

/** The failure again, with as few frames as still show it. */
export function shrink(body: Body, { property, failure }: Proven, options: ProveOptions): Failure | undefined {
  const found = propertiesOf(body.protocol).find(({ name }) => name === property);
  if (!found || !failure || failure.raw === undefined) return failure;
  return smallest(body.bytes, failure, (bytes) =>
    bytes.length > 0 ? found.check({ ...body, bytes }, options)?.failure : undefined,
  );
}
