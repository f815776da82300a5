import type { ProtocolId, SseFrame } from '../../../packages/core/src/index.ts';
import { createSseDecoder } from '../../../packages/core/src/index.ts';
import type { Failure } from '../case.ts';
import { assemble } from '../wire.ts';

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

export interface Body {
  protocol: ProtocolId;
  name: string;
  bytes: Uint8Array;
}

const failureOf = ({ protocol, name, bytes }: Body, message: string): Failure => ({
  property: 'split',
  id: `split/${protocol}`,
  message: `${name}: ${message}`,
  protocol,
  raw: new TextDecoder().decode(bytes),
  expected: assemble(protocol, [bytes]),
});

/** The body in two pieces, at each of the places. Past the framing, a reader works frame by frame: equal frames are an equal message. */
export function checkCuts(body: Body, cuts: Iterable<number>): { tried: number; failure?: Failure } {
  const { bytes } = body;
  const whole = frame([bytes]);
  let tried = 0;
  for (const cut of cuts) {
    tried++;
    if (!same(frame([bytes.subarray(0, cut), bytes.subarray(cut)]), whole))
      return { tried, failure: failureOf(body, `cut at byte ${cut}`) };
  }
  return { tried };
}

/** The body in many pieces, all the way to the message. */
export function checkPieces(body: Body, pieces: Iterable<Uint8Array>, how: string): Failure | undefined {
  const whole = JSON.stringify(assemble(body.protocol, [body.bytes]));
  return JSON.stringify(assemble(body.protocol, pieces)) === whole ? undefined : failureOf(body, how);
}

/** Every place of a small body; of a larger one those around the borders of its frames. */
export function* placesOf(bytes: Uint8Array, every: number): Generator<number> {
  if (bytes.length <= every) {
    for (let at = 1; at < bytes.length; at++) yield at;
    return;
  }
  for (const { offset = 0 } of frame([bytes]).frames)
    for (const near of [-3, -2, -1, 0, 1, 2, 6, 7]) if (offset + near > 0 && offset + near < bytes.length) yield offset + near;
}
