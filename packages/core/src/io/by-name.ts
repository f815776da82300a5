/**
 * Reading and conversion of streams with protocols given by name. They load every protocol; `@sluice/core/io` takes
 * objects and loads none.
 */

import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Protocol } from '../codec/protocol.ts';
import { type ByName, named } from '../engine/by-name.ts';
import type { Assembled } from '../engine/message.ts';
import { PROTOCOLS, type ProtocolName, resolveProtocol } from '../protocols/index.ts';
import {
  accumulate as accumulateWith,
  type ByteSource,
  type ReadEventsOptions,
  type ReadOptions,
  readEvents as readEventsWith,
} from './accumulate.ts';
import { convertStream as convertStreamWith } from './convert-stream.ts';

/**
 * Reads a response body to its end and returns the whole message.
 *
 * ```ts
 * const { text, tool_calls, complete } = await accumulate(response.body, { protocol: 'openai-chat' });
 * ```
 */
export const accumulate = (source: ByteSource, options: ReadBy<ReadOptions> = {}): Promise<Assembled> =>
  accumulateWith(source, { ...options, protocol: resolve(options.protocol) });

/**
 * Yields the canonical events of a response body as they arrive.
 *
 * ```ts
 * for await (const event of readEvents(response.body, { protocol: 'anthropic' })) render(event);
 * ```
 */
export const readEvents = (
  source: ByteSource,
  options: ReadBy<ReadEventsOptions> = {},
): AsyncGenerator<CanonicalStreamEvent, void, undefined> =>
  readEventsWith(source, { ...options, protocol: resolve(options.protocol) });

/**
 * Converts a stream of one protocol to another, for `pipeThrough`. An early end, an error in the stream and a broken
 * connection all end in an error of the client's protocol.
 *
 * ```ts
 * return new Response(upstream.body.pipeThrough(convertStream({ from: 'openai-chat', to: 'anthropic', request })));
 * ```
 */
export const convertStream: ByName<typeof convertStreamWith> = /* @__PURE__ */ named(convertStreamWith);

/** A protocol by name or as an object; without it, the first payload decides. */
type ReadBy<T> = Omit<T, 'protocol'> & { protocol?: ProtocolName | Protocol };

/** Without a name every protocol is tried on the first payload. */
const resolve = (protocol: ProtocolName | Protocol | undefined): Protocol | Protocol[] =>
  protocol === undefined ? Object.values(PROTOCOLS) : resolveProtocol(protocol);
