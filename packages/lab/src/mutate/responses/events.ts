/** Mutations of the events, status and usage of OpenAI Responses. */

import { type Mutation, mutations } from '../mutation.ts';
import { edit, editFrames, insertAtRandom, isObject, type Json, objects, rewrite, within, without } from '../payloads.ts';
import { isTerminal, leaveOut, onEvents, readResponse, readType } from './wire.ts';

const ONLY = ['openai-responses'] as const;

const ANY = /./;

const ENVELOPE = mutations('envelope', ONLY, {
  'responses/no-event-lines': {
    title: 'Frames have no event line',
    rule: 'responses/event-line-missing',
    apply: (stream) => editFrames(stream, (frame) => (frame.event === undefined ? frame : { data: frame.data })),
  },
  'responses/no-types': {
    title: 'The type is only in the event line',
    rule: 'responses/type-missing',
    apply: (stream) =>
      editFrames(stream, (frame) => {
        const payload: unknown = frame.data.startsWith('{') ? JSON.parse(frame.data) : undefined;
        if (!isObject(payload) || frame.event !== payload['type']) return frame;
        return { ...frame, data: JSON.stringify(without(payload, 'type')) };
      }),
  },
  'responses/no-sequence-numbers': {
    title: 'Events have no sequence number',
    apply: onEvents(ANY, (event) => without(event, 'sequence_number')),
  },
  'responses/sequence-repeats': {
    title: 'Every event has the same sequence number',
    rule: 'responses/sequence-number',
    apply: onEvents(ANY, (event) => ({ ...event, sequence_number: 1 })),
  },
  'responses/sequence-gaps': {
    title: 'Sequence numbers have gaps',
    apply: onEvents(ANY, (event) => {
      const { sequence_number: number } = event;
      return typeof number === 'number' ? { ...event, sequence_number: number * 3 + 1 } : event;
    }),
  },
  'responses/obfuscation': {
    title: 'Deltas carry padding',
    apply: onEvents(/\.delta$/, (event) => ({ ...event, obfuscation: 'xQ3' })),
  },
  'responses/keepalives': {
    title: 'Keep-alives as events',
    apply: (stream, random) => insertAtRandom(stream, random, () => ({ type: 'keepalive', sequence_number: 0 })),
  },
  'responses/unknown-events': {
    title: 'Events of unknown types',
    rule: 'responses/unknown-event',
    apply: (stream, random) => insertAtRandom(stream, random, () => ({ type: 'response.vendor_hint', hint: 1 })),
  },
  'responses/no-in-progress': { title: 'No response.in_progress', apply: leaveOut(/^response\.in_progress$/) },
  'responses/no-created': {
    title: 'The stream begins with the first item',
    loses: ['id', 'model'],
    rule: 'responses/created-missing',
    apply: (stream) =>
      rewrite(stream, (events) => {
        const rest = events.filter((event) => !/^response\.(created|in_progress|queued)$/.test(readType(event)));
        return rest.some((event) => !isTerminal(event)) ? rest : events;
      }),
  },
  'responses/after-the-end': {
    title: 'A ping after the terminal event',
    rule: 'sse/after-end',
    apply: (stream) => edit(stream, (event) => (isTerminal(event) ? [event, { type: 'ping' }] : event)),
  },
});

const FINISH = mutations('finish', ONLY, {
  'responses/output-empty': {
    title: 'The final response has no output',
    rule: 'responses/output-empty',
    apply: (stream) =>
      edit(stream, (event, _, events) => {
        const isStreamed = events.some(({ output_index: index }) => index !== undefined);
        if (readType(event) !== 'response.completed' || !isStreamed || objects(readResponse(event)['output']).length === 0)
          return event;
        return within(event, 'response', (response) => ({ ...response, output: [] }));
      }),
  },
  'responses/output-missing': {
    title: 'The final response has no field output',
    apply: (stream) =>
      edit(stream, (event, _, events) => {
        const isStreamed = events.some(({ output_index: index }) => index !== undefined);
        return isTerminal(event) && isStreamed ? within(event, 'response', (response) => without(response, 'output')) : event;
      }),
  },
  'responses/status-differs': {
    title: 'The final response has status in_progress',
    rule: 'responses/status-differs',
    apply: onEvents('response.completed', (event) =>
      within(event, 'response', (response) => ({ ...response, status: 'in_progress' })),
    ),
  },
  'responses/incomplete-as-completed': {
    title: 'An incomplete response ends with response.completed',
    rule: 'responses/status-differs',
    apply: onEvents('response.incomplete', (event) => ({ ...event, type: 'response.completed' })),
  },
  'responses/done-for-completed': {
    title: 'The last event is named response.done',
    rule: 'responses/unknown-event',
    apply: onEvents('response.completed', (event) => ({ ...event, type: 'response.done' })),
  },
});

const readUsage = (event: Json): unknown => readResponse(event)['usage'];

const USAGE = mutations('usage', ONLY, {
  'responses/usage-early': {
    title: 'A usage of zeros in the first event',
    apply: onEvents('response.created', (event, events) => {
      const usage = events.map(readUsage).findLast(isObject);
      if (!usage) return event;
      const zeros = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
      return within(event, 'response', (response) => ({ ...response, usage: zeros }));
    }),
  },
});

/** Mutations of events, status and usage. */
export const RESPONSES_EVENT_MUTATIONS: readonly Mutation[] = [...ENVELOPE, ...FINISH, ...USAGE];
