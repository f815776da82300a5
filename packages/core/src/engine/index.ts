/** `@sluice/core/engine`: conversions that take codecs instead of protocol names, so that unused protocols are not loaded. */

export type { AnswerOptions, ConvertOptions } from './context.ts';
export {
  type ClientRequest,
  type Exchange,
  type PassRequest,
  passRequestFor,
  type TranslateOptions,
  translate,
  type UpstreamRequest,
} from './exchange.ts';
export { type ConvertedRequest, convertRequest, type DecodeOptions, decodeRequest, type RequestOptions } from './request.ts';
export {
  type ConvertedError,
  type ConvertedResponse,
  convertError,
  convertResponse,
  type ErrorReply,
  encodeError,
  nameProvider,
} from './response.ts';
export {
  type Converted,
  type ConvertedQuestion,
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
  estimateAnswer,
  estimateTokens,
} from './side-endpoints.ts';
export { type AnswerStream, type StreamOptions, streamConverter } from './stream.ts';
export { collectStream, type ReplayedStream, replay, replayResponse } from './whole.ts';
