/** Prepares requests for the servers of their own protocol. Apart from the repair of responses, which needs no encoder of requests. */

import { CodecError, type Note } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type { Codec } from '../codec/protocol.ts';
import { convertRequest } from '../engine/request.ts';
import type { JsonObject } from '../json/json.ts';

/** Prepares the body of a request. Undefined when nothing has to change. */
export type PrepareRequest = (body: JsonObject, request: { protocol: ProtocolId; path: string }) => string | undefined;

/** Options of `prepareRequests`. */
export interface PrepareOptions {
  /** The id of the provider in the tables of facts; by default that of an unknown server. */
  provider?: string | undefined;
  /** Called with everything that was changed. */
  onNote?: ((note: Note) => void) | undefined;
}

/**
 * Prepares requests of these protocols: tool schemas, names and ids of tools, results without calls, the order of
 * messages. For `requests` of `createRepairFetchFor`.
 *
 * ```ts
 * const fetch = createRepairFetchFor([openaiChatRepair], { requests: prepareRequests([openaiChatCodec]) });
 * ```
 */
export function prepareRequests(codecs: readonly Codec[], { provider = '', onNote }: PrepareOptions = {}): PrepareRequest {
  return (body, { protocol, path }) => {
    const codec = codecs.find(({ id }) => id === protocol);
    if (!codec) return undefined;
    try {
      const converted = convertRequest(body, { from: codec, to: codec, provider, path, headers: {} });
      for (const note of converted.notes) onNote?.(note);
      return converted.notes.length > 0 ? JSON.stringify(converted.body) : undefined;
    } catch (error) {
      // What cannot be read is left for the server to judge.
      if (error instanceof CodecError) return undefined;
      throw error;
    }
  };
}
