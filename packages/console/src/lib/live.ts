/** The live stream of exchanges: connects, resumes, and gives rows in batches, one per frame of the screen. */

import { buildUrl } from './api.ts';
import { refreshSession } from './session.ts';

/** Whether new rows arrive. */
export type LiveState = 'connecting' | 'live' | 'ended';

/** What a listener wants to know. */
export interface LiveOptions<Row> {
  readonly fields: readonly string[];
  /** Rows that were opened or settled, in their order. */
  readonly onRows: (rows: Row[]) => void;
  /** Rows may be missing: the list must be loaded again. */
  readonly onGap: () => void;
  readonly onState: (state: LiveState) => void;
}

/** Rows that wait for the next frame; more mean that the page is in the background. */
const MAX_WAITING = 2000;

/** How often rows are given to a page that is not visible, which has no frames. */
const HIDDEN_MS = 1000;

/** Listens until the returned function is called. */
export function listenLive<Row>({ fields, onRows, onGap, onState }: LiveOptions<Row>): () => void {
  const source = new EventSource(buildUrl('exchanges/live', { query: { fields: fields.join(',') } }));
  let waiting: Row[] = [];
  let scheduled: (() => void) | undefined;
  let isFirst = true;

  const flush = (): void => {
    scheduled = undefined;
    const rows = waiting;
    waiting = [];
    onRows(rows);
  };
  const receive = ({ data }: MessageEvent<string>): void => {
    waiting.push(JSON.parse(data) as Row); // the rows of the admin API, with the requested fields
    if (waiting.length > MAX_WAITING) flush();
    else scheduled ??= schedule(flush);
  };
  onState('connecting');
  source.addEventListener('ready', ({ data }: MessageEvent<string>) => {
    const { resumed } = JSON.parse(data) as { resumed: boolean };
    if (!resumed && !isFirst) onGap();
    isFirst = false;
    onState('live');
  });
  source.addEventListener('opened', receive);
  source.addEventListener('settled', receive);
  source.addEventListener('error', () => {
    const isOver = source.readyState === EventSource.CLOSED;
    onState(isOver ? 'ended' : 'connecting');
    // The browser does not show why: the session may have ended.
    if (isOver) void refreshSession('The session has ended.');
  });
  return () => {
    source.close();
    scheduled?.();
  };
}

/** Runs something at the next frame, or soon when there are none. Returns how to cancel it. */
function schedule(run: () => void): () => void {
  if (document.visibilityState === 'hidden') {
    const timer = setTimeout(run, HIDDEN_MS);
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(run);
  return () => cancelAnimationFrame(frame);
}
