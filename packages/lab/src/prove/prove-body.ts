import type { Assembled, Note, ProtocolId } from '@sluice/core';
import { below, seededRandom } from '../mutate/random.ts';
import { attempt, differences, type Failure } from './failure.ts';
import { coreOf, normalOf } from './normal.ts';
import { type Body, bordersOf, checkCuts, checkPieces, placesOf, thinned } from './splits.ts';
import { assemble, bodyOf, checkGrammar, convert, framesOf, type OnNote, PROTOCOL_IDS } from './wire.ts';

export const FACTOR = 8;

/** Linear work takes 8 times as long for 8 times the length, quadratic work 64 times. */
const BOUND = 3 * FACTOR;

/** A shorter body would be over before a clock has seen it. */
const SMALL = 64 * 1024;

const ATTEMPTS = 4;

const ROUNDS = 3;

/** The shortest of several runs: what else the machine does only makes a run longer. */
function timeOf(run: () => unknown, times: number, now: () => number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const from = now();
    for (let time = 0; time < times; time++) run();
    best = Math.min(best, now() - from);
  }
  // A clock may be too coarse to have moved.
  return Math.max(best, 0.001);
}

/**
 * How many times as long it takes for a body that is 8 times as long; the first ratio that is small enough, of several attempts. The short
 * job is done 8 times, so that both are about as long and nothing weighs more on one of them.
 */
export function ratioOf(small: () => unknown, large: () => unknown, now: () => number): number {
  let ratio = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && ratio >= BOUND; attempt++)
    ratio = (FACTOR * timeOf(large, 1, now)) / timeOf(small, FACTOR, now);
  return ratio;
}

export const isLinear = (ratio: number): boolean => ratio < BOUND;

export const costFailure = (id: string, what: string, ratio: number): Failure => ({
  property: 'linear cost',
  id,
  message: `${FACTOR} times the length takes ${ratio.toFixed(1)} times as long to ${what}`,
});

/** The beginning and the end of a body, and its middle again and again: a longer stream of the same kind. Undefined when it has no middle. */
function lengthened(bytes: Uint8Array, length: number): Uint8Array | undefined {
  const borders = bordersOf(bytes);
  const [from, to] = [borders[Math.floor(borders.length / 4)], borders[Math.floor((borders.length * 3) / 4)]];
  if (borders.length < 8 || from === undefined || to === undefined) return undefined;
  const middle = bytes.subarray(from, to);
  const times = Math.ceil(length / middle.length);
  return Buffer.concat([bytes.subarray(0, from), ...Array.from({ length: times }, () => middle), bytes.subarray(to)]);
}

/** Reading and writing a stream of this kind costs by its length. Undefined when it is too short to be made longer. */
function checkCost({ protocol, bytes }: Body, now: () => number): { tried: number; failure?: Failure } | undefined {
  const [small, large] = [SMALL, SMALL * FACTOR].map((length) => lengthened(bytes, length));
  if (!small || !large) return undefined;
  const jobs = {
    read: (body: Uint8Array) => assemble(protocol, [body]),
    convert: (body: Uint8Array) => convert(protocol, protocol, [body]),
  };
  for (const [what, job] of Object.entries(jobs)) {
    const ratio = ratioOf(
      () => job(small),
      () => job(large),
      now,
    );
    if (!isLinear(ratio)) return { tried: 2, failure: costFailure(`cost/${protocol}`, what, ratio) };
  }
  return { tried: 2 };
}

/** Media that a protocol cannot carry stand as words in its text: then a note says so. */
const isWorded = ({ feature }: Note): boolean => /^content\.(image|audio|file)\b/.test(feature);

/** What every protocol can say, but for what the notes tell of. */
function said(result: Assembled, before: Assembled, notes: readonly Note[]): Record<string, unknown> {
  const { text, ...core } = coreOf(result);
  // Why Anthropic refused stands beside its message, and is the text of the refusal to OpenAI's clients.
  const isExplained = before.message.stop_details?.explanation !== undefined;
  return isExplained || notes.some(isWorded) ? core : { text, ...core };
}

/**
 * There and back: what every protocol can say is the same afterwards. To the same protocol: everything is. What is written on the way keeps
 * the grammar of its protocol.
 */
export function checkPair(
  from: ProtocolId,
  to: ProtocolId,
  chunks: readonly Uint8Array[],
  onNote: OnNote = () => undefined,
): Failure | undefined {
  return attempt(
    { property: 'pair', id: `pair/${from}/${to}`, protocol: from },
    () => bodyOf(chunks),
    () => {
      const notes: Note[] = [];
      const keep = (note: Note): void => {
        notes.push(note);
        onNote(note);
      };
      const before = assemble(from, chunks);
      const there = convert(from, to, chunks, keep);
      checkGrammar(to, there.flatMap(framesOf));
      const after = assemble(to, there);
      if (from === to) return differences(normalOf(before), normalOf(after));
      const again = convert(to, from, there, keep);
      checkGrammar(from, again.flatMap(framesOf));
      const core = (result: Assembled) => said(result, before, notes);
      return differences(core(before), core(after)) ?? differences(core(before), core(assemble(from, again)));
    },
  );
}

/** How often a smaller list is tried before the smallest so far has to do. */
const TRIES = 3000;

/** The shortest list that still fails and that leaving out any one run of it no longer makes shorter: delta debugging. */
export function shortest<T>(list: readonly T[], fails: (list: readonly T[]) => boolean, tries = TRIES): readonly T[] {
  let best = list;
  let left = tries;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.length && left > 0; left--) {
      const shorter = [...best.slice(0, from), ...best.slice(from + size)];
      if (shorter.length < best.length && fails(shorter)) best = shorter;
      else from += size;
    }
  }
  return best;
}

/** What kind of failure it is: the property, what was done, and which parts differ. */
const kindOf = ({ property, id, message }: Failure): string => `${property} ${id} ${message.split(':')[0]}`;

/** The same failure with as few frames of the body as still show it, each as it was written. */
export function smallest(
  bytes: Uint8Array,
  failure: Failure,
  check: (bytes: Uint8Array) => Failure | undefined,
  tries = TRIES,
): Failure {
  const kind = kindOf(failure);
  let found = failure;
  shortest(
    piecesOf(bytes),
    (pieces) => {
      const again = check(Buffer.concat(pieces));
      if (again === undefined || kindOf(again) !== kind) return false;
      found = again;
      return true;
    },
    tries,
  );
  return found;
}

/** A body frame by frame. What stands before the first one belongs to it. */
function piecesOf(bytes: Uint8Array): Uint8Array[] {
  const borders = bordersOf(bytes).slice(1);
  return [0, ...borders].map((from, at) => bytes.subarray(from, borders[at] ?? bytes.length));
}

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
