import { type ByName, named } from '../engine/by-name.ts';
import { convertStream as convertStreamWith } from './convert-stream.ts';

/**
 * A stream of one protocol as a stream of another, for `pipeThrough`. An early end, an error in the stream and a connection that breaks all end
 * in an error of the client's own protocol.
 *
 * ```ts
 * return new Response(upstream.body.pipeThrough(convertStream({ from: 'openai-chat', to: 'anthropic', request })));
 * ```
 */
export const convertStream: ByName<typeof convertStreamWith> = /* @__PURE__ */ named(convertStreamWith);
