/**
 * The public API of `@sluice/core`, with protocols given by name. It loads every protocol; the subpath entries
 * (`@sluice/core/engine`, `/io`, one per protocol) take codecs and load only those.
 */

export * from './accumulate/index.ts';
export * from './canonical/index.ts';
export { CodecError } from './canonical/notes.ts';
export { pipe, type Stage } from './canonical/stage.ts';
export type { Context } from './codec/context.ts';
export { deploymentOf } from './codec/deployment.ts';
export { GrammarError, type StreamGrammar } from './codec/grammar.ts';
export { BoundedCache, type CacheLimits, type ProviderProfile } from './codec/profile.ts';
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
  WireAccumulator,
  WireCodec,
  WireReply,
  WireRequest,
} from './codec/protocol.ts';
export type { StreamDecoderOptions } from './codec/stream-decoder.ts';
export { type Breakage, breakageOf } from './doctor/breakage.ts';
export {
  type Examination,
  type ExamineOptions,
  Examiner,
  type Finding,
  learnProfile,
  scoreOf,
  type Traits,
  withTitle,
} from './doctor/examiner.ts';
export {
  collectStream,
  convertCountTokensRequest,
  convertCountTokensResponse,
  convertEmbeddingsRequest,
  convertEmbeddingsResponse,
  convertError,
  convertModelInfo,
  convertModels,
  convertRequest,
  convertRerankRequest,
  convertRerankResponse,
  convertResponse,
  decodeRequest,
  estimateAnswer,
  readAsked,
  replayResponse,
  streamConverter,
  translate,
} from './engine/by-name.ts';
export { checkModelName } from './engine/exchange.ts';
export {
  type AnswerOptions,
  type AnswerStream,
  type ClientRequest,
  type Converted,
  type ConvertedError,
  type ConvertedQuestion,
  type ConvertedRequest,
  type ConvertedResponse,
  type ConvertOptions,
  type DecodeOptions,
  type ErrorReply,
  type Exchange,
  encodeError,
  encodeModelInfo,
  encodeModels,
  estimateTokens,
  nameProvider,
  type PassRequest,
  passRequestFor,
  type ReplayedStream,
  type RequestOptions,
  replay,
  type StreamOptions,
  type TranslateOptions,
  type UpstreamRequest,
} from './engine/index.ts';
export { type Assembled, type AssembledCall, type AssembledError, Assembler, type FinishWord } from './engine/message.ts';
export type { EventReaderOptions } from './engine/reader.ts';
export { checkRequestLimits, REQUEST_LIMITS, type RequestLimits } from './engine/request-limits.ts';
export { type Route, routeOf } from './engine/routes.ts';
export type { ByteSource } from './io/accumulate.ts';
export { accumulate, convertStream, readEvents } from './io/by-name.ts';
export type { ConvertStreamOptions, StreamReport } from './io/convert-stream.ts';
export { type Answerer, createFetchHandler, type FetchHandlerOptions } from './io/fetch-handler.ts';
export { findJsonStrings, type Span, withFields } from './json/fields.ts';
export { isDeeperThan } from './json/json.ts';
export { MAX_JSON_DEPTH } from './json/limits.ts';
export { endOfString, JsonScanner } from './json/scanner.ts';
export {
  CODECS,
  type CodecName,
  findCodec,
  findProtocol,
  GRAMMARS,
  openaiChatWithCompletion,
  PROTOCOL_ALIASES,
  PROTOCOLS,
  type ProtocolName,
} from './protocols/index.ts';
export { DEFAULT_CHAT_PROFILE, OPENAI_CHAT_PROFILES, openaiChatCodec, profileFor } from './protocols/openai-chat/codec.ts';
export { type Diagnostic, RULES, type Rule, type RuleId, type Severity } from './rules/index.ts';
export * from './sse/index.ts';
