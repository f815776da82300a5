/** The conversation of an exchange as sections that a person can read. All text of it is shown as text. */

import type { Conversation } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, useLoaded } from '../lib/data.ts';
import { JsonOrText, JsonTree, LongText } from '../ui/json.tsx';
import { Markdown } from '../ui/markdown.tsx';
import { Await, Failure } from '../ui/parts.tsx';
import type { TabProps } from './detail.tsx';

type Part = Conversation['request'][number];

/** The view of the conversation. */
export function ConversationTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { id, outcome } = exchange;
  const state = useLoaded((signal) => call('GET exchanges/{id}/conversation', { id, signal }), [id], { revision: outcome });
  if (outcome === 'live') return <p class="muted">In flight. The conversation is shown when the exchange has ended.</p>;
  if (state.is === 'failed' && state.status === 404) return <NotCaptured />;
  return <Await state={state}>{(conversation) => <Messages conversation={conversation} />}</Await>;
}

/** Why there are no bodies, and how to get them. */
export const NotCaptured = (): JSX.Element => (
  <div>
    <p>The bodies of this exchange were not kept.</p>
    <p class="muted">
      Without client keys, the gateway keeps the last 100 exchanges in memory. With client keys, name the models to keep:{' '}
      <code>capture: {'{ models: ["claude-*"] }'}</code> in the configuration.
    </p>
  </div>
);

function Messages({ conversation }: { conversation: Conversation }): JSX.Element {
  const { request, response, tools, parameters, stop_reason, error, problems, is_truncated, is_redacted } = conversation;
  const hidden = Math.max(0, request.length - MAX_PARTS);
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole || hidden === 0 ? request : [...request.slice(0, 2), ...request.slice(hidden + 2)];
  return (
    <>
      {problems.map((problem) => (
        <p key={problem} class="warning">
          {problem}
        </p>
      ))}
      {is_truncated && <p class="warning">The capture is truncated; see capture.exchange_bytes.</p>}
      {is_redacted && <p class="muted">Secrets were removed from the capture.</p>}
      {shown.map((part, index) => (
        <Block key={index} part={part} isLast={false} />
      ))}
      {hidden > 0 && !isWhole && (
        <button type="button" onClick={() => setWhole(true)}>
          show {hidden} more sections of the request
        </button>
      )}
      {tools.length > 0 && (
        <details class="block">
          <summary>
            <span class="role">tools</span> {tools.length} declared
          </summary>
          <div class="body">
            <ul>
              {tools.map(({ name, description }) => (
                <li key={name}>
                  <code>{name}</code> <span class="muted">{description.slice(0, 300)}</span>
                </li>
              ))}
            </ul>
          </div>
        </details>
      )}
      {Object.keys(parameters).length > 0 && (
        <details class="block">
          <summary>
            <span class="role">parameters</span>
          </summary>
          <div class="body">
            <JsonTree value={parameters} depth={1} />
          </div>
        </details>
      )}
      <h3>Response{stop_reason === null ? '' : ` (stop reason: ${stop_reason})`}</h3>
      {response.map((part, index) => (
        <Block key={index} part={part} isLast />
      ))}
      {response.length === 0 && error === null && <p class="muted">The response has no content.</p>}
      {error !== null && <Failure message={error} />}
    </>
  );
}

/** Sections of a request that are shown at once; an agent's conversation may have thousands. */
const MAX_PARTS = 60;

/** One section. `isLast`: it is part of the response. */
export function Block({ part, isLast }: { part: Part; isLast: boolean }): JSX.Element {
  const { role, kind, name, text, is_error } = part;
  const isOpen = isLast || (role !== 'system' && text.length < MAX_OPEN);
  const title = kind === 'text' ? role : kind === 'tool_use' ? 'tool call' : kind.replace('_', ' ');
  return (
    <details class={`block r-${role} k-${kind}${is_error ? ' is-error' : ''}`} open={isOpen}>
      <summary>
        <span class="role">{title}</span>
        {name !== undefined && <code>{name}</code>}
        <span class="muted">{text.length > 400 ? `${text.length.toLocaleString('en')} characters` : ''}</span>
      </summary>
      <div class="body">
        <Content part={part} isAnswer={isLast} />
      </div>
    </details>
  );
}

/** Longer sections of the request are closed at first. */
const MAX_OPEN = 3000;

function Content({ part: { kind, text }, isAnswer }: { part: Part; isAnswer: boolean }): JSX.Element {
  if (kind === 'tool_use' || kind === 'tool_result') return <JsonOrText text={text} />;
  if (kind === 'text' && isAnswer) return <Markdown text={text} />;
  return <LongText text={text} />;
}
