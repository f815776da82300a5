/** Where the playhead is, and how it moves. Without elements, so that tests run it. */

import { findFrame, type Inspection } from '@gateway/capture/inspect/inspect';

/** A place in a stream: the last frame that was read (-1: none; the number of frames: the end), and the events so far. */
export interface Position {
  readonly frame: number;
  readonly events: number;
}

/** The place after a frame. */
export function atFrame({ upstream: { frames }, events }: Inspection, frame: number): Position {
  const at = Math.max(-1, Math.min(frames.length, frame));
  return { frame: at, events: at < 0 ? 0 : at >= frames.length ? events.length : (frames[at]?.events ?? 0) };
}

/** The place after a number of events. */
export function atEvent({ events }: Inspection, count: number): Position {
  const at = Math.max(0, Math.min(events.length, count));
  return { frame: at === 0 ? -1 : (events[at - 1]?.frame ?? -1), events: at };
}

/** The place of a byte of the upstream. */
export function atByte(inspection: Inspection, byte: number): Position {
  return atFrame(inspection, findFrame(inspection.upstream.frames, byte));
}

/** The place at a time: the last frame that had arrived. */
export function atTime(inspection: Inspection, ms: number): Position {
  const { frames } = inspection.upstream;
  let low = -1;
  let high = frames.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((frames[middle]?.ms ?? 0) <= ms) low = middle;
    else high = middle - 1;
  }
  return atFrame(inspection, ms >= inspection.endMs ? frames.length : low);
}

/** The client's frames of a place: those of its frame, or of its last event alone. */
export function listClientFrames({ client: { frames } }: Inspection, { frame, events }: Position, isEvent: boolean): number[] {
  const found: number[] = [];
  // Frames of the client are in the order of their sources.
  let low = 0;
  let high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((frames[middle]?.frame ?? 0) < frame) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < frames.length && frames[at]?.frame === frame && found.length < MAX_SHOWN; at++) {
    const [first, end] = frames[at]?.events ?? [0, 0];
    if (!isEvent || (first < events && events <= end)) found.push(at);
  }
  return found;
}

/** Frames that are shown as text at once. */
const MAX_SHOWN = 50;

/** What the horizontal axis shows. */
export type Axis = 'time' | 'log' | 'bytes' | 'frames';

/** Names of the axes. */
export const AXES: Readonly<Record<Axis, string>> = { time: 'time', log: 'time (log)', bytes: 'bytes', frames: 'frames' };

/** The places of everything on the axis, from 0 to 1. */
export interface Layout {
  readonly axis: Axis;
  readonly upstream: Float64Array;
  readonly events: Float64Array;
  readonly client: Float64Array;
  readonly reads: Float64Array;
  readonly heartbeats: Float64Array;
}

/** Places everything on an axis. */
export function layOut({ upstream, events, client, endMs }: Inspection, axis: Axis): Layout {
  const { frames, bytes, reads } = upstream;
  const isTime = axis === 'time' || axis === 'log';
  const scale = (ms: number): number => (axis === 'log' ? Math.log1p(ms) / Math.log1p(endMs || 1) : ms / (endMs || 1));
  const placeFrame = (index: number): number => {
    const frame = frames[Math.max(0, index)];
    if (!frame || index >= frames.length) return 1;
    if (isTime) return scale(frame.ms);
    return axis === 'bytes' ? frame.to / (bytes.length || 1) : (index + 1) / (frames.length || 1);
  };
  return {
    axis,
    upstream: Float64Array.from(frames, (_, index) => placeFrame(index)),
    events: Float64Array.from(events, ({ frame }) => placeFrame(frame)),
    client: Float64Array.from(client.frames, ({ ms, frame }) => (isTime ? scale(ms) : placeFrame(frame))),
    reads: Float64Array.from(reads, ({ ms, to }) => (isTime ? scale(ms) : axis === 'bytes' ? to / (bytes.length || 1) : -1)),
    heartbeats: Float64Array.from(isTime ? client.heartbeats : [], ({ ms }) => scale(ms)),
  };
}

/** Where the playhead is on the axis. */
export function placePosition({ upstream }: Layout, { frame }: Position): number {
  return frame < 0 ? 0 : (upstream[frame] ?? 1);
}

/** The last item at or before a place of the axis; -1 when there is none. */
export function findItem(places: Float64Array, place: number): number {
  let low = -1;
  let high = places.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((places[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The item whose place is nearest; -1 when there is none. */
export function findNearest(places: Float64Array, place: number): number {
  const before = findItem(places, place);
  const after = before + 1;
  if (after >= places.length) return before;
  if (before < 0) return after;
  return place - (places[before] ?? 0) <= (places[after] ?? 0) - place ? before : after;
}
