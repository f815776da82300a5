/** Checks that a body gives the same message however its bytes are split. */

import { createSseDecoder, type ProtocolId, type SseFrame } from '@sluice/core';
import { attempt, type Failure } from './failure.ts';
import { assemble, decodeBody } from './wire.ts';

/** A body to prove properties of. */
export interface Body {
  protocol: ProtocolId;
  name: string;
  bytes: Uint8Array;
}

/**
 * Splits the body in two at each of the places. After framing, a reader works frame by frame, so equal frames give an
 * equal message.
 */
export function checkCuts(body: Body, cuts: Iterable<number>): { tried: number; failure?: Failure } {
  const { bytes } = body;
  const whole = frameAll([bytes]);
  let tried = 0;
  for (const cut of cuts) {
    tried++;
    const failure = check(body, `cut at byte ${cut}`, () => same(frameAll([bytes.subarray(0, cut), bytes.subarray(cut)]), whole));
    if (failure) return { tried, failure };
  }
  return { tried };
}

/** Compares the message of the pieces with that of the whole body. */
export function checkPieces(body: Body, pieces: Iterable<Uint8Array>, how: string): Failure | undefined {
  const { protocol, bytes } = body;
  return check(body, how, () => JSON.stringify(assemble(protocol, pieces)) === JSON.stringify(assemble(protocol, [bytes])));
}

const check = ({ protocol, name, bytes }: Body, how: string, isSame: () => boolean): Failure | undefined =>
  attempt(
    { property: 'split', id: `split/${protocol}`, protocol },
    () => decodeBody([bytes]),
    () => (isSame() ? undefined : `${name}: ${how}`),
  );

/** The result of framing a body: everything that the rest of a reader sees. */
interface Framed {
  frames: SseFrame[];
  reports: string[];
}

function frameAll(pieces: Iterable<Uint8Array>): Framed {
  const reports: string[] = [];
  const decoder = createSseDecoder({ report: (rule, offset) => reports.push(`${rule}@${offset}`) });
  const frames: SseFrame[] = [];
  for (const piece of pieces) for (const one of decoder.push(piece)) frames.push(one);
  for (const one of decoder.end()) frames.push(one);
  return { frames, reports };
}

const same = (a: Framed, b: Framed): boolean =>
  a.frames.length === b.frames.length &&
  a.frames.every((one, at) => sameFrame(one, b.frames[at])) &&
  a.reports.join() === b.reports.join();

const sameFrame = (a: SseFrame, b: SseFrame | undefined): boolean =>
  a.data === b?.data && a.event === b.event && a.offset === b.offset && a.id === b.id && a.retry === b.retry && a.bare === b.bare;

/** The offsets at which the frames of a body begin. */
export const findFrameStarts = (bytes: Uint8Array): number[] => frameAll([bytes]).frames.map(({ offset = 0 }) => offset);

/** Every place in a body of up to `every` bytes; in a larger one those around the borders of its frames. */
export function listCuts(bytes: Uint8Array, every: number): number[] {
  const places =
    bytes.length <= every
      ? Array.from({ length: bytes.length }, (_, at) => at)
      : findFrameStarts(bytes).flatMap((border) => NEAR_BORDER.map((near) => border + near));
  return places.filter((place) => place > 0 && place < bytes.length);
}

/** At a border, in the line ends before it, and in the field name after it. */
const NEAR_BORDER = [-3, -2, -1, 0, 1, 2, 6, 7];

/** At most `limit` elements of a list, evenly spread. */
export function thinOut<T>(list: readonly T[], limit: number): readonly T[] {
  return list.length <= limit
    ? list
    : Array.from({ length: limit }, (_, at) => list[Math.floor((at * list.length) / limit)] as T); // in range
}
