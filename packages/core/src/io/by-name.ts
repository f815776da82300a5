import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Assembled } from '../engine/assembled.ts';
import { findProtocol, PROTOCOLS, type ProtocolName } from '../protocols/index.ts';
import type { Protocol } from '../protocols/shared/protocol.ts';
import {
  accumulate as accumulateWith,
  type ReadEventsOptions,
  type ReadOptions,
  readEvents as readEventsWith,
} from './accumulate.ts';
import type { ByteSource } from './source.ts';

/** A protocol by name or as an object; left out, the first payload tells. */
type ReadBy<T> = Omit<T, 'protocol'> & { protocol?: ProtocolName | Protocol };

/**
 * Reads a response body to its end and gives the whole message.
 *
 * ```ts
 * const { text, tool_calls, complete } = await accumulate(response.body, { protocol: 'openai-chat' });
 * ```
 */
export function accumulate(source: ByteSource, options: ReadBy<ReadOptions> = {}): Promise<Assembled> {
  return accumulateWith(source, { ...options, protocol: resolve(options.protocol) });
}

/**
 * The canonical events of a response body, live.
 *
 * ```ts
 * for await (const event of readEvents(response.body, { protocol: 'anthropic' })) render(event);
 * ```
 */
export function readEvents(
  source: ByteSource,
  options: ReadBy<ReadEventsOptions> = {},
): AsyncGenerator<CanonicalStreamEvent, void, undefined> {
  return readEventsWith(source, { ...options, protocol: resolve(options.protocol) });
}

function resolve(protocol: ProtocolName | Protocol | undefined): Protocol | Protocol[] {
  if (protocol === undefined) return Object.values(PROTOCOLS);
  if (typeof protocol !== 'string') return protocol;
  const found = findProtocol(protocol);
  if (!found) throw new TypeError(`unknown protocol ${JSON.stringify(protocol)}; known: ${Object.keys(PROTOCOLS).join(', ')}`);
  return found;
}
