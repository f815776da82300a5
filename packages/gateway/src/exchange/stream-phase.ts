import type { CanonicalError, CanonicalStreamEvent } from '@sluice/core';
import type { ProviderLimits } from '../config/limits.ts';
import type { Collector } from '../upstream/collect.ts';
import type { Wait } from '../upstream/failures.ts';

/** How far the response to a stream request has come. */
export type Phase =
  /** No response headers yet. */
  | { is: 'waiting' }
  /** An error status; its body is collected. */
  | { is: 'refusal'; body: Collector }
  /** Response headers, but no event. */
  | { is: 'silent' }
  /** Events, but no content: the output is held back, because the next event may be an error. */
  | { is: 'held' }
  /** Complete without content. */
  | { is: 'empty' }
  /** An error before any content. */
  | { is: 'failed'; error: CanonicalError }
  /** Content has arrived; the client receives it. */
  | { is: 'streaming' }
  /** Content has arrived, then the end of the message or an error; only the connection is still open. */
  | { is: 'ending' }
  /** The outcome is reported; nothing that arrives later counts. */
  | { is: 'settled' };

export const WAITING: Phase = { is: 'waiting' };
export const SILENT: Phase = { is: 'silent' };
export const SETTLED: Phase = { is: 'settled' };
const HELD: Phase = { is: 'held' };
const EMPTY: Phase = { is: 'empty' };
const STREAMING: Phase = { is: 'streaming' };
const ENDING: Phase = { is: 'ending' };

/** What an event means for the phase. */
type Signal = 'start' | 'content' | 'stop' | 'error';

/** Phases change with events only as listed here, and never back. */
const NEXT = {
  waiting: {},
  refusal: {},
  silent: { start: HELD, content: STREAMING, stop: EMPTY, error: 'failed' },
  held: { content: STREAMING, stop: EMPTY, error: 'failed' },
  empty: { content: ENDING, error: 'failed' },
  failed: {},
  streaming: { stop: ENDING, error: ENDING },
  ending: {},
  settled: {},
} as const satisfies Record<Phase['is'], Partial<Record<Signal, Phase | 'failed'>>>;

/** The phase after an event; the same object when the event does not change it. */
export function nextPhase(phase: Phase, event: CanonicalStreamEvent): Phase {
  const transitions: Partial<Record<Signal, Phase | 'failed'>> = NEXT[phase.is];
  const next = transitions[readSignal(event)] ?? phase;
  if (next !== 'failed') return next;
  return event.type === 'error' ? { is: 'failed', error: event.error } : phase;
}

function readSignal(event: CanonicalStreamEvent): Signal {
  switch (event.type) {
    case 'message_start':
    case 'ping':
      return 'start';
    case 'error':
      return 'error';
    case 'message_stop':
      return 'stop';
    case 'message_delta':
      // Without a stop reason it only announces an error.
      return event.delta.stop_reason === null ? 'start' : 'content';
    default:
      return 'content';
  }
}

/** Whether the upstream has sent content, so that no other upstream can be tried. */
export const hasContent = ({ is }: Phase): boolean => is === 'streaming' || is === 'ending';

/** How long an upstream may take to close the connection after the end of its response. */
const LINGER_MS = 1000;

interface Silence {
  /** The longest silence that the phase allows. */
  limit: 'headersMs' | 'firstEventMs' | 'betweenEventsMs' | 'linger';
  /** What did not arrive in time. Absent: the silence completes the response. */
  overdue?: Wait;
}

const SILENCE: Readonly<Record<Phase['is'], Silence>> = {
  waiting: { limit: 'headersMs', overdue: 'response' },
  // An error body that stops arriving is still the upstream's error.
  refusal: { limit: 'firstEventMs' },
  silent: { limit: 'firstEventMs', overdue: 'event' },
  held: { limit: 'betweenEventsMs', overdue: 'more' },
  streaming: { limit: 'betweenEventsMs', overdue: 'more' },
  empty: { limit: 'linger' },
  failed: { limit: 'linger' },
  ending: { limit: 'linger' },
  settled: { limit: 'linger' },
};

/** The longest silence that a phase allows, in milliseconds. */
export function silenceMs({ is }: Phase, times: ProviderLimits): number {
  const { limit } = SILENCE[is];
  return limit === 'linger' ? LINGER_MS : times[limit];
}

/** What did not arrive when the silence of a phase was too long; undefined when that completes the response. */
export const overdueIn = ({ is }: Phase): Wait | undefined => SILENCE[is].overdue;
