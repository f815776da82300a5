/** Mutations that end a stream early or in an error. */

import type { ProtocolId } from '@sluice/core';
import type { Framing } from './framing.ts';
import { type Mutation, mutations, type Row, type WireStream } from './mutation.ts';
import { buildFrame, isObject, type Json, objects } from './payloads.ts';
import { below, type Random } from './random.ts';

const ALL: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** Whether a message is complete after the payload. */
const ENDS: Record<ProtocolId, (payload: Json) => boolean> = {
  'openai-chat': ({ choices }) => objects(choices).some(({ finish_reason: reason }) => typeof reason === 'string'),
  'anthropic-messages': ({ type }) => type === 'message_delta' || type === 'message_stop',
  'openai-responses': ({ type }) => /^response\.(completed|incomplete|failWith)$/.test(String(type)),
  gemini: ({ candidates, promptFeedback }) =>
    promptFeedback !== undefined || objects(candidates).some(({ finishReason }) => finishReason !== undefined),
};

/**
 * The stream up to a random frame before the end of the message, followed by `after`. A stream without a beginning or
 * an end is not cut.
 */
function cut(stream: WireStream, random: Random, after: { payloads?: Json[]; framing?: Partial<Framing> } = {}): WireStream {
  const { protocol, frames } = stream;
  const isEnd = frames.map(({ data }) => {
    const payload: unknown = data.startsWith('{') ? JSON.parse(data) : undefined;
    return isObject(payload) && ENDS[protocol](payload);
  });
  const end = isEnd.indexOf(true);
  if (end < 1) return stream;
  const hasEvents = frames.some(({ event }) => event !== undefined);
  const last = (after.payloads ?? []).map((payload) => buildFrame(payload, hasEvents));
  return {
    ...stream,
    frames: [...frames.slice(0, 1 + below(random, end)), ...last],
    framing: { ...stream.framing, ...after.framing },
  };
}

/** The stream without the events that mark its end. */
const unfinished: Row['apply'] = (stream) => {
  const { protocol, frames } = stream;
  const rest = frames.filter(({ data }) => data.startsWith('{') && !ENDS[protocol](JSON.parse(data) as Json));
  return rest.length > 0 && rest.length < frames.length ? { ...stream, frames: rest } : stream;
};

const endWith = (lines: readonly string[], end: Framing['end'] = 'blank'): Row['apply'] => {
  return (stream, random) => cut(stream, random, { framing: { tail: lines, end } });
};

const failWith =
  (...payloads: Json[]): Row['apply'] =>
  (stream, random) =>
    cut(stream, random, { payloads });

const ANY = mutations('failure', ALL, {
  'failure/cut': { title: 'The body ends between two events', cuts: true, apply: (stream, random) => cut(stream, random) },
  'failure/cut-in-event': {
    title: 'The body ends in the middle of an event',
    cuts: true,
    rule: 'sse/truncated-event',
    apply: endWith(['data: {"a":[{"b":"c'], 'none'),
  },
  'failure/error-event-without-data': {
    title: 'The stream ends with an event named error, without data',
    cuts: true,
    rule: 'sse/error-event-without-data',
    apply: endWith(['event: error', '']),
  },
  'failure/error-event-plain-text': {
    title: 'The stream ends with an event named error and plain text',
    cuts: true,
    apply: endWith(['event: error', 'data: upstream connect error', '']),
  },
  'failure/error-field': {
    title: 'The stream ends with a field named error',
    cuts: true,
    rule: 'sse/error-field',
    apply: endWith(['error: {"code":500,"message":"out of memory","type":"server_error"}', '']),
  },
  'failure/bare-error': {
    title: 'The stream ends with an error outside of SSE',
    cuts: true,
    rule: 'sse/bare-json',
    apply: endWith(['{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}']),
  },
  'failure/error-payload': {
    title: 'The stream ends with an error object as data',
    cuts: true,
    apply: failWith({ error: { message: 'boom', type: 'server_error', code: 'internal' } }),
  },
});

const CHAT = mutations('failure', ['openai-chat'], {
  'failure/chat-error-then-done': {
    title: 'An error object as data, then [DONE]',
    cuts: true,
    rule: 'chat/error-in-stream',
    apply: endWith(['data: {"error":{"message":"boom","type":"server_error","code":null}}', '', 'data: [DONE]', '']),
  },
  'failure/chat-choice-error': {
    title: 'An error inside of a choice',
    cuts: true,
    rule: 'chat/error-in-stream',
    apply: failWith({ choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 502, message: 'boom' } }] }),
  },
});

const ANTHROPIC = mutations('failure', ['anthropic-messages'], {
  'failure/anthropic-error-event': {
    title: 'An error event in the middle',
    cuts: true,
    apply: failWith({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  },
  'failure/anthropic-unfinished': {
    title: 'The content is complete, but message_delta and message_stop are missing',
    cuts: true,
    rule: 'anthropic/ended-early',
    apply: unfinished,
  },
  'failure/anthropic-spliced': {
    title: 'A second message begins in the middle',
    cuts: true,
    rule: 'anthropic/spliced-stream',
    apply: failWith({
      type: 'message_start',
      message: { id: 'msg_other', type: 'message', role: 'assistant', model: 'other', content: [] },
    }),
  },
});

const RESPONSES = mutations('failure', ['openai-responses'], {
  'failure/responses-error-event': {
    title: 'An error event in the middle, and nothing after it',
    cuts: true,
    rule: 'responses/error-without-failed',
    apply: failWith({ type: 'error', sequence_number: 99, code: 'server_error', message: 'boom', param: null }),
  },
  'failure/responses-unfinished': {
    title: 'The content is complete, but the terminal event is missing',
    cuts: true,
    rule: 'responses/terminal-missing',
    apply: unfinished,
  },
  'failure/responses-failed': {
    title: 'response.failed in the middle',
    cuts: true,
    apply: failWith({
      type: 'response.failed',
      response: { id: 'resp_1', status: 'failed', error: { code: 'server_error', message: 'boom' } },
    }),
  },
  'failure/responses-failed-without-error': {
    title: 'response.failed without a reason',
    cuts: true,
    rule: 'responses/failed-without-error',
    apply: failWith({ type: 'response.failed', response: { id: 'resp_1', status: 'failed', error: null } }),
  },
});

const GEMINI = mutations('failure', ['gemini'], {
  'failure/gemini-unfinished': {
    title: 'The chunk with finishReason is missing',
    cuts: true,
    rule: 'gemini/finish-missing',
    apply: unfinished,
  },
});

/** Mutations that end a stream early or in an error, for all protocols. */
export const FAILURE_MUTATIONS: readonly Mutation[] = [...ANY, ...CHAT, ...ANTHROPIC, ...RESPONSES, ...GEMINI];
