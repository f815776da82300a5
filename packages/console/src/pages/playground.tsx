/** The playground: a request to any model in any client protocol, its response as it arrives, and what it cost. */

import '../exchanges/exchanges.css';
import '../playground/playground.css';
import type { AdminResponses } from '@gateway/admin/types';
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { Block } from '../exchanges/conversation.tsx';
import { NoteTable } from '../exchanges/notes.tsx';
import { call } from '../lib/data.ts';
import { formatCost, formatCount, formatDuration, parseJson } from '../lib/format.ts';
import { formatRoute } from '../lib/router.ts';
import { describeError } from '../lib/session.ts';
import { buildChat, CHAT_PATH, continueDraft, type Draft, EMPTY_DRAFT } from '../playground/draft.ts';
import { DraftForm } from '../playground/form.tsx';
import { Run } from '../playground/run.ts';
import { LongText } from '../ui/json.tsx';
import { Await, CopyButton, Failure, Section } from '../ui/parts.tsx';
import { type Sender, useSender } from '../ui/sender.tsx';

/** What was typed stays when another page is shown. */
const draft = signal<Draft>(EMPTY_DRAFT);

const run = signal<Run | undefined>(undefined);

type Converted = AdminResponses['POST requests/convert'];

/** The raw request: made from the form, or edited. */
interface Raw {
  readonly path: string;
  readonly text: string;
  readonly notes: Converted['notes'];
  readonly isEdited: boolean;
}

const NO_RAW: Raw = { path: '', text: '', notes: [], isEdited: false };

/** The page of the playground. */
export default function Playground(): JSX.Element {
  const sender = useSender();
  return (
    <div class="pad playground">
      <h1 class="visually-hidden">Playground</h1>
      <Await state={sender}>{(known) => <Form sender={known} />}</Await>
      <Result />
    </div>
  );
}

function Form({ sender }: { sender: Sender }): JSX.Element {
  // Before the form is drawn: a default that comes later would mix with what is typed.
  useMemo(() => {
    if (draft.peek().model === '') draft.value = { ...draft.peek(), model: sender.model };
  }, []);
  const current = draft.value;
  const [raw, setRaw] = useState(NO_RAW);
  const [failure, setFailure] = useState<string>();
  const isRunning = run.value?.state.value.is === 'sending' || run.value?.state.value.is === 'streaming';
  const build = async (form: Draft): Promise<Raw> => {
    const { path, body, notes } = await convert(form);
    return { path, text: JSON.stringify(body, null, 2), notes, isEdited: false };
  };
  const refresh = async (form: Draft): Promise<Raw | undefined> => {
    try {
      const next = raw.isEdited ? raw : await build(form);
      setRaw(next);
      setFailure(undefined);
      return next;
    } catch (error) {
      setFailure(describeError(error));
      return undefined;
    }
  };
  const send = async (): Promise<void> => {
    // What was typed last may not be drawn yet.
    const form = draft.value;
    const request = await refresh(form);
    if (!request) return;
    const started = new Run();
    run.value = started;
    await started.start({ path: request.path, key: form.key, body: request.text }, form.protocol);
  };
  return (
    <form
      class="request"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isRunning) void send();
      }}
    >
      <DraftForm
        draft={current}
        sender={sender}
        onChange={(change) => {
          draft.value = change(draft.value);
          // Another form makes another request; an edited one stays until it is given up.
          if (!raw.isEdited) setRaw(NO_RAW);
        }}
      />
      {failure !== undefined && <Failure message={failure} />}
      <p class="row">
        <button type="submit" disabled={isRunning}>
          Send
        </button>
        <button type="button" disabled={!isRunning} onClick={() => run.value?.stop()}>
          Stop
        </button>
      </p>
      <RawRequest raw={raw} onRaw={setRaw} onShow={() => void refresh(draft.value)} />
    </form>
  );
}

async function convert(form: Draft): Promise<Converted> {
  return call('POST requests/convert', { body: { path: CHAT_PATH, body: buildChat(form), to: form.protocol } });
}

interface RawProps {
  readonly raw: Raw;
  readonly onRaw: (raw: Raw) => void;
  readonly onShow: () => void;
}

/** The request as it is sent. */
function RawRequest({ raw, onRaw, onShow }: RawProps): JSX.Element {
  const { path, text, notes, isEdited } = raw;
  const isValid = useMemo(() => text === '' || parseJson(text) !== undefined, [text]);
  return (
    <details onToggle={(event) => event.currentTarget.open && text === '' && onShow()}>
      <summary>raw request{isEdited ? ' (edited; the form is not used)' : ''}</summary>
      {text === '' ? (
        <button type="button" class="small" onClick={onShow}>
          show
        </button>
      ) : (
        <>
          {notes.length > 0 && <NoteTable notes={notes} />}
          <p class="row">
            <code>POST {path}</code>
            <CopyButton text={text} />
            {isEdited && (
              <button type="button" class="small" onClick={() => onRaw(NO_RAW)}>
                back to the form
              </button>
            )}
            {!isValid && <span class="warning">This is not valid JSON.</span>}
          </p>
          {text.length > MAX_EDITED ? (
            <LongText text={text} />
          ) : (
            <label class="editor">
              <span class="muted">body</span>
              <textarea
                rows={12}
                spellcheck={false}
                value={text}
                onInput={(event) => onRaw({ ...raw, text: event.currentTarget.value, isEdited: true })}
              />
            </label>
          )}
        </>
      )}
    </details>
  );
}

/** Longer bodies, such as those with images, make the browser slow. */
const MAX_EDITED = 500_000;

const STATES = {
  sending: 'sending…',
  streaming: 'receiving…',
  ended: 'complete',
  stopped: 'stopped',
  failed: 'failed',
} as const;

/** The response, its usage and its exchange. */
function Result(): JSX.Element | null {
  const state = run.value?.state.value;
  if (!state) return <Section title="Response">{<p class="muted">Send a request to see its response here.</p>}</Section>;
  const { is, sections, stopReason, error, exchange, bytes, row } = state;
  return (
    <Section title="Response" aside={<span class={`status run-${is}`}>{STATES[is]}</span>}>
      <p class="row muted">
        {/* First, so that it does not move when tokens and cost are known. */}
        {is === 'ended' && (
          <button type="button" class="small" onClick={() => (draft.value = continueDraft(draft.value, sections))}>
            continue the conversation
          </button>
        )}
        <span>{formatCount(bytes)} bytes</span>
        {stopReason !== null && <span>stop reason: {stopReason}</span>}
        {row && (
          <>
            <span>
              {formatCount(row.input_tokens)} / {formatCount(row.output_tokens)} tokens
            </span>
            <span>{formatCost(row.cost_micros)}</span>
            <span>{formatDuration(row.total_ms)}</span>
          </>
        )}
        {exchange !== null && (
          <>
            <a href={formatRoute({ page: 'exchanges', parameters: { id: exchange } })}>exchange</a>
            <a href={formatRoute({ page: 'exchanges', parameters: { id: exchange, tab: 'stream' } })}>stream</a>
          </>
        )}
      </p>
      {error !== null && <Failure message={error} />}
      {sections.map((part, index) => (
        <Block key={index} part={part} isLast />
      ))}
    </Section>
  );
}
