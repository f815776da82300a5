/** The bodies of an exchange as they were sent and received, on both sides. */

import type { Capture } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { decodeBase64 } from '../lib/curl.ts';
import { call, useLoaded } from '../lib/data.ts';
import { JsonOrText, LongText } from '../ui/json.tsx';
import { Await, CopyButton } from '../ui/parts.tsx';
import { NotCaptured } from './conversation.tsx';
import type { TabProps } from './detail.tsx';
import { save } from './export.ts';

/** One body with its name. */
interface Body {
  readonly title: string;
  readonly facts: string;
  readonly base64: string;
}

/** The view of the bodies. */
export function RawTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { id, outcome } = exchange;
  const state = useLoaded((signal) => call('GET exchanges/{id}/tape', { id, signal }), [id], { revision: outcome });
  if (outcome === 'live') return <p class="muted">In flight. The bodies are shown when the exchange has ended.</p>;
  if (state.is === 'failed' && state.status === 404) return <NotCaptured />;
  return (
    <Await state={state}>
      {(capture) => (
        <>
          {listBodies(capture).map((body) => (
            <BodyBlock key={body.title} body={body} />
          ))}
          <button
            type="button"
            onClick={() => save(new Blob([JSON.stringify(capture)], { type: 'application/json' }), `${id}.json`)}
          >
            download the capture
          </button>
        </>
      )}
    </Await>
  );
}

/** The parts of a capture that the contract leaves open. */
interface CapturedAttempt {
  readonly provider?: string;
  readonly request?: { readonly method?: string; readonly url?: string; readonly body?: string };
  readonly response?: { readonly status?: number; readonly body?: string } | null;
}

function listBodies({ request, response, attempts }: Capture): Body[] {
  return [
    { title: 'Request of the client', facts: `${request.method} ${request.path}`, base64: request.body },
    ...attempts.flatMap((attempt: CapturedAttempt, index) => {
      const name = `attempt ${index + 1}, ${attempt.provider ?? ''}`;
      const { request: sent, response: received } = attempt;
      return [
        {
          title: `Request to the upstream (${name})`,
          facts: `${sent?.method ?? ''} ${sent?.url ?? ''}`,
          base64: sent?.body ?? '',
        },
        ...(received
          ? [{ title: `Response of the upstream (${name})`, facts: `status ${received.status}`, base64: received.body ?? '' }]
          : []),
      ];
    }),
    ...(response ? [{ title: 'Response to the client', facts: `status ${response.status}`, base64: response.body }] : []),
  ];
}

function BodyBlock({ body: { title, facts, base64 } }: { body: Body }): JSX.Element {
  const [isOpen, setOpen] = useState(true);
  const [isPlain, setPlain] = useState(false);
  const text = useMemo(() => (isOpen ? decodeBase64(base64) : ''), [isOpen, base64]);
  return (
    <details class="block" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="role">{title}</span>
        <span class="muted">
          {facts}, {Math.floor((base64.length * 3) / 4).toLocaleString('en')} bytes
        </span>
      </summary>
      <div class="body">
        <p class="row">
          <button type="button" class="small" aria-pressed={isPlain} onClick={() => setPlain(!isPlain)}>
            as it is
          </button>
          <CopyButton text={text} />
        </p>
        {isPlain ? <LongText text={text} max={20_000} /> : <JsonOrText text={text} />}
      </div>
    </details>
  );
}
