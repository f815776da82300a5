/** Mutations of the events, stop reason and usage of Anthropic Messages. */

import { type Mutation, mutations } from '../mutation.ts';
import { edit, editFrames, insertAtRandom, isObject, type Json, rewrite, within, without } from '../payloads.ts';
import { DELTA, isType, MESSAGE_DELTA, MESSAGE_START, MESSAGE_STOP, onEvents, readDelta, START } from './wire.ts';

const ONLY = ['anthropic-messages'] as const;

const ENVELOPE = mutations('envelope', ONLY, {
  'anthropic/no-event-lines': {
    title: 'Frames have no event line',
    rule: 'anthropic/event-name-missing',
    apply: (stream) => editFrames(stream, (frame) => (frame.event === undefined ? frame : { data: frame.data })),
  },
  'anthropic/event-lines-differ': {
    title: 'Every event line is "message"',
    rule: 'anthropic/event-name-differs',
    apply: (stream) => editFrames(stream, (frame) => ({ ...frame, event: 'message' })),
  },
  'anthropic/no-types': {
    title: 'The type is only in the event line',
    rule: 'anthropic/type-missing',
    apply: (stream) =>
      editFrames(stream, (frame) => {
        const payload: unknown = frame.data.startsWith('{') ? JSON.parse(frame.data) : undefined;
        if (!isObject(payload) || frame.event !== payload['type']) return frame;
        return { ...frame, data: JSON.stringify(without(payload, 'type')) };
      }),
  },
  'anthropic/pings': {
    title: 'Pings between any two events',
    apply: (stream, random) => insertAtRandom(stream, random, () => ({ type: 'ping' })),
  },
  'anthropic/unknown-events': {
    title: 'Events of unknown types',
    rule: 'anthropic/unknown-event',
    apply: (stream, random) => insertAtRandom(stream, random, () => ({ type: 'vendor_heartbeat', at: 1 })),
  },
  'anthropic/unknown-deltas': {
    title: 'Deltas of unknown types',
    rule: 'anthropic/unknown-delta',
    apply: (stream) =>
      edit(stream, (event) => {
        const isKnown = ['text_delta', 'thinking_delta', 'input_json_delta'].includes(String(readDelta(event)['type']));
        return event['type'] === DELTA && isKnown ? [event, { ...event, delta: { type: 'vendor_delta', value: 1 } }] : event;
      }),
  },
  'anthropic/start-missing': {
    title: 'No message_start',
    loses: ['id', 'model', 'usage'],
    rule: 'anthropic/message-start-missing',
    apply: (stream) => edit(stream, (event) => (event['type'] === MESSAGE_START ? [] : event)),
  },
  'anthropic/start-twice': {
    title: 'message_start is sent twice',
    rule: 'anthropic/message-start-repeated',
    apply: onEvents(MESSAGE_START, (event) => [event, { ...event }]),
  },
  'anthropic/start-again-later': {
    title: 'message_start is sent again in the middle',
    rule: 'anthropic/message-start-repeated',
    apply: (stream) =>
      rewrite(stream, (events) => {
        const start = events.find(isType(MESSAGE_START));
        const at = events.findIndex(isType(DELTA));
        return start && at > 0 ? [...events.slice(0, at + 1), { ...start }, ...events.slice(at + 1)] : events;
      }),
  },
  'anthropic/start-bare': {
    title: 'message_start has neither content nor stop fields',
    apply: onEvents(MESSAGE_START, (event) =>
      within(event, 'message', (message) => without(message, 'content', 'stop_reason', 'stop_sequence', 'type', 'stop_details')),
    ),
  },
  'anthropic/no-message-id': {
    title: 'The message has no id',
    loses: ['id'],
    rule: 'anthropic/message-id-missing',
    apply: onEvents(MESSAGE_START, (event) => within(event, 'message', (message) => without(message, 'id'))),
  },
});

const WORDS: Record<string, string> = { end_turn: 'stop', tool_use: 'tool_calls', max_tokens: 'length' };

/** Calls made by the provider's code execution do not end the turn. */
const isByCode = (events: readonly Json[]): boolean =>
  events.some((event) => event['type'] === START && /"caller":\{"type":"code_execution/.test(JSON.stringify(event)));

const readStop = (event: Json): string => String(readDelta(event)['stop_reason']);

const FINISH = mutations('finish', ONLY, {
  'anthropic/delta-twice': {
    title: 'A second message_delta resets the stop reason to null',
    rule: 'anthropic/message-delta-repeated',
    apply: onEvents(MESSAGE_DELTA, (event) => [
      event,
      { type: MESSAGE_DELTA, delta: { stop_reason: null }, usage: event['usage'] },
    ]),
  },
  'anthropic/usage-delta-first': {
    title: 'A message_delta with only usage comes before the real one',
    rule: 'anthropic/message-delta-repeated',
    apply: onEvents(MESSAGE_DELTA, (event) => [{ type: MESSAGE_DELTA, delta: {}, usage: event['usage'] }, event]),
  },
  'anthropic/delta-before-content': {
    title: 'message_delta comes before the last block',
    rule: 'anthropic/content-after-message-delta',
    apply: (stream) =>
      rewrite(stream, (events) => {
        const delta = events.find(isType(MESSAGE_DELTA));
        const at = events.findLastIndex(isType(START));
        if (!delta || at < 0 || events.indexOf(delta) < at) return events;
        return [...events.slice(0, at), delta, ...events.slice(at).filter((event) => event !== delta)];
      }),
  },
  'anthropic/no-message-stop': {
    title: 'No message_stop',
    rule: 'anthropic/message-stop-missing',
    apply: (stream) => edit(stream, (event) => (event['type'] === MESSAGE_STOP ? [] : event)),
  },
  'anthropic/no-stop-reason': {
    title: 'message_delta has no stop reason',
    rule: 'anthropic/stop-reason-missing',
    apply: (stream) =>
      edit(stream, (event, _, events) => {
        const isOrdinary = event['type'] === MESSAGE_DELTA && ['end_turn', 'tool_use'].includes(readStop(event));
        if (!isOrdinary || isByCode(events) || !events.some(isType(MESSAGE_STOP))) return event;
        return within(event, 'delta', (delta) => without(delta, 'stop_reason'));
      }),
  },
  'anthropic/stop-reason-of-chat': {
    title: 'The stop reason is a value of OpenAI Chat',
    rule: 'anthropic/stop-reason-unknown',
    apply: onEvents(MESSAGE_DELTA, (event) => {
      const word = WORDS[readStop(event)];
      return word === undefined ? event : { ...event, delta: { ...readDelta(event), stop_reason: word } };
    }),
  },
  'anthropic/end-turn-with-calls': {
    title: 'The stop reason is end_turn although there are calls',
    rule: 'anthropic/end-turn-with-calls',
    apply: (stream) =>
      edit(stream, (event, _, events) => {
        const isEnd = event['type'] === MESSAGE_DELTA && readStop(event) === 'tool_use' && !isByCode(events);
        return isEnd ? { ...event, delta: { ...readDelta(event), stop_reason: 'end_turn' } } : event;
      }),
  },
  'anthropic/after-the-end': {
    title: 'Events after message_stop',
    rule: 'sse/after-end',
    apply: onEvents(MESSAGE_STOP, (event) => [event, { type: 'ping' }, { ...event }]),
  },
});

const zeros = (usage: Json): Json =>
  Object.fromEntries(
    Object.entries(usage).map(([key, value]) => [key, isObject(value) ? zeros(value) : typeof value === 'number' ? 0 : value]),
  );

/** Whether a usage has output tokens. */
const hasCounts = (usage: Json): boolean => Number(usage['output_tokens']) > 0;

const USAGE = mutations('usage', ONLY, {
  'anthropic/usage-of-zeros': {
    title: 'A message_delta with zeros after the real one',
    rule: 'anthropic/usage-of-zeros',
    apply: onEvents(MESSAGE_DELTA, (event) => {
      const { usage } = event;
      return isObject(usage) && hasCounts(usage) ? [event, { type: MESSAGE_DELTA, delta: {}, usage: zeros(usage) }] : event;
    }),
  },
  'anthropic/usage-null': {
    title: 'A message_delta with usage null after the real one',
    apply: onEvents(MESSAGE_DELTA, (event) => [event, { type: MESSAGE_DELTA, delta: {}, usage: null }]),
  },
  'anthropic/usage-nulls': {
    title: 'Counters reported in message_start are null in message_delta',
    apply: (stream) =>
      edit(stream, (event, _, events) => {
        const message = events.find(isType(MESSAGE_START))?.['message'];
        const known = isObject(message) && isObject(message['usage']) ? message['usage'] : {};
        if (event['type'] !== MESSAGE_DELTA) return event;
        return within(event, 'usage', (usage) =>
          Object.fromEntries(
            Object.entries(usage).map(([key, value]) => [key, typeof value === 'number' && known[key] === value ? null : value]),
          ),
        );
      }),
  },
  'anthropic/usage-zeros-in-start': {
    title: 'message_start has a usage of zeros, message_delta the complete usage',
    apply: (stream) =>
      edit(stream, (event, _, events) => {
        const message = events.find(isType(MESSAGE_START))?.['message'];
        if (!isObject(message) || !isObject(message['usage'])) return event;
        if (event['type'] === MESSAGE_START) return { ...event, message: { ...message, usage: zeros(message['usage']) } };
        if (event['type'] !== MESSAGE_DELTA) return event;
        return { ...event, usage: { ...message['usage'], ...(isObject(event['usage']) ? event['usage'] : {}) } };
      }),
  },
  'anthropic/usage-growing': {
    title: 'message_delta with usage is repeated between the content events',
    rule: 'anthropic/message-delta-repeated',
    apply: (stream) =>
      rewrite(stream, (events) => {
        const { usage } = events.find(isType(MESSAGE_DELTA)) ?? {};
        const at = events.findIndex(isType(START));
        if (!isObject(usage) || !hasCounts(usage) || at < 0) return events;
        return [...events.slice(0, at), { type: MESSAGE_DELTA, delta: {}, usage: { output_tokens: 1 } }, ...events.slice(at)];
      }),
  },
});

/** Mutations of events, stop reason and usage. */
export const ANTHROPIC_EVENT_MUTATIONS: readonly Mutation[] = [...ENVELOPE, ...FINISH, ...USAGE];
