import type { ProtocolId } from '@sluice/core';
import type { Framing } from './framing.ts';
import { type Mutation, mutations, type Row, type WireStream } from './mutation.ts';
import { frameOf, isObject, type Json, objects } from './payloads.ts';
import { below, type Random } from './random.ts';

const ALL: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** The payload after which a message counts as whole. */
const ENDS: Record<ProtocolId, (payload: Json) => boolean> = {
  'openai-chat': ({ choices }) => objects(choices).some(({ finish_reason: reason }) => typeof reason === 'string'),
  'anthropic-messages': ({ type }) => type === 'message_delta' || type === 'message_stop',
  'openai-responses': ({ type }) => /^response\.(completed|incomplete|failed)$/.test(String(type)),
  gemini: ({ candidates, promptFeedback }) =>
    promptFeedback !== undefined || objects(candidates).some(({ finishReason }) => finishReason !== undefined),
};

/** The stream up to a frame before the end of the message, and then what is given. Without a beginning or an end there is nothing to cut. */
function cut(stream: WireStream, random: Random, after: { payloads?: Json[]; framing?: Partial<Framing> } = {}): WireStream {
  const { protocol, frames } = stream;
  const isEnd = frames.map(({ data }) => {
    const payload: unknown = data.startsWith('{') ? JSON.parse(data) : undefined;
    return isObject(payload) && ENDS[protocol](payload);
  });
  const end = isEnd.indexOf(true);
  if (end < 1) return stream;
  const hasEvents = frames.some(({ event }) => event !== undefined);
  const last = (after.payloads ?? []).map((payload) => frameOf(payload, hasEvents));
  return {
    ...stream,
    frames: [...frames.slice(0, 1 + below(random, end)), ...last],
    framing: { ...stream.framing, ...after.framing },
  };
}

/** The stream without the events that say its end. */
const unfinished: Row['apply'] = (stream) => {
  const { protocol, frames } = stream;
  const rest = frames.filter(({ data }) => data.startsWith('{') && !ENDS[protocol](JSON.parse(data) as Json));
  return rest.length > 0 && rest.length < frames.length ? { ...stream, frames: rest } : stream;
};

const ended = (lines: readonly string[], end: Framing['end'] = 'blank'): Row['apply'] => {
  return (stream, random) => cut(stream, random, { framing: { tail: lines, end } });
};

const failed =
  (...payloads: Json[]): Row['apply'] =>
  (stream, random) =>
    cut(stream, random, { payloads });

const ANY = mutations('failure', ALL, {
  'failure/cut': { title: 'The body ends between two events', cuts: true, apply: (stream, random) => cut(stream, random) },
  'failure/cut-in-event': {
    title: 'The body ends in the middle of an event',
    cuts: true,
    rule: 'sse/truncated-event',
    apply: ended(['data: {"a":[{"b":"c'], 'none'),
  },
  'failure/error-event-without-data': {
    title: 'The stream breaks off with an event named error, without data',
    cuts: true,
    rule: 'sse/error-event-without-data',
    apply: ended(['event: error', '']),
  },
  'failure/error-event-plain-text': {
    title: 'The stream breaks off with an event named error and a plain text',
    cuts: true,
    apply: ended(['event: error', 'data: upstream connect error', '']),
  },
  'failure/error-field': {
    title: 'The stream breaks off with a field named error',
    cuts: true,
    rule: 'sse/error-field',
    apply: ended(['error: {"code":500,"message":"out of memory","type":"server_error"}', '']),
  },
  'failure/bare-error': {
    title: 'The stream breaks off with an error outside of SSE',
    cuts: true,
    rule: 'sse/bare-json',
    apply: ended(['{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}']),
  },
  'failure/error-payload': {
    title: 'The stream breaks off with an error object as data',
    cuts: true,
    apply: failed({ error: { message: 'boom', type: 'server_error', code: 'internal' } }),
  },
});

const CHAT = mutations('failure', ['openai-chat'], {
  'failure/chat-error-then-done': {
    title: 'An error object as data, then [DONE]',
    cuts: true,
    rule: 'chat/error-in-stream',
    apply: ended(['data: {"error":{"message":"boom","type":"server_error","code":null}}', '', 'data: [DONE]', '']),
  },
  'failure/chat-choice-error': {
    title: 'An error inside of a choice',
    cuts: true,
    rule: 'chat/error-in-stream',
    apply: failed({ choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 502, message: 'boom' } }] }),
  },
});

const ANTHROPIC = mutations('failure', ['anthropic-messages'], {
  'failure/anthropic-error-event': {
    title: 'An error event in the middle',
    cuts: true,
    apply: failed({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  },
  'failure/anthropic-unfinished': {
    title: 'All of the content, but neither message_delta nor message_stop',
    cuts: true,
    rule: 'anthropic/ended-early',
    apply: unfinished,
  },
  'failure/anthropic-spliced': {
    title: 'Another message begins in the middle',
    cuts: true,
    rule: 'anthropic/spliced-stream',
    apply: failed({
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
    apply: failed({ type: 'error', sequence_number: 99, code: 'server_error', message: 'boom', param: null }),
  },
  'failure/responses-unfinished': {
    title: 'All of the content, but no terminal event',
    cuts: true,
    rule: 'responses/terminal-missing',
    apply: unfinished,
  },
  'failure/responses-failed': {
    title: 'response.failed in the middle',
    cuts: true,
    apply: failed({
      type: 'response.failed',
      response: { id: 'resp_1', status: 'failed', error: { code: 'server_error', message: 'boom' } },
    }),
  },
  'failure/responses-failed-without-error': {
    title: 'response.failed without a reason',
    cuts: true,
    rule: 'responses/failed-without-error',
    apply: failed({ type: 'response.failed', response: { id: 'resp_1', status: 'failed', error: null } }),
  },
});

const GEMINI = mutations('failure', ['gemini'], {
  'failure/gemini-unfinished': {
    title: 'Chunks with a finishReason do not come',
    cuts: true,
    rule: 'gemini/finish-missing',
    apply: unfinished,
  },
});

export const FAILURE_MUTATIONS: readonly Mutation[] = [...ANY, ...CHAT, ...ANTHROPIC, ...RESPONSES, ...GEMINI];
