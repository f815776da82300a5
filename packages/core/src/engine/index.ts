/**
 * `@sluice/core/engine`: the conversions behind the root, for codecs instead of protocol names, so that a bundle holds
 * only the protocols it uses; the side endpoints (models, token counts, embeddings, rerank); and the codecs themselves.
 */

export { pipe, type Stage } from '../canonical/stage.ts';
export type {
  Codec,
  CodecContext,
  Framing,
  HeaderBag,
  Policy,
  Protocol,
  Provider,
  RequestTarget,
  Target,
  WireCodec,
  WireReply,
  WireRequest,
} from '../codec/protocol.ts';
export { CODECS, findCodec, openaiChatWithCompletion, PROTOCOL_ALIASES } from '../protocols/index.ts';
export { type ContextOptions, type ConvertOptions, createContext, type ResponseOptions } from './context.ts';
export { estimateTokens } from './estimate.ts';
export {
  type ClientRequest,
  checkModelName,
  choosePassRequest,
  createExchange,
  type Exchange,
  type ExchangeOptions,
  type PassRequest,
  readRequestTarget,
  type UpstreamRequest,
} from './exchange.ts';
export { type AccumulatedMessage, StreamAccumulator, type StreamAccumulatorOptions } from './message.ts';
export { type ConvertedRequest, convertRequest, type DecodeOptions, decodeRequest, type RequestOptions } from './request.ts';
export { checkRequestLimits, REQUEST_LIMITS, type RequestLimits } from './request-limits.ts';
export {
  type ConvertedError,
  type ConvertedResponse,
  convertError,
  convertResponse,
  type ErrorReply,
  encodeError,
  nameProvider,
} from './response.ts';
export { findRoute, type Route } from './routes.ts';
export {
  buildTokenEstimate,
  type Converted,
  type ConvertedSideRequest,
  convertCountTokensRequest,
  convertCountTokensResponse,
  convertEmbeddingsRequest,
  convertEmbeddingsResponse,
  convertModelInfo,
  convertModels,
  convertRerankRequest,
  convertRerankResponse,
  encodeModelInfo,
  encodeModels,
} from './side-endpoints.ts';
export { createStreamConverter, type ResponseStream, type StreamOptions } from './stream.ts';
export { type ConvertedStream, convertResponseToStream, convertStreamToResponse, replay } from './whole.ts';
