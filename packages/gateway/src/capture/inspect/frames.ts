/** Cuts a body into its frames, with their byte ranges, and finds the times of bytes. */

import { createSseDecoder, type SseDecoderOptions } from '@sluice/core';
import type { Read } from '@sluice/lab/tape';

/** A part of a body. Blank lines between two frames belong to neither. */
export interface Frame {
  from: number;
  to: number;
  /** `event`: decoded; `comment`: a block without data, such as a heartbeat; `rest`: bytes that are not a whole frame. */
  kind: 'event' | 'comment' | 'rest';
}

/** More frames are not told apart: a page could not show them, and a hostile body has one for every few bytes. */
const MAX_FRAMES = 500_000;

type FrameLimits = Pick<SseDecoderOptions, 'maxLineBytes' | 'maxEventBytes'>;

/**
 * Cuts a body into frames, in order. A document that is not an event stream is one frame; the elements of a JSON array
 * are one each.
 */
export function cutFrames(body: Uint8Array, limits: FrameLimits = {}, max: number = MAX_FRAMES): Frame[] {
  const decoder = createSseDecoder(limits);
  const frames: Frame[] = [];
  /** Where the bytes begin that are in no frame yet. */
  let open = 0;
  /** Ends the open frame where the next one of the same call begins; false when there was none. */
  const add = (found: Iterable<{ offset?: number }>, end: number): boolean => {
    let isFirst = true;
    for (const { offset = end } of found) {
      if (!isFirst) close(offset);
      isFirst = false;
    }
    if (!isFirst) close(end);
    return !isFirst;
  };
  const close = (to: number): void => {
    frames.push({ from: open, to, kind: 'event' });
    open = to;
  };
  for (let at = 0; at < body.length && frames.length < max; ) {
    const lineEnd = body.indexOf(LF, at);
    const end = lineEnd < 0 ? body.length : lineEnd + 1;
    if (!add(decoder.push(body.subarray(at, end)), end) && isBlank(body, at, end) && (open === at || isField(body[open]))) {
      if (open < at) frames.push({ from: open, to: end, kind: 'comment' });
      open = end;
    }
    at = end;
  }
  if (frames.length < max) add(decoder.end(), body.length);
  if (!isBlank(body, open, body.length)) frames.push({ from: open, to: body.length, kind: 'rest' });
  return frames;
}

const LF = 0x0a;

/** White space that is between frames. */
function isBlank(body: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (body[at] !== LF && body[at] !== 0x0d && body[at] !== 0x20) return false;
  return true;
}

/** Whether a line begins a field or a comment, and no JSON document: blank lines do not end those. */
const isField = (byte: number | undefined): boolean => byte === 0x3a || (byte !== undefined && byte >= 0x61 && byte <= 0x7a);

/** When a body had arrived or was sent up to some byte. */
export interface Boundary {
  /** The end of the part, in bytes from the start of the body. */
  to: number;
  ms: number;
}

/** The reads or writes of a body, from the start of the exchange. Without any, the whole body is one. */
export function listBoundaries(body: Uint8Array, reads: readonly Read[], startMs = 0): Boundary[] {
  let to = 0;
  const boundaries = reads.map(([ms, size]): Boundary => {
    to = Math.min(to + size, body.length);
    return { to, ms: ms + startMs };
  });
  if (to < body.length || boundaries.length === 0) boundaries.push({ to: body.length, ms: boundaries.at(-1)?.ms ?? startMs });
  return boundaries;
}

/** The index of the part that contains a byte; the last one for bytes after the end. */
export function findBoundary(boundaries: readonly Boundary[], byte: number): number {
  let low = 0;
  let high = boundaries.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((boundaries[middle]?.to ?? 0) > byte) high = middle;
    else low = middle + 1;
  }
  return low;
}
