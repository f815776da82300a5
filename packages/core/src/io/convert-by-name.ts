import { type Named, resolveNames } from '../engine/by-name.ts';
import { type ConvertStreamOptions, convertStream as convertStreamWith } from './convert-stream.ts';

/**
 * A stream of one protocol as a stream of another, for `pipeThrough`. An early end, an error in the stream and a connection that breaks all end
 * in an error of the client's own protocol.
 *
 * ```ts
 * return new Response(upstream.body.pipeThrough(convertStream({ from: 'openai-chat', to: 'anthropic', request })));
 * ```
 */
export const convertStream = (options: Named<ConvertStreamOptions>): TransformStream<Uint8Array, Uint8Array> =>
  convertStreamWith(resolveNames(options));
