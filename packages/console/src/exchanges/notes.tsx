/** Notes of a conversion and findings of the doctor, with links to their pages. */

import type { AdminResponses } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, useLoaded } from '../lib/data.ts';
import { findDocUrl, findRuleUrl } from '../lib/docs.ts';
import { formatCount } from '../lib/format.ts';
import { describeError } from '../lib/session.ts';
import { Await, announcement } from '../ui/parts.tsx';
import { NotCaptured } from './conversation.tsx';
import { save } from './export.ts';

const DocLink = ({ url, text }: { url: string; text: string }): JSX.Element => (
  <a href={url} rel="noopener noreferrer" target="_blank">
    {text}
  </a>
);

/** A link to the page of a rule. */
export const RuleLink = ({ rule }: { rule: string }): JSX.Element => <DocLink url={findRuleUrl(rule)} text={rule} />;

interface Note {
  readonly code: string;
  readonly path?: string | undefined;
  readonly feature?: string | undefined;
  readonly message?: string | undefined;
}

/** A table of notes. */
export const NoteTable = ({ notes }: { notes: readonly Note[] }): JSX.Element => (
  <table class="data">
    <thead>
      <tr>
        <th scope="col">
          <DocLink url={findDocUrl('notes.md')} text="note" />
        </th>
        <th scope="col">where</th>
        <th scope="col">what</th>
      </tr>
    </thead>
    <tbody>
      {notes.map(({ code, path, feature, message }, index) => (
        <tr key={index}>
          <td>{code}</td>
          <td>
            <code>{path}</code>
          </td>
          <td>{message ?? feature}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** The doctor, who examines the bytes of the upstream when the button is pressed. */
export function Doctor({ id }: { id: string }): JSX.Element {
  const [isRunning, setRunning] = useState(false);
  return (
    <>
      <h3>Doctor</h3>
      <p class="row">
        <button type="button" onClick={() => setRunning(true)} disabled={isRunning}>
          Run the doctor
        </button>
        <button type="button" onClick={() => void saveCase(id)}>
          download as a case
        </button>
      </p>
      {isRunning && <Checkups id={id} />}
    </>
  );
}

async function saveCase(id: string): Promise<void> {
  try {
    const found = await call('GET exchanges/{id}/case', { id });
    save(new Blob([`${JSON.stringify(found)}\n`], { type: 'application/json' }), `${found.id}.jsonl`);
    announcement.value = 'The case was saved.';
  } catch (error) {
    announcement.value = describeError(error);
  }
}

type Checkup = AdminResponses['GET exchanges/{id}/doctor']['checkups'][number];

function Checkups({ id }: { id: string }): JSX.Element {
  const state = useLoaded((signal) => call('GET exchanges/{id}/doctor', { id, signal }), [id]);
  if (state.is === 'failed' && state.status === 404) return <NotCaptured />;
  return (
    <Await state={state}>
      {({ checkups, is_truncated }) => (
        <>
          {is_truncated && <p class="warning">The capture is truncated, so its end is missing.</p>}
          {checkups.length === 0 && <p class="muted">No request was sent to an upstream.</p>}
          {checkups.map((checkup) => (
            <Report key={checkup.attempt} checkup={checkup} />
          ))}
        </>
      )}
    </Await>
  );
}

function Report({ checkup }: { checkup: Checkup }): JSX.Element {
  const { attempt, provider, protocol, bytes, score, is_complete, error, findings, status } = checkup;
  return (
    <section aria-label={`Attempt ${attempt}`}>
      <p>
        Attempt {attempt}, {provider}, {protocol}, {formatCount(bytes)} bytes:{' '}
        {score === null ? `nothing to examine (status ${status ?? 'none'})` : <strong>score {score} of 100</strong>}
        {score !== null && !is_complete && ', not complete'}
      </p>
      {error !== null && <p class="failure">{error}</p>}
      {score !== null && findings.length === 0 && <p class="muted">The response conforms to its protocol.</p>}
      <ul class="findings">
        {findings.map((finding) => (
          <li key={`${finding.rule} ${finding.offset}`}>
            <strong class={`finding-${finding.severity}`}>{finding.severity}</strong> <RuleLink rule={finding.rule} />{' '}
            {finding.title}
            {finding.count > 1 && ` (${finding.count} times)`}
            <div class="muted">
              {finding.message}, at byte {finding.offset}
            </div>
            <pre class="text">{finding.excerpt}</pre>
            <div>{finding.remedy}</div>
            {finding.breaks.length > 0 && <div class="muted">Breaks {finding.breaks.join(', ')}</div>}
          </li>
        ))}
      </ul>
    </section>
  );
}
