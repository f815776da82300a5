/** Two exchanges compared: their requests and their responses, line by line. */

import type { AdminResponses, Conversation } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { decodeBase64 } from '../lib/curl.ts';
import { call, useLoaded } from '../lib/data.ts';
import { type DiffGap, type DiffLine, diffLines, foldDiff } from '../lib/diff.ts';
import { formatJson, formatTime } from '../lib/format.ts';
import { route, setParameters } from '../lib/router.ts';
import { Await } from '../ui/parts.tsx';
import type { TabProps } from './detail.tsx';

/** The view of the differences. The address has the other exchange. */
export default function DiffTab({ detail: { exchange } }: TabProps): JSX.Element {
  const { with: other = '' } = route.value.parameters;
  const { id, created_at } = exchange;
  return (
    <>
      <Choice id={id} other={other} />
      {other === '' ? <p class="muted">Choose an exchange to compare with.</p> : <Comparison key={other} id={id} other={other} />}
      <p class="muted">Removed lines are of the other exchange, added ones of this one ({formatTime(created_at)}).</p>
    </>
  );
}

type Row = Pick<AdminResponses['GET exchanges']['exchanges'][number], 'id' | 'created_at' | 'model_requested' | 'http_status'>;

/** The exchanges before this one, or any other by its id. */
function Choice({ id, other }: { id: string; other: string }): JSX.Element {
  const query = { cursor: id, limit: 30, fields: 'created_at,model_requested,http_status' };
  const state = useLoaded((signal) => call('GET exchanges', { query, signal }), [id]);
  const rows: readonly Row[] = state.is === 'ready' ? state.value.exchanges : [];
  const isListed = other === '' || rows.some((row) => row.id === other);
  return (
    <p class="row">
      <label>
        compare with{' '}
        <select value={other} onChange={(event) => setParameters({ with: event.currentTarget.value })}>
          <option value="">choose…</option>
          {!isListed && <option value={other}>{other}</option>}
          {rows.map((row) => (
            <option key={row.id} value={row.id}>
              {formatTime(row.created_at ?? '')} {row.http_status} {row.model_requested?.slice(0, 60)}
            </option>
          ))}
        </select>
      </label>
      <label>
        or its id{' '}
        <input
          type="text"
          spellcheck={false}
          value={isListed ? '' : other}
          onChange={(event) => setParameters({ with: event.currentTarget.value.trim() })}
        />
      </label>
    </p>
  );
}

/** The parts of an exchange that are compared. */
interface Sides {
  readonly request: string;
  readonly response: string;
}

function Comparison({ id, other }: { id: string; other: string }): JSX.Element {
  const state = useLoaded((signal) => Promise.all([loadSides(other, signal), loadSides(id, signal)]), [id, other]);
  return (
    <Await state={state}>
      {([before, after]) => (
        <>
          <Difference title="Request" before={before.request} after={after.request} />
          <Difference title="Response" before={before.response} after={after.response} />
        </>
      )}
    </Await>
  );
}

async function loadSides(id: string, signal: AbortSignal): Promise<Sides> {
  const [tape, conversation] = await Promise.all([
    call('GET exchanges/{id}/tape', { id, signal }),
    call('GET exchanges/{id}/conversation', { id, signal }),
  ]);
  return { request: formatJson(decodeBase64(tape.request.body)), response: formatResponse(conversation) };
}

/** The response as text, the same for all protocols, so that events do not hide what changed. */
const formatResponse = ({ response, stop_reason, error }: Conversation): string =>
  [
    ...response.map(({ kind, name, text }) => `[${kind}${name === undefined ? '' : ` ${name}`}]\n${formatJson(text)}`),
    ...(error === null ? [] : [`[error]\n${error}`]),
    `[stop reason: ${stop_reason ?? 'none'}]`,
  ].join('\n');

function Difference({ title, before, after }: { title: string; before: string; after: string }): JSX.Element {
  const { lines, isCut } = useMemo(() => diffLines(before, after), [before, after]);
  const [isWhole, setWhole] = useState(false);
  const [max, setMax] = useState(MAX_LINES);
  const shown: readonly (DiffLine | DiffGap)[] = useMemo(() => (isWhole ? lines : foldDiff(lines)), [lines, isWhole]);
  const changes = lines.filter(({ is }) => is !== 'same').length;
  return (
    <section aria-label={title}>
      <h3>
        {title}: {changes === 0 ? 'no difference' : `${changes.toLocaleString('en')} lines differ`}
      </h3>
      {isCut && (
        <p class="warning">The texts are too long or too different to compare every line; the rest is shown as changed.</p>
      )}
      {lines.length > 0 && (
        <button type="button" class="small" aria-pressed={isWhole} onClick={() => setWhole(!isWhole)}>
          all lines
        </button>
      )}
      <div class="diff">
        {shown.slice(0, max).map((line, index) => (
          <Line key={index} line={line} />
        ))}
      </div>
      {shown.length > max && (
        <button type="button" class="small" onClick={() => setMax(max * 4)}>
          show more ({(shown.length - max).toLocaleString('en')} lines)
        </button>
      )}
    </section>
  );
}

const MAX_LINES = 1000;

/** Longer lines, such as images, are cut. */
const MAX_LINE = 2000;

const SIGNS = { same: ' ', removed: '-', added: '+' } as const;

function Line({ line }: { line: DiffLine | DiffGap }): JSX.Element {
  if (line.is === 'gap') return <div class="diff-gap">… {line.count.toLocaleString('en')} lines are the same</div>;
  const { is, text } = line;
  return (
    <div class={`diff-${is}`}>
      <span class="sign">{SIGNS[is]}</span>
      {text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text}
    </div>
  );
}
