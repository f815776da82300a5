export type { AnswerOptions, ConvertOptions } from './context.ts';
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
} from './convert-interfaces.ts';
export {
  type ConvertedRequest,
  convertRequest,
  type DecodeOptions,
  decodeRequest,
  type RequestOptions,
} from './convert-request.ts';
export {
  type ConvertedError,
  type ConvertedResponse,
  convertError,
  convertResponse,
  type ErrorReply,
  encodeError,
  nameProvider,
} from './convert-response.ts';
export { collectStream, type ReplayedStream, replayResponse } from './convert-whole.ts';
export { estimateTokens } from './estimate-tokens.ts';
export { replay } from './replay.ts';
export { type AnswerStream, type StreamOptions, streamConverter } from './stream-converter.ts';
export {
  type ClientRequest,
  type Exchange,
  type PassRequest,
  passRequestFor,
  type TranslateOptions,
  translate,
  type UpstreamRequest,
} from './translate.ts';
