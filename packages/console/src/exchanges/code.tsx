/** The request of an exchange as code: in four protocols, for curl and the SDKs. */

import type { AdminResponses, Capture } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { decodeBase64 } from '../lib/curl.ts';
import { call, useLoaded } from '../lib/data.ts';
import { PROTOCOLS } from '../lib/format.ts';
import { formatCode, LANGUAGES, type Language } from '../lib/sdk-code.ts';
import { LongText } from '../ui/json.tsx';
import { Await, CopyButton } from '../ui/parts.tsx';
import { NotCaptured } from './conversation.tsx';
import type { TabProps } from './detail.tsx';
import { NoteTable } from './notes.tsx';

type Converted = AdminResponses['POST requests/convert'];

/** The view of the request as code. */
export default function CodeTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { id, outcome } = exchange;
  const tape = useLoaded((signal) => call('GET exchanges/{id}/tape', { id, signal }), [id], { revision: outcome });
  if (tape.is === 'failed' && tape.status === 404) return <NotCaptured />;
  return <Await state={tape}>{(capture) => <Code capture={capture} />}</Await>;
}

function Code({ capture: { request, protocol } }: { capture: Capture }): JSX.Element {
  const [to, setTo] = useState(protocol);
  const [language, setLanguage] = useState<Language>('curl');
  const state = useLoaded(
    async (signal) => {
      const body: unknown = JSON.parse(decodeBase64(request.body));
      return call('POST requests/convert', { body: { path: request.path, body, to }, signal });
    },
    [to],
  );
  return (
    <>
      <p class="row">
        <label>
          protocol{' '}
          <select value={to} onChange={(event) => setTo(event.currentTarget.value)}>
            {Object.entries(PROTOCOLS).map(([id, { title }]) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <span class="row" role="group" aria-label="Language">
          {(Object.keys(LANGUAGES) as Language[]).map((id) => (
            <button key={id} type="button" class="small" aria-pressed={id === language} onClick={() => setLanguage(id)}>
              {LANGUAGES[id]}
            </button>
          ))}
        </span>
      </p>
      <Await state={state}>{(converted) => <CodeText converted={converted} language={language} />}</Await>
    </>
  );
}

function CodeText({ converted, language }: { converted: Converted; language: Language }): JSX.Element {
  const { notes } = converted;
  const code = useMemo(() => {
    const { to: protocol, path, body, model, is_stream: isStream } = converted;
    return formatCode({ protocol, path, body, model, isStream }, language, location.origin);
  }, [converted, language]);
  return (
    <>
      {notes.length > 0 && (
        <details class="block is-error">
          <summary>
            {notes.length} {notes.length === 1 ? 'loss' : 'losses'} of the conversion
          </summary>
          <NoteTable notes={notes} />
        </details>
      )}
      <p class="row">
        <CopyButton text={code} label="copy the code" />
      </p>
      <LongText text={code} max={20_000} />
    </>
  );
}
