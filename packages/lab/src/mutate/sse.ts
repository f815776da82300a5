/** Mutations of the framing and delivery of event streams, and of the end marker. */

import type { ProtocolId, SseFrame } from '@sluice/core';
import type { Framing } from './framing.ts';
import { type Mutation, mutations, type WireStream } from './mutation.ts';
import { DONE, editFrames } from './payloads.ts';
import { chance, type Random } from './random.ts';

const ALL: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const framed =
  (change: Partial<Framing>) =>
  (stream: WireStream): WireStream => ({ ...stream, framing: { ...stream.framing, ...change } });

/** Adds blocks to those written between frames. */
const between =
  (...blocks: readonly (readonly string[])[]) =>
  (stream: WireStream): WireStream =>
    framed({ between: [...stream.framing.between, ...blocks] })(stream);

const inside =
  (...lines: readonly string[]) =>
  (stream: WireStream): WireStream =>
    framed({ inside: [...stream.framing.inside, ...lines] })(stream);

/** Inserts the frame at random: at least once, never before the first frame. */
const strewn =
  (frame: SseFrame) =>
  (stream: WireStream, random: Random): WireStream =>
    editFrames(stream, (old, at) => (at === 1 || (at > 1 && chance(random, 0.2)) ? [frame, old] : old));

/** Differences in bytes and lines that every reader of event streams has to accept. */
const FRAMING = mutations('framing', ALL, {
  'sse/crlf': { title: 'Lines end with CR LF', apply: framed({ lineEnd: '\r\n' }) },
  'sse/cr': { title: 'Lines end with CR', apply: framed({ lineEnd: '\r' }) },
  'sse/mixed-line-ends': { title: 'Some lines end with LF, some with CR LF', apply: framed({ lineEnd: 'mixed' }) },
  'sse/bom': { title: 'The body begins with a byte order mark', apply: framed({ bom: true }) },
  'sse/no-space': { title: 'No space after the colon of a field', apply: framed({ space: '' }) },
  'sse/comments': {
    title: 'Comments between the events',
    apply: between([': OPENROUTER PROCESSING', ''], [':', ''], [': ping - 2026-01-01 00:00:00']),
  },
  'sse/blank-lines': { title: 'Several blank lines between the events', apply: between(['', '']) },
  'sse/ids': { title: 'Events carry an id', apply: inside('id: 7', 'id') },
  'sse/retry': { title: 'Events carry a retry time', apply: inside('retry: 3000', 'retry: soon') },
  'sse/unknown-fields': { title: 'Fields that are not in the standard', apply: inside('x-trace: 1', 'foo', 'dataset: {}') },
  'sse/comments-inside': { title: 'Comments inside events', apply: inside(': keep-alive', ':') },
  'sse/event-without-data': { title: 'Events with a name and no data', apply: between(['event: ping', '']) },
  'sse/multi-line-data': { title: 'One payload over several data lines', apply: framed({ multiLine: true }) },
  'sse/data-first': { title: 'The data line comes before the event line', apply: framed({ dataFirst: true }) },
  'sse/no-blank-lines': {
    title: 'Events are not separated by blank lines',
    rule: 'sse/several-payloads',
    apply: (stream) => (stream.frames.length > 1 ? framed({ shape: 'lines' })(stream) : stream),
  },
  'sse/ndjson': { title: 'One JSON document per line, no SSE', rule: 'sse/bare-json', apply: framed({ shape: 'ndjson' }) },
  'sse/last-line-only': {
    title: 'The body ends without the last blank line',
    rule: 'sse/unterminated-event',
    apply: framed({ end: 'line' }),
  },
  'sse/no-last-line-end': {
    title: 'The body ends with the last character of the data',
    rule: 'sse/unterminated-event',
    apply: framed({ end: 'none' }),
  },
  'sse/empty-data': { title: 'Events with empty data', rule: 'sse/empty-data', apply: strewn({ data: '' }) },
  'sse/keepalive-as-data': {
    title: 'A comment sent as data',
    rule: 'sse/keepalive-as-data',
    apply: strewn({ data: ': keepalive' }),
  },
  'sse/malformed-frame': {
    title: 'One event is not JSON',
    rule: 'sse/malformed-json',
    apply: strewn({ data: '{oops' }),
  },
  'sse/trailing-garbage': {
    title: 'A stray quote behind the last payload',
    rule: 'sse/trailing-garbage',
    apply: (stream) => {
      const last = stream.frames.findLastIndex(({ data }) => data.startsWith('{'));
      return editFrames(stream, (frame, at) => (at === last ? { ...frame, data: `${frame.data}"` } : frame));
    },
  },
});

/** The same bytes in other network reads. */
const DELIVERY = mutations('delivery', ALL, {
  'reads/whole': { title: 'The whole body in one read', apply: framed({ chunks: 'whole' }) },
  'reads/bytes': { title: 'One byte per read', apply: framed({ chunks: 'bytes' }) },
  'reads/random': { title: 'Reads of any size', apply: framed({ chunks: 'random' }) },
  'reads/characters': { title: 'Reads end inside characters', apply: framed({ chunks: 'characters' }) },
});

/** Gemini without `alt=sse`; other protocols have no such form. */
const ARRAY = mutations('framing', ['gemini'], {
  'gemini/json-array': { title: 'One JSON array over the whole body', rule: 'sse/bare-json', apply: framed({ shape: 'array' }) },
});

const isDone = ({ data }: SseFrame): boolean => data === DONE;

const withoutDone = (stream: WireStream): WireStream => editFrames(stream, (frame) => (isDone(frame) ? [] : frame));

const withDone = (stream: WireStream): WireStream => ({ ...stream, frames: [...stream.frames, { data: DONE }] });

const SENTINEL = mutations('framing', ['openai-chat'], {
  'chat/no-done': { title: 'No [DONE] at the end', rule: 'sse/missing-done', apply: withoutDone },
  'chat/done-twice': {
    title: '[DONE] twice',
    rule: 'sse/done-repeated',
    apply: (stream) => withDone(withDone(withoutDone(stream))),
  },
  'chat/done-padded': {
    title: '[DONE] with spaces around it',
    rule: 'sse/done-padded',
    apply: (stream) => editFrames(stream, (frame) => (isDone(frame) ? { data: ` ${DONE}  ` } : frame)),
  },
});

const FOREIGN_SENTINEL = [
  ...mutations('framing', ['anthropic-messages'], {
    'anthropic/done': { title: '[DONE] after the last event', rule: 'anthropic/done-sentinel', apply: withDone },
  }),
  ...mutations('framing', ['openai-responses'], {
    'responses/done': { title: '[DONE] after the last event', rule: 'responses/done-sentinel', apply: withDone },
  }),
  ...mutations('framing', ['gemini'], {
    'gemini/done': { title: '[DONE] after the last event', rule: 'gemini/done-sentinel', apply: withDone },
  }),
];

/** Mutations of framing and delivery, for all protocols. */
export const SSE_MUTATIONS: readonly Mutation[] = [...FRAMING, ...DELIVERY, ...ARRAY, ...SENTINEL, ...FOREIGN_SENTINEL];
