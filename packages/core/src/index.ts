export * from './accumulate/index.ts';
export { isDeeperThan } from './accumulate/overlay.ts';
export * from './canonical/index.ts';
export { type Breakage, breakageOf } from './doctor/breakage.ts';
export { type ExamineOptions, Examiner } from './doctor/examiner.ts';
export { learnProfile } from './doctor/learn.ts';
export { type Examination, type Finding, scoreOf, type Traits } from './doctor/report.ts';
export { type Diagnostic, RULES, type Rule, type RuleId, type Severity } from './doctor/rules.ts';
export { withTitle } from './doctor/titles.ts';
export { checkModelName } from './engine/asked.ts';
export type { Assembled, AssembledCall, AssembledError, FinishWord } from './engine/assembled.ts';
export { Assembler } from './engine/assembler.ts';
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
export type { EventReaderOptions } from './engine/event-reader.ts';
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
export { findJsonStrings, type Span, withFields } from './engine/json-fields.ts';
export { checkRequestLimits, REQUEST_LIMITS, type RequestLimits } from './engine/request-limits.ts';
export { type Route, routeOf } from './engine/route.ts';
export { accumulate, readEvents } from './io/by-name.ts';
export { convertStream } from './io/convert-by-name.ts';
export type { ConvertStreamOptions, StreamReport } from './io/convert-stream.ts';
export { type Answerer, createFetchHandler, type FetchHandlerOptions } from './io/fetch-handler.ts';
export type { ByteSource } from './io/source.ts';
export { MAX_JSON_DEPTH } from './json/limits.ts';
export { endOfString, JsonScanner } from './json/scanner.ts';
export {
  CODECS,
  type CodecName,
  findCodec,
  findProtocol,
  GRAMMARS,
  PROTOCOL_ALIASES,
  PROTOCOLS,
  type ProtocolName,
} from './protocols/index.ts';
export { DEFAULT_CHAT_PROFILE, OPENAI_CHAT_PROFILES, openaiChatCodec, profileFor } from './protocols/openai-chat/codec.ts';
export { openaiChatWithCompletion } from './protocols/openai-chat/with-completion.ts';
export {
  type Asked,
  type Codec,
  type CodecContext,
  CodecError,
  type Framing,
  type HeaderBag,
  type Policy,
  type Provider,
  type Target,
  type WireCodec,
  type WireReply,
  type WireRequest,
} from './protocols/shared/codec.ts';
export type { Context } from './protocols/shared/context.ts';
export { deploymentOf } from './protocols/shared/deployment.ts';
export type { StreamDecoderOptions } from './protocols/shared/payload-decoder.ts';
export type { ProviderProfile } from './protocols/shared/profile.ts';
export type { Protocol, WireAccumulator } from './protocols/shared/protocol.ts';
export { BoundedCache, type CacheLimits } from './protocols/shared/remember.ts';
export { GrammarError, type StreamGrammar } from './protocols/shared/stream-grammar.ts';
export * from './sse/index.ts';
export { pipe, type Stage } from './stage.ts';
