/**
 * Proves properties of one body: splits, conversions there and back, and linear cost; shrinks the body of a failure.
 */

import type { AccumulatedMessage, Note, ProtocolId } from '@sluice/core';
import { below, seededRandom } from '../mutate/random.ts';
import { attempt, differences, type Failure } from './failure.ts';
import { normaliseMessage, pickCore } from './normal.ts';
import { type Body, checkCuts, checkPieces, findFrameStarts, listCuts, thinOut } from './splits.ts';
import { assemble, checkGrammar, convert, decodeBody, type OnNote, PROTOCOL_IDS, readFrames } from './wire.ts';

/** Checks the properties of a body, one by one. */
export function* proveBody(body: Body, options: ProveOptions): Generator<Proven> {
  for (const { name, check } of listProperties(body.protocol)) {
    const outcome = check(body, options);
    if (outcome) yield { property: name, ...outcome };
  }
}

/** Options of `proveBody`. */
export interface ProveOptions {
  /** Milliseconds, preferably of CPU time. Only the ratio of durations is used. */
  now(): number;
  onNote?: OnNote;
}

/** The result of one property. */
export interface Proven {
  property: string;
  tried: number;
  failure?: Failure;
}

/** The failure with as few frames as still show it. */
export function shrink(body: Body, { property, failure }: Proven, options: ProveOptions): Failure | undefined {
  const found = listProperties(body.protocol).find(({ name }) => name === property);
  if (!found || !failure || failure.raw === undefined) return failure;
  return smallest(body.bytes, failure, (bytes) =>
    bytes.length > 0 ? found.check({ ...body, bytes }, options)?.failure : undefined,
  );
}

/** One property of a body. Its check returns undefined when the property does not apply. */
interface Property {
  name: string;
  check(body: Body, options: ProveOptions): { tried: number; failure?: Failure } | undefined;
}

/** The properties to prove of a body in that protocol. */
const listProperties = (protocol: ProtocolId): Property[] => [
  { name: 'split in two', check: twoWay },
  { name: 'byte by byte', check: byteByByte },
  { name: 'split at random', check: anyWay },
  // First to itself: a failure there is a failure everywhere.
  ...[protocol, ...PROTOCOL_IDS.filter((id) => id !== protocol)].map((to) => pairProperty(protocol, to)),
  { name: 'linear cost', check: (body, { now }) => checkCost(body, now) },
];

// ---- splits

function twoWay(body: Body): { tried: number; failure?: Failure } {
  const places = listCuts(body.bytes, EVERY);
  return checkCuts(body, thinOut(places, Math.max(64, Math.floor(BUDGET / body.bytes.length))));
}

/** Bodies up to this many bytes are cut at every place. */
const EVERY = 8192;

/** Bytes that are framed to try cuts: longer bodies get fewer cuts. */
const BUDGET = 256 * 1024 * 1024;

function byteByByte(body: Body): { tried: number; failure?: Failure } {
  return oneTry(
    checkPieces(
      body,
      Array.from(body.bytes, (_, at) => body.bytes.subarray(at, at + 1)),
      'byte by byte',
    ),
  );
}

function anyWay(body: Body): { tried: number; failure?: Failure } {
  const random = seededRandom(SEED);
  for (let tried = 1; tried <= RANDOM_SPLITS; tried++) {
    const pieces = randomPieces(body.bytes, random);
    const failure = checkPieces(body, pieces, `in pieces of ${pieces.map(({ length }) => length).join()} bytes`);
    if (failure) return { tried, failure };
  }
  return { tried: RANDOM_SPLITS };
}

const RANDOM_SPLITS = 10;

const SEED = 1;

/** The bytes between cuts at random places. */
export function randomPieces(bytes: Uint8Array, random: () => number): Uint8Array[] {
  const cuts = Array.from({ length: 1 + below(random, MAX_PIECES) }, () => below(random, bytes.length)).toSorted((a, b) => a - b);
  return [0, ...cuts].map((from, at) => bytes.subarray(from, cuts[at] ?? bytes.length));
}

/** The maximum number of pieces. */
const MAX_PIECES = 30;

const oneTry = (failure: Failure | undefined): { tried: number; failure?: Failure } => ({
  tried: 1,
  ...(failure && { failure }),
});

// ---- conversions

const pairProperty = (from: ProtocolId, to: ProtocolId): Property => ({
  name: from === to ? `written again as ${to}` : `to ${to} and back`,
  check: ({ bytes }, { onNote }) => oneTry(checkPair(from, to, [bytes], onNote)),
});

/**
 * Converts to another protocol and back: the core of the message must stay the same; to the same protocol, all of it.
 * The written frames must follow the grammar of their protocol.
 */
export function checkPair(
  from: ProtocolId,
  to: ProtocolId,
  chunks: readonly Uint8Array[],
  onNote: OnNote = () => undefined,
): Failure | undefined {
  return attempt(
    { property: 'pair', id: `pair/${from}/${to}`, protocol: from },
    () => decodeBody(chunks),
    () => {
      const notes: Note[] = [];
      const keep = (note: Note): void => {
        notes.push(note);
        onNote(note);
      };
      const before = assemble(from, chunks);
      const there = convert(from, to, chunks, keep);
      checkGrammar(to, there.flatMap(readFrames));
      const after = assemble(to, there);
      if (from === to) return differences(normaliseMessage(before), normaliseMessage(after));
      const again = convert(to, from, there, keep);
      checkGrammar(from, again.flatMap(readFrames));
      const core = (result: AccumulatedMessage) => readCore(result, before, notes);
      return differences(core(before), core(after)) ?? differences(core(before), core(assemble(from, again)));
    },
  );
}

/** The core of a message, without the text where notes explain that it differs. */
function readCore(result: AccumulatedMessage, before: AccumulatedMessage, notes: readonly Note[]): Record<string, unknown> {
  const { text, ...core } = pickCore(result);
  // Anthropic's explanation of a refusal is outside of its message, and is the refusal text for OpenAI's clients.
  const isExplained = before.message.stop_details?.explanation !== undefined;
  return isExplained || notes.some(isMediaNote) ? core : { text, ...core };
}

/** Media that a protocol does not support are described in the text, with a note. */
const isMediaNote = ({ feature }: Note): boolean => /^content\.(image|audio|file)\b/.test(feature);

// ---- cost

/** How many times longer the long body of a cost check is. */
export const FACTOR = 8;

/** Linear work takes 8 times as long for 8 times the length, quadratic work 64 times. */
const BOUND = 3 * FACTOR;

/** A shorter body takes too little time to measure. */
const SMALL = 64 * 1024;

const ATTEMPTS = 4;

const ROUNDS = 3;

/**
 * Checks that reading and converting such a stream has linear cost. Undefined when it is too short to be lengthened.
 */
function checkCost({ protocol, bytes }: Body, now: () => number): { tried: number; failure?: Failure } | undefined {
  const [small, large] = [SMALL, SMALL * FACTOR].map((length) => lengthen(bytes, length));
  if (!small || !large) return undefined;
  const jobs = {
    read: (body: Uint8Array) => assemble(protocol, [body]),
    convert: (body: Uint8Array) => convert(protocol, protocol, [body]),
  };
  for (const [what, job] of Object.entries(jobs)) {
    const ratio = measureRatio(
      () => job(small),
      () => job(large),
      now,
    );
    if (!isLinear(ratio)) return { tried: 2, failure: costFailure(`cost/${protocol}`, what, ratio) };
  }
  return { tried: 2 };
}

/**
 * A longer stream of the same kind: the beginning and the end of a body, and its middle repeated. Undefined when it has
 * no middle.
 */
function lengthen(bytes: Uint8Array, length: number): Uint8Array | undefined {
  const borders = findFrameStarts(bytes);
  const [from, to] = [borders[Math.floor(borders.length / 4)], borders[Math.floor((borders.length * 3) / 4)]];
  if (borders.length < 8 || from === undefined || to === undefined) return undefined;
  const middle = bytes.subarray(from, to);
  const times = Math.ceil(length / middle.length);
  return Buffer.concat([bytes.subarray(0, from), ...Array.from({ length: times }, () => middle), bytes.subarray(to)]);
}

/**
 * How many times longer a body of 8 times the length takes; the first ratio below the bound, of several attempts. The
 * short job runs 8 times, so that both take about as long and disturbances affect both alike.
 */
export function measureRatio(small: () => unknown, large: () => unknown, now: () => number): number {
  let ratio = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && ratio >= BOUND; attempt++)
    ratio = (FACTOR * measure(large, 1, now)) / measure(small, FACTOR, now);
  return ratio;
}

/** The shortest of several runs: other load on the machine only makes a run longer. */
function measure(run: () => unknown, times: number, now: () => number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const from = now();
    for (let time = 0; time < times; time++) run();
    best = Math.min(best, now() - from);
  }
  // The clock may be too coarse to show any time.
  return Math.max(best, 0.001);
}

/** Whether a ratio shows linear cost. */
export const isLinear = (ratio: number): boolean => ratio < BOUND;

/** The failure of a job whose cost is not linear. */
export const costFailure = (id: string, what: string, ratio: number): Failure => ({
  property: 'linear cost',
  id,
  message: `${FACTOR} times the length takes ${ratio.toFixed(1)} times as long to ${what}`,
});

// ---- shrinking

/** The same failure with as few frames of the body as still show it, each as it was written. */
export function smallest(
  bytes: Uint8Array,
  failure: Failure,
  check: (bytes: Uint8Array) => Failure | undefined,
  tries = MAX_TRIES,
): Failure {
  const kind = describeKind(failure);
  let found = failure;
  shortest(
    splitFrames(bytes),
    (pieces) => {
      const again = check(Buffer.concat(pieces));
      if (again === undefined || describeKind(again) !== kind) return false;
      found = again;
      return true;
    },
    tries,
  );
  return found;
}

/** A body frame by frame. Anything before the first frame belongs to it. */
function splitFrames(bytes: Uint8Array): Uint8Array[] {
  const borders = findFrameStarts(bytes).slice(1);
  return [0, ...borders].map((from, at) => bytes.subarray(from, borders[at] ?? bytes.length));
}

/** Identifies the kind of a failure: the property, what was done, and which parts differ. */
const describeKind = ({ property, id, message }: Failure): string => `${property} ${id} ${message.split(':')[0]}`;

/** The shortest list found that still fails: removes one run after the other (delta debugging). */
export function shortest<T>(list: readonly T[], fails: (list: readonly T[]) => boolean, tries = MAX_TRIES): readonly T[] {
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

/** The number of shorter lists that are tried at most. */
const MAX_TRIES = 3000;
