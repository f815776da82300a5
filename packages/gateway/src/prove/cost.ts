import type { Failure } from './failure.ts';
import { type Body, bordersOf } from './splits.ts';
import { assemble, convert } from './wire.ts';

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
export function checkCost({ protocol, bytes }: Body, now: () => number): { tried: number; failure?: Failure } | undefined {
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
