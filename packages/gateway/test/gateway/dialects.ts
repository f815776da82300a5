import {
  type AccumulatedMessage,
  type CanonicalError,
  type CanonicalResponse,
  type CodecContext,
  encodeSse,
  PROTOCOLS,
  type ProtocolId,
} from '@sluice/core';
import { CODECS, encodeError, StreamAccumulator } from '@sluice/core/engine';
import { streamWords } from '@sluice/lab/demo';

export const TEXT = 'One two three four five.';
export const USAGE = { input_tokens: 11, output_tokens: 5 };

export const ANSWER: CanonicalResponse = {
  id: 'answer-1',
  model: 'm',
  created: 1,
  content: [{ type: 'text', text: TEXT }],
  stop_reason: 'end_turn',
  usage: USAGE,
};

const contextOf = (protocol: ProtocolId): CodecContext => ({
  report: () => undefined,
  note: () => undefined,
  now: () => 1,
  newId: (prefix) => `${prefix}1`,
  profile: CODECS[protocol].profileFor(''),
  policy: {},
});

const LINE_END = { gemini: '\r\n' } as const satisfies Partial<Record<ProtocolId, string>>;

/** The frames of a good stream, as a provider of the protocol sends them. */
export function framesOf(protocol: ProtocolId, answer: CanonicalResponse = ANSWER): string[] {
  const encoder = CODECS[protocol].streamEncoder(contextOf(protocol));
  const frames = [...streamWords(answer)].flatMap((event) => [...encoder.push(event)]);
  const lineEnd = protocol === 'gemini' ? LINE_END.gemini : '\n';
  return [...frames, ...encoder.end()].map((frame) => encodeSse(frame, { lineEnd }));
}

/** The frames up to the one that says this word, and the rest. */
export function cutAfter(protocol: ProtocolId, word: string): { before: string[]; after: string[] } {
  const frames = framesOf(protocol);
  const at = frames.findIndex((frame) => frame.includes(word)) + 1;
  return { before: frames.slice(0, at), after: frames.slice(at) };
}

export const wholeOf = (protocol: ProtocolId, answer: CanonicalResponse = ANSWER): string =>
  JSON.stringify(CODECS[protocol].response.encode(answer, contextOf(protocol)));

/** An error as a provider of the protocol says it: its status and body. */
export function errorOf(protocol: ProtocolId, error: CanonicalError): { status: number; body: string } {
  const { status, body } = encodeError(error, { to: CODECS[protocol] });
  return { status, body: JSON.stringify(body) };
}

/** The same in a stream. */
export function errorFrames(protocol: ProtocolId, error: CanonicalError): string {
  const encoder = CODECS[protocol].streamEncoder(contextOf(protocol));
  return [...encoder.push({ type: 'error', error })].map((frame) => encodeSse(frame)).join('');
}

/** What a client of the protocol reads out of a stream. */
export function readStream(protocol: ProtocolId, body: Uint8Array): AccumulatedMessage {
  const accumulator = new StreamAccumulator({ protocol: PROTOCOLS[protocol] });
  accumulator.push(body);
  return accumulator.finish();
}

/** What it reads out of a whole answer. */
export function readWhole(protocol: ProtocolId, body: Uint8Array): CanonicalResponse {
  return CODECS[protocol].response.decode(JSON.parse(Buffer.from(body).toString('utf8')), contextOf(protocol));
}

/** What it reads out of an answer with an error status. */
export function readError(
  protocol: ProtocolId,
  status: number,
  headers: Record<string, string>,
  body: Uint8Array,
): CanonicalError {
  return CODECS[protocol].error.decode(
    { status, headers, body: JSON.parse(Buffer.from(body).toString('utf8')) },
    contextOf(protocol),
  );
}

interface Question {
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

const SAID = 'Count to five.';

const QUESTIONS = {
  'openai-chat': (model, stream) => ({
    path: '/v1/chat/completions',
    headers: {},
    body: {
      model,
      ...(stream && { stream, stream_options: { include_usage: true } }),
      messages: [{ role: 'user', content: SAID }],
    },
  }),
  'anthropic-messages': (model, stream) => ({
    path: '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: { model, max_tokens: 99, stream, messages: [{ role: 'user', content: SAID }] },
  }),
  'openai-responses': (model, stream) => ({ path: '/v1/responses', headers: {}, body: { model, stream, input: SAID } }),
  gemini: (model, stream) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: {},
    body: { contents: [{ role: 'user', parts: [{ text: SAID }] }] },
  }),
} as const satisfies Record<ProtocolId, (model: string, stream: boolean) => Question>;

/** A question of a client. */
export const questionOf = (protocol: ProtocolId, model: string, stream: boolean): Question => QUESTIONS[protocol](model, stream);
