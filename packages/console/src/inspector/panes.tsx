/** What is under the lanes: the raw text of a place on three sides, the message up to it, and what was found. */

import { type Inspection, readText } from '@gateway/capture/inspect/inspect';
import type { Timeline } from '@gateway/capture/inspect/timeline';
import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { findRuleUrl } from '../lib/docs.ts';
import { cutText, formatDuration } from '../lib/format.ts';
import { LongText } from '../ui/json.tsx';
import { listClientFrames, type Position } from './position.ts';

interface PaneProps {
  readonly inspection: Inspection;
  readonly position: Position;
}

/** A part with a name, which can be scrolled by keyboard. */
function Pane({
  title,
  facts,
  children,
  id,
}: {
  title: string;
  facts?: string;
  children: ComponentChildren;
  id: string;
}): JSX.Element {
  return (
    <section class={`pane pane-${id}`} aria-labelledby={`pane-${id}`}>
      <h3 id={`pane-${id}`}>
        {title} {facts !== undefined && <span class="muted">{facts}</span>}
      </h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <div class="pane-body" role="region" aria-labelledby={`pane-${id}`} tabIndex={0}>
        {children}
      </div>
    </section>
  );
}

/** The frame of the upstream, its events, and the frames of the client that came from it. */
export function RawPanes({ inspection, position, isEvent }: PaneProps & { isEvent: boolean }): JSX.Element {
  const { upstream, events, client } = inspection;
  const { frame } = position;
  const source = upstream.frames[frame];
  const first = frame <= 0 ? 0 : (upstream.frames[frame - 1]?.events ?? events.length);
  const end = frame < 0 ? 0 : (source?.events ?? events.length);
  const shown = events.slice(first, Math.min(end, first + MAX_EVENTS));
  const sent = listClientFrames(inspection, position, isEvent);
  return (
    <div class="raw">
      <Pane id="upstream" title="Upstream" {...(source && { facts: `bytes ${source.from}–${source.to}` })}>
        {source ? <LongText key={frame} text={readText(upstream.bytes, source)} /> : <p class="muted">{describeEdge(frame)}</p>}
      </Pane>
      <Pane id="events" title="Events" facts={end > first ? `${first + 1}–${end}` : ''}>
        {shown.length === 0 && <p class="muted">None.</p>}
        <ol>
          {shown.map(({ event }, index) => (
            <li key={first + index} aria-current={first + index + 1 === position.events ? 'step' : undefined}>
              <LongText text={formatEvent(event)} max={600} />
            </li>
          ))}
        </ol>
        {end - first > MAX_EVENTS && <p class="muted">{end - first - MAX_EVENTS} more events of this frame are not shown.</p>}
      </Pane>
      <Pane id="client" title="Client" facts={`${sent.length} frame${sent.length === 1 ? '' : 's'}`}>
        {sent.length === 0 && <p class="muted">Nothing was sent here.</p>}
        {sent.map((index) => {
          const own = client.frames[index];
          return own ? <LongText key={index} text={readText(client.bytes, own)} /> : null;
        })}
      </Pane>
    </div>
  );
}

const MAX_EVENTS = 50;

/** An event as JSON. A text of 20 MB would take a second each time it is shown. */
const formatEvent = (event: Inspection['events'][number]['event']): string =>
  JSON.stringify(event, (_, value: unknown) => {
    if (typeof value !== 'string') return value;
    const { shown, rest } = cutText(value, MAX_STRING);
    return rest > 0 ? `${shown}… ${rest} more characters` : value;
  });

const MAX_STRING = 4000;

const describeEdge = (frame: number): string =>
  frame < 0 ? 'Nothing has arrived yet.' : 'The end of the stream: nothing more has arrived.';

/** The message accumulated up to the playhead. */
export function MessagePane({ timeline, position }: { timeline: Timeline; position: Position }): JSX.Element {
  const { message, complete, error } = useMemo(() => timeline.at(position.events).finish(), [timeline, position.events]);
  const { content, stop_reason: stop, usage, model } = message;
  const blocks = message.choices ? message.choices.flatMap((choice) => choice.content) : content;
  return (
    <Pane id="message" title="Message so far" facts={model === '' ? '' : cutText(model, 80).shown}>
      {blocks.slice(-MAX_BLOCKS).map((block, index) => (
        <BlockView key={Math.max(0, blocks.length - MAX_BLOCKS) + index} block={block} />
      ))}
      {blocks.length === 0 && <p class="muted">No content yet.</p>}
      <dl class="facts">
        <div>
          <dt>finish</dt>
          <dd data-fact="finish">{stop ?? (complete ? 'complete' : 'not yet')}</dd>
        </div>
        <div>
          <dt>usage</dt>
          <dd data-fact="usage">{usage ? formatUsage(usage) : 'not yet'}</dd>
        </div>
        {error && (
          <div>
            <dt>error</dt>
            <dd class="failure">
              {error.code}: {cutText(error.message, 2000).shown}
            </dd>
          </div>
        )}
      </dl>
    </Pane>
  );
}

/** Blocks that are shown: the last ones are those that change. */
const MAX_BLOCKS = 60;

type Block = ReturnType<ReturnType<Timeline['at']>['finish']>['message']['content'][number];

function BlockView({ block }: { block: Block }): JSX.Element {
  switch (block.type) {
    case 'text':
      return <Content kind="text" title="text" text={block.text} />;
    case 'thinking':
      return <Content kind="thinking" title="thinking" text={block.thinking} />;
    case 'tool_use':
      return (
        <Content
          kind="call"
          title={`call ${block.name}`}
          facts={block.id}
          text={block.input_raw ?? JSON.stringify(block.input)}
        />
      );
    default:
      return <Content kind="control" title={block.type} text={JSON.stringify(block)} />;
  }
}

function Content({ kind, title, facts, text }: { kind: string; title: string; facts?: string; text: string }): JSX.Element {
  return (
    <div class={`content e-${kind}`} data-kind={kind}>
      <span class="content-title">
        {cutText(title, 200).shown} {facts !== undefined && <span class="muted">{cutText(facts, 100).shown}</span>}
      </span>
      <TailText text={text} />
    </div>
  );
}

/** The end of a text, which is what changes. */
function TailText({ text }: { text: string }): JSX.Element {
  const rest = Math.max(0, text.length - MAX_TAIL);
  return (
    <pre class="text" data-length={text.length}>
      {rest > 0 ? `… ${rest.toLocaleString('en')} characters …\n` : ''}
      {rest > 0 ? text.slice(rest) : text}
    </pre>
  );
}

const MAX_TAIL = 20_000;

const formatUsage = (usage: object): string =>
  Object.entries(usage)
    .flatMap(([name, value]) => (typeof value === 'number' ? [`${name.replaceAll('_', ' ')} ${value.toLocaleString('en')}`] : []))
    .join(', ');

/** Violations and notes, each with its place. Those after the playhead have not happened yet. */
export function FindingsPane({ inspection, position, onJump }: PaneProps & { onJump: (frame: number) => void }): JSX.Element {
  const { findings, upstream } = inspection;
  const reached = findings.filter(({ frame }) => frame <= position.frame).length;
  return (
    <Pane id="findings" title="Rules and notes" facts={`${reached} of ${findings.length} so far`}>
      {findings.length === 0 && <p class="muted">The upstream keeps its protocol, and the conversion loses nothing.</p>}
      <ul class="findings">
        {findings.slice(0, MAX_FINDINGS).map((finding, index) => (
          <li key={index} class={finding.frame <= position.frame ? '' : 'is-later'}>
            <button type="button" class="small" onClick={() => onJump(finding.frame)}>
              {describePlace(finding.frame, upstream.frames.length)}
            </button>{' '}
            <span class={`severity v-${finding.severity}`}>{finding.severity}</span> <FindingId finding={finding} />{' '}
            {cutText(finding.message, 500).shown}
            {finding.count > 1 && <span class="muted"> ({finding.count} times, first here)</span>}
          </li>
        ))}
      </ul>
      {findings.length > MAX_FINDINGS && <p class="muted">{findings.length - MAX_FINDINGS} more are not shown.</p>}
    </Pane>
  );
}

const MAX_FINDINGS = 200;

/** A rule has a page. */
const FindingId = ({ finding: { kind, id } }: { finding: Inspection['findings'][number] }): JSX.Element =>
  kind === 'rule' ? (
    <a href={findRuleUrl(id)} rel="noopener noreferrer" target="_blank">
      {id}
    </a>
  ) : (
    <code>{id}</code>
  );

const describePlace = (frame: number, frames: number): string =>
  frame < 0 ? 'request' : frame >= frames ? 'end' : `frame ${frame + 1}`;

/** A place in words: for the status line and for screen readers. */
export function describePosition({ upstream, events, hasTimes, endMs }: Inspection, { frame, events: count }: Position): string {
  const { frames, bytes } = upstream;
  const at = frames[frame];
  const parts = [
    frame < 0 ? 'start' : at ? `frame ${frame + 1} of ${frames.length}` : `end, after ${frames.length} frames`,
    `event ${count} of ${events.length}`,
    `byte ${frame < 0 ? 0 : (at?.to ?? bytes.length)} of ${bytes.length}`,
    ...(hasTimes ? [formatDuration(frame < 0 ? 0 : (at?.ms ?? endMs))] : []),
  ];
  return parts.join(', ');
}
