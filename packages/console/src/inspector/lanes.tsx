/** The three lanes on one axis, with the playhead: a slider for the keyboard, canvases for the eye. */

import type { Inspection } from '@gateway/capture/inspect/inspect';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { theme } from '../lib/preferences.ts';
import {
  type Colors,
  drawLanes,
  drawMarks,
  KINDS,
  LANE,
  LANES,
  type Lane,
  laneAt,
  type Related,
  type Scene,
  shapeEvents,
  toPlace,
  type View,
} from './draw.ts';
import { atEvent, atFrame, findNearest, type Layout, type Position, placePosition } from './position.ts';

/** An item of a lane. */
export interface Hovered {
  readonly lane: Lane;
  readonly index: number;
}

interface LanesProps {
  readonly inspection: Inspection;
  readonly layout: Layout;
  readonly view: View;
  readonly position: Position;
  readonly hovered: Hovered | undefined;
  readonly label: string;
  readonly onMove: (position: Position) => void;
  readonly onHover: (hovered: Hovered | undefined) => void;
  readonly onView: (view: View) => void;
}

/** The lanes. */
export function Lanes(props: LanesProps): JSX.Element {
  const { inspection, layout, view, position, hovered, label, onMove, onHover, onView } = props;
  const box = useRef<HTMLDivElement>(null);
  const lanes = useRef<HTMLCanvasElement>(null);
  const marks = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const colors = useColors(box);
  const shapes = useMemo(() => shapeEvents(inspection.events), [inspection]);
  const scene: Scene = { inspection, layout, shapes, view, width, colors };
  useEffect(() => {
    const context = prepare(lanes.current, width);
    if (context) drawLanes(context, scene);
  }, [inspection, layout, view, width, colors]);
  useEffect(() => {
    const context = prepare(marks.current, width);
    const related = hovered && relate(inspection, hovered);
    if (context) drawMarks(context, scene, placePosition(layout, position), relatePosition(inspection, position), related);
  }, [inspection, layout, view, width, colors, position, hovered]);
  const find = (event: { clientX: number; clientY: number }): Hovered => {
    const { left = 0, top = 0 } = box.current?.getBoundingClientRect() ?? {};
    const lane = laneAt(event.clientY - top);
    return { lane, index: findNearest(layout[lane], toPlace(view, width, event.clientX - left)) };
  };
  useWheel(box, view, width, onView);
  return (
    <div class="lanes">
      <Legend />
      <div
        ref={box}
        class="lane-box"
        role="slider"
        tabIndex={0}
        aria-label="Playhead"
        aria-orientation="horizontal"
        aria-valuemin={0}
        aria-valuemax={inspection.upstream.frames.length + 1}
        aria-valuenow={position.frame + 1}
        aria-valuetext={label}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          onMove(place(inspection, find(event)));
        }}
        onPointerMove={(event) => {
          const found = find(event);
          onHover(found.index < 0 ? undefined : found);
          if (event.buttons === 1) onMove(place(inspection, found));
        }}
        onPointerLeave={() => onHover(undefined)}
      >
        <canvas ref={lanes} />
        <canvas ref={marks} />
      </div>
    </div>
  );
}

/** The position that a click on an item means. */
function place(inspection: Inspection, { lane, index }: Hovered): Position {
  if (index < 0) return atFrame(inspection, -1);
  if (lane === 'upstream') return atFrame(inspection, index);
  if (lane === 'events') return atEvent(inspection, index + 1);
  const frame = inspection.client.frames[index];
  const isOne = frame && frame.events[1] === frame.events[0] + 1;
  return isOne ? atEvent(inspection, frame.events[1]) : atFrame(inspection, frame?.frame ?? -1);
}

/** What belongs to an item: of a client's frame its events and the upstream's frame, and so on. */
export function relate(inspection: Inspection, { lane, index }: Hovered): Related {
  if (lane === 'client') {
    const frame = inspection.client.frames[index];
    if (!frame) return NOTHING;
    return { upstream: [frame.frame, frame.frame + 1], events: frame.events, client: [index, index + 1] };
  }
  const frame = lane === 'upstream' ? index : (inspection.events[index]?.frame ?? 0);
  const own = relatePosition(inspection, atFrame(inspection, frame));
  if (lane === 'upstream') return own;
  const [first, end] = own.client;
  const isFrom = (at: number): boolean => {
    const events = inspection.client.frames[at]?.events;
    return events !== undefined && events[0] <= index && index < events[1];
  };
  let from = first;
  while (from < end && !isFrom(from)) from++;
  let to = from;
  while (to < end && isFrom(to)) to++;
  return { ...own, events: [index, index + 1], client: [from, to] };
}

const NOTHING: Related = { upstream: [0, 0], events: [0, 0], client: [0, 0] };

function relatePosition(inspection: Inspection, { frame }: Position): Related {
  if (frame < 0) return NOTHING;
  const first = frame === 0 ? 0 : atFrame(inspection, frame - 1).events;
  const { frames } = inspection.client;
  const from = findSource(frames, frame);
  return {
    upstream: [frame, Math.min(frame + 1, inspection.upstream.frames.length)],
    events: [first, atFrame(inspection, frame).events],
    client: [from, findSource(frames, frame + 1)],
  };
}

/** The first of the client's frames that comes from this frame or a later one. */
function findSource(frames: Inspection['client']['frames'], frame: number): number {
  let low = 0;
  let high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((frames[middle]?.frame ?? 0) < frame) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Names of lanes and kinds. Their colours are those of the drawing, too. */
function Legend(): JSX.Element {
  return (
    <div class="legend" aria-hidden="true">
      {LANES.map((lane) => (
        <div key={lane} class={`lane-name l-${lane}`}>
          {lane}
          {lane === 'events' &&
            KINDS.map((kind) => (
              <span key={kind} class={`kind e-${kind}`}>
                {kind}
              </span>
            ))}
        </div>
      ))}
    </div>
  );
}

/** Sizes a canvas for the screen. */
function prepare(canvas: HTMLCanvasElement | null, width: number): CanvasRenderingContext2D | undefined {
  if (!canvas) return undefined;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(LANE.total * ratio);
  const context = canvas.getContext('2d') ?? undefined;
  context?.scale(ratio, ratio);
  return context;
}

function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(50, entry.contentRect.width)));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** The colours of the style sheet: canvases do not know its variables. */
function useColors(box: { current: HTMLElement | null }): Colors {
  const [colors, setColors] = useState<Colors>(BLACK);
  const chosen = theme.value;
  useEffect(() => {
    const read = (): void => {
      const root = box.current?.parentElement;
      if (root) setColors(readColors(root));
    };
    read();
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', read);
    return () => system.removeEventListener('change', read);
  }, [chosen]);
  return colors;
}

function readColors(root: HTMLElement): Colors {
  const pick = (selector: string): string => getComputedStyle(root.querySelector(selector) ?? root).color;
  const style = getComputedStyle(root);
  return {
    upstream: pick('.l-upstream'),
    events: pick('.l-events'),
    client: pick('.l-client'),
    control: pick('.e-control'),
    text: pick('.e-text'),
    thinking: pick('.e-thinking'),
    call: pick('.e-call'),
    error: pick('.e-error'),
    line: style.borderTopColor,
    muted: style.outlineColor,
    accent: style.caretColor,
    hover: style.textDecorationColor,
  };
}

const BLACK: Colors = {
  upstream: 'black',
  events: 'black',
  client: 'black',
  control: 'black',
  text: 'black',
  thinking: 'black',
  call: 'black',
  error: 'black',
  line: 'black',
  muted: 'black',
  accent: 'black',
  hover: 'black',
};

/** Pinching and the wheel with Ctrl zoom, the horizontal wheel moves. A page scrolls as usual. */
function useWheel(box: { current: HTMLElement | null }, view: View, width: number, onView: (view: View) => void): void {
  useEffect(() => {
    const element = box.current;
    const turn = (event: WheelEvent): void => {
      const isZoom = event.ctrlKey || event.metaKey;
      if (!isZoom && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (isZoom) onView(zoom(view, Math.exp(event.deltaY / 200), toPlace(view, width, event.offsetX)));
      else onView(pan(view, (event.deltaX / width) * (view.to - view.from)));
    };
    element?.addEventListener('wheel', turn, { passive: false });
    return () => element?.removeEventListener('wheel', turn);
  }, [view, width]);
}

/** Shows more or less of the axis, around a place. */
export function zoom({ from, to }: View, factor: number, around: number): View {
  const span = Math.max(1e-6, Math.min(1, (to - from) * factor));
  const share = (around - from) / (to - from || 1);
  return pan({ from: around - share * span, to: around + (1 - share) * span }, 0);
}

function pan({ from, to }: View, by: number): View {
  const span = to - from;
  const start = Math.max(0, Math.min(1 - span, from + by));
  return { from: start, to: start + span };
}
