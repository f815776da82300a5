/**
 * The conversions of the root entry: protocols may be given by name. They load every protocol; `@sluice/core/engine` has
 * the same functions for codecs and loads none.
 */

import type { Codec } from '../codec/protocol.ts';
import { type CodecName, resolveCodec } from '../protocols/index.ts';
import * as exchanges from './exchange.ts';
import * as requests from './request.ts';
import * as responses from './response.ts';
import * as streams from './stream.ts';

type Options = { from: Codec; to: Codec };

/** Options whose codecs may be given by name. */
type Named<T> = { [K in keyof T]: K extends 'from' | 'to' ? CodecName : T[K] };

/** A function whose options may name protocols. */
export type ByName<F> = F extends (...args: [...infer Args, infer O extends Options]) => infer Result
  ? (...args: [...Args, options: Named<O>]) => Result
  : never;

/**
 * Resolves `from` and `to` of the options, the last argument. Mark the call as pure, so that bundlers drop unused
 * exports.
 */
export function named<Args extends unknown[], O extends Options, Result>(
  convert: (...args: [...Args, O]) => Result,
): (...args: [...Args, Named<O>]) => Result {
  return (...args) => {
    // The last element of a variadic tuple has no type of its own.
    const options = args.at(-1) as Named<Options> | undefined;
    const resolved = {
      ...options,
      from: resolveCodec(options?.from, 'options.from'),
      to: resolveCodec(options?.to, 'options.to'),
    };
    return convert(...(args.slice(0, -1) as Args), resolved as unknown as O); // O with codecs instead of names
  };
}

/**
 * Converts a request of one protocol to another.
 *
 * ```ts
 * const { body, path, notes, request } = convertRequest(
 *   { model: 'gpt-5', messages: [{ role: 'user', content: 'Hello' }], top_logprobs: 2 },
 *   { from: 'openai-chat', to: 'anthropic', model: 'claude-sonnet-5' },
 * );
 * for (const { code, path: pointer, message } of notes) console.warn(code, pointer, message);
 * ```
 *
 * `notes` lists what could not be converted, with JSON pointers into the source; pass `request` to the conversion of the
 * response. Throws a CodecError when the request is invalid, when it requires a feature that the target does not have,
 * or when `policy.strict` forbids a loss.
 */
export const convertRequest: ByName<typeof requests.convertRequest> = /* @__PURE__ */ named(requests.convertRequest);

/**
 * Converts a whole response of one protocol to another.
 *
 * ```ts
 * const { body, notes } = convertResponse(await response.json(), { from: 'anthropic', to: 'openai-chat', request });
 * ```
 *
 * Throws a CodecError when the body is an error, or when `policy.strict` forbids a loss.
 */
export const convertResponse: ByName<typeof responses.convertResponse> = /* @__PURE__ */ named(responses.convertResponse);

/**
 * Converts an error response of one protocol to another: body and status match what the client's SDK expects.
 *
 * ```ts
 * const reply = { status: response.status, body: await response.json() };
 * const { status, headers, body } = convertError(reply, { from: 'anthropic', to: 'openai-chat' });
 * ```
 */
export const convertError: ByName<typeof responses.convertError> = /* @__PURE__ */ named(responses.convertError);

/**
 * Converts a stream of one protocol to another, bytes to bytes, without I/O (`convertStream` does the same for web
 * streams).
 *
 * ```ts
 * const converter = createStreamConverter({ from: 'openai-chat', to: 'anthropic', request });
 * const written: Uint8Array[] = [];
 * for (const chunk of chunks) written.push(...converter.push(chunk));
 * written.push(...converter.end());
 * converter.notes; // what could not be converted
 * ```
 */
export const createStreamConverter: ByName<typeof streams.createStreamConverter> = /* @__PURE__ */ named(
  streams.createStreamConverter,
);

/**
 * Pairs two protocols for one exchange: the client's request to the upstream, the upstream's response, stream or error
 * to the client.
 *
 * ```ts
 * const provider = { id: 'openai', protocol: 'openai-chat', base_url: 'https://api.openai.com/v1', api_key: 'sk-…' } as const;
 * const exchange = createExchange('anthropic', 'openai-chat', { provider, model: 'gpt-5' });
 * const { url, method, headers, body } = exchange.request({ method: 'POST', path: '/v1/messages', headers: {}, body: json });
 * const reply = await fetch(url, { method, headers, body: JSON.stringify(body) });
 * exchange.response({ status: reply.status, headers: {}, body: await reply.json() }); // for the client
 * ```
 */
export const createExchange = (client: CodecName, upstream: CodecName, options: exchanges.ExchangeOptions): exchanges.Exchange =>
  exchanges.createExchange(resolveCodec(client, 'client'), resolveCodec(upstream, 'upstream'), options);
