import type { CanonicalStreamEvent } from '@sluice/core';
import { describe, expect, it } from 'vitest';
import { findNextPhase, findOverdue, hasContent, type Phase, SETTLED, SILENT, WAITING } from '../../src/exchange/stream.ts';
import { Collector } from '../../src/upstream/body.ts';

const START: CanonicalStreamEvent = { type: 'message_start', message: { id: '', model: '', created: 0 } };
const CONTENT: CanonicalStreamEvent = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } };
const STOP: CanonicalStreamEvent = { type: 'message_stop' };
const ERROR: CanonicalStreamEvent = { type: 'error', error: { code: 'OVERLOADED', message: 'busy' } };

const walk = (...events: CanonicalStreamEvent[]): Phase['is'][] => {
  let phase: Phase = SILENT;
  return events.map((event) => {
    phase = findNextPhase(phase, event);
    return phase.is;
  });
};

describe('the phases of a stream attempt', () => {
  it('hold the output until the first content, and end with the message', () => {
    expect(walk(START, CONTENT, CONTENT, STOP, STOP)).toEqual(['held', 'streaming', 'streaming', 'ending', 'ending']);
  });

  it('fail on an error before any content', () => {
    expect(walk(START, ERROR, CONTENT, STOP)).toEqual(['held', 'failed', 'failed', 'failed']);
    expect(findNextPhase(SILENT, ERROR)).toEqual({ is: 'failed', error: { code: 'OVERLOADED', message: 'busy' } });
  });

  it('end on an error after content', () => {
    expect(walk(CONTENT, ERROR, STOP)).toEqual(['streaming', 'ending', 'ending']);
  });

  it('are empty when the message ends without content', () => {
    expect(walk(START, STOP, ERROR)).toEqual(['held', 'empty', 'failed']);
  });

  it('treat a delta without a stop reason as no content', () => {
    const delta = (stop_reason: 'end_turn' | null): CanonicalStreamEvent => ({ type: 'message_delta', delta: { stop_reason } });
    expect(walk(delta(null), delta('end_turn'))).toEqual(['held', 'streaming']);
  });

  it('do not change before the headers, in an error response, or once settled', () => {
    for (const phase of [WAITING, SETTLED, { is: 'refusal', body: new Collector(1) } satisfies Phase])
      for (const event of [START, CONTENT, STOP, ERROR]) expect(findNextPhase(phase, event)).toBe(phase);
  });

  it('determine the timeout, and when silence completes the response', () => {
    const phases: Phase[] = [WAITING, SILENT, { is: 'held' }, { is: 'streaming' }, { is: 'ending' }, { is: 'empty' }];
    expect(phases.map(findOverdue)).toEqual(['response', 'event', 'more', 'more', undefined, undefined]);
    expect(phases.map(hasContent)).toEqual([false, false, false, true, true, false]);
  });
});
