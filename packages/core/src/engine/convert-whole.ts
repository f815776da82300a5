import { MessageAccumulator } from '../accumulate/message.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { CanonicalResponse } from '../canonical/response.ts';
import { CodecError, type Framing } from '../protocols/shared/codec.ts';
import { expectShallowCalls } from './argument-depth.ts';
import { type AnswerOptions, profileOf } from './context.ts';
import { answerContext, type ConvertedResponse, decodeResponse } from './convert-response.ts';
import { EventReader, type EventReaderOptions } from './event-reader.ts';
import { createFramer } from './framing.ts';
import { NoteList } from './notes.ts';
import { replay } from './replay.ts';
import { callsOf, restoreResponse } from './restore.ts';
import { UnknownTeller } from './tell-unknown.ts';

// Between streams and whole answers: for a client that wants the one from an upstream that gave the other.

export interface ReplayedStream {
  /** The body of the stream. */
  body: Uint8Array;
  notes: Note[];
  response: CanonicalResponse;
}

/**
 * A whole answer of one protocol as a stream of another.
 *
 * ```ts
 * const { body } = replayResponse(json, { from: geminiCodec, to: openaiChatCodec, request });
 * ```
 */
export function replayResponse(body: unknown, options: AnswerOptions & { framing?: Framing }): ReplayedStream {
  const { to, framing = 'sse' } = options;
  const notes = new NoteList();
  const response = decodeResponse(body, options, notes);
  const encoder = to.streamEncoder(answerContext(options, notes, { seed: () => response.id, stream: true }));
  const framer = createFramer(to, framing);
  let text = '';
  for (const event of replay(response)) for (const frame of encoder.push(event)) text += framer.frame(frame);
  for (const frame of encoder.end()) text += framer.frame(frame);
  return { body: new TextEncoder().encode(text + framer.end()), notes: notes.list, response };
}

/**
 * A stream of one protocol as a whole answer of another.
 *
 * ```ts
 * const { body } = collectStream([bytes], { from: anthropicMessagesCodec, to: openaiChatCodec, request });
 * ```
 *
 * Throws a CodecError when the stream ends in an error, or early.
 */
export function collectStream(
  chunks: Iterable<Uint8Array>,
  options: AnswerOptions & Pick<EventReaderOptions, 'malformed'>,
): ConvertedResponse {
  const { from, to, request, model, malformed, isRenamed = true } = options;
  const profile = profileOf(from, options, request?.model);
  const reader = new EventReader({ protocol: from, profile, malformed });
  const accumulator = new MessageAccumulator();
  const take = (events: Iterable<CanonicalStreamEvent>): void => {
    for (const event of events) accumulator.push(event);
  };
  for (const chunk of chunks) take(reader.push(chunk));
  take(reader.end());
  const { message, error, complete } = accumulator.finish();
  if (error) throw new CodecError(error);
  if (!complete) throw new CodecError({ code: 'STREAM_TRUNCATED', message: 'the stream ended early', http_status: 502 });
  expectShallowCalls(message);
  const notes = new NoteList();
  for (const note of reader.notes) notes.add(note);
  if (to.id !== from.id) new UnknownTeller({ from, to }, notes.add).response(message);
  const calls = request && isRenamed ? callsOf(request, from.toolRules(profile)) : undefined;
  const restored = restoreResponse(message, calls, notes.add);
  const response = model === undefined ? restored : { ...restored, model };
  const context = answerContext(options, notes, { seed: () => response.id });
  return { body: to.response.encode(response, context), notes: notes.list, response };
}
