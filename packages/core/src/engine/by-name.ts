import type { CanonicalEmbeddingRequest, CanonicalRerankRequest } from '../canonical/interfaces.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { ProtocolName } from '../protocols/index.ts';
import { CODECS, findCodec } from '../protocols/index.ts';
import type { Codec, Framing, WireRequest } from '../protocols/shared/codec.ts';
import type { AnswerOptions, ConvertOptions } from './context.ts';
import * as interfaces from './convert-interfaces.ts';
import * as requests from './convert-request.ts';
import * as responses from './convert-response.ts';
import * as wholes from './convert-whole.ts';
import * as streams from './stream-converter.ts';
import * as exchanges from './translate.ts';

// The same calls with protocols by name. They load every protocol; `@sluice/core/engine` takes codecs and loads none.

/** A protocol by name or as its codec. */
export type CodecName = ProtocolName | Codec;

export type Named<T> = Omit<T, 'from' | 'to'> & { from: CodecName; to: CodecName };

function resolveCodec(name: CodecName): Codec {
  const codec = typeof name === 'string' ? findCodec(name) : name;
  if (codec) return codec;
  throw new TypeError(`unknown protocol ${JSON.stringify(name)}; known: ${Object.keys(CODECS).join(', ')}`);
}

/** Options with the codecs in the place of their names. */
export function resolveNames<T extends { from: CodecName; to: CodecName }>(
  options: T,
): Omit<T, 'from' | 'to'> & { from: Codec; to: Codec } {
  return { ...options, from: resolveCodec(options.from), to: resolveCodec(options.to) };
}

/**
 * A request of one protocol as a request of another.
 *
 * ```ts
 * const { body, path, notes, request } = convertRequest(json, { from: 'openai-chat', to: 'anthropic', model: 'claude-sonnet-5' });
 * ```
 *
 * `notes` tells what could not be carried, with JSON pointers into `json`; `request` is for the conversion of the answer. Throws a CodecError
 * when the request is wrong, when it asks for what the target does not have and nothing less would do, or when `policy.strict` refuses a loss.
 */
export const convertRequest = (body: unknown, options: Named<requests.RequestOptions>): requests.ConvertedRequest =>
  requests.convertRequest(body, resolveNames(options));

/**
 * A request in the canonical form: what the conversion of an answer wants to know of the question.
 *
 * ```ts
 * const request = decodeRequest(json, { from: 'anthropic' });
 * ```
 */
export const decodeRequest = (
  body: unknown,
  { from, ...options }: Omit<requests.DecodeOptions, 'from'> & { from: CodecName },
): CanonicalRequest => requests.decodeRequest(body, { ...options, from: resolveCodec(from) });

/**
 * A whole answer of one protocol as an answer of another.
 *
 * ```ts
 * const { body, notes } = convertResponse(json, { from: 'anthropic', to: 'openai-chat', request });
 * ```
 *
 * Throws a CodecError when the body is an error, or when `policy.strict` refuses a loss.
 */
export const convertResponse = (body: unknown, options: Named<AnswerOptions>): responses.ConvertedResponse =>
  responses.convertResponse(body, resolveNames(options));

/**
 * An error answer of one protocol as an error answer of another: body and status agree, as the client's SDK wants them.
 *
 * ```ts
 * const { status, headers, body } = convertError({ status: 529, body: json }, { from: 'anthropic', to: 'openai-chat' });
 * ```
 */
export const convertError = (reply: responses.ErrorReply, options: Named<ConvertOptions>): responses.ConvertedError =>
  responses.convertError(reply, resolveNames(options));

/**
 * A stream of one protocol as a stream of another, bytes to bytes, without I/O (`convertStream` is the same for web streams).
 *
 * ```ts
 * const converter = streamConverter({ from: 'openai-chat', to: 'anthropic', request });
 * for await (const chunk of upstream) for (const bytes of converter.push(chunk)) client.write(bytes);
 * for (const bytes of converter.end()) client.write(bytes);
 * ```
 */
export const streamConverter = (options: Named<streams.StreamOptions>): streams.AnswerStream =>
  streams.streamConverter(resolveNames(options));

/**
 * A whole answer of one protocol as a stream of another.
 *
 * ```ts
 * const { body } = replayResponse(json, { from: 'gemini', to: 'openai-chat', request });
 * ```
 */
export const replayResponse = (body: unknown, options: Named<AnswerOptions & { framing?: Framing }>): wholes.ReplayedStream =>
  wholes.replayResponse(body, resolveNames(options));

/**
 * A stream of one protocol as a whole answer of another. Throws a CodecError when the stream ends in an error, or early.
 *
 * ```ts
 * const { body } = collectStream([bytes], { from: 'anthropic', to: 'openai-chat', request });
 * ```
 */
export const collectStream = (chunks: Iterable<Uint8Array>, options: Named<AnswerOptions>): responses.ConvertedResponse =>
  wholes.collectStream(chunks, resolveNames(options));

/**
 * Pairs two protocols for one exchange: the client's request to the upstream, the upstream's answer, stream or error to the client.
 *
 * ```ts
 * const exchange = translate('anthropic', 'openai-chat', { provider, model: 'gpt-5.6' });
 * const { url, ...init } = exchange.request({ method: 'POST', path: '/v1/messages', headers, body });
 * ```
 */
export const translate = (client: CodecName, upstream: CodecName, options: exchanges.TranslateOptions): exchanges.Exchange =>
  exchanges.translate(resolveCodec(client), resolveCodec(upstream), options);

/**
 * A list of models in the shape of another protocol.
 *
 * ```ts
 * const { body } = convertModels(json, { from: 'openai-chat', to: 'anthropic' });
 * ```
 */
export const convertModels: ByName<typeof interfaces.convertModels> = (body, options) =>
  interfaces.convertModels(body, resolveNames(options));

/** One model in the shape of another protocol; see `convertModels`. */
export const convertModelInfo: ByName<typeof interfaces.convertModelInfo> = (body, options) =>
  interfaces.convertModelInfo(body, resolveNames(options));

/**
 * A question for embeddings. `value` is for the conversion of the answer.
 *
 * ```ts
 * const { body, path, value } = convertEmbeddingsRequest(json, { from: 'openai-chat', to: 'gemini', model: 'gemini-embedding-001' });
 * ```
 */
export const convertEmbeddingsRequest: ByName<typeof interfaces.convertEmbeddingsRequest> = (body, options) =>
  interfaces.convertEmbeddingsRequest(body, resolveNames(options));

/**
 * ```ts
 * const { body } = convertEmbeddingsResponse(json, { from: 'gemini', to: 'openai-chat', embedding: value });
 * ```
 */
export const convertEmbeddingsResponse = (
  body: unknown,
  options: Named<ConvertOptions> & { embedding?: CanonicalEmbeddingRequest },
): ReturnType<typeof interfaces.convertEmbeddingsResponse> => interfaces.convertEmbeddingsResponse(body, resolveNames(options));

/** A question for a ranking; see `convertEmbeddingsRequest`. */
export const convertRerankRequest: ByName<typeof interfaces.convertRerankRequest> = (body, options) =>
  interfaces.convertRerankRequest(body, resolveNames(options));

/** A ranking; `rerank` is the question's `value`. */
export const convertRerankResponse = (
  body: unknown,
  options: Named<ConvertOptions> & { rerank?: CanonicalRerankRequest },
): ReturnType<typeof interfaces.convertRerankResponse> => interfaces.convertRerankResponse(body, resolveNames(options));

/**
 * A question how many tokens a request has. Where the upstream cannot count, `estimateCountTokens` answers.
 *
 * ```ts
 * const { body, path } = convertCountTokensRequest(json, { from: 'anthropic', to: 'gemini', model: 'gemini-3-pro' });
 * ```
 */
export const convertCountTokensRequest: ByName<typeof interfaces.convertCountTokensRequest> = (body, options) =>
  interfaces.convertCountTokensRequest(body, resolveNames(options));

/** The answer to it. */
export const convertCountTokensResponse: ByName<typeof interfaces.convertCountTokensResponse> = (body, options) =>
  interfaces.convertCountTokensResponse(body, resolveNames(options));

/**
 * The answer to a client that wants its tokens counted when the upstream cannot count: an estimate in the client's protocol, never a 404.
 *
 * ```ts
 * const body = estimateAnswer({ method: 'POST', path: '/v1/messages/count_tokens', headers: {}, body: json }, 'anthropic');
 * ```
 */
export const estimateAnswer = (wire: WireRequest, client: CodecName): unknown =>
  interfaces.estimateAnswer(wire, resolveCodec(client));

type ByName<F extends (body: unknown, options: never) => unknown> = F extends (body: unknown, options: infer O) => infer R
  ? (body: unknown, options: Named<O>) => R
  : never;
