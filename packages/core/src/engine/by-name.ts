/**
 * The engine's functions with protocols given by name. They load every protocol; `@sluice/core/engine` takes codecs and
 * loads none.
 */

import type { CanonicalRequest } from '../canonical/request.ts';
import type { Codec, RequestTarget, WireRequest } from '../codec/protocol.ts';
import { type CodecName, resolveCodec } from '../protocols/index.ts';
import * as exchanges from './exchange.ts';
import * as requests from './request.ts';
import * as responses from './response.ts';
import * as sides from './side-endpoints.ts';
import * as streams from './stream.ts';
import * as wholes from './whole.ts';

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
    const options = args.at(-1) as Named<Options>; // the last element of a variadic tuple has no type of its own
    const resolved = { ...options, from: resolveCodec(options.from), to: resolveCodec(options.to) };
    return convert(...(args.slice(0, -1) as Args), resolved as unknown as O); // O with codecs instead of names
  };
}

/**
 * Converts a request of one protocol to another.
 *
 * ```ts
 * const options = { from: 'openai-chat', to: 'anthropic', model: 'claude-sonnet-5' } as const;
 * const { body, path, notes, request } = convertRequest(json, options);
 * ```
 *
 * `notes` lists what could not be converted, with JSON pointers into `json`; pass `request` to the conversion of the
 * response. Throws a CodecError when the request is invalid, when it requires a feature that the target does not have,
 * or when `policy.strict` forbids a loss.
 */
export const convertRequest: ByName<typeof requests.convertRequest> = /* @__PURE__ */ named(requests.convertRequest);

/**
 * Decodes a request to the canonical form, which the conversion of the response takes.
 *
 * ```ts
 * const request = decodeRequest(json, { from: 'anthropic' });
 * ```
 */
export const decodeRequest = (body: unknown, options: Named<requests.DecodeOptions>): CanonicalRequest =>
  requests.decodeRequest(body, { ...options, from: resolveCodec(options.from) });

/**
 * Converts a whole response of one protocol to another.
 *
 * ```ts
 * const { body, notes } = convertResponse(json, { from: 'anthropic', to: 'openai-chat', request });
 * ```
 *
 * Throws a CodecError when the body is an error, or when `policy.strict` forbids a loss.
 */
export const convertResponse: ByName<typeof responses.convertResponse> = /* @__PURE__ */ named(responses.convertResponse);

/**
 * Converts an error response of one protocol to another: body and status match what the client's SDK expects.
 *
 * ```ts
 * const reply = { status: 529, body: json };
 * const { status, headers, body } = convertError(reply, { from: 'anthropic', to: 'openai-chat' });
 * ```
 */
export const convertError: ByName<typeof responses.convertError> = /* @__PURE__ */ named(responses.convertError);

/**
 * Converts a stream of one protocol to another, bytes to bytes, without I/O (`convertStream` does the same for web
 * streams).
 *
 * ```ts
 * const converter = streamConverter({ from: 'openai-chat', to: 'anthropic', request });
 * for await (const chunk of upstream) for (const bytes of converter.push(chunk)) client.write(bytes);
 * for (const bytes of converter.end()) client.write(bytes);
 * ```
 */
export const streamConverter: ByName<typeof streams.streamConverter> = /* @__PURE__ */ named(streams.streamConverter);

/**
 * Converts a whole response of one protocol to a stream of another.
 *
 * ```ts
 * const { body } = replayResponse(json, { from: 'gemini', to: 'openai-chat', request });
 * ```
 */
export const replayResponse: ByName<typeof wholes.replayResponse> = /* @__PURE__ */ named(wholes.replayResponse);

/**
 * Converts a stream of one protocol to a whole response of another. Throws a CodecError when the stream ends in an
 * error, or early.
 *
 * ```ts
 * const { body } = collectStream([bytes], { from: 'anthropic', to: 'openai-chat', request });
 * ```
 */
export const collectStream: ByName<typeof wholes.collectStream> = /* @__PURE__ */ named(wholes.collectStream);

/**
 * Pairs two protocols for one exchange: the client's request to the upstream, the upstream's response, stream or error
 * to the client.
 *
 * ```ts
 * const exchange = translate('anthropic', 'openai-chat', { provider, model: 'gpt-5.6' });
 * const { url, ...init } = exchange.request({ method: 'POST', path: '/v1/messages', headers, body });
 * ```
 */
export const translate = (client: CodecName, upstream: CodecName, options: exchanges.TranslateOptions): exchanges.Exchange =>
  exchanges.translate(resolveCodec(client), resolveCodec(upstream), options);

/**
 * Converts a list of models to the form of another protocol.
 *
 * ```ts
 * const { body } = convertModels(json, { from: 'openai-chat', to: 'anthropic' });
 * ```
 */
export const convertModels: ByName<typeof sides.convertModels> = /* @__PURE__ */ named(sides.convertModels);

/** Converts the description of one model to the form of another protocol; see `convertModels`. */
export const convertModelInfo: ByName<typeof sides.convertModelInfo> = /* @__PURE__ */ named(sides.convertModelInfo);

/**
 * Converts a request for embeddings. Pass `value` to the conversion of the response.
 *
 * ```ts
 * const options = { from: 'openai-chat', to: 'gemini', model: 'gemini-embedding-001' } as const;
 * const { body, path, value } = convertEmbeddingsRequest(json, options);
 * ```
 */
export const convertEmbeddingsRequest: ByName<typeof sides.convertEmbeddingsRequest> = /* @__PURE__ */ named(
  sides.convertEmbeddingsRequest,
);

/**
 * Converts a response with embeddings; `embedding` is the `value` of the request.
 *
 * ```ts
 * const { body } = convertEmbeddingsResponse(json, { from: 'gemini', to: 'openai-chat', embedding: value });
 * ```
 */
export const convertEmbeddingsResponse: ByName<typeof sides.convertEmbeddingsResponse> = /* @__PURE__ */ named(
  sides.convertEmbeddingsResponse,
);

/** Converts a request for a ranking; see `convertEmbeddingsRequest`. */
export const convertRerankRequest: ByName<typeof sides.convertRerankRequest> = /* @__PURE__ */ named(sides.convertRerankRequest);

/** Converts a response with a ranking; `rerank` is the `value` of the request. */
export const convertRerankResponse: ByName<typeof sides.convertRerankResponse> = /* @__PURE__ */ named(
  sides.convertRerankResponse,
);

/**
 * Converts a request for a token count. Where the upstream cannot count, use `estimateAnswer`.
 *
 * ```ts
 * const { body, path } = convertCountTokensRequest(json, { from: 'anthropic', to: 'gemini', model: 'gemini-3-pro' });
 * ```
 */
export const convertCountTokensRequest: ByName<typeof sides.convertCountTokensRequest> = /* @__PURE__ */ named(
  sides.convertCountTokensRequest,
);

/** Converts the response to `convertCountTokensRequest`. */
export const convertCountTokensResponse: ByName<typeof sides.convertCountTokensResponse> = /* @__PURE__ */ named(
  sides.convertCountTokensResponse,
);

/**
 * Builds the response to a token count request when the upstream cannot count: an estimate in the client's protocol.
 *
 * ```ts
 * const wire = { method: 'POST', path: '/v1/messages/count_tokens', headers: {}, body: json };
 * const body = estimateAnswer(wire, 'anthropic');
 * ```
 */
export const estimateAnswer = (wire: WireRequest, client: CodecName): unknown => sides.estimateAnswer(wire, resolveCodec(client));

/**
 * Reads the model and the stream flag of a request, which decide where it goes. Throws a CodecError if it names no
 * model.
 *
 * ```ts
 * const wire = { method: 'POST', path: '/v1/messages', headers: {}, body: json };
 * const { model, isStream } = readAsked('anthropic', wire);
 * ```
 */
export const readAsked = (client: CodecName, wire: WireRequest): RequestTarget => exchanges.readAsked(resolveCodec(client), wire);
