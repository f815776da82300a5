/** Between streams and whole responses, for a client that expects one from an upstream that sent the other. */

import { MessageAccumulator } from '../accumulate/message.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../canonical/events.ts';
import type {
  AudioBlock,
  CanonicalChoice,
  CanonicalResponse,
  ContentBlock,
  TextBlock,
  ThinkingBlock,
  ToolUseBlock,
} from '../canonical/message.ts';
import { type CanonicalError, CodecError, type Note } from '../canonical/notes.ts';
import type { Framing, RepairCodec } from '../codec/protocol.ts';
import { writeJson } from '../json/json.ts';
import { expectShallowCalls, findProfile, NoteList, type ResponseOptions } from './context.ts';
import { EventReader, type EventReaderOptions } from './reader.ts';
import {
  type Adapt,
  type ConvertedResponse,
  createAdapter,
  createResponseContext,
  keepResponse,
  readResponse,
} from './response.ts';
import { createFramer } from './stream.ts';

/**
 * Converts a stream of one protocol to a whole response of another.
 *
 * ```ts
 * const { body } = convertStreamToResponse([bytes], { from: anthropicMessagesCodec, to: openaiChatCodec, request });
 * ```
 *
 * Throws a CodecError when the stream ends in an error, or early.
 */
export const convertStreamToResponse = (
  chunks: Iterable<Uint8Array>,
  options: ResponseOptions & Pick<EventReaderOptions, 'malformed'>,
): ConvertedResponse => rewriteStreamToResponse(chunks, options, createAdapter(options));

/** The same without an adapter: the whole response of a stream in its own protocol. */
export function rewriteStreamToResponse(
  chunks: Iterable<Uint8Array>,
  options: ResponseOptions<RepairCodec> & Pick<EventReaderOptions, 'malformed'>,
  adapt: Adapt = keepResponse,
): ConvertedResponse {
  const { from, to, request, model, malformed } = options;
  const profile = findProfile(from, options, request?.model);
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
  const adapted = adapt(message, notes);
  const response = model === undefined ? adapted : { ...adapted, model };
  const context = createResponseContext(options, notes, { seed: () => response.id });
  return { body: to.response.encode(response, context), notes: notes.list, response };
}

// ---- whole response to stream

/** A whole response that was converted to a stream. */
export interface ConvertedStream {
  /** The body of the stream. */
  body: Uint8Array;
  notes: Note[];
  response: CanonicalResponse;
}

/**
 * Converts a whole response of one protocol to a stream of another.
 *
 * ```ts
 * const { body } = convertResponseToStream(json, { from: geminiCodec, to: openaiChatCodec, request });
 * ```
 */
export const convertResponseToStream = (body: unknown, options: ResponseOptions & { framing?: Framing }): ConvertedStream =>
  rewriteResponseToStream(body, options, createAdapter(options));

/** The same without an adapter: the stream of a whole response in its own protocol. */
export function rewriteResponseToStream(
  body: unknown,
  options: ResponseOptions<RepairCodec> & { framing?: Framing },
  adapt: Adapt = keepResponse,
): ConvertedStream {
  const notes = new NoteList();
  const response = readResponse(body, options, notes, adapt);
  return { body: writeStream(response, options, notes), notes: notes.list, response };
}

/** Encodes a canonical response as the body of a stream, for a client that repeats a request. */
export const encodeResponseStream = (response: CanonicalResponse, options: ResponseOptions & { framing?: Framing }): Uint8Array =>
  writeStream(response, options, new NoteList());

/** Encodes a canonical response as a whole body, for a client that repeats a request. */
export const encodeResponse = (response: CanonicalResponse, options: ResponseOptions): unknown =>
  options.to.response.encode(response, createResponseContext(options, new NoteList(), { seed: () => response.id }));

function writeStream(
  response: CanonicalResponse,
  options: ResponseOptions<RepairCodec> & { framing?: Framing },
  notes: NoteList,
): Uint8Array {
  const { to, framing = 'sse' } = options;
  const encoder = to.streamEncoder(createResponseContext(options, notes, { seed: () => response.id, stream: true }));
  const framer = createFramer(to, framing);
  let text = '';
  for (const event of replay(response)) for (const frame of encoder.push(event)) text += framer.frame(frame);
  for (const frame of encoder.end()) text += framer.frame(frame);
  return new TextEncoder().encode(text + framer.end());
}

/**
 * Yields the canonical stream events of a whole response. Accumulated again, they are the same response.
 *
 * ```ts
 * for (const event of replay(response)) render(event);
 * ```
 */
export function* replay(response: CanonicalResponse): Generator<CanonicalStreamEvent, void, undefined> {
  const { id, model, created, service_tier: tier, system_fingerprint: fingerprint, error } = response;
  // The response failed before it had content, so the error is the only event.
  if (error && id === '' && response.content.length === 0) {
    yield { type: 'error', error };
    return;
  }
  yield {
    type: 'message_start',
    message: {
      id,
      model,
      ...(created !== undefined && { created }),
      ...(tier !== undefined && { service_tier: tier }),
      ...(fingerprint !== undefined && { system_fingerprint: fingerprint }),
    },
  };
  const choices: readonly CanonicalChoice[] = response.choices ?? [{ index: 0, ...mainChoice(response) }];
  for (const choice of choices) yield* replayBlocks(choice);
  const failure = error ?? (choices.some(({ stop_reason: stop }) => stop === null) ? ENDED_EARLY : undefined);
  for (const choice of choices) if (!failure || hasEnding(choice, response)) yield replayStop(choice, response);
  yield failure ? { type: 'error', error: failure } : { type: 'message_stop' };
}

const ENDED_EARLY: CanonicalError = { code: 'STREAM_TRUNCATED', message: 'the response ended early' };

/** Whether a failed choice still has something to put into a message_delta. */
const hasEnding = (
  { stop_reason: stop, extensions }: CanonicalChoice,
  { usage, stop_details: details }: CanonicalResponse,
): boolean => stop !== null || extensions !== undefined || usage !== undefined || details !== undefined;

const mainChoice = ({ content, stop_reason, extensions }: CanonicalResponse): Omit<CanonicalChoice, 'index'> => ({
  content,
  stop_reason,
  ...(extensions && { extensions }),
});

/** The choice number of an event; absent for the first choice. */
const choiceNumber = ({ index }: CanonicalChoice): { choice?: number } => (index === 0 ? {} : { choice: index });

function* replayBlocks(choice: CanonicalChoice): Generator<CanonicalStreamEvent, void, undefined> {
  const number = choiceNumber(choice);
  for (const [index, block] of choice.content.entries()) {
    const { start, deltas } = replayBlock(block);
    yield { type: 'content_block_start', index, ...number, content_block: start };
    for (const delta of deltas) yield { type: 'content_block_delta', index, ...number, delta };
    yield { type: 'content_block_stop', index, ...number };
  }
}

function replayStop(choice: CanonicalChoice, response: CanonicalResponse): CanonicalStreamEvent {
  const { stop_sequence: sequence, stop_details: details, usage } = response;
  const isMain = choice.index === 0;
  const extensions = isMain ? (response.extensions ?? choice.extensions) : choice.extensions;
  return {
    type: 'message_delta',
    ...choiceNumber(choice),
    delta: {
      stop_reason: choice.stop_reason,
      ...(isMain && sequence !== undefined && { stop_sequence: sequence }),
      ...(isMain && details && { stop_details: details }),
    },
    ...(isMain && usage && { usage }),
    ...(extensions && { extensions }),
  };
}

interface Replayed {
  start: ContentBlock;
  deltas: BlockDelta[];
}

function replayBlock(block: ContentBlock): Replayed {
  switch (block.type) {
    case 'text':
      return replayText(block);
    case 'thinking':
      return replayThinking(block);
    case 'tool_use':
      return replayCall(block);
    case 'audio':
      return replayAudio(block);
    case 'image':
    case 'file':
    case 'tool_result':
    case 'opaque':
      return { start: block, deltas: [] };
    default:
      return block satisfies never;
  }
}

function replayText({ text, citations = [], logprobs, signature, ...rest }: TextBlock): Replayed {
  const delta: BlockDelta = {
    type: 'text_delta',
    text,
    ...(logprobs && { logprobs }),
    ...(rest.refusal && { refusal: true }),
  };
  return {
    start: { ...rest, text: '' },
    deltas: [
      ...(text !== '' || logprobs ? [delta] : []),
      ...citations.map((citation): BlockDelta => ({ type: 'citations_delta', citation })),
      ...signatureDeltas(signature),
    ],
  };
}

function replayThinking({ thinking, summary_parts: parts = [], signature, ...rest }: ThinkingBlock): Replayed {
  // The Responses decoder joins parts with a blank line.
  const isParts = parts.length > 0 && parts.join(BLANK_LINE) === thinking;
  const deltas = isParts
    ? parts.flatMap((part, i) => (i === 0 ? [thinkingDelta(part, i)] : [thinkingDelta(BLANK_LINE, i), thinkingDelta(part, i)]))
    : thinking === ''
      ? []
      : [thinkingDelta(thinking)];
  return { start: { ...rest, thinking: '' }, deltas: [...deltas, ...signatureDeltas(signature)] };
}

const BLANK_LINE = '\n\n';

const thinkingDelta = (thinking: string, part?: number): BlockDelta => ({
  type: 'thinking_delta',
  thinking,
  ...(part !== undefined && { summary_index: part }),
});

function replayCall({ input, input_raw: raw, signature, ...rest }: ToolUseBlock): Replayed {
  const isText = typeof input === 'string';
  const whole = isText ? input : Object.keys(input).length === 0 ? '' : (writeJson(input) ?? '');
  const text = raw ?? whole;
  const delta: BlockDelta =
    rest.kind === 'custom' ? { type: 'input_text_delta', text } : { type: 'input_json_delta', partial_json: text };
  return {
    start: { ...rest, input: rest.kind === 'custom' ? '' : {} },
    deltas: [...(text === '' ? [] : [delta]), ...signatureDeltas(signature)],
  };
}

function replayAudio({ source, transcript, ...rest }: AudioBlock): Replayed {
  const { data, ...known } = source;
  const delta: BlockDelta = {
    type: 'audio_delta',
    ...(data !== undefined && { data }),
    ...(transcript !== undefined && { transcript }),
  };
  return { start: { ...rest, source: known }, deltas: data === undefined && transcript === undefined ? [] : [delta] };
}

const signatureDeltas = (signature: TextBlock['signature']): BlockDelta[] =>
  signature ? [{ type: 'signature_delta', signature }] : [];
