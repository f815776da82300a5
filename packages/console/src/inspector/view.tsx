/** The inspector: a stream as bytes, events and what the client received, at any place of it. */

import './inspector.css';
import { InspectError, type InspectInput, type Inspection, inspect } from '@gateway/capture/inspect/inspect';
import { Timeline } from '@gateway/capture/inspect/timeline';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatDuration, PROTOCOLS } from '../lib/format.ts';
import { useKeys } from '../lib/keys.ts';
import { Failure, ProtocolBadge } from '../ui/parts.tsx';
import type { View } from './draw.ts';
import { type Hovered, Lanes, relate, zoom } from './lanes.tsx';
import { describePosition, FindingsPane, MessagePane, RawPanes } from './panes.tsx';
import { AXES, type Axis, atByte, atEvent, atFrame, atTime, layOut, type Position, placePosition } from './position.ts';

interface InspectorProps {
  readonly input: InspectInput;
  /** Saves what a report of a difference needs. */
  readonly onDownload?: () => void;
}

type Result = { readonly inspection: Inspection } | { readonly message: string };

/** Derives everything from the bytes and shows it. */
export function Inspector({ input, onDownload }: InspectorProps): JSX.Element {
  const [to, setTo] = useState<string>();
  const chosen = useMemo((): InspectInput => {
    const protocol = input.is === 'body' ? findProtocolId(to) : undefined;
    return input.is === 'body' && protocol ? { ...input, to: protocol } : input;
  }, [input, to]);
  const result = useMemo((): Result => derive(chosen), [chosen]);
  if ('message' in result) return <Failure message={result.message} />;
  const { inspection } = result;
  return (
    <div class="inspector">
      <Verdict inspection={inspection} onDownload={onDownload} />
      {input.is === 'body' && (
        <label class="row">
          Show what a client would receive of
          <select value={inspection.client.protocol} onChange={(event) => setTo(event.currentTarget.value)}>
            {Object.entries(PROTOCOLS).map(([id, { title }]) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
      )}
      <Player key={input.name} inspection={inspection} />
    </div>
  );
}

function derive(input: InspectInput): Result {
  try {
    return { inspection: inspect(input) };
  } catch (error) {
    return { message: error instanceof InspectError ? error.message : `The stream cannot be derived: ${String(error)}` };
  }
}

type ProtocolId = Inspection['client']['protocol'];

/** The table of names has the ids of all protocols. */
const findProtocolId = (id: string | undefined): ProtocolId | undefined =>
  id !== undefined && Object.hasOwn(PROTOCOLS, id) ? (id as ProtocolId) : undefined; // a key of that table

/** Whether the derived bytes are those that the client received. */
function Verdict({ inspection, onDownload }: { inspection: Inspection; onDownload: (() => void) | undefined }): JSX.Element {
  const { comparison, upstream, client, events, endMs, hasTimes } = inspection;
  return (
    <p class="row verdict">
      <span>
        <ProtocolBadge id={upstream.protocol} />→<ProtocolBadge id={client.protocol} />
      </span>
      <span class="muted">
        {upstream.frames.length.toLocaleString('en')} frames, {events.length.toLocaleString('en')} events,{' '}
        {client.frames.length.toLocaleString('en')} frames for the client{hasTimes ? `, ${formatDuration(endMs)}` : ''}
      </span>
      {comparison.is === 'equal' && (
        <span class="status s-ok">derived bytes equal the recorded ones{comparison.isPrefix ? ', as far as they go' : ''}</span>
      )}
      {comparison.is === 'unknown' && <span class="muted">not compared: {comparison.reason}</span>}
      {comparison.is === 'different' && (
        <>
          <span class="failure" role="alert">
            The derived bytes differ from the recorded ones from byte {comparison.at} on. This is a bug of Sluice, unless a secret
            was removed from the capture; please report it with the capture.
          </span>
          {onDownload && (
            <button type="button" class="small" onClick={onDownload}>
              download the capture
            </button>
          )}
        </>
      )}
    </p>
  );
}

const WHOLE: View = { from: 0, to: 1 };

/** The lanes, their controls, and the panes of the playhead. */
function Player({ inspection }: { inspection: Inspection }): JSX.Element {
  const timeline = useMemo(() => new Timeline(inspection.events.map(({ event }) => event)), [inspection]);
  const [axis, setAxis] = useState<Axis>(inspection.hasTimes ? 'time' : 'frames');
  const layout = useMemo(() => layOut(inspection, axis), [inspection, axis]);
  const [view, setView] = useState(WHOLE);
  const [stored, setPosition] = useState<Position>(() => atFrame(inspection, inspection.upstream.frames.length));
  // Another protocol of the client may lead to other events.
  const position = stored.events <= inspection.events.length ? stored : atFrame(inspection, stored.frame);
  const [isEvent, setEvent] = useState(false);
  const [hovered, setHovered] = useState<Hovered>();
  const [speed, setSpeed] = useState(1);
  const player = usePlayer(inspection, position, speed, setPosition);
  const move = (next: Position, byEvent = false): void => {
    player.stop();
    setEvent(byEvent);
    setPosition(next);
    setView((before) => follow(before, placePosition(layout, next)));
  };
  const step = (by: number, byEvent: boolean): void =>
    move(byEvent ? atEvent(inspection, position.events + by) : atFrame(inspection, position.frame + by), byEvent);
  usePlayerKeys(step, player.toggle);
  const label = describePosition(inspection, position);
  return (
    <>
      <div class="row controls">
        <button
          type="button"
          class="small"
          onClick={player.toggle}
          aria-pressed={player.isPlaying}
          title="Play and pause (space)"
        >
          {player.isPlaying ? 'pause' : 'play'}
        </button>
        <Choice label="Speed" value={String(speed)} values={SPEEDS} onChange={(value) => setSpeed(Number(value))} />
        <Steps step={step} />
        <Choice label="Axis" value={axis} values={listAxes(inspection)} onChange={(value) => setAxis(findAxis(value))} />
        <ZoomButtons view={view} place={placePosition(layout, position)} onView={setView} />
        <ByteField onByte={(byte) => move(atByte(inspection, byte))} />
      </div>
      <Lanes
        inspection={inspection}
        layout={layout}
        view={view}
        position={position}
        hovered={hovered}
        label={label}
        onMove={(next) => move(next)}
        onHover={setHovered}
        onView={setView}
      />
      <p class="where">
        <output data-frame={position.frame} data-events={position.events}>
          {label}
        </output>
        <span class="muted">{hovered ? describeHovered(inspection, hovered) : ''}</span>
      </p>
      <RawPanes inspection={inspection} position={position} isEvent={isEvent} />
      <div class="results">
        <MessagePane timeline={timeline} position={position} />
        <FindingsPane inspection={inspection} position={position} onJump={(frame) => move(atFrame(inspection, frame))} />
      </div>
    </>
  );
}

const SPEEDS: readonly (readonly [string, string])[] = ['0.1', '0.25', '1', '4', '16'].map((speed) => [speed, `× ${speed}`]);

const isAxis = (value: string): value is Axis => Object.hasOwn(AXES, value);

const findAxis = (value: string): Axis => (isAxis(value) ? value : 'frames');

/** Without times, a stream has no axis of time. */
const listAxes = ({ hasTimes }: Inspection): readonly (readonly [string, string])[] =>
  Object.entries(AXES).filter(([axis]) => hasTimes || axis === 'bytes' || axis === 'frames');

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly values: readonly (readonly [value: string, title: string])[];
  readonly onChange: (value: string) => void;
}

const Choice = ({ label, value, values, onChange }: ChoiceProps): JSX.Element => (
  <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
    {values.map(([one, title]) => (
      <option key={one} value={one}>
        {title}
      </option>
    ))}
  </select>
);

const Steps = ({ step }: { step: (by: number, byEvent: boolean) => void }): JSX.Element => (
  <>
    {(['frame', 'event'] as const).map((what) => (
      <span key={what} class="steps">
        <button type="button" class="small" aria-label={`previous ${what}`} onClick={() => step(-1, what === 'event')}>
          ◂
        </button>
        {what}
        <button type="button" class="small" aria-label={`next ${what}`} onClick={() => step(1, what === 'event')}>
          ▸
        </button>
      </span>
    ))}
  </>
);

function ZoomButtons({ view, place, onView }: { view: View; place: number; onView: (view: View) => void }): JSX.Element {
  const around = Math.max(view.from, Math.min(view.to, place));
  return (
    <span class="steps">
      <button type="button" class="small" aria-label="zoom out" onClick={() => onView(zoom(view, 2, around))}>
        −
      </button>
      zoom
      <button type="button" class="small" aria-label="zoom in" onClick={() => onView(zoom(view, 0.5, around))}>
        +
      </button>
      <button type="button" class="small" onClick={() => onView(WHOLE)}>
        all
      </button>
    </span>
  );
}

/** Reports of `sluice doctor` name bytes. */
const ByteField = ({ onByte }: { onByte: (byte: number) => void }): JSX.Element => (
  <input
    class="byte"
    type="number"
    min="0"
    placeholder="byte"
    aria-label="Go to byte"
    onChange={(event) => {
      const byte = event.currentTarget.valueAsNumber;
      if (byte >= 0) onByte(byte);
    }}
  />
);

/** Keeps the playhead visible. */
function follow(view: View, place: number): View {
  if (place >= view.from && place <= view.to) return view;
  const span = view.to - view.from;
  const from = Math.max(0, Math.min(1 - span, place - span / 2));
  return { from, to: from + span };
}

/** Keys of the inspector; the arrows move by events while shift is held. */
function usePlayerKeys(step: (by: number, byEvent: boolean) => void, toggle: () => void): void {
  const latest = useRef({ step, toggle });
  latest.current = { step, toggle };
  useKeys(
    {
      ' ': { about: 'play and pause the stream', run: () => latest.current.toggle() },
      ArrowLeft: { about: 'previous frame; with shift, event', run: ({ shiftKey }) => latest.current.step(-1, shiftKey) },
      ArrowRight: { about: 'next frame; with shift, event', run: ({ shiftKey }) => latest.current.step(1, shiftKey) },
    },
    [],
  );
}

interface PlayerState {
  readonly isPlaying: boolean;
  toggle(): void;
  stop(): void;
}

/** Frames a second where a stream has no times. */
const FRAME_RATE = 30;

/** Moves the playhead as time passes. From the end, it starts again. */
function usePlayer(inspection: Inspection, position: Position, speed: number, onMove: (position: Position) => void): PlayerState {
  const [isPlaying, setPlaying] = useState(false);
  useEffect(() => {
    if (!isPlaying) return;
    const { frames } = inspection.upstream;
    const start = position.frame >= frames.length ? -1 : position.frame;
    const startMs = start < 0 ? 0 : (frames[start]?.ms ?? 0);
    const startedAt = performance.now();
    let request = requestAnimationFrame(function advance() {
      const passed = (performance.now() - startedAt) * speed;
      const next = inspection.hasTimes
        ? atTime(inspection, startMs + passed)
        : atFrame(inspection, start + Math.floor((passed / 1000) * FRAME_RATE));
      onMove(next);
      if (next.frame >= frames.length) setPlaying(false);
      else request = requestAnimationFrame(advance);
    });
    return () => cancelAnimationFrame(request);
  }, [isPlaying, speed, inspection]);
  return { isPlaying, toggle: () => setPlaying(!isPlaying), stop: () => setPlaying(false) };
}

/** Which bytes of the upstream an item comes from. */
function describeHovered(inspection: Inspection, hovered: Hovered): string {
  const related = relate(inspection, hovered);
  const source = inspection.upstream.frames[related.upstream[0]];
  const [first, end] = related.events;
  const range = end - first > 1 ? `events ${first + 1}–${end}` : end > first ? `event ${end}` : 'no event';
  const from = source ? `upstream frame ${related.upstream[0] + 1}, bytes ${source.from}–${source.to}` : 'the end of the stream';
  if (hovered.lane === 'client') return `client frame ${hovered.index + 1} ← ${range} ← ${from}`;
  const sent = related.client[1] - related.client[0];
  return `${from} → ${range} → ${sent} client frame${sent === 1 ? '' : 's'}`;
}
