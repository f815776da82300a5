import { createSseDecoder, type ProtocolId, type SseFrame } from '@sluice/core';
import { attempt, type Failure } from './failure.ts';
import { assemble, bodyOf } from './wire.ts';

export interface Body {
  protocol: ProtocolId;
  name: string;
  bytes: Uint8Array;
}

/** What framing made of a body: everything that the rest of a reader gets to see. */
interface Framed {
  frames: SseFrame[];
  reports: string[];
}

function frame(pieces: Iterable<Uint8Array>): Framed {
  const reports: string[] = [];
  const decoder = createSseDecoder({ report: (rule, offset) => reports.push(`${rule}@${offset}`) });
  const frames: SseFrame[] = [];
  for (const piece of pieces) for (const one of decoder.push(piece)) frames.push(one);
  for (const one of decoder.end()) frames.push(one);
  return { frames, reports };
}

const sameFrame = (a: SseFrame, b: SseFrame | undefined): boolean =>
  a.data === b?.data && a.event === b.event && a.offset === b.offset && a.id === b.id && a.retry === b.retry && a.bare === b.bare;

const same = (a: Framed, b: Framed): boolean =>
  a.frames.length === b.frames.length &&
  a.frames.every((one, at) => sameFrame(one, b.frames[at])) &&
  a.reports.join() === b.reports.join();

const check = ({ protocol, name, bytes }: Body, how: string, isSame: () => boolean): Failure | undefined =>
  attempt(
    { property: 'split', id: `split/${protocol}`, protocol },
    () => bodyOf([bytes]),
    () => (isSame() ? undefined : `${name}: ${how}`),
  );

/** The body in two pieces, at each of the places. Past the framing, a reader works frame by frame: equal frames are an equal message. */
export function checkCuts(body: Body, cuts: Iterable<number>): { tried: number; failure?: Failure } {
  const { bytes } = body;
  const whole = frame([bytes]);
  let tried = 0;
  for (const cut of cuts) {
    tried++;
    const failure = check(body, `cut at byte ${cut}`, () => same(frame([bytes.subarray(0, cut), bytes.subarray(cut)]), whole));
    if (failure) return { tried, failure };
  }
  return { tried };
}

/** The body in many pieces, all the way to the message. */
export function checkPieces(body: Body, pieces: Iterable<Uint8Array>, how: string): Failure | undefined {
  const { protocol, bytes } = body;
  return check(body, how, () => JSON.stringify(assemble(protocol, pieces)) === JSON.stringify(assemble(protocol, [bytes])));
}

/** Where the frames of a body begin. */
export const bordersOf = (bytes: Uint8Array): number[] => frame([bytes]).frames.map(({ offset = 0 }) => offset);

/** At a border, in the line ends before it, and in the name of the field after it. */
const NEAR_BORDER = [-3, -2, -1, 0, 1, 2, 6, 7];

/** Every place of a body up to `every` bytes; of a larger one those around the borders of its frames. */
export function placesOf(bytes: Uint8Array, every: number): number[] {
  const places =
    bytes.length <= every
      ? Array.from({ length: bytes.length }, (_, at) => at)
      : bordersOf(bytes).flatMap((border) => NEAR_BORDER.map((near) => border + near));
  return places.filter((place) => place > 0 && place < bytes.length);
}

/** At most so many of them, spread evenly. */
export function thinned<T>(list: readonly T[], limit: number): readonly T[] {
  return list.length <= limit
    ? list
    : Array.from({ length: limit }, (_, at) => list[Math.floor((at * list.length) / limit)] as T); // in range
}
