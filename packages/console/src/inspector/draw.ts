/** Draws the three lanes. One pass over the visible items per drawing; what falls on the same pixel is drawn once. */

import type { Inspection } from '@gateway/capture/inspect/inspect';
import { findItem, type Layout } from './position.ts';

/** Heights of the lanes in pixels. */
export const LANE = { height: 44, gap: 8, total: 3 * 44 + 2 * 8 } as const;

/** The lanes from the top. */
export const LANES = ['upstream', 'events', 'client'] as const;

/** A lane. */
export type Lane = (typeof LANES)[number];

/** The part of the axis that is shown. */
export interface View {
  readonly from: number;
  readonly to: number;
}

/** What events are about, in the order of their rows in the lane. */
export const KINDS = ['control', 'text', 'thinking', 'call', 'error'] as const;

/** The index of a kind. */
type Kind = number;

/** Colours that canvases understand. */
export type Colors = Readonly<Record<Lane | (typeof KINDS)[number] | 'line' | 'muted' | 'accent' | 'hover', string>>;

/** The kinds of all events, and how long blocks are open. */
export interface EventShapes {
  readonly kinds: Uint8Array;
  readonly blocks: readonly { readonly kind: Kind; readonly first: number; readonly last: number }[];
}

const kindOf = (name: (typeof KINDS)[number]): Kind => KINDS.indexOf(name);

const BLOCK_KINDS: Readonly<Record<string, Kind>> = {
  thinking: kindOf('thinking'),
  tool_use: kindOf('call'),
};

/** Finds what every event is about. */
export function shapeEvents(events: Inspection['events']): EventShapes {
  const kinds = new Uint8Array(events.length);
  const open = new Map<string, { kind: Kind; first: number; last: number }>();
  const blocks: { kind: Kind; first: number; last: number }[] = [];
  for (const [index, { event }] of events.entries()) {
    if (event.type === 'error') kinds[index] = kindOf('error');
    if (!('index' in event)) continue;
    const key = `${event.choice ?? 0}.${event.index}`;
    if (event.type === 'content_block_start') {
      const block = { kind: BLOCK_KINDS[event.content_block.type] ?? kindOf('text'), first: index, last: index };
      open.set(key, block);
      blocks.push(block);
    }
    const block = open.get(key);
    if (!block) continue;
    kinds[index] = block.kind;
    block.last = index;
    if (event.type === 'content_block_stop') open.delete(key);
  }
  return { kinds, blocks };
}

/** The top of a lane. */
const topOf = (lane: Lane): number => LANES.indexOf(lane) * (LANE.height + LANE.gap);

/** The lane at a height. */
export const laneAt = (y: number): Lane =>
  LANES[Math.max(0, Math.min(2, Math.floor(y / (LANE.height + LANE.gap))))] ?? 'upstream';

/** Everything that a drawing needs. */
export interface Scene {
  readonly inspection: Inspection;
  readonly layout: Layout;
  readonly shapes: EventShapes;
  readonly view: View;
  readonly width: number;
  readonly colors: Colors;
}

/** Room at both ends, so that what is there can be seen. */
const PADDING = 8;

/** The pixel of a place. */
const toPixel = ({ from, to }: View, width: number, place: number): number =>
  PADDING + ((place - from) / (to - from || 1)) * (width - 2 * PADDING);

/** The place of a pixel. */
export const toPlace = ({ from, to }: View, width: number, x: number): number =>
  from + ((x - PADDING) / Math.max(1, width - 2 * PADDING)) * (to - from);

/** A frame's bar: 16 bytes are low, 64 kB as high as the lane. */
const barHeight = (bytes: number): number => Math.min(LANE.height - 4, 4 + Math.max(0, Math.log2(bytes / 16)) * 3.2);

/** Draws everything but the playhead. */
export function drawLanes(context: CanvasRenderingContext2D, scene: Scene): void {
  const { inspection, layout, colors, width } = scene;
  context.clearRect(0, 0, width, LANE.total);
  context.fillStyle = colors.line;
  for (const lane of LANES) context.fillRect(0, topOf(lane) + LANE.height - 1, width, 1);
  drawTicks(context, scene, layout.reads, topOf('upstream'), colors.muted);
  drawBars(context, scene, 'upstream', layout.upstream, inspection.upstream.frames);
  drawEvents(context, scene);
  drawBars(context, scene, 'client', layout.client, inspection.client.frames);
  drawTicks(context, scene, layout.heartbeats, topOf('client'), colors.muted);
}

/** Calls `use` for the items that are visible. */
function eachVisible(places: Float64Array, { from, to }: View, use: (index: number) => void): void {
  // What is a little outside of the view is in its padding.
  const margin = (to - from) / 20;
  const first = Math.max(0, findItem(places, from - margin));
  for (let index = first; index < places.length && (places[index] ?? 0) <= to + margin; index++) use(index);
}

function drawTicks(
  context: CanvasRenderingContext2D,
  { view, width }: Scene,
  places: Float64Array,
  y: number,
  color: string,
): void {
  context.fillStyle = color;
  let last = -1;
  eachVisible(places, view, (index) => {
    const x = Math.round(toPixel(view, width, places[index] ?? 0));
    if (x !== last && x >= 0) context.fillRect(x, y, 1, 4);
    last = x;
  });
}

type Sized = readonly { readonly from: number; readonly to: number; readonly kind: string }[];

function drawBars(context: CanvasRenderingContext2D, scene: Scene, lane: Lane, places: Float64Array, frames: Sized): void {
  const { view, width, colors } = scene;
  const heights = new Float32Array(Math.ceil(width) + 1);
  const comments = new Float32Array(Math.ceil(width) + 1);
  eachVisible(places, view, (index) => {
    const frame = frames[index];
    const x = Math.round(toPixel(view, width, places[index] ?? 0));
    if (!frame || x < 0 || x >= heights.length) return;
    const column = frame.kind === 'event' ? heights : comments;
    column[x] = Math.max(column[x] ?? 0, barHeight(frame.to - frame.from));
  });
  const bottom = topOf(lane) + LANE.height - 1;
  for (const [columns, color] of [
    [comments, colors.muted],
    [heights, colors[lane]],
  ] as const) {
    context.fillStyle = color;
    for (const [x, height] of columns.entries()) if (height > 0) context.fillRect(x, bottom - height, 2, height);
  }
}

const ROW = 8;

function drawEvents(context: CanvasRenderingContext2D, { layout, shapes, view, width, colors }: Scene): void {
  const top = topOf('events') + 1;
  const columns = Math.ceil(width) + 1;
  const drawn = new Uint8Array(columns * KINDS.length);
  for (const { kind, first, last } of shapes.blocks) {
    const from = Math.max(0, toPixel(view, width, layout.events[first] ?? 0));
    const to = Math.min(width, toPixel(view, width, layout.events[last] ?? 0));
    if (to < from) continue;
    context.fillStyle = colors[KINDS[kind] ?? 'text'];
    context.fillRect(from, top + kind * ROW + 3, Math.max(1, to - from), 2);
  }
  eachVisible(layout.events, view, (index) => {
    const x = Math.round(toPixel(view, width, layout.events[index] ?? 0));
    const kind = shapes.kinds[index] ?? 0;
    if (x < 0 || x >= columns || drawn[x * KINDS.length + kind]) return;
    drawn[x * KINDS.length + kind] = 1;
    context.fillStyle = colors[KINDS[kind] ?? 'text'];
    context.fillRect(x, top + kind * ROW, 2, ROW - 1);
  });
}

/** Items that belong together, in each lane: from the first one to the one before the end. */
export type Related = Readonly<Record<Lane, readonly [first: number, end: number]>>;

/** Draws the playhead and what belongs to it, and what belongs to the item under the pointer. */
export function drawMarks(
  context: CanvasRenderingContext2D,
  scene: Scene,
  place: number,
  current: Related,
  hovered?: Related,
): void {
  const { width, view, colors } = scene;
  context.clearRect(0, 0, width, LANE.total);
  drawRelated(context, scene, current, colors.accent);
  if (hovered) drawRelated(context, scene, hovered, colors.hover);
  const x = Math.max(1, Math.min(width - 1, toPixel(view, width, place)));
  context.fillStyle = colors.accent;
  context.fillRect(x - 0.5, 0, 1.5, LANE.total);
}

function drawRelated(context: CanvasRenderingContext2D, { layout, view, width }: Scene, related: Related, color: string): void {
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  const middles: [number, number][] = [];
  for (const lane of LANES) {
    const [first, end] = related[lane];
    if (first >= end) continue;
    const from = toPixel(view, width, layout[lane][first] ?? 0);
    const to = toPixel(view, width, layout[lane][end - 1] ?? 0) + 2;
    context.strokeRect(from - 2, topOf(lane), to - from + 4, LANE.height - 1);
    middles.push([(from + to) / 2, topOf(lane)]);
  }
  context.beginPath();
  for (const [index, [x, y]] of middles.entries()) {
    const next = middles[index + 1];
    if (!next) continue;
    context.moveTo(x, y + LANE.height);
    context.lineTo(next[0], next[1]);
  }
  context.stroke();
}
