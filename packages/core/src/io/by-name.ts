/**
 * Reading and conversion of streams for the root entry: protocols may be given by name. They load every protocol;
 * `@sluice/core/io` takes objects and loads none.
 */

import { ChatAccumulator, type ChatAccumulatorOptions } from '../accumulate/chat.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Protocol } from '../codec/protocol.ts';
import { type ByName, named } from '../engine/by-name.ts';
import { type AccumulatedMessage, StreamAccumulator, type StreamAccumulatorOptions } from '../engine/message.ts';
import { PROTOCOLS, type ProtocolName, resolveProtocol } from '../protocols/index.ts';
import {
  accumulate as accumulateWith,
  type ReadEventsOptions as ReadEventsWith,
  type ReadOptions as ReadWith,
  readEvents as readEventsWith,
} from './accumulate.ts';
import { convertStream as convertStreamWith } from './convert-stream.ts';
import type { StreamSource } from './source.ts';

/**
 * Reads a response to its end and returns the whole message: from a `Response`, a body, a stream, or the chunks of an
 * SDK. A failure of the stream (an error inside it, an early end, a broken connection) or an HTTP error status is part
 * of the result, with everything that was read before it.
 *
 * ```ts
 * const response = await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body });
 * const { text, tool_calls, complete, error } = await accumulate(response, { protocol: 'openai-chat' });
 * ```
 *
 * Without `protocol`, the first payload decides. Throws a TypeError for a source that cannot be read.
 */
export const accumulate = async (source: StreamSource, options: ReadOptions = {}): Promise<AccumulatedMessage> =>
  accumulateWith(source, { ...options, protocol: resolve(options.protocol) });

/**
 * Yields the canonical events of a response as they arrive, the same for every protocol. The last one is
 * `message_stop` or `error`.
 *
 * ```ts
 * for await (const event of readEvents(response, { protocol: 'anthropic' })) {
 *   if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') console.log(event.delta.text);
 * }
 * ```
 */
export const readEvents = (
  source: StreamSource,
  options: ReadEventsOptions = {},
): AsyncGenerator<CanonicalStreamEvent, void, undefined> =>
  readEventsWith(source, { ...options, protocol: resolve(options.protocol) });

/**
 * Converts a stream of one protocol to another, for `pipeThrough`. An early end, an error in the stream and a broken
 * connection all end in an error of the client's protocol.
 *
 * ```ts
 * const converted = response.body?.pipeThrough(convertStream({ from: 'openai-chat', to: 'anthropic', request }));
 * ```
 */
export const convertStream: ByName<typeof convertStreamWith> = /* @__PURE__ */ named(convertStreamWith);

/**
 * Creates an accumulator: push chunks, read anything at any time.
 *
 * ```ts
 * const accumulator = createAccumulator({ protocol: 'anthropic' });
 * for (const event of events) {
 *   accumulator.push(event);
 *   console.log(accumulator.text);
 * }
 * const { text, tool_calls, finish_reason } = accumulator.finish();
 * ```
 *
 * With a protocol it takes bytes, text, and parsed chunks or events, and results are the same for every protocol.
 * Without one it takes parsed chat chunks only, and the result is the `chat.completion`: the fastest way to read chat.
 */
export function createAccumulator(options?: ChatAccumulatorOptions & { protocol?: undefined }): ChatAccumulator;
export function createAccumulator(options: AccumulatorOptions): StreamAccumulator;
export function createAccumulator(
  options: AccumulatorOptions | (ChatAccumulatorOptions & { protocol?: undefined }) = {},
): ChatAccumulator | StreamAccumulator {
  if (options.protocol === undefined) return new ChatAccumulator(options);
  return new StreamAccumulator({ ...options, protocol: resolveProtocol(options.protocol, 'options.protocol') });
}

/** What all accumulators have in common, for code that takes any of them. */
export interface Accumulator {
  /** Adds a parsed chunk or event; one with a protocol takes bytes and text, too. */
  push(input: object): void;
  readonly text: string;
  readonly reasoning: string;
  /** The calls so far; `invalid` when their arguments are not JSON (yet). */
  readonly toolCalls: readonly { id: string; name: string; arguments: string; type: string; invalid?: true }[];
  /** The tokens used: canonical with a protocol, as the wire has them without. */
  readonly usage: object | null;
  /** Why the model stopped; null while it has not. */
  readonly finishReason: string | null;
  /** The message as far as it is known. Later input does not change it. */
  snapshot(): object;
  /** The stream has ended: the whole message. */
  finish(): object;
}

/** Options of `createAccumulator` for a protocol. */
export interface AccumulatorOptions extends Omit<StreamAccumulatorOptions, 'protocol'> {
  protocol: ProtocolName | Protocol;
}

/** Options for reading a response. */
export type ReadOptions = ReadBy<ReadWith>;

/** Options of `readEvents`. */
export type ReadEventsOptions = ReadBy<ReadEventsWith>;

/** A protocol by name or as an object; without it, the first payload decides. */
type ReadBy<T> = Omit<T, 'protocol'> & { protocol?: ProtocolName | Protocol | undefined };

/** Without a name every protocol is tried on the first payload. */
const resolve = (protocol: ProtocolName | Protocol | undefined): Protocol | Protocol[] =>
  protocol === undefined ? Object.values(PROTOCOLS) : resolveProtocol(protocol, 'options.protocol');
