/** One exchange. A view of it is a file and a line of `TABS`. */

import type { AdminResponses, Exchange } from '@gateway/admin/types';
import { useComputed } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { decodeBase64, formatCurl } from '../lib/curl.ts';
import { call, useLoaded } from '../lib/data.ts';
import { formatCost, formatDateTime, formatDuration } from '../lib/format.ts';
import { useKeys } from '../lib/keys.ts';
import { setParameters } from '../lib/router.ts';
import { describeError } from '../lib/session.ts';
import { lazy } from '../ui/lazy.tsx';
import { Await, announcement, CopyButton, copyText, ProtocolBadge, Status } from '../ui/parts.tsx';
import { Tabs } from '../ui/tabs.tsx';
import { ConversationTab } from './conversation.tsx';
import { AttemptsTab, NotesTab, SessionTab } from './facts.tsx';
import { RawTab } from './raw.tsx';
import type { ExchangeList } from './store.ts';
import { StreamTab } from './stream.tsx';
import { TimingTab } from './timing.tsx';

/** What the views of an exchange get. */
export interface TabProps {
  readonly detail: AdminResponses['GET exchanges/{id}'];
}

interface DetailTab {
  readonly id: string;
  readonly title: (exchange: Exchange) => string;
  readonly component: ComponentType<TabProps>;
}

const TABS: readonly DetailTab[] = [
  { id: 'conversation', title: () => 'Conversation', component: ConversationTab },
  { id: 'timing', title: () => 'Timing', component: TimingTab },
  { id: 'raw', title: () => 'Raw', component: RawTab },
  { id: 'notes', title: ({ notes_count, rules }) => `Notes (${notes_count + rules.length})`, component: NotesTab },
  { id: 'attempts', title: ({ attempts }) => `Attempts (${attempts})`, component: AttemptsTab },
  { id: 'session', title: () => 'Session', component: SessionTab },
  { id: 'stream', title: () => 'Stream', component: StreamTab },
  { id: 'resend', title: () => 'Resend', component: lazy(() => import('./resend.tsx')) },
  { id: 'diff', title: () => 'Diff', component: lazy(() => import('./diff.tsx')) },
  { id: 'code', title: () => 'Code', component: lazy(() => import('./code.tsx')) },
];

/** The pane of one exchange. */
export function Detail({ id, tab, list }: { id: string; tab: string; list: ExchangeList }): JSX.Element {
  // Of the list, only this is followed: it changes with every frame.
  const outcome = useComputed(() => {
    void list.version.value;
    const at = list.rows.indexOf(id);
    return at < 0 ? undefined : list.rows.slice(at, at + 1)[0]?.outcome;
  }).value;
  // Loaded again when the exchange ends; meanwhile what is shown stays, with what was typed into it.
  const state = useLoaded((signal) => call('GET exchanges/{id}', { id, signal }), [id], { revision: outcome });
  const chosen = TABS.find((one) => one.id === tab) ?? TABS[0];
  useKeys(
    {
      c: { about: 'copy the request as a curl command', run: () => void copyCurl(id) },
      r: { about: 'edit the request and send it again', run: () => setParameters({ tab: 'resend' }) },
      d: { about: 'diff with the previous exchange', run: () => setParameters({ tab: 'diff', with: findPrevious(id, list) }) },
    },
    [id],
  );
  useKeys(
    Object.fromEntries(
      TABS.map((one, index) => [
        String(index + 1),
        { about: one.id, run: () => setParameters({ tab: index === 0 ? '' : one.id }) },
      ]),
    ),
    [],
  );
  return (
    <section class="detail" aria-label="Exchange">
      <Await state={state}>
        {(detail) => (
          <>
            <Summary exchange={detail.exchange} />
            <Tabs
              tabs={TABS.map((one) => ({ id: one.id, title: one.title(detail.exchange) }))}
              chosen={chosen?.id ?? ''}
              onChoose={(next) => setParameters({ tab: next === TABS[0]?.id ? '' : next })}
            >
              {chosen && <chosen.component detail={detail} />}
            </Tabs>
          </>
        )}
      </Await>
    </section>
  );
}

/** The exchange before this one in the list; empty when it is not loaded. */
function findPrevious(id: string, { rows }: ExchangeList): string {
  const at = rows.indexOf(id);
  return at < 0 ? '' : (rows.slice(at + 1, at + 2)[0]?.id ?? '');
}

/** Puts the captured request on the clipboard, as a command. */
async function copyCurl(id: string): Promise<void> {
  try {
    const { request } = await call('GET exchanges/{id}/tape', { id });
    await copyText(formatCurl({ ...request, body: decodeBase64(request.body) }, location.origin));
  } catch (error) {
    announcement.value = describeError(error);
  }
}

function Summary({ exchange }: { exchange: Exchange }): JSX.Element {
  const { created_at, outcome, http_status, client_protocol, upstream_protocol, total_ms, cost_micros } = exchange;
  const { model_requested, request_id, error_code, ending } = exchange;
  return (
    <header>
      <h2>{model_requested ?? exchange.endpoint ?? 'Exchange'}</h2>
      <Status outcome={outcome} status={http_status} />
      <span>
        <ProtocolBadge id={client_protocol} />→<ProtocolBadge id={upstream_protocol} />
      </span>
      <span>{formatDuration(total_ms)}</span>
      <span>{formatCost(cost_micros)}</span>
      <span class="muted">{formatDateTime(created_at)}</span>
      {outcome === 'error' && <span class="failure">{error_code ?? ending}</span>}
      <span class="grow" />
      <button type="button" class="small" onClick={() => setParameters({ tab: 'resend' })} title="Edit and send again (r)">
        resend
      </button>
      <button
        type="button"
        class="small"
        onClick={() => void copyCurl(exchange.id)}
        title="Copy the request as a curl command (c)"
      >
        copy curl
      </button>
      {request_id && <CopyButton text={request_id} label="copy id" />}
      <button
        type="button"
        class="small"
        onClick={() => setParameters({ id: '', tab: '', with: '' })}
        aria-label="Close the exchange"
      >
        ✕
      </button>
    </header>
  );
}
