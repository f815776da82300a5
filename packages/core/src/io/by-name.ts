import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Assembled } from '../engine/assembled.ts';
import { PROTOCOLS, type ProtocolName, resolveProtocol } from '../protocols/index.ts';
import type { Protocol } from '../protocols/shared/protocol.ts';
import {
  accumulate as accumulateWith,
  type ReadEventsOptions,
  type ReadOptions,
  readEvents as readEventsWith,
} from './accumulate.ts';
import type { ByteSource } from './source.ts';

/** A protocol by name or as an object; without it, the first payload decides. */
type ReadBy<T> = Omit<T, 'protocol'> & { protocol?: ProtocolName | Protocol };

/**
 * Reads a response body to its end and gives the whole message.
 *
 * ```ts
 * const { text, tool_calls, complete } = await accumulate(response.body, { protocol: 'openai-chat' });
 * ```
 */
export const accumulate = (source: ByteSource, options: ReadBy<ReadOptions> = {}): Promise<Assembled> =>
  accumulateWith(source, { ...options, protocol: resolve(options.protocol) });

/**
 * The canonical events of a response body, live.
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

/** Without a name every protocol is tried on the first payload. */
const resolve = (protocol: ProtocolName | Protocol | undefined): Protocol | Protocol[] =>
  protocol === undefined ? Object.values(PROTOCOLS) : resolveProtocol(protocol);
