/** The request of an exchange, to change and send again. */

import type { Capture } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { decodeBase64 } from '../lib/curl.ts';
import { call, useLoaded } from '../lib/data.ts';
import { formatJson, parseJson } from '../lib/format.ts';
import { setParameters } from '../lib/router.ts';
import { drain, sendRequest } from '../lib/send.ts';
import { describeError } from '../lib/session.ts';
import { Await, announcement, Failure } from '../ui/parts.tsx';
import { KeyField, ModelField, type Sender, useSender } from '../ui/sender.tsx';
import { NotCaptured } from './conversation.tsx';
import type { TabProps } from './detail.tsx';

/** The view of the request as a form. */
export default function ResendTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { id, outcome, key_id } = exchange;
  const sender = useSender();
  const tape = useLoaded((signal) => call('GET exchanges/{id}/tape', { id, signal }), [id], { revision: outcome });
  if (tape.is === 'failed' && tape.status === 404) return <NotCaptured />;
  return (
    <Await state={sender}>
      {(known) => <Await state={tape}>{(capture) => <Form capture={capture} sender={known} keyId={key_id ?? ''} />}</Await>}
    </Await>
  );
}

interface FormProps {
  readonly capture: Capture;
  readonly sender: Sender;
  readonly keyId: string;
}

function Form({ capture, sender, keyId }: FormProps): JSX.Element {
  const { request, protocol } = capture;
  const { original, shown } = useMemo(() => readBody(request.body), [request.body]);
  const isEditable = shown.length <= MAX_EDITED;
  const [text, setText] = useState(shown);
  const [model, setModel] = useState(capture.model ?? '');
  const [key, setKey] = useState(sender.keys.some(({ id }) => id === keyId) ? keyId : '');
  const [state, setState] = useState<{ readonly isSending: boolean; readonly failure?: string }>({ isSending: false });
  const isValid = useMemo(() => parseJson(text) !== undefined, [text]);
  const send = async (): Promise<void> => {
    setState({ isSending: true });
    try {
      // What was not changed is sent byte by byte.
      const changed = await retarget({ ...request, protocol, body: text === shown ? original : text }, model, capture.model);
      const { exchange, response } = await sendRequest({ ...changed, key });
      void drain(response);
      announcement.value = 'The request was sent again. The new exchange is shown.';
      setParameters({ id: exchange, tab: '' });
    } catch (error) {
      setState({ isSending: false, failure: describeError(error) });
    }
  };
  return (
    <form
      class="request"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <p class="row">
        <ModelField sender={sender} model={model} onModel={setModel} />
        <KeyField sender={sender} chosen={key} onChoose={setKey} />
        <button type="submit" disabled={!isValid || state.isSending}>
          {state.isSending ? 'sending…' : 'Send'}
        </button>
        <button type="button" disabled={text === shown} onClick={() => setText(shown)}>
          undo changes
        </button>
      </p>
      {state.failure !== undefined && <Failure message={state.failure} />}
      {!isValid && <p class="warning">The body is not valid JSON.</p>}
      {capture.is_redacted && (
        <p class="warning">Secrets were removed from the capture, so the request differs from the original.</p>
      )}
      {isEditable ? (
        <label class="editor">
          <span class="muted">
            {request.method} <code>{request.path}</code>
          </span>
          <textarea spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      ) : (
        <p class="warning">
          The body has {shown.length.toLocaleString('en')} characters, which is too long to edit here. It can be sent as it is, or
          to another model.
        </p>
      )}
      <p class="muted">The request counts against the limits and the budget of the key, and gets the tag "console".</p>
    </form>
  );
}

/** Longer bodies make the browser slow. */
const MAX_EDITED = 1_000_000;

function readBody(base64: string): { original: string; shown: string } {
  const original = decodeBase64(base64);
  return { original, shown: formatJson(original) };
}

interface Original {
  readonly protocol: string;
  readonly path: string;
  readonly body: string;
}

/** The request for another model, which is in the body or in the path. */
async function retarget(
  { path, body }: Original,
  model: string,
  before: string | null,
): Promise<{ readonly path: string; readonly body: string }> {
  if (model === before || model === '') return { path, body };
  const changed = await call('POST requests/convert', { body: { path, body: JSON.parse(body), model } });
  return { path: changed.path, body: JSON.stringify(changed.body) };
}
